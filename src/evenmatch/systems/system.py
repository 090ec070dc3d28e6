"""The definition of a rating system, and everything that a system's file needs.

A system is two compiled functions over a record of state per player, and its descriptions:

    pair(a, b, home, now, state, params) -> (win, draw)
        The probabilities that team a finishes ahead of team b, and that they draw. `a` and `b` are int32 arrays of
        player indices, `home` says whether a is the first-listed team of the match, `now` is the match's time in
        microseconds. If `home` is false, pair(b, a) must be (1 − win − draw, draw).
    update(h, m, state, params, expected, factors, scratch) -> None
        Rate match m of the columns h (see history.Columns) into `state`. `expected[t]` is the expected score of each
        team before the match: the mean of win + draw/2 over its rivals. If `len(factors)` is not 0, fill it with a
        record per slot. `scratch` is float64, `scratch_columns` wide, with a row for each slot of the match.

A system that learns something about the ladder rather than a player keeps it in records of a second type, `ladder`. Its
kernels also receive the records of the match's ladder (see LadderRecords), and whether two teams play:

    pair(a, b, home, two, now, state, ladder, params)    two: whether the match has two teams
    update(h, m, state, ladder, params, expected, factors, scratch)

A system whose `update` computes the expected scores of two teams anyway may write them to `expected` and declare
`predicts`: `pair` is then called only for matches of three or more teams and when forecasts are wanted.

Four laws hold for every system, and the contract suite checks them: *split* (replaying the parts in turn equals
replaying the whole, bit for bit), *locality* (no player outside the match changes, and no other ladder's own record;
names do not matter), *containment* (states and ladders' records hold no player's index, and nothing else is kept, so
rows can be gathered and scattered together with the ladder's records) and *symmetry* (the order in which a match lists
its teams and their players changes nothing but the rounding of sums; only the first-listed team may have a role, as
with `home`). Kernels read everything a match needs before they write, assume valid input, and allocate nothing per
match; indices (teams, slots, players) are unsigned there.
`state[p].rating` is always the number shown to players.

Three more functions, in plain Python, create a record, show it at a time and move it:

    start_at(rating, p) -> tuple
        The record of a player who starts with this shown rating. Everything else is a newcomer's, and hidden numbers
        are computed to match the shown one. For a newcomer's rating it is a newcomer's record, bit for bit.
        Raises InputError for a rating that the system cannot hold.
    as_of(state, now, p) -> Records
        A copy in which everything that changes with time is what the kernels would use for a match now, by the same
        compiled function. Players who never played, or played later than now, do not change, nor does `last_played`:
        the copy is for display, and rating continues from the state itself.
    move(state, rating, p) -> Records
        A copy with these shown ratings (float64, one per record), each at least the lowest that the system can hold.
        Hidden numbers move along, and so do remembered matches, so that the next match does not undo the move.
        Deviations, counts and times do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import BadParameterError, InputError, UnknownNameError, UsageError
from evenmatch.history import Columns, Floats, Integers, log_length
from evenmatch.options import Value, choice, flag, number, numbers, options_of, read_values, whole
from evenmatch.systems import wording
from evenmatch.systems.compiled import kernel, rarely
from evenmatch.systems.ladder_records import NO_LADDER, Learned, Records, repeat_records
from evenmatch.systems.wording import Reason

__all__ = (
    "Change",
    "Columns",
    "Factor",
    "Floats",
    "Integers",
    "Parameters",
    "Reason",
    "Records",
    "Rules",
    "System",
    "as_shown",
    "below_floor",
    "choice",
    "fields",
    "flag",
    "floor_reason",
    "in_time",
    "kernel",
    "move_shown",
    "number",
    "numbers",
    "rarely",
    "starting_rating",
    "timeless",
    "uncertain_note",
    "whole",
    "wording",
)


class Parameters:
    """Base of a system's parameters: a frozen dataclass whose fields are options (see evenmatch.options).

    A system overrides `conflict` if some values are incompatible.
    """

    def conflict(self) -> str:
        """Which values are incompatible and what would be accepted; empty if there is no conflict."""
        return ""


def build(system: str, parameters: type[Parameters], values: Mapping[str, object]) -> Parameters:
    """Create parameters with these values, and defaults for the rest; text is parsed.

    Raises UnknownNameError for a name that the system does not have, BadParameterError for a value it does not accept.
    """
    made = parameters(**read_values(parameters, f"parameter of {system}", values, f" for {system}"))
    if conflict := made.conflict():
        raise BadParameterError(f"{system}: {conflict}")
    return made


def mixed(h: Columns, column: str, system: str) -> Iterator[tuple[int, str]]:
    """Matches in which some players have a value in this column and others do not."""
    for match, gaps, players in _gaps(h, column):
        if gaps < players:
            yield match, f"{column} is empty for {gaps} of {players} players; {system} needs it for all of them or none"


def missing(h: Columns, column: str, where: NDArray[np.bool_], system: str) -> Iterator[tuple[int, str]]:
    """Chosen matches (bool (M,)) in which a player has no value in this column."""
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
    """Matches that do not have exactly this many teams."""
    counts = h.team_start[1:] - h.team_start[:-1]
    for match in (counts != accepted).nonzero()[0].tolist():
        yield match, f"{counts[match]} teams; {system} rates matches of exactly {accepted}"


FactorValue = float | bool | str

FARTHEST = 1e12  # points from 0, where float64 still resolves a thousandth of a point
EVEN_GAP = 0.05  # results this close to the expected score count as expected
RATING_DECIMALS = 2  # of all shown ratings; the journal of `evenmatch export` has full precision


class Factor(NamedTuple):
    """A named number that explains a change. `labels` are the words for 0, 1, 2 …; a `flag` is true or false.

    neutral  the value that has no effect: 1 for a multiplier
    """

    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    flag: bool = False
    neutral: float = 0.0


class Change(NamedTuple):
    """The change of one player's shown rating in one match, and its reasons.

    team      counted from 0 in the match
    expected  the team's expected score before the match, 0..1
    result    the team's score: the mean over its rivals of 1 for a win, 0.5 for a draw and 0 for a loss
    factors   the system's own, by name
    """

    player: str
    team: int
    before: float
    after: float
    expected: float
    result: float
    factors: Mapping[str, FactorValue]

    @property
    def moved(self) -> float:
        """The change as shown: the difference of the rounded ratings, so that the three numbers add up."""
        return round(round(self.after, RATING_DECIMALS) - round(self.before, RATING_DECIMALS), RATING_DECIMALS)

    @property
    def is_against_result(self) -> bool:
        """True if the rating fell after a better result than expected, or rose after a worse one.

        After a win or a loss, the slightest such change counts; otherwise, results close to the expected one do not.
        """
        surprise = self.result - self.expected
        clear = abs(surprise) > EVEN_GAP or self.result in (0.0, 1.0)
        return clear and self.moved * (surprise or self.result - 0.5) < 0


def timeless(state: Records, now: int, parameters: Parameters) -> Records:
    """Return a copy: `as_of` for systems in which nothing changes with time alone."""
    return state.copy()


def move_shown(
    lowest: Callable[..., float] = lambda p: -FARTHEST, rounded: Callable[..., Floats] = lambda rating, p: rating
) -> Callable[..., Records]:
    """`move` for systems in which nothing else in the record depends on the rating.

    lowest   (parameters): the lowest rating that the system can hold
    rounded  (ratings, parameters): the ratings as the system rounds them
    """

    def move(state: Records, rating: Floats, parameters: Parameters) -> Records:
        moved = state.copy()
        moved["rating"] = np.maximum(rounded(rating, parameters), lowest(parameters))
        return moved

    return move


_move_freely = move_shown()


@dataclass(frozen=True, eq=False, repr=False)
class System:
    """A rating system: kernels, state, parameters and descriptions. Defined once per file, as `SYSTEM`.

    source          where the definition comes from, for readers
    parameters      a frozen dataclass; `presets` are sets of values for it, by name
    compile         converts the parameters to the NamedTuple of numbers that the kernels read
    state           dtype of a player's record; its field `rating` is the shown rating
    newcomer        a newcomer's record, as a tuple in the order of `state`
    start_at        (rating, parameters): the record of a player who starts with this shown rating, in the same order
    because         (change, parameters): the reason for a change that the result and the odds do not explain, or None
    note            (change, parameters): a second sentence, about the size of a change that needs no other, or None
    own_rating      (parameters): whether players are rated by their own odds rather than their team's
    whole           (parameters): whether all changes are whole numbers, which are then shown without decimals
    recall          (change, parameters): a record with which a player, at time 0, would be rated as before the match,
                    or None where the factors of the change do not tell
    needs           what a history must have, for readers; `teams` and `refuse` enforce it
    teams           how many teams a match must have; None: two or more
    as_of           (state, now, parameters): the records at a time without a match; by default, unchanged
    move            (state, ratings, parameters): the records with other shown ratings
    columns         (state, parameters): more columns for a table of ratings
    scratch_columns width of the kernels' scratch array
    refuse          (match, reason) for every match that lacks what the system needs
    strength        (records, parameters): float64 (N,), how strong players are in rating points: teams of the same
                    size with equal means of it have even odds, or nearly. If the shown rating lies below the mean, it
                    is the mean.
    ladder          dtype of the record of what is learned about a ladder; None: nothing is learned
    new_ladder      (parameters): that record before the first match, as a tuple in the order of `ladder`
    offset          dtype of the record of a player under a value of a context column; None: contexts are not used
    new_offset      (parameters): that record before the first match, as a tuple in the order of `offset`
    from_start      parameters that can change only before the first match, since records do not fit another value
    predicts        whether `update` writes the expected scores of a match of two teams itself, so that a replay
                    without forecasts needs no `pair` there
    learned         (records, parameters): the numbers in the records of a pool and its ladders, for readers
    offset_points   (records of pool and ladder, column, offsets, parameters): float64 (N, 2), what players' offsets
                    under values of a context column are worth in rating points, and half of an interval of 95 %
    methods         the DuelSystem whose plain methods Python runs instead of compiled kernels; None: kernels
    """

    name: str
    title: str
    source: str
    parameters: type[Parameters]
    compile: Callable[..., NamedTuple]
    state: np.dtype[np.void]
    newcomer: Callable[..., tuple[object, ...]]
    start_at: Callable[..., tuple[object, ...]]
    factors: tuple[Factor, ...]
    pair: Callable[..., tuple[float, float]]
    update: Callable[..., None]
    needs: str = "any matches"
    teams: int | None = None
    because: Callable[..., Reason | None] = lambda change, _: None
    note: Callable[..., Reason | None] = lambda change, _: None
    own_rating: Callable[..., bool] = lambda _: False
    whole: Callable[..., bool] = lambda _: False
    recall: Callable[..., tuple[object, ...] | None] = lambda change, _: None
    presets: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    as_of: Callable[..., Records] = timeless
    move: Callable[..., Records] = _move_freely
    columns: Callable[..., Mapping[str, NDArray[np.generic]]] = lambda state, _: {}
    scratch_columns: int = 0
    refuse: Callable[..., Iterator[tuple[int, str]]] = lambda h, _: iter(())
    strength: Callable[..., Floats] = lambda records, _: records["rating"].copy()
    ladder: np.dtype[np.void] | None = None
    from_start: tuple[str, ...] = ()
    predicts: bool = False
    new_ladder: Callable[..., tuple[object, ...]] = lambda _: (0,)
    offset: np.dtype[np.void] | None = None
    new_offset: Callable[..., tuple[object, ...]] = lambda _: (0,)
    learned: Callable[..., tuple[Learned, ...]] = lambda records, _: ()
    offset_points: Callable[..., Floats] = lambda records, column, offsets, _: np.zeros((len(offsets), 2))
    methods: type | None = None

    def __repr__(self) -> str:
        return f"<system {self.name}>"

    def refusals(self, h: Columns, parameters: Parameters) -> Iterator[tuple[int, str]]:
        """(match, reason) for every match that the system cannot rate."""
        if self.teams is not None:
            yield from team_count(h, self.teams, self.name)
        yield from self.refuse(h, parameters)

    def __post_init__(self) -> None:
        """Reject factors and states that would fail later or would overwrite a column."""
        names = [factor.name for factor in self.factors]
        fixed = {"match_id", "ladder", "player", "team", "before", "after", "expected"}
        wrong = [name for name in names if name in fixed or names.count(name) > 1]
        if wrong:
            raise UsageError(f"{self.name}: factor {wrong[0]!r} is declared twice or is a column of every journal")
        if self.ladder is not None and self.ladder.hasobject:
            raise UsageError(f"{self.name}: the ladder's record holds objects; expected numbers and arrays of numbers")
        if "rating" not in (self.state.names or ()):
            raise UsageError(f"{self.name}: the state has no field rating, which is what players see")

    @property
    def ladder_type(self) -> np.dtype[np.void]:
        """The dtype of a ladder's record; an unused one if the system learns nothing about ladders."""
        return NO_LADDER if self.ladder is None else self.ladder

    @property
    def offset_type(self) -> np.dtype[np.void]:
        """The dtype of the record of a player under a context value; an unused one if contexts are not used."""
        return NO_LADDER if self.offset is None else self.offset

    @cached_property
    def factor_type(self) -> np.dtype[np.void]:
        """The record of a slot's factors: float64 numbers, int64 labels, bool flags."""
        kinds = [(f.name, "?" if f.flag else "i8" if f.labels else "f8") for f in self.factors]
        return np.dtype(kinds, align=True)

    def name_factors(self, records: Records) -> list[dict[str, FactorValue]]:
        """The factors of slots by name, with words instead of numbers where there are labels."""
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
    """A system with fixed parameters, by which a ladder is rated."""

    system: System
    parameters: Parameters
    preset: str | None

    def __repr__(self) -> str:
        defaults = self.system.parameters()
        changed = [f"{name}={value!r}" for name, value in self.values().items() if value != getattr(defaults, name)]
        return f"<rules of {' '.join((self.system.name, *changed))}>"

    @classmethod
    def of(cls, system: System, preset: str | None = None, **values: object) -> Rules:
        """The system's defaults, overridden by a preset, then by the values given by name.

        Raises UnknownNameError for an unknown preset or parameter, BadParameterError for a value not accepted.
        """
        if preset is not None and preset not in system.presets:
            raise UnknownNameError(f"preset of {system.name}", preset, system.presets)
        chosen = {} if preset is None else system.presets[preset]
        return cls(system, build(system.name, system.parameters, {**chosen, **values}), preset)

    @cached_property
    def compiled(self) -> NamedTuple:
        """The parameters in the form that kernels read."""
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
        return repeat_records(self._newcomer, count)

    def starting(self, ratings: Floats) -> Records:
        """The state of players who start with these shown ratings.

        Raises InputError for the first rating that the system cannot hold.
        """
        state = self.newcomers(len(ratings))
        rows = [self.system.start_at(rating, self.parameters) for rating in ratings.tolist()]
        newcomer = self.system.newcomer(self.parameters)
        for index, name in enumerate(self.system.state.names or ()):
            column = [row[index] for row in rows]
            if any(value is not newcomer[index] for value in column):  # saves writing a million empty memories
                state[name] = column
        return state

    def ladders(self, count: int = 1) -> Records:
        """The records of this many ladders before their first match: one for their pool, then one per ladder."""
        return self._new_ladder.repeat(1 + count)

    def values_of_context(self, names: Sequence[str]) -> Records:
        """The records of these context values before the first match under them."""
        return self.with_lengths(self._new_ladder.repeat(len(names)), np.array([log_length(name) for name in names]))

    def with_lengths(self, ladders: Records, lengths: Floats) -> Records:
        """The records, into which the lengths of context values are written if the system reads them.

        lengths  float64, by record; see history.Columns
        """
        if len(lengths) and "length" in (ladders.dtype.names or ()):
            known = min(len(ladders), len(lengths))
            ladders["length"][:known] = lengths[:known]
        return ladders

    def offsets(self, count: int) -> Records:
        """The records of this many players under a context value before their first match under it."""
        new = np.array([self.system.new_offset(self.parameters)], self.system.offset_type)
        return repeat_records(new, count)

    def values(self) -> dict[str, Value]:
        """Every parameter with its value."""
        return {name: getattr(self.parameters, name) for name in options_of(self.system.parameters)}


def fields(*names: str) -> Callable[..., Mapping[str, NDArray[np.generic]]]:
    """`columns` for systems whose tables show fields of the state in addition to the rating."""
    return lambda state, parameters: {name: state[name] for name in names}


def starting_rating(rating: float, lowest: float = -FARTHEST, highest: float = FARTHEST) -> float:
    """The rating that a player starts with; raises InputError if it is not a number in this range."""
    if not lowest <= rating <= highest:  # also refuses NaN
        expected = f"expected a number from {lowest:.12g} to {highest:.12g}"
        raise InputError(f"starting rating {float(rating)!r}: {expected}")
    return float(rating)


def as_shown(
    newcomer: Callable[..., tuple[object, ...]], lowest: Callable[..., float] = lambda p: -FARTHEST
) -> Callable[..., tuple[object, ...]]:
    """`start_at` for systems that store the rating as it is shown, in the first field of the record.

    lowest  (parameters): the lowest accepted rating
    """
    return lambda rating, p: (starting_rating(rating, lowest(p)), *newcomer(p)[1:])


def in_time(age: Callable[..., None], compiled: Callable[..., NamedTuple]) -> Callable[..., Records]:
    """`as_of` for systems that change with time, by a compiled function that ages all records in place.

    It is called as age(state, now, params), with the parameters as returned by `compiled`.
    """

    def as_of(state: Records, now: int, parameters: Parameters) -> Records:
        aged = state.copy()
        age(aged, now, compiled(parameters))
        return aged

    return as_of


def below_floor(start: float, floor: float) -> str:
    """For `Parameters.conflict`: a message if newcomers would start below the floor, else an empty string."""
    return "" if start >= floor else f"start={start:g} is below floor={floor:g}; expected at least the floor"


def floor_reason(change: Change, floor: str) -> Reason:
    """For `System.because`: the reason for a change that the floor stopped. floor: as text."""
    return Reason(wording.FLOOR_REACHED if change.moved else wording.AT_FLOOR, {"floor": floor})


def uncertain_note(change: Change, uncertain: float, share: float) -> Reason | None:
    """For `System.note`: a rating whose deviation is above `uncertain` moved by more than this share of it."""
    before = float(change.factors["deviation_before"])
    return Reason(wording.UNCERTAIN) if before > uncertain and abs(change.moved) > share * before else None


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
