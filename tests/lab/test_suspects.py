"""Suspects: how seldom an honest account is listed, how many culprits are found, and each score by a slow twin."""

import re
from functools import cache
from math import exp, factorial, log10, sqrt

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from evenmatch import rules
from evenmatch.errors import InputError
from evenmatch.history import Columns, History
from evenmatch.lab import behaviours
from evenmatch.lab.fairness import suspects as found_by
from evenmatch.lab.fairness.suspects import FEWEST, KINDS, RATE, honest_scores, judged, suspects, table_of
from evenmatch.lab.seasons.season import simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.tables.table import MatchTable

SHAPES = {"duel": {"players": 240, "matches": 6000}, "team": {"players": 240, "matches": 1600}}
# behaviour, game, further behaviours of the same season
DETECTED = [
    ("booster_crew", "team"),
    ("opposing_crew", "team"),
    ("opposing_crew", "duel"),
    ("win_trader", "duel"),
    ("win_switcher", "team"),
    ("sandbagger", "duel"),
    ("sandbagger", "team"),
    ("smurf", "duel"),
    ("smurf", "team"),
    ("booster_crew,win_switcher,sandbagger,smurf", "team"),
]


@cache
def season(game, seed, names="", **settings):
    """A season of this seed with culprits of these behaviours, and its table."""
    settings = SeasonSettings(game=game, seed=seed, **{**SHAPES[game], **settings})
    chosen = [behaviours.find(name)() for name in names.split(",") if name]
    record = simulate_season(settings, rules("elo"), chosen)
    return record, table_of(record.history, record.expected)


@cache
def known(game, seeds=25):
    """The scores of honest seasons with the seeds that `ladder_suspects` uses."""
    return honest_scores([season(game, seed)[1] for seed in range(1, 1 + seeds)])


def detection_table(seeds, rate=RATE):
    """Precision and recall on unseen seasons, beside chance: rows (behaviour, game, listed, precision, chance, recall).

    precision  share of the listed accounts that belong to a culprit;  chance  the same share of all judged accounts
    recall     share of the culprits with an account that is judged of whom an account is listed
    """
    rows = []
    for names, game in DETECTED:
        listed = hits = culprits = found = accounts = theirs = 0
        for seed in seeds:
            record, table = season(game, seed, names)
            marked = {one.account for one in suspects(table, known(game), rate)}
            guilty = {a for a in np.flatnonzero(record.crew >= 0).tolist() if judged(table)[a]}
            persons = {int(record.person[account]) for account in guilty}
            listed, hits = listed + len(marked), hits + len(marked & guilty)
            culprits += len(persons)
            found += len({int(record.person[account]) for account in marked & guilty})
            accounts, theirs = accounts + int(judged(table).sum()), theirs + len(guilty)
        rows.append((names, game, listed, hits / max(listed, 1), theirs / accounts, found / culprits))
    return rows


def shown(rows):
    """The table as Markdown, for docs/fairness.md."""
    lines = ["| behaviour | game | listed | precision | by chance | recall |", "|---|---|---:|---:|---:|---:|"]
    for names, game, listed, *shares in rows:
        words = names.replace(",", ", ").replace("_", " ")
        lines.append(f"| {words} | {game} | {listed} | " + " | ".join(f"{share:.0%}" for share in shares) + " |")
    return "\n".join(lines)


def test_honest_seasons_have_no_more_false_alarms_than_promised():
    """Binomial: with a probability below 0.001 a rate of RATE would give more."""
    for game in SHAPES:
        tables = [season(game, seed)[1] for seed in range(2001, 2005)]
        accounts = sum(int(judged(table).sum()) for table in tables)
        listed = sum(len({one.account for one in suspects(table, known(game))}) for table in tables)
        assert accounts > 700
        assert listed <= stats.binom.isf(0.001, accounts, RATE), game


@pytest.mark.slow
def test_false_alarms_are_as_frequent_as_stated_at_any_rate():
    for game in SHAPES:
        tables = [season(game, seed)[1] for seed in range(2001, 2013)]
        accounts = sum(int(judged(table).sum()) for table in tables)
        for rate in (RATE, 0.01, 0.05):
            listed = sum(len({one.account for one in suspects(table, known(game), rate)}) for table in tables)
            assert listed <= stats.binom.isf(0.001, accounts, rate), (game, rate)
            assert rate == RATE or listed >= 0.3 * rate * accounts, (game, rate)  # several kinds may list one account


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_culprits_of_unseen_seasons_are_found_more_often_than_by_chance():
    rows = detection_table(range(1001, 1004))
    print("\n" + shown(rows))
    found = {(names, game): row for names, game, *row in rows}
    for place in (
        ("booster_crew", "team"),
        ("opposing_crew", "duel"),
        ("win_trader", "duel"),
        ("win_switcher", "team"),
    ):
        _, precision, chance, recall = found[place]
        assert precision >= 0.8 > 4 * chance, place
        assert recall >= 0.5, place
    for place in (("opposing_crew", "team"), ("sandbagger", "duel"), (DETECTED[-1][0], "team")):
        _, precision, chance, recall = found[place]
        assert precision > 4 * chance, place
        assert recall > 0.1, place


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


def tail(count, mean):
    """-log10 of a Poisson tail, by the sum of its definition."""
    return -log10(1.0 - sum(exp(-mean) * mean**k / factorial(k) for k in range(count)))


def test_smurfs_win_more_of_their_first_matches_than_they_should():
    settled = [duel(0, 1), duel(1, 0)] * 10
    fresh = [duel(2, 0)] * 6 + [duel(0, 2)] * 2
    table = tabled(settled + fresh, names=["ann", "bob", "fresh"])
    evidence = found_by.smurfing(table)
    assert evidence.score[2] == pytest.approx((6 - 8 * 0.5) / sqrt(8 * 0.25))
    assert evidence.score[:2].tolist() == [0.0, 0.0]  # they were there from the beginning
    assert evidence.sentence(2) == "scored 6 in its first 8 matches, where 4.0 were expected"


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
    assert crushed.score[0] == pytest.approx(streaks + tail(5, 5 * 5 / 15))
    assert crushed.score[1] == pytest.approx(streaks)
    assert crushed.sentence(0).startswith("5 of its 5 defeats were crushing, where 33% are usual; wins and loses in ")
    turning = found_by.sandbagging(tabled([duel(0, 1), duel(1, 0)] * 6))
    assert turning.score[0] < 0.01
    assert found_by.sandbagging(tabled([duel(0, 1)] * 12)).score.tolist() == [0.0, 0.0]


def test_of_many_teams_the_last_one_is_crushed():
    four = [([[0], [1], [2], [3]], places, (), {}) for places in ([2, 3, 4, 1], [1, 3, 2, 4], [1, 2, 3, 4])]
    evidence = found_by.sandbagging(tabled(four * 6))
    assert evidence.sentence(3).startswith("12 of its 12 defeats were crushing, where 33% are usual; ")
    assert evidence.score[3] >= tail(6, 12 / 3) > 0  # as many of them as there are wins count
    assert evidence.sentence(2).startswith("6 of its 18 defeats were crushing")
    assert evidence.score[3] > evidence.score[2]


def test_win_traders_meet_too_often():
    matches = [duel(0, 1)] * 9 + [duel(0, 2), duel(1, 2), duel(0, 3)]
    evidence = found_by.win_trading(tabled(matches, names=["ann", "bob", "cem", "dora"]))
    assert evidence.score[0] == pytest.approx(tail(9, 11 / 8))  # eleven meetings, with eight likely opponents
    assert evidence.score[1] == pytest.approx(evidence.score[0])
    assert evidence.score[3] < evidence.score[0]
    assert evidence.sentence(1) == "met 'ann' 9 times in 10 matches"
    assert not found_by.win_trading(tabled([pair_of_teams([0, 1], [2, 3])] * 9)).score.any()


def test_boosters_leave_one_players_matches():
    left = [pair_of_teams([0, 1], [2, 3 + at % 4], quitters=(2,)) for at in range(4)]
    usual = [pair_of_teams([3 + at % 4, 7], [8, 9]) for at in range(36)]
    evidence = found_by.boosting(tabled(left + usual, names=[f"p{number}" for number in range(10)]))
    share = 4.0 * 4 / 40  # of the matches, four times as much because a matchmaker pairs equals
    assert evidence.score[2] == pytest.approx(tail(4, share * 4))
    assert evidence.score[0] == evidence.score[2]
    assert evidence.score[8] == 0.0
    assert evidence.sentence(2) in {
        f"'p{other}' and this account were in 4 matches that one of them left early" for other in (0, 1)
    }
    everywhere = [duel(1 + at, 0, quitters=(0,)) for at in range(9)]
    assert not found_by.boosting(tabled(everywhere)).score.any()


def test_win_switchers_join_the_winner_late():
    usual = [pair_of_teams([at % 5, 5], [6, 7]) for at in range(30)]
    late = [pair_of_teams([8, 5], [6, 7], share={8: 0.2}) for _ in range(5)]
    long, lost = (
        [pair_of_teams([9, 5], [6, 7], share={9: 0.6})] * 5,
        [pair_of_teams([5, 6], [7, 10], share={10: 0.2})] * 5,
    )
    evidence = found_by.switching(tabled(usual + late + long + lost, names=None))
    slots = 4 * 45
    assert evidence.score[8] == pytest.approx(tail(5, 5 * max(5 / slots / 4, 1e-3)))
    assert evidence.score[[5, 9, 10]].tolist() == [0.0, 0.0, 0.0]
    assert evidence.sentence(8) == "played only the end of 5 of 5 matches, for the team that won"


@pytest.mark.parametrize(("count", "mean"), [(0, 1.0), (1, 0.5), (5, 0.01), (12, 7.5), (300, 250.0)])
def test_unlikely_counts_are_those_of_poisson(count, mean):
    assert found_by._poisson_tail(count, mean) == pytest.approx(-stats.poisson.logsf(count - 1, mean) / np.log(10))


def test_false_alarms_count_honest_accounts_and_are_never_zero():
    table = tabled([duel(0, 1), duel(1, 0)] * FEWEST + [duel(2, 3)])
    honest = honest_scores([table])
    assert honest.by_kind.keys() == KINDS.keys()
    assert all(len(scores) == 2 for scores in honest.by_kind.values())  # two have too few matches
    kind = "win trader"
    top = float(honest.by_kind[kind][-1])
    assert honest.false_alarms(kind, np.array([top + 1, top, -1.0])).tolist() == [1 / 3, 1.0, 1.0]


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
    assert all(one.false_alarms <= RATE / len(KINDS) for one in found)
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
