"""Policies fitted to a queue: the target is kept with other arrivals, and what no width can keep is said."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from evenmatch.lab.queue.policy_fit import (
    PolicyFit,
    QueuePrediction,
    explain,
    fit_policy,
    policy_with_spread,
    scenario_arrivals,
    ticket_arrivals,
)
from evenmatch.lab.queue.runs import MATCHED
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.simulation import simulate
from evenmatch.lab.queue.ticket_source import Crowd, TicketSample
from evenmatch.matchmaking.propose import propose
from evenmatch.policy import WaitTarget, presets

BALANCED = presets()["balanced"]
TRIOS = replace(BALANCED, team_size=3)
SECOND = 1_000_000
SOME = Scenario(arrivals=1.0, parties=(0.7, 0.2, 0.1))


@pytest.fixture(scope="module")
def fitted():
    target = WaitTarget(within=60, share=0.9)
    return fit_policy(TRIOS, scenario_arrivals(SOME, target), target)


def loose_waits(run, within):
    """By plain loops: the wait of each loose player who joined in time to be judged; inf without a match."""
    tickets, waits = run.tickets, []
    for row, (first, stop) in enumerate(pairwise(tickets.start.tolist())):
        in_time = within * SECOND <= tickets.queued[row] <= run.ticks[-1] - within * SECOND
        if in_time and tickets.loose[first:stop].all():
            wait = (run.left[row] - tickets.queued[row]) / SECOND if run.fate[row] == MATCHED else np.inf
            waits += [wait] * (stop - first)
    return np.array(waits)


def test_the_fitted_policy_keeps_the_target_with_a_third_seed(fitted):
    """Counted tick by tick over another hour: 9 of 10 within 60 s, but for the noise of 2,500 players."""
    run = simulate(replace(SOME, seed=77, minutes=60.0), propose, fitted.policy)
    waits = loose_waits(run, 60.0)
    assert fitted.is_kept
    assert len(waits) > 1500
    assert np.mean(waits <= 60.0) == pytest.approx(0.9, abs=0.05)


def test_a_narrower_policy_would_not_keep_it(fitted):
    """The closest matches are asked for, so with a quarter of the width the target is missed."""
    narrow = policy_with_spread(TRIOS, fitted.policy.even_spread / 4, fitted.target)
    run = simulate(replace(SOME, seed=77, minutes=60.0), propose, narrow)
    assert np.mean(loose_waits(run, 60.0) <= 60.0) < 0.88


def test_only_widths_and_times_of_the_policy_change(fitted):
    before, after = TRIOS.to_data(), fitted.policy.to_data()
    assert {name for name in before if before[name] != after[name]} == {"even_spread", "steps", "overdue_after"}
    assert (after["steps"][-1], after["overdue_after"]) == ([180.0, 100.0], 180.0)
    assert after["steps"][0] == [0.0, after["even_spread"]]


def test_the_fit_is_explained(fitted):
    crowd, waits, spreads, *more = explain(fitted)
    assert crowd.startswith("Players join at 1")
    assert "the 6 players of a match take 6 s to arrive" in crowd
    assert "nine of ten wait" in waits
    assert f"up to {fitted.policy.even_spread:.3g} percentiles" in waits
    assert f"(now {fitted.present.spread:.1f})" in spreads
    assert "Strict filters never widen" in more[0]


def test_the_fit_says_when_no_width_meets_the_target():
    """A match of 12 cannot be filled within 20 s where a player comes every two seconds: they take 24 s to arrive."""
    target = WaitTarget(within=20, share=0.9)
    fit = fit_policy(BALANCED, scenario_arrivals(Scenario(arrivals=0.5, share_strict=0.0), target), target)
    said = explain(fit)
    assert (fit.is_kept, fit.is_better) == (False, False)
    assert "Nine of ten within 20 s cannot be kept by any width." in said
    assert any("Allow a longer wait" in sentence for sentence in said)


def prediction(policy, wait, spread):
    return QueuePrediction(policy, wait, None, spread, 2 * spread, 1.0, 0.0, 100)


# present wait and spread, fitted wait and spread, and whether more than a tenth is gained; the target is 90 s
GAINS = [
    (140, 2.9, 84, 6.0, True),
    (95, 2.9, 89, 3.0, False),  # a shorter wait, by less than a tenth
    (40, 5.0, 85, 3.0, True),  # closer matches, and the target is still kept
    (40, 5.0, 85, 4.8, False),
    (80, 3.0, 60, 4.0, False),  # a shorter wait than was wished is no reason for wider matches
    (140, 2.9, 99, 9.0, False),  # better, but the target is missed
]


@pytest.mark.parametrize(("wait", "spread", "new_wait", "new_spread", "better"), GAINS)
def test_a_fit_is_better_only_by_more_than_a_tenth(wait, spread, new_wait, new_spread, better):
    made = PolicyFit(
        WaitTarget(), prediction(TRIOS, wait, spread), prediction(TRIOS, new_wait, new_spread), new_wait <= 90
    )
    assert made.is_better is better


def test_arrivals_are_drawn_from_the_tickets_of_a_queue():
    """Each ticket comes before any comes again, at the given rate, and nobody waits twice."""
    tickets = Crowd(Scenario(arrivals=1.0, minutes=10.0, parties=(0.5, 0.5)), TRIOS).arriving
    source = TicketSample(tickets, 0.5, 600.0, 2.0, 1)
    joined = [part for tick in range(len(source.ticks)) if len(part := source.joining(tick))]
    players = [player for part in joined for player in part.player.tolist()]
    assert len(source.ticks) == 300
    assert 220 < len(players) < 380  # 300, give or take
    assert len(set(players)) == len(players)  # about 400 tickets, of which 200 are drawn
    few = TicketSample(tickets, 5.0, 600.0, 2.0, 1)  # each of them nearly five times, but they all still wait
    again = [player for tick in range(300) for player in few.joining(tick).player.tolist()]
    assert len(again) == len(set(again)) == len(set(tickets.player.tolist()))
    assert few.passed_over > 1500


def test_a_fit_to_the_tickets_of_a_queue_sees_its_filters():
    """Among players who all chose ±3 for good, no policy shortens the wait: the fit says so of all of them."""
    crowd = Crowd(Scenario(arrivals=1.0, minutes=20.0, share_strict=1.0, strict_within=3.0), TRIOS)
    target = WaitTarget(within=10, share=0.9)
    fit = fit_policy(TRIOS, ticket_arrivals(crowd.arriving, 1.0, target), target)
    assert (fit.is_kept, fit.fitted.share_strict) == (False, 1.0)
    assert fit.fitted.wait == pytest.approx(fit.present.wait, rel=0.35)
