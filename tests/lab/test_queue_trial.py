"""Small simulated queues, and the picture of waits: steps in order, the same arrivals for all, levels told apart."""

import json
from dataclasses import replace

import numpy as np
import pytest

from evenmatch.errors import BadParameterError
from evenmatch.lab.ladder.charts import PartyWait, waits_over_time
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.ticket_source import pick
from evenmatch.lab.queue.trial import PolicyKnobs, Trial, compare
from evenmatch.policy import Policy, presets

SECOND = 1_000_000
# times and widths as somebody pulled them, and the steps that are simulated
ORDERS = [
    ((0, 15, 30), (2, 5, 10), ((0, 2), (15, 5), (30, 10))),
    ((0, 15, 15), (2, 3, 10), ((0, 2), (15, 3), (16, 10))),
    ((0, 90, 30), (50, 5, 60), ((0, 50), (91, 60))),
    ((0, 90, 120), (7, 7, 7), ((0, 7),)),
]


@pytest.mark.parametrize(("times", "widths", "steps"), ORDERS)
def test_steps_are_put_in_order(times, widths, steps):
    assert PolicyKnobs(times, widths, 4.5, 0.6).applied(Policy()).steps == steps


def test_untouched_knobs_keep_the_policy_as_it_is():
    single = Policy(team_size=1, steps=((0, 100),), max_odds=None, overdue_after=None)
    for policy in (*presets().values(), single):
        assert PolicyKnobs.of(policy).applied(policy) is policy
    assert PolicyKnobs.of(single) == ((0, 30, 60), (100, 100, 100), single.even_spread, 1.0)


def test_a_change_keeps_every_other_option():
    base = replace(presets()["quick"], team_size=3, party_wait=7.0)
    knobs = PolicyKnobs.of(base)
    assert knobs._replace(max_odds=1.0).applied(base) == replace(base, max_odds=None)
    assert knobs._replace(even_spread=9.0).applied(base) == replace(base, even_spread=9.0)
    later = knobs._replace(times=(0.0, 30.0, 60.0, 150.0)).applied(base)
    assert later == replace(base, steps=(*base.steps[:3], (150.0, 100.0)), overdue_after=150.0)


def test_a_width_beyond_the_percentiles_is_refused():
    with pytest.raises(BadParameterError, match="steps"):
        PolicyKnobs((0.0, 20.0), (2.0, 900.0), 4.5, 0.6).applied(Policy())


# players per second, simulated seconds and seconds between two decisions
LENGTHS = [(0.01, 7200.0, 30.0), (1.0, 3000.0, 12.5), (5.0, 600.0, 3.0), (100.0, 360.0, 3.0)]


@pytest.mark.parametrize(("arrivals", "seconds", "tick"), LENGTHS)
def test_the_more_come_the_shorter_they_are_watched(arrivals, seconds, tick):
    assert trial_of(arrivals).length(1.0) == (seconds, tick)
    assert trial_of(arrivals / 2).length(2.0) == (seconds, tick)


def trial_of(arrivals, tickets=None):
    return Trial(replace(presets()["balanced"], team_size=1), (), arrivals, tickets, Scenario(players=500))


def test_both_policies_meet_the_same_players():
    trial = trial_of(2.0)
    now, then = trial.run(trial.policy, "now", 1.0), trial.run(replace(trial.policy, even_spread=60.0), "then", 1.0)
    assert (now.tickets.player == then.tickets.player).all()
    assert trial.cached_run(trial.policy, "now", 1.0) is trial.cached_run(trial.policy, "now", 1.0)


def test_recorded_tickets_keep_their_percentiles():
    recorded = trial_of(2.0).run(presets()["balanced"], "", 1.0).tickets
    few = pick(recorded, np.arange(30))
    run = trial_of(2.0, few).run(trial_of(2.0).policy, "", 1.0)
    assert set(run.tickets.percentile) == set(few.percentile)
    assert len(run.tickets) > 1000


def test_a_comparison_says_what_players_notice():
    trial = trial_of(2.0)
    now = trial.run(trial.policy, "now", 1.0)
    assert compare(now, now)[0] == "Players would hardly notice this change."
    wide = trial.run(PolicyKnobs((0.0,), (60.0,), 60.0, 1.0).applied(trial.policy), "then", 1.0)
    before, after = summary_of(now), summary_of(wide)
    assert after["wait_p50"] < before["wait_p50"] / 1.1
    assert after["spread_p50"] > before["spread_p50"] * 1.1
    assert compare(now, wide)[0] == "Shorter waits but less even matches."
    assert compare(wide, now)[0] == "Longer waits but closer matches."
    assert f"{after['spread_p50']:.1f} percentiles or less (now {before['spread_p50']:.1f})" in compare(now, wide)[2]


def test_waits_are_drawn_by_level_with_their_median():
    waits = [PartyWait(at * SECOND, float(at), 10.0 if at % 2 else 100.0) for at in range(40)]
    low, high, median = json.loads(waits_over_time(waits[::-1]).to_json())["data"]
    assert (low["name"], high["name"], median["name"]) == ("percentile 0–20", "percentile 80–100", "median of 30")
    assert low["x"][:2] == [1000, 3000]
    assert high["y"][:2] == [0.0, 2.0]
    assert median["y"][0] == 14.5  # of 0 to 29
    assert (len(median["x"]), median["x"][0]) == (11, 15_000)
    assert len(json.loads(waits_over_time(waits[:5]).to_json())["data"]) == 2
    assert json.loads(waits_over_time([]).to_json())["data"] == []
