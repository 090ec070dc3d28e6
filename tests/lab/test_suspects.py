"""Suspects: how seldom an honest account is listed, how many culprits are found, and each score in a small case."""

import re
from functools import cache
from math import log10, sqrt

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from evenmatch import rules
from evenmatch.errors import InputError
from evenmatch.history import Columns, History
from evenmatch.lab import behaviours
from evenmatch.lab.fairness import suspects as found_by
from evenmatch.lab.fairness.suspects import (
    FEWEST,
    KINDS,
    RATE,
    HonestScores,
    honest_scores,
    honest_scores_like,
    judged,
    suspects,
    table_of,
)
from evenmatch.lab.seasons.season import simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.tables.table import MatchTable

SHAPES = {
    "duel": {"players": 240, "matches": 6000},
    "team": {"players": 240, "matches": 1600},
    "sixes": {"players": 240, "matches": 1100},
    "brawl": {"players": 240, "matches": 1600},
}
# behaviours of a season, dose, game, at least this recall
DETECTED = [
    ("booster_crew", 1.0, "team", 0.6),
    ("opposing_crew", 1.0, "duel", 0.7),
    ("opposing_crew", 1.0, "team", 0.3),
    ("win_trader", 1.0, "duel", 0.8),
    ("win_switcher", 1.0, "sixes", 0.8),
    ("sandbagger", 1.0, "duel", 0.5),
    ("sandbagger", 1.0, "brawl", 0.4),
    ("alt_splitter", 1.0, "duel", 0.4),
    ("rage_quitter", 1.0, "team", 0.8),
    ("queue_dodger", 1.0, "duel", 0.3),
    ("stat_padder", 1.0, "team", 0.6),
    ("booster_crew,win_switcher,sandbagger,stat_padder", 1.0, "team", 0.4),
]


@cache
def season(game, seed, names="", dose=1.0, **settings):
    """A season of this seed with culprits of these behaviours, and its table."""
    settings = SeasonSettings(game=game, seed=seed, **{**SHAPES[game], **settings})
    chosen = [behaviours.find(name)(dose) for name in names.split(",") if name]
    record = simulate_season(settings, rules("elo"), chosen)
    return record, table_of(record.history, record.expected)


@cache
def known(game, **settings):
    """The honest scores that a ladder like this one is compared with."""
    return honest_scores_like(season(game, 2001, **settings)[1], rules("elo"))


def listed_of(game, seeds, rate=RATE, **settings):
    """How many honest accounts are listed by mistake, and how many are judged."""
    tables = [season(game, seed, **settings)[1] for seed in seeds]
    usual = {name: value for name, value in settings.items() if name == "matches"}
    listed = sum(len({one.account for one in suspects(table, known(game, **usual), rate)}) for table in tables)
    return listed, sum(int(judged(table).sum()) for table in tables)


def test_honest_seasons_have_no_more_false_alarms_than_promised():
    """Binomial: with a probability below 0.001 a rate of RATE would give more."""
    listed, accounts = listed_of("team", range(2001, 2005))
    assert accounts > 700
    assert listed <= stats.binom.isf(0.001, accounts, RATE)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("game", SHAPES)
def test_false_alarms_are_as_rare_as_stated_at_any_rate_and_whatever_the_players_habits(game):
    for rate in (RATE, 0.01):
        listed, accounts = listed_of(game, range(2001, 2007), rate)
        assert listed <= stats.binom.isf(0.001, accounts, rate), rate
    assert listed >= 0.1 * rate * accounts  # the limits are not out of reach
    for habits in ({"learning": 1.5}, {"days_off": 0.6}, {"parties": 0.6}, {"matches": SHAPES[game]["matches"] // 4}):
        listed, accounts = listed_of(game, range(2001, 2004), **habits)
        assert listed <= stats.binom.isf(0.001, accounts, RATE), habits


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_culprits_of_unseen_seasons_are_found_more_often_than_by_chance():
    for names, dose, game, least in DETECTED:
        marked, guilty, persons = [], [], []
        for seed in range(1001, 1003):
            record, table = season(game, seed, names, dose)
            marked.append(np.isin(np.arange(len(table.played)), [o.account for o in suspects(table, known(game))]))
            guilty.append((record.crew[: len(table.played)] >= 0) & judged(table))
            persons.append(record.person[: len(table.played)] + 1000 * seed)
        marked, guilty, persons = map(np.concatenate, (marked, guilty, persons))
        assert (marked & guilty).sum() >= 0.8 * marked.sum() > 0, (names, game)
        assert len(set(persons[marked & guilty])) >= least * len(set(persons[guilty])), (names, game)


def history_of(matches, players):
    """A history of matches: (teams of accounts, places, quitters, share of the match that each account played)."""
    slots = [account for teams, *_ in matches for team in teams for account in team]
    sizes = [len(team) for teams, *_ in matches for team in teams]
    teams = [len(teams) for teams, *_ in matches]
    quits = [account in who for teams, _, who, _ in matches for team in teams for account in team]
    shares = [share.get(account, 1.0) for teams, _, _, share in matches for team in teams for account in team]
    return History(
        Columns(
            time=np.arange(len(matches)) * 3_600_000_000,
            team_start=np.concatenate(([0], np.cumsum(teams))).astype(np.int32),
            place=np.array([place for _, places, *_ in matches for place in places], np.int32),
            team_score=np.zeros(len(sizes)),
            slot_start=np.concatenate(([0], np.cumsum(sizes))).astype(np.int32),
            player=np.array(slots, np.int32),
            score=np.zeros(len(slots)),
            seconds=600.0 * np.array(shares),
            performance=np.full(len(slots), np.nan),
            quit=np.array(quits),
            duration=np.full(len(matches), 600.0),
            keep=np.ones(len(slots), np.bool_),
        )
    )


def duel(winner, loser, *, drawn=False, quitters=(), share=None):
    return [[winner], [loser]], [1, 1 if drawn else 2], quitters, share or {}


def pair_of_teams(winners, losers, *, quitters=(), share=None):
    return [winners, losers], [1, 2], quitters, share or {}


def tabled(matches, expected=0.5, names=None):
    players = 1 + max(account for teams, *_ in matches for team in teams for account in team)
    history = history_of(matches, players)
    return table_of(history, np.full(sum(len(teams) for teams, *_ in matches), expected), names)


def test_two_accounts_that_share_their_days_and_never_meet_may_be_of_one_person():
    days = 10
    matches = []
    for day in range(days):
        matches += [(24 * day + 10, pair_of_teams([0], [2, 3])), (24 * day + 14, pair_of_teams([1], [2, 3]))]
        matches.append((24 * day + 18, duel(2, 3)))
    table = tabled([match for _, match in matches], names=["main", "alt", "ann", "bob"])
    hours = np.array([hour for hour, _ in matches]) * 3_600_000_000
    table = table_of(History(table.history.columns._replace(time=hours)), np.full(60, 0.5), table.names)
    evidence = found_by.alternating(table)
    # Each plays at one of three moments of a day, and one of four accounts is chosen. Days that begin at noon: nine.
    by_chance = (days - 1) * log10(1 - 1 / 3)
    assert evidence.score[:2] == pytest.approx([-by_chance - log10(4)] * 2)
    assert evidence.score[2:].tolist() == [0.0, 0.0]
    assert evidence.sentence(0) == "played on 10 days on which 'alt' played, and never at the same time"


def test_sandbaggers_win_and_lose_in_streaks_and_are_crushed():
    won = [True] * 5 + [False] * 5 + [True] * 5
    table = tabled([duel(0, 1) if first else duel(1, 0) for first in won])
    evidence = found_by.sandbagging(table)
    wins, losses, runs = 10, 5, 3
    mean = 1 + 2 * wins * losses / 15
    variance = 2 * wins * losses * (2 * wins * losses - 15) / (15**2 * 14)
    streaks = -stats.norm.logsf((mean - runs) / sqrt(variance)) / np.log(10)
    assert evidence.score[0] == pytest.approx(streaks)  # no margin is known
    assert evidence.score[1] == pytest.approx(evidence.score[0])
    assert evidence.sentence(0).endswith(
        f"wins and loses in streaks of 5.0 matches, where {15 / mean:.1f} are usual for its results"
    )
    margins = np.where(won, 1.0, 7.0)
    scores = np.stack((margins, np.zeros(15)), 1).ravel()
    columns = table.history.columns._replace(team_score=scores)
    crushed = found_by.sandbagging(table_of(History(columns), np.full(30, 0.5)))
    assert crushed.score[0] == pytest.approx(streaks + 5 * log10(15 / 5))
    assert crushed.score[1] == pytest.approx(streaks)
    assert crushed.sentence(0).startswith("5 of its 5 defeats were crushing, where 33% are usual; wins and loses in ")
    turning = found_by.sandbagging(tabled([duel(0, 1), duel(1, 0)] * 6))
    assert turning.score[0] < 0.01
    assert found_by.sandbagging(tabled([duel(0, 1)] * 12)).score.tolist() == [0.0, 0.0]


def test_of_many_teams_the_last_one_is_crushed():
    four = [([[0], [1], [2], [3]], places, (), {}) for places in ([2, 3, 4, 1], [1, 3, 2, 4], [1, 2, 3, 4])]
    evidence = found_by.sandbagging(tabled(four * 6))
    assert evidence.sentence(3).startswith("12 of its 12 defeats were crushing, where 33% are usual; ")
    assert evidence.score[3] >= 12 * log10(
        0.5**0.5 / (1 / 3) ** 0.5 * (0.5 / (2 / 3)) ** 0.5
    )  # six, as many as its wins
    assert evidence.sentence(2).startswith("6 of its 18 defeats were crushing")
    assert evidence.score[3] > evidence.score[2]


def test_bad_performances_of_a_player_who_also_performs_well_are_uneven():
    """Only those of the player who holds back: the one who beats it has good ones instead."""
    rng = np.random.default_rng(1)
    table = tabled([duel(at % 6, (at + 1 + at % 5) % 6) for at in range(240)])
    shown = rng.normal(0.0, 0.2, 480)
    held_back = np.flatnonzero(table.account == 3)[::4]
    shown[held_back] = -0.9
    shown[held_back ^ 1] = 0.9
    columns = table.history.columns._replace(performance=shown)
    score = found_by._unevenness(table_of(History(columns), np.full(480, 0.5)))
    assert score[3] > 4
    assert np.delete(score, 3).max() < 2


def test_win_traders_win_in_turn_and_lose_by_wide_margins():
    matches = [duel(0, 1), duel(1, 0)] * 5 + [duel(2, 3), duel(2, 3), duel(3, 2)] * 3 + [duel(0, 2)]
    table = tabled(matches, names=["ann", "bob", "cem", "dora"])
    evidence = found_by.win_trading(table)
    assert evidence.score[0] == pytest.approx(9 * log10(2))  # no margin is known
    assert evidence.score[1] == pytest.approx(evidence.score[0])
    assert evidence.score[3] < 0.5
    assert evidence.sentence(1) == (
        "met 'ann' 10 times in 10 matches: the winner changed 9 times, and 0 defeats were crushing"
    )
    margins = np.stack((np.repeat([9.0, 1.0], 10), np.zeros(20)), 1).ravel()
    crushed = found_by.win_trading(
        table_of(History(table.history.columns._replace(team_score=margins)), np.full(40, 0.5))
    )
    assert crushed.score[0] == pytest.approx(9 * log10(2) + 10 * log10(20 / 10))
    assert not found_by.win_trading(tabled([pair_of_teams([0, 1], [2, 3])] * 9)).score.any()


def test_boosters_leave_one_players_matches():
    left = [pair_of_teams([0, 1], [2, 3 + at % 4], quitters=(2,)) for at in range(4)]
    usual = [pair_of_teams([3 + at % 4, 7], [8, 9]) for at in range(36)]
    evidence = found_by.boosting(tabled(left + usual, names=[f"p{number}" for number in range(10)]))
    assert evidence.score[2] == pytest.approx(4 * log10(1000))  # nobody else leaves: 1 in 1,000 is the least
    assert evidence.score[0] == evidence.score[2]
    assert evidence.score[3:].tolist() == [0.0] * 7
    assert evidence.sentence(2) in {
        f"'p{other}' and this account were in 4 matches that one of them left early" for other in (0, 1)
    }
    everywhere = [duel(1 + at % 3, 0, quitters=(0,)) for at in range(12)]
    usual = 5 * 12 / 24  # of too few accounts to leave the tenth with the most out
    elsewhere = (8 + usual) / (8 + 5)
    assert found_by.boosting(tabled(everywhere)).score[1] == pytest.approx(-4 * log10(elsewhere))


def test_quitters_leave_far_more_matches_than_others():
    matches = [duel(0, 1, quitters=(0,)), duel(0, 1)] * 5 + [duel(2, 3)] * 10
    evidence = found_by.quitting(tabled(matches))
    assert evidence.score[0] == pytest.approx(10 * log10((0.5 / 0.001) ** 0.5 * (0.5 / 0.999) ** 0.5))
    assert evidence.score[1:].tolist() == [0.0] * 3
    assert evidence.sentence(0) == "left 5 of 10 matches early, where 0.1% are usual"


def test_win_switchers_join_the_winner_late():
    usual = [pair_of_teams([at % 5, 5], [6, 7]) for at in range(30)]
    late = [pair_of_teams([8, 5], [6, 7], share={8: 0.2}) for _ in range(5)]
    long, lost = (
        [pair_of_teams([9, 5], [6, 7], share={9: 0.6})] * 5,
        [pair_of_teams([5, 6], [7, 10], share={10: 0.2})] * 5,
    )
    evidence = found_by.switching(tabled(usual + late + long + lost, names=None))
    assert evidence.score[8] == pytest.approx(5 * log10(1000))
    assert evidence.score[[5, 9, 10]].tolist() == [0.0, 0.0, 0.0]
    assert evidence.sentence(8) == "played only the end of 5 of 5 matches, for the team that won"


def test_queue_dodgers_are_never_the_underdog():
    table = tabled([duel(0, 1)] * 20 + [duel(2, 3), duel(3, 2)] * 10)
    evidence = found_by.dodging(table_of(table.history, np.tile([0.52, 0.48], 40)))
    assert evidence.score == pytest.approx([20 * log10(2), 0.0, 0.0, 0.0])
    assert evidence.sentence(0) == "was the underdog in 0 of 20 matches with close odds"


def test_stat_padders_perform_better_than_their_results():
    rng = np.random.default_rng(2)
    table = tabled([duel(*rng.permutation(12)[:2].tolist()) for _ in range(600)])
    shown = 0.4 * (table.result - 0.5) + rng.normal(0.0, 0.1, 1200) + 0.2 * (table.account == 7)
    columns = table.history.columns._replace(performance=shown)
    evidence = found_by.padding(table_of(History(columns), np.full(1200, 0.5)))
    assert evidence.score[7] > 10
    assert np.delete(evidence.score, 7).max() < 3
    assert re.fullmatch(
        r"its performance is \+0\.(19|2\d) beyond its results on average, where [+-]0\.0\d is usual",
        evidence.sentence(7),
    )
    assert not found_by.padding(table).score.any()  # no performance is known


@pytest.mark.parametrize(
    ("count", "trials", "usual"), [(0, 9, 0.5), (1, 5, 0.1), (5, 50, 0.01), (12, 20, 0.4), (300, 999, 0.25)]
)
def test_unlikely_counts_are_bounds_of_the_binomial_tail(count, trials, usual):
    tail = -stats.binom.logsf(count - 1, trials, usual) / np.log(10)
    found = float(found_by._unlikely(np.array(count), np.array(trials), usual))
    assert max(tail - log10(trials + 1), 0.0) <= found <= tail + 1e-9


def test_false_alarms_are_the_upper_end_of_an_interval_and_never_zero():
    rng = np.random.default_rng(3)
    scores = np.sort(rng.exponential(1 / np.log(10), 4000))
    honest = HonestScores({"booster": scores}, np.sort(found_by._surprise(scores, scores)))
    asked = np.array([scores[-1] + 1, scores[-10], -1.0])
    assert honest.false_alarms("booster", asked) == pytest.approx([3 / 4000, (11 + 2 * sqrt(11)) / 4000, 1.0])
    rare = scores[-1] + 3  # the tail goes on as it does from the limit to the largest score
    assert found_by._surprise(scores, np.array([rare]))[0] == pytest.approx(rare, rel=0.2)


def test_honest_scores_are_those_of_the_accounts_with_enough_matches():
    honest = honest_scores([tabled([duel(0, 1), duel(1, 0)] * FEWEST + [duel(2, 3)])])
    assert honest.by_kind.keys() == KINDS.keys()
    assert all(len(scores) == 2 for scores in (*honest.by_kind.values(), honest.surprises))


def test_names_stand_in_the_sentences_of_a_ladder():
    settings = SeasonSettings(game="duel", players=100, matches=2500, seed=1001)
    record = simulate_season(settings, rules("elo"), [behaviours.find("win_trader")()])
    players, h = record.history.players, record.history
    table = MatchTable(
        history=h,
        match_id=pa.array([f"m{number}" for number in range(len(h))]),
        ladder=np.zeros(len(h), np.int32),
        ladders=("duels",),
        team=pa.array(["1", "2"] * len(h)).dictionary_encode(),
        player=pa.array([f"ann-{number}" for number in range(players)]),
        player_ladder=np.zeros(players, np.int32),
        row=np.arange(len(h)),
        source=None,
    )
    shares = []
    found = found_by.ladder_suspects(table, rules("elo"), shares.append)
    partners = [one.evidence.split()[1] for one in found if one.kind == "win trader"]
    assert partners  # a ladder of a hundred players is large enough
    assert all(re.fullmatch(r"'ann-[0-9]+'", name) for name in partners)
    assert (record.crew[[one.account for one in found]] == 0).mean() > 0.5
    assert all(one.false_alarms <= RATE for one in found)
    assert shares == sorted(shares)
    with pytest.raises(InputError, match="there are no matches to look at"):
        found_by.ladder_suspects(table.take(slice(0, 0)), rules("elo"))


def test_the_latest_hundred_matches_of_each_account_are_judged():
    record, _ = season("duel", 1, players=20, matches=2400)
    accounts = len(set(record.history.columns.player.tolist()))
    first = found_by.first_judged(record.history)
    assert 0 < first == len(record.history) - 100 * accounts // 2
    assert found_by.first_judged(record.history.take(slice(first, None))) == 0
    assert found_by.like(record.history).matches == 100 * 100 // 2  # of a hundred players at least
