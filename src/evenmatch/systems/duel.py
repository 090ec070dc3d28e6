"""A rating system of one's own in two plain methods, which Python runs without compiling them.

    class MyElo(DuelSystem):
        k = number(32.0, 0, 200, "most points a match moves", search=(5, 100))

        def expected(self, a, b):
            return 1 / (1 + 10 ** ((b.rating - a.rating) / 400))

        def update(self, a, b, result):
            a.rating += self.k * (result - self.expected(a, b))

Every two opponents count as a duel. If a match has larger teams or more of them, a team's expected score is the mean
over the pairs of players, and a player's new numbers are the means over the opponents.
"""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, combinations, product
from typing import Any, ClassVar, NamedTuple, TypeGuard, cast

import numpy as np

from evenmatch.errors import KernelError, UsageError
from evenmatch.history import Columns, Entries, Flags, Floats, Integers
from evenmatch.systems.kernel_errors import place
from evenmatch.systems.system import Parameters, Records, System, as_shown, fields


class PlayerNumbers:
    """A player in `expected` and `update`, with the numbers that `newcomer` declares."""

    __slots__ = ()
    rating: float


class DuelSystem:
    """Base of a rating system in two plain methods. The system has the name of its class.

    newcomer  the numbers of a player who has not played; `rating` is the one that players see
    Attributes declared with `number`, `choice` or `flag` are parameters: they can be set by name and tuned.
    """

    newcomer: ClassVar[Mapping[str, float]] = {"rating": 1500.0}

    def expected(self, a: PlayerNumbers, b: PlayerNumbers) -> float:
        """The expected score of a against b, 0 to 1: the probability of a win plus half the probability of a draw."""
        raise NotImplementedError("expected(self, a, b) is not defined")

    def update(self, a: PlayerNumbers, b: PlayerNumbers, result: float) -> None:
        """Change the numbers of a after a win (1), draw (0.5) or loss (0) against b.

        b has the numbers from before the match and must not change: the method is also called with the two swapped.
        """
        raise NotImplementedError("update(self, a, b, result) is not defined")


def is_duel_system(value: object) -> TypeGuard[type[DuelSystem]]:
    """Whether this is a class of a DuelSystem."""
    return isinstance(value, type) and issubclass(value, DuelSystem)


@cache
def system_of(kind: type[DuelSystem]) -> System:
    """The rating system of a class. Raises KernelError, naming the line, if its methods fail for newcomers."""
    options = _options(kind)
    declared = [(name, float, option) for name, option in options.items()]
    parameters = dataclasses.make_dataclass(f"{kind.__name__}Parameters", declared, bases=(Parameters,), frozen=True)
    if "rating" not in kind.newcomer or not all(isinstance(value, int | float) for value in kind.newcomer.values()):
        raise UsageError(f"{kind.__name__}.newcomer is {kind.newcomer!r}; expected numbers by name, one named rating")
    start = {"rating": kind.newcomer["rating"], **kind.newcomer}  # the rating comes first, as `as_shown` wants it

    def with_values(values: Parameters) -> DuelSystem:
        methods = kind()
        vars(methods).update({name: getattr(values, name) for name in options})
        return methods

    _try_out(with_values(parameters()), start)
    return System(
        name=kind.__name__,
        title=(kind.__doc__ or "a system of your own").strip().partition("\n")[0],
        source="two plain methods",
        parameters=parameters,
        compile=cast("Callable[..., NamedTuple]", with_values),
        state=np.dtype([(name, "f8") for name in start]),
        newcomer=lambda _: tuple(start.values()),
        start_at=as_shown(lambda _: tuple(start.values())),
        columns=fields(*[name for name in start if name != "rating"]),
        factors=(),
        pair=cast("Callable[..., tuple[float, float]]", kind.expected),
        update=kind.update,
        methods=kind,
    )


def _options(kind: type[DuelSystem]) -> dict[str, Any]:
    declared = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    return {name: value for name, value in declared.items() if isinstance(value, dataclasses.Field)}


@cache
def _player_type(names: tuple[str, ...]) -> Any:  # noqa: ANN401 - a class made here
    # With slots, to assign a name that was not declared is an error.
    return dataclasses.make_dataclass("Player", [(name, float) for name in names], bases=(PlayerNumbers,), slots=True)


def _try_out(methods: DuelSystem, start: Mapping[str, float]) -> None:
    """Call the methods for two newcomers, so that an error shows before any match is read."""
    make = _player_type(tuple(start))
    for result in (1.0, 0.5, 0.0):
        a, b = make(*start.values()), make(*start.values())
        try:
            _expected(methods, [a], [b])
            methods.update(a, b, result)
        except Exception as error:  # methods of a user may raise anything
            raise _explained(methods, error) from error
        if b != make(*start.values()):
            code = type(methods).update.__code__
            where = place(code.co_filename, code.co_firstlineno)
            raise KernelError(f"{where}: update changes b; expected changes of a alone, since it is called for b too")


def _explained(methods: DuelSystem, error: Exception) -> KernelError:
    """The error to raise for an error of a user's methods, with its file and line."""
    kind, text = type(methods), str(error)
    files = {function.__code__.co_filename for function in _functions(kind)} - {__file__}
    steps = [step for step in traceback.extract_tb(error.__traceback__) if step.filename in files]
    where = f"{place(steps[-1].filename, steps[-1].lineno or 0)}: " if steps else f"{kind.__name__}: "
    owner, _, missing = text.partition(" object has no attribute ")
    name = missing.partition(" ")[0]  # some versions of Python add more words
    if name and owner == "'Player'":
        text = f"the state has no field {name}; it has {', '.join(kind.newcomer)}"
    elif name and owner == f"'{kind.__name__}'":
        text = f"the system has no parameter {name}; it has {', '.join(_options(kind)) or 'none'}"
    elif not isinstance(error, UsageError | NotImplementedError):
        text = f"{type(error).__name__}: {text}"
    return KernelError(where + text, "".join(traceback.format_exception(error)))


def _functions(kind: type) -> Iterator[Any]:
    for base in kind.__mro__:
        yield from (value for value in vars(base).values() if hasattr(value, "__code__"))


def code_of_methods(kind: type) -> str:
    """The code of a class's methods as text, for fingerprints. It differs between versions of Python."""
    return repr((kind.__module__, [(function.__qualname__, _code(function.__code__)) for function in _functions(kind)]))


def _code(code: Any) -> tuple[object, ...]:  # noqa: ANN401
    constants = [_code(item) if hasattr(item, "co_code") else repr(item) for item in code.co_consts]
    return code.co_code.hex(), code.co_names, constants


def _expected(methods: DuelSystem, a: Sequence[Any], b: Sequence[Any]) -> float:
    """The expected score of team a against team b."""
    scores = [methods.expected(own, other) for own, other in product(a, b)]
    for score in scores:
        if not isinstance(score, int | float) or not 0.0 <= score <= 1.0:
            raise UsageError(f"expected returns {score!r}; expected a number from 0 to 1")
    return sum(scores) / len(scores)


class _Players:
    """The records of those players who take part, as objects of Python."""

    def __init__(self, state: Records, player: Integers) -> None:
        self._state, self._rows = state, np.unique(player)
        self.make = _player_type(state.dtype.names or ())
        self._players = {row: self.make(*state[row].tolist()) for row in self._rows.tolist()}

    def team(self, rows: Sequence[int]) -> list[Any]:
        return [self._players[row] for row in rows]

    def store(self, row: int, player: Any) -> None:  # noqa: ANN401
        self._players[row] = player

    def write(self) -> None:
        """Write the numbers back to the state."""
        names = self._state.dtype.names or ()
        for name in names:
            self._state[name][self._rows] = [getattr(self._players[row], name) for row in self._rows.tolist()]


def replay(
    h: Columns,
    start: int,
    stop: int,
    state: Records,
    ladders: Records,
    offsets: Records,
    params: DuelSystem,
    expected: Floats,
    before: Floats,
    after: Floats,
    factors: Records,
    scratch: Floats,
    saved: Records,
    saved_ladders: Records,
    saved_offsets: Records,
    forecasts: Floats,
) -> None:
    """Predict and rate matches as `loop.loop` does, with the methods of `params`."""
    first_team, starts = int(h.team_start[start]), h.slot_start.tolist()
    players = _Players(state, h.player[starts[first_team] : starts[h.team_start[stop]]])
    pair_index = 0
    for m in range(start, stop):
        numbers = range(*h.team_start[m : m + 2].tolist())
        rows = [h.player[starts[team] : starts[team + 1]].tolist() for team in numbers]
        teams = [players.team(team) for team in rows]
        slots = slice(starts[numbers.start], starts[numbers.stop])
        try:
            chances = [_expected(params, a, b) for a, b in combinations(teams, 2)]
            updated = _updated(params, players.make, teams, h.place[numbers.start : numbers.stop].tolist())
        except Exception as error:  # methods of a user may raise anything
            raise _explained(params, error) from error
        expected[numbers.start : numbers.stop] = _means(chances, len(teams))
        if len(forecasts):
            forecasts[pair_index : pair_index + len(chances)] = [(chance, 0.0) for chance in chances]
            pair_index += len(chances)
        if len(before):
            before[slots] = [player.rating for team in teams for player in team]
        for row, player, keep in zip(chain(*rows), updated, h.keep[slots].tolist(), strict=True):
            if keep:
                players.store(row, player)
        if len(after):
            after[slots] = [player.rating for team in rows for player in players.team(team)]
    players.write()


def _updated(methods: DuelSystem, make: Any, teams: Sequence[Sequence[Any]], places: Sequence[int]) -> list[Any]:  # noqa: ANN401
    """The players of a match, team after team, with their numbers after it."""
    updated = []
    for own, team in enumerate(teams):
        for player in team:
            numbers = [getattr(player, name) for name in make.__slots__]
            outcomes = []
            for other, rivals in enumerate(teams):
                result = 0.5 * (1 + (places[other] > places[own]) - (places[other] < places[own]))
                for rival in rivals if other != own else ():
                    outcomes.append(make(*numbers))
                    methods.update(outcomes[-1], rival, result)
            if len(outcomes) > 1:
                columns = [[getattr(outcome, name) for outcome in outcomes] for name in make.__slots__]
                outcomes = [make(*[sum(column) / len(outcomes) for column in columns])]
            updated.append(outcomes[0])
    return updated


def _means(chances: Sequence[float], teams: int) -> list[float]:
    """Each team's mean expected score over its rivals, from those of the pairs (0, 1), (0, 2) … (1, 2) …"""
    total = [0.0] * teams
    for (a, b), chance in zip(combinations(range(teams), 2), chances, strict=True):
        total[a] += chance
        total[b] += 1.0 - chance
    return [score / (teams - 1) for score in total]


def forecast(
    team_start: Integers,
    player: Integers,
    first: Integers,
    second: Integers,
    home: Flags,
    two: bool,
    now: int,
    state: Records,
    ladders: Records,
    values: Integers,
    offsets: Records,
    offset: Integers,
    entry: Entries,
    params: DuelSystem,
    forecasts: Floats,
) -> None:
    """Predict pairs of teams as `loop.forecast` does, with the methods of `params`."""
    players, starts = _Players(state, player), team_start.tolist()
    for index, pair in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        a, b = (players.team(player[starts[team] : starts[team + 1]].tolist()) for team in pair)
        try:
            forecasts[index] = _expected(params, a, b), 0.0
        except Exception as error:  # methods of a user may raise anything
            raise _explained(params, error) from error
