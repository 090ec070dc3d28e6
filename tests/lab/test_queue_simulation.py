"""The simulator: repeatable, the same arrivals for everybody, and laws of queues that hold whatever the code."""

import time
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.rivals import line_up, others, proposals

from evenmatch.errors import BadParameterError
from evenmatch.lab.queue.run_metrics import FIRST, summary_of
from evenmatch.lab.queue.runs import CANCELLED, EXPIRED, MATCHED, WAITING
from evenmatch.lab.queue.scenario import PARTY_MIXES, Scenario
from evenmatch.lab.queue.simulation import simulate
from evenmatch.lab.queue.ticket_source import Crowd
from evenmatch.matchmaking.propose import propose
from evenmatch.policy import Policy

SECOND = 1_000_000
OTHERS = {name: other.propose for name, other in others().items()}
BUSY = Scenario(
    minutes=2.5,
    arrivals=6,
    players=600,
    parties=(0.6, 0.3, 0.1),
    patience=60.0,
    return_share=0.7,
    match_seconds=30.0,
    match_seconds_sd=10.0,
    share_avoiding=0.1,
)


def nobody(queue, now, policy):
    """A matchmaker who makes no match."""
    return proposals(line_up(queue), now, policy, [])


def repeatable_figures(run):
    told = summary_of(run)
    return {name: told[name] for name in told if name not in {"players_per_cpu_second", "cpu_seconds"}}


@pytest.mark.parametrize("name", ["greedy", "waves"])
def test_a_run_is_the_same_again_and_another_with_another_seed(name):
    first, again = (simulate(BUSY, others()[name].propose, Policy()) for _ in range(2))
    assert repeatable_figures(first) == repeatable_figures(again)
    assert (first.matches.ticket == again.matches.ticket).all()
    assert (first.worth.first_won == again.worth.first_won).all()
    assert repeatable_figures(simulate(replace(BUSY, seed=2), OTHERS[name], Policy())) != repeatable_figures(first)


def test_arrivals_are_the_same_whoever_makes_the_matches():
    scenario = Scenario(minutes=3, parties=(0.5, 0.5), patience=40.0)
    runs = [simulate(scenario, maker, Policy()) for maker in (OTHERS["fifo"], OTHERS["waves"], nobody)]
    for run in runs[1:]:
        for column in ("id", "queued", "player", "percentile", "within"):
            assert (getattr(run.tickets, column) == getattr(runs[0].tickets, column)).all()


def test_the_shipped_matchmaker_breaks_no_rule_and_reports_true_odds():
    scenario = replace(BUSY, regions={"a": 2.0, "b": 1.0}, minutes=3, arrivals=10)
    run = simulate(scenario, propose, Policy(), name="balanced")
    told = summary_of(run)
    assert tuple(told)[: len(FIRST)] == FIRST
    assert told["matches"] > 0
    assert (told["violations"], told["over_caps"]) == (0, 0)
    assert run.worth.odds == pytest.approx(run.matches.odds)


def test_every_arrival_is_matched_waits_or_gave_up():
    run = simulate(BUSY, OTHERS["bins"], replace(Policy(), max_wait=30.0))
    assert {MATCHED, WAITING, CANCELLED, EXPIRED} == set(run.fate.tolist())
    told = summary_of(run)
    assert told["arrived"] == told["matched"] + told["unmatched"] + told["cancelled"] + told["expired"]
    assert told["matched"] == 12 * told["matches"]
    assert told["unmatched"] == run.waiting[-1]
    # a tick a second: nobody is given up before 30 s, or later than a tick after
    late = run.waits[run.fate == EXPIRED]
    assert late.min() >= 30 > late.max() - 1
    assert (run.waits >= 0).all()


def test_waiting_players_are_arrivals_times_waiting_time():
    # Little's law; a queue that is looked at once a second after the matches misses half a second of each wait
    run = simulate(Scenario(arrivals=20, minutes=10), OTHERS["bins"], Policy())
    waits = summary_of(run)["wait_mean"]
    assert run.waiting[120:].mean() == pytest.approx(20 * (waits - 0.5), rel=0.05)


def test_fixed_bins_obey_their_law():
    # (k - 1)^2 / (2 (k + 1)) for k players a match; the tick adds half of itself to each wait
    run = simulate(Scenario(arrivals=30, minutes=5, tick=0.5), OTHERS["bins"], Policy())
    told = summary_of(run)
    law = told["law"] * (told["wait_mean"] - 0.25) / told["wait_mean"]
    assert law == pytest.approx(11**2 / (2 * 13), rel=0.05)


def test_favourites_win_as_often_as_foretold_where_ratings_are_exact_and_less_where_not():
    duels, policy = Scenario(arrivals=20, minutes=5, tick=5, rating_error=0.0), Policy(team_size=1, max_odds=None)
    told = summary_of(simulate(duels, OTHERS["fifo"], policy))
    assert told["favourites_expected"] > 0.65
    assert told["favourites_won"] == pytest.approx(told["favourites_expected"], abs=0.03)  # 3,000 duels
    assert told["realised_45_55"] == pytest.approx(told["share_45_55"])
    told = summary_of(simulate(replace(duels, rating_error=300.0), OTHERS["fifo"], policy))
    assert told["favourites_won"] < told["favourites_expected"] - 0.05


def test_parties_come_back_after_their_match_and_remember_whom_they_met():
    scenario = Scenario(
        **{"minutes": 3, "arrivals": 3, "parties": (0.5, 0.5), "return_share": 1.0, "match_seconds": 20.0},
        match_seconds_sd=0.0,
    )
    run = simulate(scenario, OTHERS["fifo"], Policy(team_size=2))
    t, m = run.tickets, run.matches
    players = [set(t.player[t.start[row] : t.start[row + 1]].tolist()) for row in range(len(t))]
    before = {}  # the match of each player
    returns = 0
    for row in np.argsort(t.queued, kind="stable"):
        met = t.named[t.named_start[row] : t.named_start[row + 1]]
        times = t.met[t.named_start[row] : t.named_start[row + 1]]
        earlier = [(time, others_met) for one in players[row] for time, others_met in before.get(one, ())]
        last = max(earlier, default=None, key=lambda one: one[0])
        if last is None:
            assert not len(met)
        else:
            returns += 1
            assert t.queued[row] == last[0] + 20 * SECOND
            assert set(met.tolist()) == last[1] - players[row]
            assert set(times.tolist()) == {t.queued[row]}
        if run.fate[row] == MATCHED:
            at = m.match[np.flatnonzero(m.ticket == row)[0]]
            everybody = set().union(*(players[one] for one in m.ticket[m.start[at] : m.start[at + 1]]))
            for one in players[row]:
                before.setdefault(one, []).append((int(m.time[at]), everybody))
    # all come back but those whose match had not ended
    ended = m.time + 20 * SECOND <= run.ticks[-1]
    assert returns == np.diff(m.start)[ended].sum() > 100
    assert len(set(t.id.tolist())) == len(t)
    assert run.passed_over == 0


def test_players_who_wait_or_play_do_not_arrive_again():
    crowded = Scenario(minutes=4, arrivals=5, players=60)
    run = simulate(crowded, nobody, Policy())
    assert summary_of(run)["arrived"] == 60
    came = len(Crowd(crowded, Policy()).arriving)
    assert run.passed_over == came - 60 > 1000
    patient = simulate(replace(crowded, patience=5.0), nobody, Policy())
    assert patient.passed_over < run.passed_over / 2


def test_parties_larger_than_a_team_are_refused():
    with pytest.raises(BadParameterError, match="teams of 3"):
        simulate(Scenario(parties=PARTY_MIXES["some"]), nobody, Policy(team_size=3))


def test_start_up_work_does_not_count_towards_a_matchmakers_speed():
    calls = []

    def slow_at_first(queue, now, policy):
        calls.append((now, len(queue)))
        if len(calls) <= 2:
            until = time.process_time() + 0.2
            while time.process_time() < until:
                pass
        return OTHERS["fifo"](queue, now, policy)

    run = simulate(Scenario(minutes=0.1, arrivals=20), slow_at_first, Policy())
    assert [waiting > 50 for _, waiting in calls[:3]] == [True, True, False]
    assert [now for now, _ in calls[2:]] == run.ticks.tolist()
    assert 0 < run.cpu_seconds < 0.2
