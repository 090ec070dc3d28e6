"""Small simulated queues, and the picture of waits: steps in order, the same arrivals for all, levels told apart."""

import json

import pytest

from evenmatch.errors import BadParameterError
from evenmatch.lab.ladder.charts import PartyWait, waits_over_time
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.simulation import Steps, TrialCrowd, policy_of, try_preset, try_steps
from evenmatch.policy import presets

SECOND = 1_000_000
# times and widths as somebody pulled them, and as they are simulated
ORDERS = [
    ((0, 15, 30), (2, 5, 10), (0, 15, 30), (2, 5, 10)),
    ((9, 15, 15), (2, 1, 10), (0, 15, 16), (2, 2, 10)),
    ((0, 90, 30), (50, 5, 60), (0, 90, 91), (50, 50, 60)),
]


@pytest.mark.parametrize(("times", "widths", "later", "wider"), ORDERS)
def test_steps_are_put_in_order(times, widths, later, wider):
    assert Steps(times, widths).in_order == Steps(later, wider)


def steps_of(policy):
    """The steps of a policy as the sliders have them."""
    return Steps(*zip(*policy.steps, strict=True))


def test_a_policy_is_balanced_but_for_its_steps():
    balanced = presets()["balanced"]
    made = policy_of(TrialCrowd(team_size=6), steps_of(balanced))
    assert made.to_data() == balanced.to_data()
    assert policy_of(TrialCrowd(team_size=3), Steps((0, 20), (2, 9))).overdue_after == 20
    with pytest.raises(BadParameterError, match="steps"):
        policy_of(TrialCrowd(), Steps((0.0, 20.0), (2.0, 900.0)))


@pytest.mark.parametrize(("arrivals", "minutes"), [(0.5, 12.0), (5.0, 10.0), (20.0, 6.0)])
def test_the_more_come_the_shorter_they_are_watched(arrivals, minutes):
    assert TrialCrowd(arrivals=arrivals).scenario.minutes == minutes


def test_yours_and_a_preset_meet_the_same_players():
    crowd = TrialCrowd(arrivals=2.0, team_size=1, patience=60.0)
    yours, balanced = try_steps(crowd, steps_of(presets()["balanced"])), try_preset(crowd, "balanced")
    assert (yours.name, balanced.name) == ("yours", "balanced")
    assert (yours.tickets.player == balanced.tickets.player).all()
    assert summary_of(yours)["wait_p50"] == summary_of(balanced)["wait_p50"]


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
