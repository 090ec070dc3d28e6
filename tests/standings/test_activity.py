"""Who is active and who is placed."""

from datetime import UTC, datetime, timedelta

import pytest

from evenmatch import Appearance, Match, Team, from_matches
from evenmatch.durations import DAY
from evenmatch.standings.activity import NEVER, Activity

START = datetime(2026, 1, 1, tzinfo=UTC)
ZERO = 1767225600_000000


def duels_table(*appearances):
    """Duels against the house, one per (day, player, quit)."""
    return from_matches(
        Match(
            f"m{at}",
            START + timedelta(days=day),
            (Team((Appearance(player, quit=quit_early),), 1), Team.of("house", place=2)),
        )
        for at, (day, player, quit_early) in enumerate(appearances)
    )


def of(matches):
    activity = Activity.of(matches.history)
    rows = zip(activity.matches, activity.completed, activity.last_played, activity.last_completed, strict=True)
    return activity, {name: tuple(map(int, row)) for name, row in zip(matches.player_names, rows, strict=True)}


def test_a_match_that_was_quit_is_played_and_not_completed():
    _, found = of(duels_table((0, "ann", False), (1, "ann", True), (2, "bob", True), (3, "ann", True)))
    assert found["ann"] == (3, 1, ZERO + 3 * DAY, ZERO)
    assert found["bob"] == (1, 0, ZERO + 2 * DAY, NEVER)
    assert found["house"] == (4, 4, ZERO + 3 * DAY, ZERO + 3 * DAY)


# Days before the moment at which ann completed a match, the window in days, whether she is active
WINDOW = [
    (0, 30, True),
    (29.999, 30, True),
    (30, 30, True),  # the window's first moment is in it
    (30 + 1 / 86_400_000_000, 30, False),
    (31, 30, False),
    (0.5, 0.5, True),
    (0, 0, True),
    (0.001, 0, False),
    (300, 365, True),
]


@pytest.mark.parametrize(("ago", "days", "expected"), WINDOW)
def test_who_completed_a_match_in_the_window_is_active(ago, days, expected):
    matches = duels_table((0, "ann", False))
    as_of = ZERO + round(ago * DAY)
    assert Activity.of(matches.history).active(as_of, days).tolist() == [expected, expected]


@pytest.mark.parametrize(("placement", "placed"), [(0, True), (1, True), (2, True), (3, False)])
def test_placement_counts_completed_matches(placement, placed):
    matches = duels_table((0, "ann", False), (1, "ann", True), (2, "ann", False), (3, "ann", True))
    found = dict(zip(matches.player_names, Activity.of(matches.history).placed(placement), strict=True))
    assert found["ann"] == placed
