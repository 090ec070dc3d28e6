"""The rating changes of one match, and the check that all ratings are finite; neither needs pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from evenmatch.errors import RatingRangeError
from evenmatch.history import Floats, History, match_results
from evenmatch.systems import loop
from evenmatch.systems.loop import Journal, Replay
from evenmatch.systems.system import Change, Records, Rules


def check_range(
    by: Rules,
    history: History,
    state: Records,
    result: Replay,
    player: Callable[[int], str],
    match: Callable[[int], str],
) -> None:
    """Raise RatingRangeError, naming player and match, if a rating left the range of the system."""
    if np.isfinite(result.state["rating"]).all():
        return
    after = result.journal.after if result.journal else loop.replay(by, history, state, journal=True).journal.after  # type: ignore[union-attr]
    slot = int(np.flatnonzero(~np.isfinite(after))[0])
    raise RatingRangeError(
        f"the rating of {player(int(history.columns.player[slot]))!r} leaves the range of {by.system.name} in match "
        f"{match(int(history.slot_match[slot]))!r}; nothing was rated"
    )


def changes(
    by: Rules, history: History, expected: Floats, journal: Journal, match: int, names: Sequence[str]
) -> list[list[Change]]:
    """The rating changes of one match (by index), team by team."""
    c = history.columns
    first, end = c.team_start[match : match + 2].tolist()
    starts = c.slot_start[first : end + 1].tolist()
    slots = slice(starts[0], starts[-1])
    players, factors = c.player[slots].tolist(), by.system.name_factors(journal.factors[slots])
    before, after = journal.before[slots].tolist(), journal.after[slots].tolist()
    predicted, results = expected[first:end].tolist(), match_results(c.place[first:end].tolist())
    listed, stop = [], 0
    for team, (score, result) in enumerate(zip(predicted, results, strict=True)):
        start, stop = stop, starts[team + 1] - starts[0]
        listed.append(
            [
                Change(names[players[slot]], team, before[slot], after[slot], score, result, factors[slot])
                for slot in range(start, stop)
            ]
        )
    return listed
