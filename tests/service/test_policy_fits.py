"""The policy of a queue fitted to those who joined it: the arrivals, what is adopted when, and what is noted."""

import json
import time

import numpy as np
import pytest

from evenmatch.accounts.access import OPERATOR
from evenmatch.accounts.audit_trail import Audit
from evenmatch.errors import ConflictError, UnknownNameError
from evenmatch.jobs.jobs import Jobs
from evenmatch.lab.queue import policy_fit
from evenmatch.policy import WaitTarget, presets
from evenmatch.queues import policy_fits
from evenmatch.queues.policy_fits import AutoPolicies
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from service.sample_joins import evenly, store_joins

pytestmark = pytest.mark.slow

SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
DUELS = {"preset": "balanced", "team_size": 1, "max_odds": "none"}
AUTO = QueueRules(auto_within=20.0, auto_share=0.9)


@pytest.fixture(autouse=True)
def short_simulations(monkeypatch):
    """A quarter of the usual length: how exact fits are is tested in tests/lab."""
    monkeypatch.setattr(policy_fit, "LEAST_PLAYERS", 375)
    monkeypatch.setattr(policy_fit, "LEAST_SECONDS", 225.0)


@pytest.fixture
def queue_service(service, ladder):
    made = QueueService(service)
    made.set_queue(ladder, "ranked", DUELS, AUTO)
    return made


@pytest.fixture
def busy(queue_service, service, ladder, clock):
    """600 players joined in the last 20 minutes, one every two seconds."""
    store_joins(service, ladder, evenly(clock.now - 20 * MINUTE, 1200, 600))
    return queue_service


@pytest.fixture
def auto(busy, service, clock):
    jobs = Jobs(service.database, clock)
    yield AutoPolicies(busy, jobs)
    jobs.stop(60)


def ended(auto, job):
    until = time.monotonic() + 120
    while (found := auto._jobs.find(job.job)).state == "running" and time.monotonic() < until:
        time.sleep(0.05)
    return found


def audited(service, ladder, action="queue.fitted"):
    return [entry for entry in Audit(service.database).page(ladder) if entry.action == action]


def silent(_position):
    """Ignore the progress."""


def test_the_arrivals_are_those_of_the_last_day_in_this_queue(queue_service, service, ladder, clock):
    """Hours of 400, 100, 0 and 100 players, and others long ago or elsewhere.

    Of 600 players a quarter, 150, join in hours of 100, and the next in one of 100 too: 200 join in such hours.
    """
    start = clock.now - 4 * HOUR
    joined = [evenly(start, 3600, 400), evenly(start + HOUR, 3600, 100), evenly(start + 3 * HOUR, 3600, 100)]
    store_joins(service, ladder, np.concatenate(joined))
    store_joins(service, ladder, evenly(clock.now - 50 * HOUR, 3600, 300), first=10_000)
    store_joins(service, ladder, evenly(start, 3600, 300), queue="casual", first=20_000)
    setup, arrivals = policy_fits.read_arrivals(service, ladder, "ranked")
    assert (setup.name, arrivals.joins, len(arrivals.tickets)) == ("ranked", 600, 600)
    assert arrivals.arrivals == pytest.approx(100 / 3600)
    assert arrivals.tickets.loose.mean() == 0.75


def test_of_very_many_tickets_some_are_read_and_all_are_counted(queue_service, service, ladder, clock, monkeypatch):
    monkeypatch.setattr("evenmatch.queues.policy_fits.TICKETS_READ_AT_MOST", 250)
    store_joins(service, ladder, evenly(clock.now - HOUR, 3600, 1000))
    arrivals = policy_fits.read_arrivals(service, ladder, "ranked")[1]
    assert (len(arrivals.tickets), arrivals.joins) == (250, 1000)
    assert arrivals.arrivals == pytest.approx(1000 / 3600, rel=0.05)


def test_too_few_joins_keep_the_policy(queue_service, service, ladder, clock):
    store_joins(service, ladder, evenly(clock.now - HOUR, 3600, 199))
    expected = "199 players joined queue 'ranked' in the last day; at least 200 are needed"
    with pytest.raises(ConflictError, match=expected):
        policy_fits.fit(service, ladder, "ranked", WaitTarget())
    with pytest.raises(UnknownNameError):
        policy_fits.fit(service, ladder, "nowhere", WaitTarget())
    auto = AutoPolicies(queue_service, Jobs(service.database, clock))
    done = auto.refit(ladder, "ranked", silent)
    assert (done["adopted"], "fit" in done) == (False, False)
    assert expected in done["explanation"][0]
    assert auto.step() == []  # 199 tickets of one player cannot be 200 players
    assert queue_service.queue(ladder, "ranked").policy.even_spread == presets()["balanced"].even_spread


def test_a_fit_is_adopted_by_itself_and_noted_with_its_explanation(auto, busy, service, ladder, clock):
    before = busy.queue(ladder, "ranked")
    (job,) = auto.step()
    assert (job.kind, auto.step()) == ("policy of ranked", [])  # it runs already
    done = ended(auto, job)
    assert (done.state, done.result["adopted"], done.result["joins"]) == ("done", True, 600)
    after = busy.queue(ladder, "ranked")
    (entry,) = audited(service, ladder)
    assert (entry.actor, entry.target) == ("service", "ranked")
    assert entry.body["policy"]["even_spread"] == after.policy.even_spread != before.policy.even_spread
    assert entry.body["explanation"] == done.result["explanation"]
    assert "Players join at 0.5" in entry.body["explanation"][0]
    assert (after.policy.overdue_after, after.rules, after.change > before.change) == (60.0, AUTO, True)
    assert done.result["fit"]["fitted"]["wait"] <= 20
    last = policy_fits.last_fit(auto._jobs, ladder, after)
    assert (last.fitted_at, last.adopted, list(last.explanation)) == (clock.now, True, entry.body["explanation"])


def test_the_next_fit_is_a_day_later_and_nothing_changes_without_a_gain(auto, busy, service, ladder, clock):
    first = ended(auto, auto.step()[0])
    adopted = busy.queue(ladder, "ranked")
    clock.move(seconds=86_300)
    store_joins(service, ladder, evenly(clock.now - 18 * MINUTE, 1180, 600), first=5000)
    assert auto.step() == []
    clock.move(seconds=100)
    (job,) = auto.step()
    second = ended(auto, job)
    assert (first.result["adopted"], second.result["adopted"]) == (True, False)
    assert busy.queue(ladder, "ranked") == adopted
    assert len(audited(service, ladder)) == 1


def test_no_policy_is_adopted_during_an_experiment(auto, busy, service, ladder):
    fitted = policy_fits.fit(service, ladder, "ranked", WaitTarget(within=20))
    busy.start_experiment(ladder, "ranked", {"preset": "quick"}, {})
    with pytest.raises(ConflictError, match="has been running an experiment"):
        policy_fits.adopt(service, ladder, fitted, OPERATOR)
    assert auto.step() == []
    assert auto.refit(ladder, "ranked", silent)["adopted"] is False
    assert audited(service, ladder) == []
    busy.stop_experiment(ladder, "ranked")
    with pytest.raises(ConflictError, match="was changed while its policy was fitted"):
        policy_fits.adopt(service, ladder, fitted, OPERATOR)


def test_a_policy_that_misses_the_target_is_not_adopted(busy, service, ladder):
    """One comes every two seconds, and the second of a pair later than 5 s in a twelfth of the cases: e^-2.5."""
    fitted = policy_fits.fit(service, ladder, "ranked", WaitTarget(within=5, share=0.99))
    assert "cannot be kept by any width" in " ".join(fitted.explanation)
    with pytest.raises(ConflictError, match="no width meets 99 of 100 within 5 s"):
        policy_fits.adopt(service, ladder, fitted, OPERATOR)


def test_auto_keeps_the_policy_of_a_queue_and_a_new_one_begins_with_balanced(queue_service, service, ladder):
    queue_service.set_queue(ladder, "fast", {"preset": "quick", "team_size": 3}, QueueRules(tick=2.0))
    fast = queue_service.set_queue(ladder, "fast", {"preset": "auto", "max_odds": 0.65}, QueueRules(tick=2.0))
    assert (fast.policy.overdue_after, fast.policy.team_size, fast.policy.max_odds) == (120.0, 3, 0.65)
    assert (fast.rules.auto_within, fast.rules.auto_share, fast.rules.tick) == (90.0, 0.9, 2.0)
    new = queue_service.set_queue(ladder, "new", {"preset": "auto", "team_size": 2}, QueueRules(auto_within=45))
    assert (new.policy.overdue_after, new.policy.team_size) == (presets()["balanced"].overdue_after, 2)
    assert new.rules.target == WaitTarget(within=45, share=0.9)
    assert QueueRules().target is None
    assert json.loads(json.dumps(new.rules.to_data()))["auto_within"] == 45
