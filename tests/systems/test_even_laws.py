"""Laws of `even`: results, margins, weights and variances, the first match by hand, bounds of large contests."""

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract.test_system_laws import random_history, relisted
from evenmatch import Appearance, Match, Rater, Team, from_matches, rate, rules
from evenmatch.errors import InputError, UnknownNameError
from evenmatch.history import History
from evenmatch.lab.backtests.evaluation import LOG_LOSS, MATCHES, replay_and_judge
from evenmatch.systems import loop
from evenmatch.systems.experts import records
from evenmatch.systems.experts.records import EXPERTS
from ledger.sample_matches import after

fuzz = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
seeds = st.integers(0, 2**32 - 1)
VARIANTS = [("even", None), ("even", "plain"), ("even", "results")]


def with_result(match, places, scores=(math.nan, math.nan)):
    """The same match of two teams with another result; scores: NaN for none."""
    return History(match.columns._replace(place=np.array(places), team_score=np.array(scores)))


def rated(by, match, before):
    return loop.replay(by, match, before.state, before.ladders).state["rating"][match.columns.player]


@pytest.mark.parametrize(("name", "preset"), VARIANTS)
@fuzz
@given(seed=seeds)
def test_a_better_result_never_lowers_a_rating_and_neither_does_a_larger_margin(name, preset, seed):
    by = rules(name, preset)
    history, people = random_history(seed, 2, rows=800)
    before = loop.replay(by, history, by.newcomers(people))
    for number in range(len(history) - 20, len(history)):
        match = history.take(slice(number, number + 1))
        size = int(match.columns.slot_start[1])
        for scores in ((math.nan, math.nan), (4.0, 4.0)):
            win, draw, loss = (
                rated(by, with_result(match, places, scores), before) for places in ((1, 2), (1, 1), (2, 1))
            )
            assert (win[:size] >= draw[:size]).all()
            assert (draw[:size] >= loss[:size]).all()
            assert (win[size:] <= draw[size:]).all()
        small, large, huge = (rated(by, with_result(match, (1, 2), (score, 1.0)), before) for score in (2, 9, 400))
        assert (small[:size] <= large[:size]).all()
        assert (large[:size] <= huge[:size]).all()
        assert (large[size:] >= huge[size:]).all()


@fuzz
@given(seed=seeds)
def test_with_wins_gain_neither_result_nor_margin_of_a_win_takes_points(seed):
    by = rules("even", wins_gain=True)
    history, people = random_history(seed, 2, rows=800)
    journal = loop.replay(by, history, by.newcomers(people), journal=True).journal
    ahead = history.columns.place.reshape(-1, 2)
    sign = np.repeat(np.sign(ahead[:, 1] - ahead[:, 0]), 2) * np.tile([1, -1], len(ahead))
    gained = (journal.factors["by_result"] + journal.factors["by_margin"]) * sign[history.slot_team]
    assert (gained >= -1e-9).all()


@pytest.mark.parametrize("preset", [None, "plain", "performance", "results"])
@fuzz
@given(seed=seeds)
def test_weights_and_variances_stay_in_their_bounds(preset, seed):
    by = rules("even", preset)
    history, people = random_history(seed, None, rows=1500)
    result = loop.replay(by, history, by.newcomers(people))
    count = by.compiled.experts
    weight = result.ladders[0]["weight"]
    assert (weight[:count] >= 0).all()
    assert 0.2 - 1e-12 <= weight.sum() <= 1.3 + 1e-12
    assert 0.5 <= result.ladders[0]["calibration"] <= 1.5
    most = 4 * np.array(by.compiled.variance[:count])
    assert (result.state["variance"][:, :count] > 0).all()
    assert (result.state["variance"][:, :count] <= most + 1e-12).all()
    assert (weight[count:EXPERTS] == 0).all()


def test_the_first_duel_by_hand():
    """A win of the first side between two newcomers, without scores, by one expert."""
    rater = Rater(rules("even", "plain"))
    receipt = rater.rate(Match("m", after(1), (Team.of("ann", place=1), Team.of("bob", place=2)), "default"))
    v0, settled = 0.4, 0.04
    spread = 2 * v0 + 2 * 0.003 + 1
    k = 1.6 / math.sqrt(spread)
    behind = 1 / (1 + math.exp(k * 0.2))  # the probability to be ahead by more than the width of a draw
    moved = v0 * k * (1 - behind) * 400 / math.log(10) * 1.6 / math.sqrt(1 + 2 * settled)
    ann, bob = receipt.teams[0][0], receipt.teams[1][0]
    assert (ann.after, bob.after) == (pytest.approx(1500 + moved), pytest.approx(1500 - moved))
    left = v0 * (1 - v0 * k * k * behind * (1 - behind))
    points = 400 / math.log(10) * 1.6 / math.sqrt(1 + 2 * settled)
    assert ann.factors["deviation_after"] == pytest.approx(points * math.sqrt(left))
    assert ann.expected == pytest.approx(0.5)


FROM = ("from_steady", "from_quick", "from_wide", "from_results", "from_scores")
PARTS = ("by_result", "by_margin", "by_scores", "by_entry", "by_pause")


@pytest.mark.parametrize(
    ("preset", "silent"), [(None, FROM[4:]), ("plain", FROM[1:]), ("performance", ()), ("results", FROM[4:])]
)
@fuzz
@given(seed=seeds)
def test_the_parts_of_the_experts_add_up_to_the_change(preset, silent, seed):
    by = rules("even", preset)
    history, people = random_history(seed, None, rows=800)
    factors = loop.replay(by, history, by.newcomers(people), journal=True).journal.factors
    assert sum(factors[name] for name in FROM) == pytest.approx(sum(factors[name] for name in PARTS), abs=1e-8)
    for name in FROM:
        assert (factors[name] == 0).all() == (name in silent), name


def test_a_larger_margin_is_said_by_the_experts_that_look_at_margins_and_not_by_the_one_of_results():
    def said(score):
        rater = Rater(rules("even"))
        for number, (winner, loser) in enumerate(("ab", "ca", "bc", "ab")):
            teams = (Team.of(winner, place=1, score=5), Team.of(loser, place=2, score=3))
            rater.rate(Match(f"m{number}", after(number), teams, "default"))
        teams = (Team.of("a", place=1, score=score), Team.of("c", place=2, score=3))
        return rater.rate(Match("last", after(9), teams, "default")).teams[0][0]

    narrow, wide = said(4), said(40)
    assert wide.factors["from_results"] == narrow.factors["from_results"] > 0
    for name in FROM[:3]:
        assert wide.factors[name] > narrow.factors[name]


def test_the_shared_error_of_newcomers_in_a_pair_by_hand():
    teams = (Team.of("ann", "bob", place=1), Team.of("cat", "dan", place=2))
    ann = Rater(rules("even", "plain")).rate(Match("m", after(1), teams, "default")).teams[0][0]
    v0, rho, own = 0.4, 0.4, 0.4 / 2
    k = 1.6 / math.sqrt(2 * v0 + 2 * 0.003 + 1)
    behind = 1 / (1 + math.exp(k * 0.2))
    pull = k * k * behind * (1 - behind)
    points = 400 / math.log(10) * 1.6 / math.sqrt(1 + 2 * 0.04)
    alone, together = (points * math.sqrt(v0 * (1 - seen * pull)) for seen in (own, own + rho * own))
    assert ann.factors["deviation_after"] == pytest.approx(together)
    assert ann.factors["shared_error"] == pytest.approx(alone - together)
    duel = (Team.of("ann", place=1), Team.of("bob", place=2))
    assert Rater(rules("even")).rate(Match("m", after(1), duel, "default")).teams[0][0].factors["shared_error"] == 0


def test_four_hundred_points_are_odds_of_ten_to_one_between_players_of_many_matches():
    by = rules("even", "plain")
    rater = Rater(by)
    state = by.starting(np.array([1700.0, 1300.0]))
    state["games"], state["last_played"] = 1000, 0
    state["variance"][:, 0] = 0.04 - by.compiled.step[0]
    rater._rows, rater._state = {"ann": 0, "bob": 1}, state
    chances = [
        rater.odds(teams, np.datetime64(0, "us")).expected[0] for teams in ([["ann"], ["bob"]], [["bob"], ["ann"]])
    ]
    assert chances[0] == pytest.approx(10 / 11, abs=0.005)  # less by the width of draws
    assert chances[0] + chances[1] == pytest.approx(1)


def test_a_bound_of_rivals_changes_a_large_contest_little_and_a_small_one_not_at_all():
    teams = tuple(Team.of(f"p{number}", place=number + 1) for number in range(60))
    whole, bounded = (
        {
            change.player: change.after
            for team in Rater(rules("even", rivals=rivals)).rate(Match("m", after(1), teams, "default")).teams
            for change in team
        }
        for rivals in (500, 20)
    )
    apart = np.array([whole[name] - bounded[name] for name in whole])
    assert 0 < np.abs(apart).max() < 40
    few = Match("m", after(1), teams[:20], "default")
    assert Rater(rules("even", rivals=20)).rate(few) == Rater(rules("even")).rate(few)


@pytest.mark.parametrize(
    ("kind", "least", "most"), [("by skill", 0.99, 1.0), ("random", 0.0, 0.4), ("alike", 0.0, 0.1)]
)
def test_margins_count_as_far_as_they_tell_of_skill(kind, least, most):
    rng = np.random.default_rng(3)
    skill = rng.normal(0, 1.5, 60)
    rater = Rater(rules("even"))
    for number in range(1500):
        a, b = rng.choice(60, 2, replace=False)
        lead = skill[a] - skill[b] + rng.logistic()
        size = {"by skill": 1 + round(4 * abs(lead)), "random": 1 + rng.integers(12), "alike": 1}[kind]
        places, scores = ((1, 2), (20 + size, 20)) if lead > 0 else ((2, 1), (20, 20 + size))
        sides = zip((a, b), places, scores, strict=True)
        teams = tuple(Team.of(str(who), place=place, score=float(score)) for who, place, score in sides)
        rater.rate(Match(f"m{number}", after(number), teams, "default"))
    assert least <= rater._ladders[1]["margin_worth"] <= most


def misleading_margins(seed, matches=6000, teams=60):
    """Matches in which some wins are huge by chance: sizes follow skill, with a heavy tail on top of it."""
    rng = np.random.default_rng(seed)
    skill, played = rng.normal(0, 0.35, teams), []
    for number in range(matches):
        a, b = rng.choice(teams, 2, replace=False)
        skill += rng.normal(0, 0.012, teams)
        lead = 1.6 * (skill[a] - skill[b])
        first = rng.random() < 1 / (1 + math.exp(-lead))
        size = 1 + int(rng.pareto(1.2) * (1 + (abs(lead) if (lead > 0) == first else 0)))
        places, scores = ((1, 2), (1 + size, 1)) if first else ((2, 1), (1, 1 + size))
        sides = zip((a, b), places, scores, strict=True)
        played.append(
            Match(
                f"m{number}",
                after(number),
                tuple(Team.of(str(who), place=place, score=float(score)) for who, place, score in sides),
            )
        )
    return from_matches(played)


def test_margins_that_mislead_count_less(monkeypatch):
    tables = [misleading_margins(seed) for seed in (1, 2)]
    found = np.mean([second_half_loss(table) for table in tables])
    by = rules("even")
    ladders = [loop.replay(by, one.history, by.newcomers(60)).ladders for one in tables]
    assert all(one[1]["margin_worth"] > 0.9 and one[1]["margin_trust"] < 0.8 for one in ladders)
    for one in ladders:
        told = {number.name: number.value for number in by.system.learned(one, by.parameters)}
        trusted = one.copy()
        trusted["margin_trust"] = 1.0
        whole = {number.name: number.value for number in by.system.learned(trusted, by.parameters)}
        assert told["margin"] == pytest.approx(one[1]["margin_trust"] * whole["margin"])
    monkeypatch.setattr(records, "TRUST_VARIANCE", 0.0)
    trusted = np.mean([second_half_loss(table) for table in tables])
    assert found < trusted - 0.0015


def test_margins_that_follow_skill_keep_their_trust():
    rng = np.random.default_rng(3)
    skill, played = rng.normal(0, 0.6, 60), []
    for number in range(2000):
        a, b = rng.choice(60, 2, replace=False)
        lead = skill[a] - skill[b] + rng.logistic(0, 1 / 1.6)
        first, second = (20 + round(9 * max(lead, 0)), 20 - round(9 * min(lead, 0)))
        places = (1, 2) if first > second else (2, 1) if first < second else (1, 1)
        sides = zip((a, b), places, (first, second), strict=True)
        teams = tuple(Team.of(str(who), place=place, score=float(score)) for who, place, score in sides)
        played.append(Match(f"m{number}", after(number), teams))
    ladders = loop.replay(rules("even"), from_matches(played).history, rules("even").newcomers(60)).ladders
    assert ladders[1]["margin_trust"] > 1


def test_a_pause_of_500_days_halves_what_the_quick_expert_and_that_of_results_knew():
    rater = Rater(rules("even"))
    first = rater.rate(Match("m", after(1), (Team.of("ann", place=1), Team.of("bob", place=2)), "default"))
    later = after(1) + timedelta(days=500)
    ann = rater.rate(Match("n", later, (Team.of("ann", place=1), Team.of("bob", place=2)), "default")).teams[0][0]
    begun = first.teams[0][0].factors
    assert ann.factors["by_pause"] == pytest.approx(-(begun["from_quick"] + begun["from_results"]) / 2)
    assert begun["by_pause"] == 0
    soon = Rater(rules("even"))
    for name in ("m", "n"):
        last = soon.rate(Match(name, after(1), (Team.of("ann", place=1), Team.of("bob", place=2)), "default"))
    assert last.teams[0][0].factors["by_pause"] == 0


@fuzz
@given(seed=seeds)
def test_on_a_ladder_of_many_scores_the_order_of_players_does_not_change_what_scores_teach(seed):
    by = rules("even", "performance")
    history, people = random_history(seed, None, rows=400)
    before = loop.replay(by, history, by.newcomers(people))
    before.ladders["scores"] = 1e5  # from 2000 on each score counts more than its share of all
    other, _, _ = relisted(history, np.random.default_rng(seed), lambda _: True)
    plain, again = (loop.replay(by, listed, before.state, before.ladders).ladders for listed in (history, other))
    assert (plain["score_square"] != before.ladders["score_square"]).any()
    np.testing.assert_allclose(again["score_square"], plain["score_square"], rtol=1e-12)


def surfaces(seed, offset, matches=6000, people=60, kinds=3):
    """Simulated duels on ladders (surfaces); offset: deviation of a player's skill on one of them."""
    rng = np.random.default_rng(seed)
    skill, own = rng.normal(0, 1, people), rng.normal(0, offset, (people, kinds))
    played = []
    for number in range(matches):
        (a, b), kind = rng.choice(people, 2, replace=False).tolist(), int(rng.integers(kinds))
        lead = skill[a] + own[a, kind] - skill[b] - own[b, kind] + rng.logistic(0, 1 / 1.6)
        first, second = (1, 2) if lead > 0 else (2, 1)
        teams = (Team.of(f"p{a}", place=first), Team.of(f"p{b}", place=second))
        played.append(Match(f"m{number}", after(number), teams, f"surface {kind}"))
    return from_matches(played)


def second_half_loss(table):
    cell = np.where(np.arange(len(table)) < len(table) // 2, -1, 0).astype(np.int32)
    sums, _ = replay_and_judge(rules("even"), table.history, cell, 1)
    return sums[0, LOG_LOSS] / sums[0, MATCHES]


def without_context(table):
    none = np.empty(0, np.int32)
    return replace(table, history=History(table.history.columns._replace(context=none, offset=none)))


def test_offsets_predict_better_than_one_rating_for_all_surfaces_and_better_than_one_for_each():
    table = surfaces(1, 0.4, matches=2000)
    with_offsets = second_half_loss(table.pooled())
    assert with_offsets < second_half_loss(without_context(table.pooled())) - 0.01
    assert with_offsets < second_half_loss(table) - 0.01


def test_surfaces_that_do_not_matter_cost_next_to_nothing():
    tables = [surfaces(seed, 0.0).pooled() for seed in (2, 3, 4, 5)]
    cost = [second_half_loss(table) - second_half_loss(without_context(table)) for table in tables]
    assert np.mean(cost) < 0.0005


def sets(seed, formats, matches=14_000, people=200):
    """Simulated matches of so many sets, by the column best_of; and for each match its number of sets and winner."""
    rng = np.random.default_rng(seed)
    skill, best_of = rng.normal(0, 0.5, people), rng.choice(formats, matches, p=[0.8, 0.2])
    played, won = [], np.zeros(matches)
    for number, most in enumerate(best_of):
        a, b = rng.choice(people, 2, replace=False)
        chance = 1 / (1 + math.exp(skill[b] - skill[a]))
        won[number] = rng.binomial(most, chance) > most / 2
        first, second = (1, 2) if won[number] else (2, 1)
        teams = (Team.of(f"p{a}", place=first), Team.of(f"p{b}", place=second))
        played.append(Match(f"m{number}", after(number), teams))
    cells = pa.chunked_array([[f"best of {most}" for most in best_of]])
    return from_matches(played).with_context({"best_of": cells}), best_of, won


def test_a_law_of_the_length_is_learned_and_holds_for_lengths_that_were_never_played():
    table, best_of, won = sets(1, (3, 5))
    plain, known = (
        loop.replay(rules("even"), one.history, rules("even").newcomers(200)).expected[::2]
        for one in (without_context(table), table)
    )
    longer = (best_of == 5) & (np.arange(len(won)) >= len(won) // 2)
    loss = [-np.log(np.where(won[longer] > 0, one[longer], 1 - one[longer])).mean() for one in (plain, known)]
    assert loss[1] < loss[0] - 0.002
    ratings = rate(table, "even")
    best, middle = (ratings.standings()["player"][at].as_py() for at in (0, 100))
    chances = [ratings.odds([best], [middle], context={"best_of": f"bo{most}"}).expected[0] for most in (1, 3, 5, 9)]
    assert chances == sorted(chances)
    assert chances[3] - chances[0] > 0.1
    unknown = [ratings.odds([best], [middle], context=one).expected[0] for one in (None, {"best_of": "long"})]
    assert chances[0] < min(unknown) <= max(unknown) < chances[3]


def seeded(seed, telling, matches=3000, change=lambda number: number):
    """Duels of players who come and go after about 20 matches; telling: correlation of their numbers with skill."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(0, 0.7, matches)
    number = telling * skill / 0.7 + math.sqrt(1 - telling**2) * rng.normal(0, 1, matches)
    played = []
    for index in range(matches):
        a, b = index // 10 + rng.choice(20, 2, replace=False)
        first, second = (1, 2) if rng.random() < 1 / (1 + math.exp(1.6 * (skill[b] - skill[a]))) else (2, 1)
        known = [Appearance(f"p{one}", entry=change(1000 * number[one] + 500)) for one in (a, b)]
        teams = (Team((known[0],), first), Team((known[1],), second))
        played.append(Match(f"m{index}", after(index), teams))
    return from_matches(played)


def without_numbers(table):
    return replace(table, history=History(table.history.columns._replace(entry=np.empty(0, np.float32))))


def test_a_number_known_about_newcomers_predicts_as_much_as_it_tells():
    gain = {}
    for telling in (0.0, 0.5, 0.9):
        tables = [seeded(seed, telling) for seed in (1, 2, 3)]
        gain[telling] = np.mean([second_half_loss(without_numbers(one)) - second_half_loss(one) for one in tables])
    assert gain[0.0] > -0.0005
    assert gain[0.5] > 0.001
    assert gain[0.9] > 4 * gain[0.5]


def test_the_unit_of_a_number_does_not_matter_and_one_that_all_share_changes_nothing():
    table = seeded(4, 0.8, matches=800)
    plain, other = (
        rate(table, "even").state,
        rate(seeded(4, 0.8, matches=800, change=lambda x: 7 - 2 * x), "even").state,
    )
    np.testing.assert_allclose(other["rating"], plain["rating"], atol=0.01)  # numbers are kept in 24 bits
    np.testing.assert_allclose(other["deviation"], plain["deviation"], atol=0.01)
    same = rate(seeded(4, 0.8, matches=800, change=lambda _: 42.0), "even").state
    assert same.tobytes() == rate(without_numbers(table), "even").state.tobytes()
    assert np.abs(plain["rating"] - same["rating"]).max() > 20


def test_a_newcomer_with_a_telling_number_starts_near_and_surer_while_others_start_as_ever():
    ratings = rate(seeded(5, 0.9), "even")
    rater = Rater.after(ratings)
    chances = [rater.odds([["new"], ["p2000"]], entry=one).expected[0] for one in ({"new": -1500}, None, {"new": 2500})]
    assert chances[0] < chances[1] - 0.1 < chances[2] - 0.2
    told = rater.odds([["new"], ["newer"]], entry={"new": 2500, "newer": -1500}).expected[0]
    assert told > rater.odds([["new"], ["newer"]], entry={"new": 2500}).expected[0] > 0.55
    with pytest.raises(UnknownNameError, match="unknown player 'strange'; known: new, newer"):
        rater.odds([["new"], ["newer"]], entry={"strange": 1})
    with pytest.raises(InputError, match="entry of 'new' is nan; expected a number from -1e9 to 1e9"):
        rater.odds([["new"], ["newer"]], entry={"new": math.nan})


def test_a_number_does_not_move_those_who_bring_a_rating_from_the_last_season():
    by, table = rules("even"), seeded(6, 0.9)
    learned, match = rate(table, by), table.history.take(slice(0, 1))
    chances = []
    for rating in (by.parameters.start, 1600.0):
        for number in (-1500.0, 2500.0):
            history = History(match.columns._replace(entry=np.full(2, number), player=np.arange(2)))
            state = np.concatenate((by.starting(np.array([rating])), by.newcomers(1)))
            after = loop.replay(by, history, state, learned.ladders)
            chances.append(after.expected[0])
            counted = after.ladders["numbers"][0] - learned.ladders["numbers"][0]
            assert counted == (2 if rating == by.parameters.start else 1)
            guests = History(history.columns._replace(keep=np.array([True, False])))
            assert (
                loop.replay(by, guests, state, learned.ladders).ladders["numbers"][0] == after.ladders["numbers"][0] - 1
            )
    assert chances[0] == pytest.approx(chances[1])  # both are newcomers with the same number
    assert chances[2] > chances[3] + 0.1  # only the rival is one


def test_draws_are_predicted_by_the_context_in_which_they_are_frequent():
    rng = np.random.default_rng(4)
    played, modes = [], rng.choice(["duel", "siege"], 3000)
    for number, mode in enumerate(modes):
        a, b = rng.choice(40, 2, replace=False)
        level = rng.random() < (0.4 if mode == "siege" else 0.05)
        first, second = (1, 1) if level else (1, 2) if rng.random() < 0.5 else (2, 1)
        teams = (Team.of(f"p{a}", place=first), Team.of(f"p{b}", place=second))
        played.append(Match(f"m{number}", after(number), teams))
    ratings = rate(from_matches(played).with_context({"mode": pa.chunked_array([modes.tolist()])}), "even")
    drawn = {mode: ratings.odds(["p1"], ["p2"], context={"mode": mode}).draw[0][1] for mode in ("duel", "siege")}
    assert drawn["siege"] == pytest.approx(0.4, abs=0.05)
    assert drawn["duel"] == pytest.approx(0.05, abs=0.02)
