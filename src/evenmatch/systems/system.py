"""The definition of a rating system, and everything that a system's file needs.

A system is two compiled functions over a record of state per player, and its words:

    pair(a, b, home, now, state, params) -> (win, draw)
        The probabilities that team a finishes ahead of team b, and that they draw. `a` and `b` are int32 arrays of
        player indices, `home` is whether a is the first-listed team of the match, `now` is the match's time in
        microseconds. Where `home` is false, pair(b, a) must be (1 − win − draw, draw).
    update(h, m, state, params, expected, factors, scratch) -> None
        Rate match m of the columns h (see history.Columns) into `state`. `expected[t]` is the expected score of each
        team before the match: the mean of win + draw/2 over its rivals. Where `len(factors)` is not 0 it is a record
        per slot to fill. `scratch` is float64, `scratch_columns` wide, with a row for each slot of the match.

A system that learns something of the ladder, and not of a player, keeps it in records of a second type, `ladder`. Its
kernels get them beside the states, with the records of the match's ladder (see LadderRecords), and how many teams play:

    pair(a, b, home, two, now, state, ladder, params)    two: whether the match has two teams
    update(h, m, state, ladder, params, expected, factors, scratch)

A system whose `update` finds the expected scores of two teams on its way may write them to `expected` and declare
`predicts`: `pair` is then called for matches of three teams or more, and where forecasts are wanted.

Four laws hold for every system, and the contract suite checks them: *split* (replaying the parts in turn equals
replaying the whole, bit for bit), *locality* (no player outside the match changes, and no other ladder's own record;
names do not matter), *containment* (states and ladders' records hold no player's index, and nothing else is kept:
rows can be gathered and scattered with the ladder's records beside them) and *symmetry* (the order in which a match
lists its teams, and the players of a team, changes nothing but the rounding of sums; only the first-listed team may
have a role, as with `home`). Kernels read everything a match needs before they write, assume valid input, and allocate
nothing per match; indices (teams, slots, players) are unsigned there.
`state[p].rating` is always the number shown to players.

Three more functions, of plain Python, begin a record, show it at a time and move it:

    start_at(rating, p) -> tuple
        The record of a player who begins with this shown rating: everything else is a newcomer's, and a number
        behind the shown one is computed to match it. With a newcomer's rating it is a newcomer, bit for bit.
        InputError for a rating that the system cannot hold.
    as_of(state, now, p) -> Records
        A copy with what changes by time alone as the kernels would have it at a match now, by the same compiled
        function. Players who never played, or played later than that, stay as they are, and so does `last_played`:
        the copy is for showing, and ratings go on from the state itself.
    move(state, rating, p) -> Records
        A copy with these shown ratings (float64, one per record), each at least the lowest that the system can hold.
        A number behind the shown one moves along, and so does what remembered matches say of it, so that the next match
        does not undo the move. Deviations, counts and times stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import BadParameterError, InputError, UnknownNameError, UsageError
from evenmatch.history import Columns, Floats, Integers
from evenmatch.options import Value, choice, flag, number, numbers, options_of, shown, whole
from evenmatch.systems.compiled import kernel, rarely
from evenmatch.systems.ladder_records import NO_LADDER, Learned, Records

__all__ = (
    "Change",
    "Columns",
    "Factor",
    "Floats",
    "Integers",
    "Parameters",
    "Records",
    "Rules",
    "System",
    "any_match",
    "as_shown",
    "below_floor",
    "choice",
    "deviation_text",
    "fields",
    "flag",
    "in_time",
    "kernel",
    "no_columns",
    "number",
    "numbers",
    "rarely",
    "score_text",
    "starting_rating",
    "timeless",
    "whole",
)


class Parameters:
    """Base of a system's parameters: a frozen dataclass whose fields are options (see evenmatch.options).

    A system overrides `conflict` where values may not go together.
    """

    def conflict(self) -> str:
        """What does not go together and what would be accepted; empty where all is well."""
        return ""


def build(system: str, parameters: type[Parameters], values: Mapping[str, object]) -> Parameters:
    """Parameters with these values, defaults elsewhere; text is parsed.

    Raises UnknownNameError for a name that the system does not have, BadParameterError for a value it does not accept.
    """
    options = options_of(parameters)
    read: dict[str, Value] = {}
    for name, value in values.items():
        if name not in options:
            raise UnknownNameError(f"parameter of {system}", name, options)
        try:
            read[name] = options[name].read(value)
        except (ValueError, TypeError, OverflowError):
            raise BadParameterError(f"{name}={shown(value)} for {system}: expected {options[name].accepts}") from None
    made = parameters(**read)
    if conflict := made.conflict():
        raise BadParameterError(f"{system}: {conflict}")
    return made


def mixed(h: Columns, column: str, system: str) -> Iterator[tuple[int, str]]:
    """Matches in which some players have a value in this column and others have not."""
    for match, gaps, players in _gaps(h, column):
        if gaps < players:
            yield match, f"{column} is empty for {gaps} of {players} players; {system} needs it for all of them or none"


def missing(h: Columns, column: str, where: NDArray[np.bool_], system: str) -> Iterator[tuple[int, str]]:
    """Matches among those chosen (bool (M,)) in which a player has no value in this column."""
    for match, gaps, players in _gaps(h, column):
        if where[match]:
            yield match, f"{column} is empty for {gaps} of {players} players; {system} needs it for every player"


def match_of(h: Columns, teams: NDArray[np.integer]) -> NDArray[np.intp]:
    """The match of each of these teams."""
    return np.searchsorted(h.team_start, teams, side="right") - 1


def _gaps(h: Columns, column: str) -> Iterator[tuple[int, int, int]]:
    """(match, players without a value, players) for each match with a gap in the column."""
    gap = np.isnan(getattr(h, column))
    if not gap.any():
        return
    slots = h.slot_start[h.team_start]
    gaps, players = np.add.reduceat(gap, slots[:-1], dtype=np.int64), np.diff(slots)
    for match in np.flatnonzero(gaps).tolist():
        yield match, int(gaps[match]), int(players[match])


def team_count(h: Columns, accepted: int, system: str) -> Iterator[tuple[int, str]]:
    """Matches that have not exactly this many teams."""
    counts = h.team_start[1:] - h.team_start[:-1]
    for match in (counts != accepted).nonzero()[0].tolist():
        yield match, f"{counts[match]} teams; {system} rates matches of exactly {accepted}"


FactorValue = float | bool | str

FARTHEST = 1e12  # points from 0, where float64 still resolves a thousandth of a point


class Factor(NamedTuple):
    """A named number that explains a change. `labels` are the words for 0, 1, 2 …; a `flag` is true or false.

    neutral  the value with which it changes nothing: 1 for what others are multiplied by
    """

    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    flag: bool = False
    neutral: float = 0.0


class Change(NamedTuple):
    """The change of one player's shown rating by one match, and its reasons.

    team      counted from 0 in the match
    expected  the team's expected score before the match, 0..1
    result    the team's score: mean over its rivals of 1 for finishing ahead, 0.5 for a draw, 0 for behind
    factors   the system's own, by name
    """

    player: str
    team: int
    before: float
    after: float
    expected: float
    result: float
    factors: Mapping[str, FactorValue]


@dataclass(frozen=True, eq=False, repr=False)
class System:
    """A rating system: kernels, state, parameters and words. Defined once per file, as `SYSTEM`.

    source          where the definition is from, for people
    needs           what a history must have, for people; `teams` and `refuse` enforce it
    teams           how many teams a match must have; None: two or more
    parameters      a frozen dataclass; `presets` are sets of values for it, by name
    compile         the parameters as the NamedTuple of numbers that the kernels read
    state           dtype of a player's record; its field `rating` is the shown rating
    newcomer        a newcomer's record, as a tuple in the order of `state`
    start_at        (rating, parameters): the record of a player who begins with this shown rating, in the same order
    as_of           (state, now, parameters): the records as they are at a time without a match
    move            (state, ratings, parameters): the records with other shown ratings
    columns         (state, parameters): further columns of a table of ratings, as people are shown them
    refuse          (match, reason) for every match that lacks what the system needs
    tell            a change as a sentence without the player's name
    strength        (records, parameters): float64 (N,), a number in points of the rating that says how strong players
                    are: teams of one size with equal means of it have even odds, or nearly. Where what is shown is
                    less than the mean, it is the mean.
    ladder          dtype of the record of what is learned of a ladder; None: nothing is
    new_ladder      (parameters): that record before the first match, as a tuple in the order of `ladder`
    from_start      parameters that change from the first match on only: present records do not fit another value
    predicts        whether `update` writes the expected scores of a match of two teams itself, so that a replay
                    without forecasts needs no `pair` there
    learned         (records, parameters): the numbers in the records of a pool and its ladders, for people
    """

    name: str
    title: str
    source: str
    needs: str
    teams: int | None
    parameters: type[Parameters]
    presets: Mapping[str, Mapping[str, Value]]
    compile: Callable[..., NamedTuple]
    state: np.dtype[np.void]
    newcomer: Callable[..., tuple[object, ...]]
    start_at: Callable[..., tuple[object, ...]]
    as_of: Callable[..., Records]
    move: Callable[..., Records]
    columns: Callable[..., Mapping[str, NDArray[np.generic]]]
    factors: tuple[Factor, ...]
    pair: Callable[..., tuple[float, float]]
    update: Callable[..., None]
    scratch_columns: int
    refuse: Callable[..., Iterator[tuple[int, str]]]
    tell: Callable[..., str]
    strength: Callable[..., Floats] = lambda records, _: records["rating"].copy()
    ladder: np.dtype[np.void] | None = None
    from_start: tuple[str, ...] = ()
    predicts: bool = False
    new_ladder: Callable[..., tuple[object, ...]] = lambda _: (0,)
    learned: Callable[..., tuple[Learned, ...]] = lambda records, _: ()

    def __repr__(self) -> str:
        return f"<system {self.name}>"

    def refusals(self, h: Columns, parameters: Parameters) -> Iterator[tuple[int, str]]:
        """(match, reason) for every match that the system cannot rate."""
        if self.teams is not None:
            yield from team_count(h, self.teams, self.name)
        yield from self.refuse(h, parameters)

    def __post_init__(self) -> None:
        """Reject factors and states that would fail later or overwrite a column."""
        names = [factor.name for factor in self.factors]
        fixed = {"match_id", "ladder", "player", "team", "before", "after", "expected"}
        wrong = [name for name in names if name in fixed or names.count(name) > 1]
        if wrong:
            raise UsageError(f"{self.name}: factor {wrong[0]!r} is a column of every journal, or given twice")
        if self.ladder is not None and self.ladder.hasobject:
            raise UsageError(f"{self.name}: the ladder's record holds objects; expected numbers and arrays of numbers")
        if "rating" not in (self.state.names or ()):
            raise UsageError(f"{self.name}: the state has no field rating, which is what players see")

    @property
    def ladder_type(self) -> np.dtype[np.void]:
        """The dtype of a ladder's record, that of an unused one where the system learns nothing of ladders."""
        return NO_LADDER if self.ladder is None else self.ladder

    @cached_property
    def factor_type(self) -> np.dtype[np.void]:
        """The record of a slot's factors: float64 numbers, int64 labels, bool flags."""
        kinds = [(f.name, "?" if f.flag else "i8" if f.labels else "f8") for f in self.factors]
        return np.dtype(kinds, align=True)

    def name_factors(self, records: Records) -> list[dict[str, FactorValue]]:
        """The factors of slots by name, with words for those that have labels."""
        names, labelled = self._factor_names
        listed: list[dict[str, FactorValue]] = list(map(dict, map(zip, repeat(names), records.tolist())))
        for name, labels in labelled:
            for named in listed:
                named[name] = labels[int(named[name])]
        return listed

    @cached_property
    def _factor_names(self) -> tuple[list[str], list[tuple[str, tuple[str, ...]]]]:
        return [f.name for f in self.factors], [(f.name, f.labels) for f in self.factors if f.labels]


@dataclass(frozen=True, eq=False, repr=False)
class Rules:
    """A system with its parameters decided: what a ladder is rated by."""

    system: System
    parameters: Parameters
    preset: str | None

    def __repr__(self) -> str:
        defaults = self.system.parameters()
        changed = [f"{name}={value!r}" for name, value in self.values().items() if value != getattr(defaults, name)]
        return f"<rules of {' '.join((self.system.name, *changed))}>"

    @classmethod
    def of(cls, system: System, preset: str | None = None, **values: object) -> Rules:
        """The system's defaults, changed by a preset, changed by values by name.

        Raises UnknownNameError for an unknown preset or parameter, BadParameterError for a value not accepted.
        """
        if preset is not None and preset not in system.presets:
            raise UnknownNameError(f"preset of {system.name}", preset, system.presets)
        chosen = {} if preset is None else system.presets[preset]
        return cls(system, build(system.name, system.parameters, {**chosen, **values}), preset)

    @cached_property
    def compiled(self) -> NamedTuple:
        """The parameters as the kernels read them."""
        return self.system.compile(self.parameters)

    @cached_property
    def _newcomer(self) -> Records:
        """One newcomer's record."""
        return np.array([self.system.newcomer(self.parameters)], self.system.state)

    @cached_property
    def _new_ladder(self) -> Records:
        """One ladder's record before its first match."""
        return np.array([self.system.new_ladder(self.parameters)], self.system.ladder_type)

    def newcomers(self, count: int) -> Records:
        """The state of `count` players who have not played."""
        return self._newcomer.repeat(count)

    def starting(self, ratings: Floats) -> Records:
        """The state of players who begin with these shown ratings.

        Raises InputError for the first one that the system cannot hold.
        """
        state = self.newcomers(len(ratings))
        rows = [self.system.start_at(rating, self.parameters) for rating in ratings.tolist()]
        newcomer = self.system.newcomer(self.parameters)
        for index, name in enumerate(self.system.state.names or ()):
            column = [row[index] for row in rows]
            if any(value is not newcomer[index] for value in column):  # a million empty memories need no writing
                state[name] = column
        return state

    def ladders(self, count: int = 1) -> Records:
        """The records of this many ladders that have had no match: that of their pool, then one for each ladder."""
        return self._new_ladder.repeat(1 + count)

    def values(self) -> dict[str, Value]:
        """Every parameter with its value."""
        return {name: getattr(self.parameters, name) for name in options_of(self.system.parameters)}


def no_columns(state: Records, parameters: Parameters) -> dict[str, NDArray[np.generic]]:
    """For systems that show nothing but the rating: no further columns in tables."""
    return {}


def fields(*names: str) -> Callable[..., Mapping[str, NDArray[np.generic]]]:
    """For systems whose tables show fields of the state beside the rating."""
    return lambda state, parameters: {name: state[name] for name in names}


def any_match(h: Columns, parameters: Parameters) -> Iterator[tuple[int, str]]:
    """For systems that can rate whatever a history holds."""
    return iter(())


def starting_rating(rating: float, lowest: float = -FARTHEST, highest: float = FARTHEST) -> float:
    """The rating that a player begins with; raises InputError where it is not a number in this range."""
    if not lowest <= rating <= highest:  # not a number, too
        expected = f"expected a number from {lowest:.12g} to {highest:.12g}"
        raise InputError(f"starting rating {float(rating)!r}: {expected}")
    return float(rating)


def as_shown(
    newcomer: Callable[..., tuple[object, ...]], lowest: Callable[..., float] = lambda p: -FARTHEST
) -> Callable[..., tuple[object, ...]]:
    """For systems that store the rating as it is shown: `start_at`, for ratings from the lowest one accepted.

    lowest  of these parameters; the rating is the first field of the record
    """
    return lambda rating, p: (starting_rating(rating, lowest(p)), *newcomer(p)[1:])


def timeless(state: Records, now: int, parameters: Parameters) -> Records:
    """For systems in which nothing changes by time alone: `as_of`, a plain copy."""
    return state.copy()


def in_time(age: Callable[..., None], compiled: Callable[..., NamedTuple]) -> Callable[..., Records]:
    """For systems with a rule of time: `as_of` by a compiled function that ages all records where they are.

    It is called as age(state, now, params), with the parameters as `compiled` makes them for the kernels.
    """

    def as_of(state: Records, now: int, parameters: Parameters) -> Records:
        aged = state.copy()
        age(aged, now, compiled(parameters))
        return aged

    return as_of


def below_floor(start: float, floor: float) -> str:
    """For `Parameters.conflict`: the message where newcomers would begin below the floor, else an empty text."""
    return "" if start >= floor else f"start={start:g} is below floor={floor:g}; expected a start from the floor up"


# Parts of sentences that several systems share, for `tell`.


def score_text(change: Change) -> str:
    """The team's result and its expected score."""
    return f"scored {change.result:.2f} where {change.expected:.3f} was expected"


def deviation_text(change: Change, decimals: int) -> str:
    """The deviation before and after, from the factors deviation_before and deviation_after."""
    before, after = (float(change.factors[f"deviation_{when}"]) for when in ("before", "after"))
    return f"deviation {before:.{decimals}f} → {after:.{decimals}f}"


def system_as_data(system: System) -> dict[str, object]:
    """Return the source, needs, parameters, presets and factors of a rating system, for JSON."""
    return {
        "name": system.name,
        "title": system.title,
        "source": system.source,
        "needs": system.needs,
        "parameters": {
            name: {"default": option.default, "accepts": option.accepts, "meaning": option.meaning}
            for name, option in options_of(system.parameters).items()
        },
        "presets": {name: dict(values) for name, values in system.presets.items()},
        "factors": factors_as_data(system),
    }


def factors_as_data(system: System) -> dict[str, dict[str, object]]:
    """Return the meaning of the factors of a rating change, by name."""
    return {
        factor.name: {"meaning": factor.meaning, **({"labels": list(factor.labels)} if factor.labels else {})}
        for factor in system.factors
    }
