"""Promises of rating systems: which ones break, on which smallest case, and which survive random cases."""

from contextlib import redirect_stdout, suppress
from dataclasses import replace
from io import StringIO
from itertools import islice

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evenmatch import rules, systems
from evenmatch.errors import InputError
from evenmatch.lab.fairness import invariants
from evenmatch.lab.fairness.invariants import (
    DRAW,
    INVARIANTS,
    LOSS,
    WIN,
    Case,
    check_draws,
    check_quitting,
    check_results,
    check_scores,
    levels,
    search,
)


def searched(by, name, every=1):
    """Search every so many of an invariant's cases."""
    whole = INVARIANTS[name]
    return search(by, replace(whole, cases=lambda ratings: islice(whole.cases(ratings), 0, None, every)))


def test_the_article_s_wager_rewards_a_losing_favourite_who_quits_and_the_default_does_not():
    case = Case(((1300.0,) * 5, (1000.0,) * 5), place=LOSS, left=0.5)
    found = check_quitting(rules("wager", preset="article"), case)
    before, stayed, left = found.rows[0]
    assert before - stayed == pytest.approx(1.30 * before / 20.0)
    assert before - left == pytest.approx(1.17 * before / 20.0)
    assert "1215.5 if you lose and stay" in found.broken
    assert not check_quitting(rules("wager"), case).broken


def test_a_search_finds_the_article_s_hole_in_a_duel_and_none_in_the_default():
    broken = searched(rules("wager", preset="article"), "quitting")
    assert broken.outcome == "broken"
    assert len(broken.case.teams[0]) == 1
    assert broken.case.past == ("", "")
    assert broken.case.teams[0][0] > broken.case.teams[1][0]
    assert searched(rules("wager"), "quitting", every=13).outcome == "holds"


def test_a_finding_is_replayed_by_its_program():
    finding = searched(rules("wager", quitter_time="actual"), "quitting")
    assert "'quitter_time': 'actual'" in finding.python
    printed = StringIO()
    with redirect_stdout(printed):
        exec(finding.python, {})
    assert finding.sentence in printed.getvalue()


def test_no_smaller_case_breaks_the_invariant():
    by, name = rules("wager"), "draws"
    finding = searched(by, name)
    smaller = [case for case in INVARIANTS[name].cases(levels(by)) if case.size < finding.case.size]
    assert smaller
    for case in smaller:
        with suppress(InputError):  # a rating below the floor
            assert not INVARIANTS[name].check(by, case).broken


# system, preset, whether a favourite's draw with an equally experienced rival adds points
DRAWS = [("scorefactor", None, False), ("scorefactor", "xonstat", True), ("wager", None, True), ("elo", None, False)]


@pytest.mark.parametrize(("system", "preset", "adds"), DRAWS)
def test_draws_add_points_where_favourites_are_spared(system, preset, adds):
    case = Case(((450.0,), (350.0,)), place=DRAW)
    found = check_draws(rules(system, preset=preset), case)
    assert found.matters
    assert bool(found.broken) == adds


def test_prav_lowers_a_rating_after_a_win():
    finding = searched(rules("prav"), "results")
    assert "you win and lose" in finding.sentence
    before, won = finding.rows[0]
    assert won < before


def test_a_system_without_quits_or_scores_is_found_out_by_checking():
    for name in ("quitting", "scores"):
        finding = searched(rules("elo"), name, every=37)
        assert finding.case is None
        assert finding.outcome == "not applicable"
        assert f"{name} made no difference to any rating" in finding.sentence
    assert searched(rules("scorefactor"), "scores", every=37).outcome == "holds"
    assert searched(rules("battlepoints"), "scores", every=37).outcome == "holds"


def test_a_system_that_can_rate_no_case_says_why():
    three = replace(
        INVARIANTS["results"], cases=lambda ratings: iter([Case(((1.0,), (1.0,), (1.0,)), place=(1, 2, 3))])
    )
    finding = search(rules("wager"), three)
    assert finding.sentence == "Not applicable: 3 teams; wager rates matches of exactly 2."


def test_a_favourite_whose_odds_are_too_high_earns_more_by_idling(monkeypatch):
    case = Case(((1690.0,), (1500.0,)), odds="true", matches=3)
    check = INVARIANTS["idling"].check
    for slope, broken in ((0.5, True), (1.0, False), (1.5, False)):
        monkeypatch.setattr(invariants, "true_slope", lambda by, slope=slope: slope)
        assert bool(check(rules("elo"), case).broken) == broken


def test_two_accounts_beat_one_under_elo_but_not_where_points_only_add_up():
    found = searched(rules("elo"), "splitting")
    assert found.case.matches == 2
    _, chance, one, best = found.rows[0]
    assert (chance, one) == (pytest.approx(0.5), pytest.approx(1500.0))
    assert best == pytest.approx(1500.0 + 0.25 * (16.0 + 16.0 + 16.0 - 14.53), abs=0.3)  # the rival moves as well
    whole = INVARIANTS["splitting"]
    own = replace(whole, cases=lambda ratings: (case for case in whole.cases(ratings) if case.odds == "own"))
    assert search(rules("planeswalker"), own).outcome == "holds"


RATINGS = {"wager": (1.0, 5000.0), "elo": (0.0, 3000.0), "scorefactor": (100.0, 1500.0)}


@st.composite
def cases(draw, system):
    low, high = RATINGS[system]
    size = draw(st.integers(1, 5))
    rating = st.floats(low, high).map(lambda value: max(round(value, 2), low))
    team = st.tuples(*[rating] * size)
    past = st.text("WLD", max_size=6)
    worse, better = sorted(draw(st.tuples(*[st.floats(-50, 200)] * 2)))
    return Case(
        (draw(team), draw(team)),
        (draw(past), draw(past)),
        LOSS if size == 1 else draw(st.sampled_from((WIN, DRAW, LOSS))),
        left=draw(st.floats(0.01, 0.99)),
        field="score",
        scores=(worse, better, draw(st.floats(-50, 200))),
    )


# system, a check that holds for it on the grid
PROMISES = [
    ("wager", check_quitting),
    ("wager", check_results),
    ("elo", check_results),
    ("elo", check_draws),
    ("scorefactor", check_scores),
]


@pytest.mark.parametrize(("system", "check"), PROMISES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_promises_that_hold_on_the_grid_hold_in_random_cases(system, check, data):
    case = data.draw(cases(system))
    if check is check_draws:
        case = case._replace(place=DRAW)
    try:
        verdict = check(rules(system), case)
    except InputError:
        assume(False)
    assert not verdict.broken, verdict.rows


@pytest.mark.slow
@pytest.mark.parametrize("system", systems.names())
def test_every_system_has_a_finding_for_every_invariant(system):
    by = rules(system)
    for invariant in INVARIANTS.values():
        finding = search(by, invariant)
        assert finding.outcome in {"holds", "broken", "not applicable"}
        assert (finding.case is not None) == (finding.outcome == "broken")
        assert finding.sentence.endswith(".")
        assert finding.case is None or all(len(row) == len(finding.columns) for row in finding.rows)
