"""The figures of a run, worked by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from evenmatch.lab.queue.run_metrics import FIRST, summary_of
from evenmatch.lab.queue.runs import CANCELLED, EXPIRED, MATCHED, OVERTAKEN, WAITING, Run, RunMatches, weigh
from evenmatch.matchmaking.tickets import Member, Ticket, Tickets
from evenmatch.policy import Policy

SECOND = 1_000_000
NONE = np.empty(0, np.int64)
POLICY = Policy(team_size=2, teams=2, max_odds=None, steps=((0, 3), (5, 10)))
# number, queued at, percentiles, ratings, true skills, fate, left at
ROWS = [
    (1, 0, (10.0, 12.0), (1400.0, 1420.0), (1450.0, 1450.0), MATCHED, 10),
    (2, 4, (14.0,), (1480.0,), (1440.0,), MATCHED, 10),
    (3, 8, (13.0,), (1500.0,), (1500.0,), MATCHED, 10),
    (4, 12, (90.0,), (1900.0,), (1800.0,), MATCHED, 20),
    (5, 19, (91.0,), (1910.0,), (2000.0,), MATCHED, 20),
    (6, 14, (99.0,), (2210.0,), (2200.0,), MATCHED, 20),
    (7, 14, (100.0,), (2200.0,), (2000.0,), MATCHED, 20),
    (8, 5, (50.0, 51.0), (1500.0, 1500.0), (1500.0, 1500.0), WAITING, 30),
    (9, 6, (50.0,), (1500.0,), (1500.0,), CANCELLED, 9),
    (10, 7, (50.0,), (1500.0,), (1500.0,), EXPIRED, 25),
    (11, 7, (50.0,), (1500.0,), (1500.0,), OVERTAKEN, 8),
]


def run_of(rows=ROWS, *, skill=True):
    tickets = [
        Ticket(
            id=number,
            queued=queued * SECOND,
            members=tuple(
                Member(player=100 * number + at, percentile=p, rating=r)
                for at, (p, r) in enumerate(zip(percentiles, ratings, strict=True))
            ),
        )
        for number, queued, percentiles, ratings, *_ in rows
    ]
    matched = any(row[5] == MATCHED for row in rows)
    matches = RunMatches(
        time=np.array([10, 20]) * SECOND if matched else NONE,
        start=np.array([0, 3, 7]) if matched else np.zeros(1, np.int64),
        ticket=np.arange(7) if matched else NONE,
        team=np.array([0, 1, 1, 0, 1, 1, 0]) if matched else NONE,
        region=np.array([-1, -1]) if matched else NONE,
        role=np.full(8, -1) if matched else NONE,
        odds=np.array([0.5, 0.5]) if matched else np.empty(0),
    )
    true = [one for row in rows for one in row[4]]
    return Run(
        name="by hand",
        policy=POLICY,
        scenario=None,
        tickets=Tickets.of(tickets),
        skill=np.array(true if skill else [np.nan] * len(true)),
        fate=np.array([row[5] for row in rows], np.int8),
        left=np.array([row[6] for row in rows], np.int64) * SECOND,
        matches=matches,
        ticks=np.array([10, 20, 30], np.int64) * SECOND,
        waiting=np.array([3, 6, 2], np.int64),
        cpu_seconds=0.004,
        passed_over=3,
    )


def test_the_figures_match_those_worked_by_hand():
    told = summary_of(run_of())
    assert tuple(told)[: len(FIRST)] == FIRST
    # waits of players: 10, 10 (a party), 6, 2, 8, 1, 6, 6; in order 1 2 6 6 6 8 10 10
    waits = {"wait_p50": 6.0, "wait_p95": 10.0, "wait_p99": 10.0, "wait_max": 10.0, "wait_mean": 49 / 8}
    # spreads 14 - 10 and 100 - 90; the 95th percent of two is 4 + 0.95 * 6
    spreads = {"spread_p50": 7.0, "spread_p95": 9.7, "rating_spread_p50": 205.0, "rating_spread_p95": 100 + 0.95 * 210}
    for name, value in {**waits, **spreads}.items():
        assert told[name] == pytest.approx(value), name
    counts = {"matches": 2, "unmatched": 2, "arrived": 13, "matched": 8, "cancelled": 1, "expired": 1, "overtaken": 1}
    assert {name: told[name] for name in counts} == counts
    assert (told["name"], told["passed_over"], told["longest_unmatched"]) == ("by hand", 3, 25.0)
    assert told["queue_mean"] == pytest.approx(11 / 3)
    assert told["players_per_cpu_second"] == pytest.approx(2000)
    # 13 players in 30 s, waits of 49/8 s, spreads of 7 on average
    assert told["law"] == pytest.approx(13 / 30 * 49 / 8 * 7 / 100)


def test_odds_are_of_the_teams_means_by_rating_and_by_true_skill():
    worth = run_of().worth
    # ratings 1410 against 1490; teams of 4 and 7, 5 and 6: 2050 against 2060
    assert worth.odds == pytest.approx([1 / (1 + 10 ** (80 / 400)), 1 / (1 + 10 ** (10 / 400))])
    # skills 1450 against 1470, 1900 against 2100
    assert worth.true_odds == pytest.approx([1 / (1 + 10 ** (20 / 400)), 1 / (1 + 10 ** (200 / 400))])
    assert worth.wait == pytest.approx([28 / 4, 21 / 4])
    assert worth.longest_wait.tolist() == [10, 8]
    assert worth.percentile == pytest.approx([49 / 4, 95.0])
    told = summary_of(run_of())
    assert (told["share_45_55"], told["realised_45_55"]) == (0.5, 0.5)
    assert told["favourites_expected"] == pytest.approx(1 - worth.odds.mean())


def test_violations_are_players_whose_filter_was_broken():
    # at 10 s: the party [0, 22] and 2 at 6 s [4, 24] hold; 3 has waited 2 s: [10, 16], and 10 is in it
    # at 20 s: 4 at 8 s [80, 100] holds; 5 at 1 s [88, 94]: broken; 6 at 6 s [89, 109] and 7 [90, 110] hold
    told = summary_of(run_of())
    assert (told["violations"], told["violations_window"], told["violations_size"]) == (1, 1, 0)


def test_waits_are_reported_by_decile_and_party_size():
    told = summary_of(run_of())
    deciles = told["by_decile"]
    assert [row["players"] for row in deciles] == [0, 4, 0, 0, 0, 5, 0, 0, 0, 4]
    assert (deciles[1]["wait_p50"], deciles[5]["unmatched"], deciles[5]["wait_p50"]) == (8.0, 2, None)
    assert deciles[9]["matched"] == 4  # a percentile of 100 is in the highest
    alone, pairs = told["by_party_size"]
    assert (alone["size"], alone["players"], alone["wait_p50"]) == (1, 9, 6.0)
    assert (pairs["size"], pairs["matched"], pairs["unmatched"], pairs["wait_p50"]) == (2, 2, 2, 10.0)


def test_players_still_waiting_longest_are_described():
    # waits of those who found one: 10, 10, 6, 2, 8, 1, 6, 6; the pair of ticket 8 has waited 25 s
    told = summary_of(run_of())
    assert (told["wait_so_far_p50"], told["wait_so_far_p95"]) == (7.0, 25.0)
    assert told["left_waiting"] == {"players": 2, "after": 10.0, "common": [["in parties of 2", 1.0, 4 / 13]]}
    nobody = summary_of(run_of(ROWS[:7]))["left_waiting"]
    assert (nobody["players"], nobody["common"]) == (0, [])


def test_calibration_puts_each_match_in_its_class():
    told = summary_of(run_of())["calibration"]
    assert [row["matches"] for row in told] == [1, 0, 0, 0, 1, 0, 0, 0, 0]
    assert told[4]["low"] <= told[4]["expected"] <= told[4]["high"]
    assert told[1]["won"] is None


def test_an_empty_run_has_no_figures():
    told = summary_of(run_of(ROWS[7:8]))
    assert told["matches"] == told["violations"] == 0
    for name in (
        "wait_p50",
        "wait_max",
        "spread_p50",
        "share_45_55",
        "players_per_cpu_second",
        "favourites_won",
        "law",
    ):
        assert told[name] is None, name
    assert told["longest_unmatched"] == 25.0


def test_the_winner_is_drawn_by_the_odds_of_true_skill():
    # 20,000 matches of 100 points: 1 / (1 + 10^(-1/4)) = 0.6401
    count, policy = 20_000, Policy(team_size=1, max_odds=None)
    tickets = Tickets.solo(
        *(np.arange(2 * count), np.zeros(2 * count, np.int64), np.arange(2 * count), np.full(2 * count, 50.0)),
        *(np.full(2 * count, 1500.0), np.full(2 * count, 5.0), np.ones(2 * count, np.bool_)),
    )
    matches = RunMatches(
        np.zeros(count, np.int64),
        np.arange(0, 2 * count + 1, 2),
        np.arange(2 * count),
        np.tile([0, 1], count),
        *(np.full(count, -1), np.full(2 * count, -1), np.full(count, 0.5)),
    )
    skill = np.tile([1600.0, 1500.0], count)
    worth = weigh(matches, tickets, skill, policy, np.random.default_rng(3))
    assert worth.true_odds == pytest.approx(1 / (1 + 10 ** (-1 / 4)))
    assert worth.first_won.mean() == pytest.approx(0.6401, abs=4 * math.sqrt(0.23 / count))


def test_of_many_teams_the_strongest_and_the_weakest_are_compared():
    run = run_of()
    matches = replace(run.matches, team=np.array([0, 1, 2, 0, 1, 2, 2]))
    worth = weigh(matches, run.tickets, run.skill, replace(POLICY, teams=3), np.random.default_rng(1))
    # 1500 against 1410; 2205 against 1900
    assert worth.odds == pytest.approx([1 / (1 + 10 ** (-90 / 400)), 1 / (1 + 10 ** (-305 / 400))])
    # true skill of the same teams: 1500 against 1450; 2100 against 1800
    assert worth.true_odds == pytest.approx([1 / (1 + 10 ** (-50 / 400)), 1 / (1 + 10 ** (-300 / 400))])
