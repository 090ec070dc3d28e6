"""A rating over time: every peak and every low, where a season began anew, and the rest from a step on."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch.players.rating_path import RatingPath, RatingStep, SeasonOpening, thinned
from ledger.sample_matches import duel, team_match

HOUR = 3_600_000_000  # microseconds


def test_a_short_path_has_every_match_in_order(service, elo_reading):
    service.record_many(
        "default", [duel(1, "ann", "bob"), team_match(2, (1, "ann"), (1, "bob")), duel(3, "bob", "ann")]
    )
    name, path = elo_reading.path("default", "ann", 100)
    assert name == "ann"
    assert [(one.match_id, one.word) for one in path.steps] == [("m1", "won"), ("m2", "drew"), ("m3", "lost")]
    assert (path.steps[0].before, path.steps[0].after) == (1500.0, 1516.0)
    assert all(one.after == two.before for one, two in pairwise(path.steps))
    assert path.openings == []


def test_the_peak_and_the_low_of_a_long_path_are_always_in_it(service, elo_reading):
    won = np.random.default_rng(3).random(240) < 0.5
    listed = [duel(at, *(("ann", "bob") if each else ("bob", "ann"))) for at, each in enumerate(won, 1)]
    service.record_many("default", listed)
    whole = [one.after for one in elo_reading.path("default", "ann", 1000)[1].steps]
    for most in (20, 21, 50, 133):
        _, path = elo_reading.path("default", "ann", most)
        assert len(path.steps) <= most
        some = [one.after for one in path.steps]
        assert (max(some), min(some)) == (max(whole), min(whole))
        assert [one.match_id for one in (path.steps[0], path.steps[-1])] == ["m1", "m240"]


def test_the_rest_of_a_path_has_the_seasons_and_falls_after_its_first_step():
    steps = [RatingStep(f"m{at}", at * HOUR, 1500.0, 1516.0, "won", None, None) for at in range(1, 6)]
    seasons = [SeasonOpening("Spring", 2 * HOUR - 1), SeasonOpening("Summer", 4 * HOUR - 1)]
    path = RatingPath(steps, seasons, [])
    assert path.since(0) == path
    assert path.since(3) == RatingPath(steps[3:], [], [])
    assert path.since(1) == RatingPath(steps[1:], seasons[1:], [])
    assert path.since(5) == RatingPath([], seasons, [])


def test_a_season_that_opens_on_the_way_is_marked_and_its_first_match_is_kept(service, elo_reading):
    service.record_many("default", [duel(at, "ann", "bob") for at in range(1, 51)])
    service.open_season("default", title="Summer")  # after ten days
    service.clock.move(days=10)
    service.record_many("default", [duel(at, "ann", "bob") for at in range(260, 310)])
    _, path = elo_reading.path("default", "ann", 20)
    (opening,) = path.openings
    assert opening.title == "Summer"
    first = next(one for one in path.steps if one.played_at > opening.at)
    assert first.match_id == "m260"
    _, whole = elo_reading.path("default", "ann", 1000)
    last = whole.steps[49]
    assert first.before == pytest.approx(1500 + (last.after - 1500) / 2)  # a soft reset halves what was gained


@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=300), st.integers(4, 60), st.sets(st.integers(0, 299), max_size=3)
)
def test_what_is_left_of_a_path_keeps_its_ends_its_extremes_and_what_is_asked_for(values, most, always):
    always = {one for one in always if one < len(values)}
    kept = thinned(values, most, always)
    assert kept == sorted(set(kept))
    assert len(kept) <= max(most, 4 + len(always))
    assert {0, len(values) - 1} | always <= set(kept)
    assert {max(values), min(values)} <= {values[one] for one in kept}
