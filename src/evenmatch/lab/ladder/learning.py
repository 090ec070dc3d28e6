"""The numbers that a rating system learns of a ladder, over the time of its matches."""

from __future__ import annotations

from typing import NamedTuple

from evenmatch.errors import InputError
from evenmatch.rating import Progress
from evenmatch.systems import loop
from evenmatch.systems.ladder_records import Learned
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable

MOMENTS = 4  # at which the numbers are shown


class LearnedAt(NamedTuple):
    """The numbers after a number of matches; time: of the last of them, microseconds."""

    matches: int
    time: int
    numbers: tuple[Learned, ...]


def learned_over_time(matches: MatchTable, rules: Rules, progress: Progress | None = None) -> list[LearnedAt]:
    """Rate the matches of one ladder and return what was learned after each quarter of them; the last is the present.

    Raises InputError for a system that learns nothing of ladders, for no matches, and for several ladders.
    """
    if rules.system.ladder is None:
        raise InputError(f"{rules.system.name} learns nothing of a ladder; expected a system that does, such as even")
    if not len(matches):
        raise InputError("there are no matches to learn from; expected one or more")
    if len(matches.ladders) > 1:
        listed = ", ".join(sorted(matches.ladders))
        raise InputError(f"the matches are of several ladders ({listed}); expected those of one")
    history, count = matches.history, len(matches)
    state, ladders = rules.newcomers(history.players), rules.ladders(history.ladders)
    ends = sorted({max(count * quarter // MOMENTS, 1) for quarter in range(1, MOMENTS + 1)})
    listed_moments, start = [], 0
    for end in ends:
        part = loop.replay(rules, history.take(slice(start, end)), state, ladders)
        state, ladders, start = part.state, part.ladders, end
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
