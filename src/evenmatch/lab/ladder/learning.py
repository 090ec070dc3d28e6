"""What a ladder's matches teach over time: the numbers that its system learns, and how soon percentiles settle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import BadParameterError, InputError
from evenmatch.history import Floats
from evenmatch.rating import Progress, Ratings
from evenmatch.standings.distribution import Population
from evenmatch.standings.placement import expected_moves, turns_of
from evenmatch.standings.rules import WINDOW
from evenmatch.systems import loop
from evenmatch.systems.ladder_records import Learned
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable
from evenmatch.times import Time

MOMENTS = 4  # at which the numbers are shown


class LearnedAt(NamedTuple):
    """What was learned from a number of matches, the last of which ended at `time`."""

    matches: int
    time: Time
    numbers: tuple[Learned, ...]


def learned_over_time(matches: MatchTable, rules: Rules, progress: Progress | None = None) -> list[LearnedAt]:
    """Rate the matches of one ladder and return what was learned after each quarter of them; the last is the present.

    Raises InputError for a system that learns nothing about ladders, for no matches, and for several ladders.
    """
    if rules.system.ladder is None:
        raise InputError(
            f"{rules.system.name} learns nothing about a ladder; expected a system that does, such as even"
        )
    if not len(matches):
        raise InputError("there are no matches to learn from; expected one or more")
    if len(matches.ladders) > 1:
        listed = ", ".join(sorted(matches.ladders))
        raise InputError(f"the matches are of several ladders ({listed}); expected those of one")
    history, count = matches.history, len(matches)
    state, ladders = rules.newcomers(history.players), rules.ladders(history.ladders)
    offsets = rules.offsets(history.offsets)
    ends = sorted({max(count * quarter // MOMENTS, 1) for quarter in range(1, MOMENTS + 1)})
    listed_moments, start = [], 0
    for end in ends:
        part = loop.replay(rules, history.take(slice(start, end)), state, ladders, offsets)
        state, ladders, offsets, start = part.state, part.ladders, part.offsets, end
        numbers = rules.system.learned(ladders, rules.parameters)
        listed_moments.append(LearnedAt(end, int(history.columns.time[end - 1]), numbers))
        if progress:
            progress(end)
    return listed_moments


def shown_number(number: Learned) -> str:
    """A number with its interval as people read it: "+38 (25 to 51)", "80%"."""
    if number.unit == "share":
        return f"{number.value:.0%}"
    return f"{number.value:+.0f} ({number.low:.0f} to {number.high:.0f})"


BOUND = 5.0  # percentiles
SURE = 2.0  # standard errors beyond which a move is above the bound by more than chance
PERIODS = 20  # in each, percentiles refer to the ratings at its start
FEW = 30  # fewest players of a measurement, and fewest ratings that percentiles refer to
MOST = 200  # completed matches up to which moves are measured


class PlacementStep(NamedTuple):
    """The move of percentiles by the next match of players who have completed some.

    completed  number of completed matches before it;  players  number of players measured
    mean, error  of the move, in percentiles: its mean and the standard error of that
    """

    completed: int
    players: int
    mean: float
    error: float


class AutoPlacement(NamedTuple):
    """The end of placement with placement=auto and a bound, in the matches measured.

    players  number of players with enough completed matches for it;  placed: those of them that it placed
    low, middle, high  completed matches after which 10, 50 and 90 % of the placed were placed
    """

    players: int
    placed: int
    low: int
    middle: int
    high: int


@dataclass(frozen=True)
class PlacementAdvice:
    """Advice for the setting `placement` of a ladder.

    placement  the least number of completed matches after which the next match moves percentiles by less than `bound`
               on average, and no later one by more than chance allows; None: not reached within the measured steps
    auto       what placement=auto does with this bound; None: it places no player
    """

    bound: float
    placement: int | None
    steps: tuple[PlacementStep, ...]
    auto: AutoPlacement | None


def placement_advice(ratings: Ratings, bound: float = BOUND) -> PlacementAdvice:
    """Measure how far the next match moves a player's percentile, by the number of matches completed before.

    ratings  with a journal;  bound  percentiles, more than 0 and at most 100
    Only the player's own rating moves: it is compared with the ratings at the start of a period.
    Raises BadParameterError, or InputError without enough matches.
    """
    if not 0 < bound <= 100:
        raise BadParameterError(f"the bound is {bound:g} percentiles; expected more than 0, at most 100")
    if ratings.journal is None:
        raise InputError("these ratings have no journal; call rate with journal=True")
    measured = list(_moves(ratings))
    completed = np.concatenate([count for count, _ in measured]) if measured else np.empty(0, np.int64)
    moves = np.concatenate([move for _, move in measured]) if measured else np.empty(0)
    steps = []
    for count in range(int(min(completed.max(initial=-1), MOST)) + 1):
        chosen = moves[completed == count]
        if len(chosen) >= FEW:
            error = float(chosen.std(ddof=1)) / len(chosen) ** 0.5
            steps.append(PlacementStep(count, len(chosen), float(chosen.mean()), error))
        elif steps:  # even fewer players have completed more matches
            break
    if not steps:
        raise InputError(
            f"too few matches for advice: expected {FEW} players who were compared with {FEW} others after a match"
        )
    above = [index for index, step in enumerate(steps) if step.mean - SURE * step.error >= bound]
    later = steps[above[-1] + 1 if above else 0 :]
    placement = next((step.completed for step in later if step.mean < bound), None)
    return PlacementAdvice(bound, placement, tuple(steps), _auto(ratings, bound))


def _auto(ratings: Ratings, bound: float) -> AutoPlacement | None:
    """The end of placement with placement=auto, without its limit of matches."""
    table, journal = ratings.matches, ratings.journal
    assert journal is not None
    able, placed = 0, [np.empty(0, np.int64)]
    for code in range(len(table.ladders)):
        history = table.history.take(np.flatnonzero(table.ladder == code))
        slots = table.ladder[table.history.slot_match] == code
        moves = expected_moves(history, journal.before[slots], journal.after[slots])
        player, ended = history.columns.player[moves.slot], moves.lowest < bound
        _, first = np.unique(player[ended], return_index=True)
        able += len(np.unique(player[moves.completed >= WINDOW]))
        placed.append(moves.completed[ended][first])
    counts = np.concatenate(placed)
    if not len(counts):
        return None
    quantiles = np.quantile(counts, (0.1, 0.5, 0.9), method="lower").tolist()
    return AutoPlacement(able, len(counts), *map(int, quantiles))


def _moves(ratings: Ratings) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """For the completed matches of each period: matches that the player completed before, and the percentiles moved."""
    table, journal = ratings.matches, ratings.journal
    assert journal is not None
    c = table.history.columns
    own = np.flatnonzero(c.keep & ~c.quit)
    player = c.player[own]
    before_it = turns_of(player)
    ladder = table.player_ladder[player]
    for code in range(len(table.ladders)):
        of_ladder = np.flatnonzero(ladder == code)
        latest = np.full(len(table.player_ladder), np.nan)
        for period in np.array_split(of_ladder, PERIODS):
            known = np.sort(latest[~np.isnan(latest)])
            slots = own[period]
            if len(known) >= FEW:
                population = Population(known)
                ends = (population.queue_percentiles(column[slots]) for column in (journal.before, journal.after))
                before, after = ends
                yield before_it[period], np.abs(after - before)
            latest[c.player[slots]] = journal.after[slots]  # of several matches the last one counts
