"""Two policies that share a queue: which decides when, what is stored, and what the audit says of them."""

import numpy as np
import pytest

from evenmatch.errors import BadParameterError, ConflictError, UnknownNameError
from evenmatch.experiment import ExperimentDesign
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.live.attendance import Ending, TeamEnd
from evenmatch.live.live_matches import Running
from evenmatch.policy import presets
from evenmatch.queues import queue_sql
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.queue_sql import FormedMatch
from service.sample_queues import DUEL, PAIRS, accept_all, forecast, hold_lease, join_queue, select_rows, solos

ALWAYS = (0, 2**62)
SECOND = 1_000_000
APART = {**DUEL, "rematch_wait": 5000.0, "rematch_fade": 86_400.0}  # nobody meets the same player twice on a day
ARMS = "baabbaabbaababababab"  # of the first slices with seed 7 and equal shares: see tests/test_experiment.py
DESIGN = {"seed": 7, "slice_seconds": 30.0, "washout": 10.0}


@pytest.fixture
def queue_service(service, ladder):
    made = QueueService(service)
    made.set_queue(ladder, "ranked", {**DUEL, "rematch_fade": 1.0}, QueueRules(heartbeat=None, accept_within=5))
    hold_lease(made, ladder)
    return made


def audit(service, ladder, since=0, until=2**62):
    (audited,) = LadderQueries(service).queue_audit(ladder, "ranked", since, until).experiments
    return audited


def figures(audited):
    return {compared.figure.name: compared for compared in audited.figures}


def stored(service, ladder):
    with service.database.read() as store:
        return queue_sql.read_formed_matches(store, store.head(ladder).ladder, "ranked", *ALWAYS, 1000)


def play(queue_service, ladder, tickets):
    """Accept the offer of these tickets; the match ends at once."""
    accept_all(queue_service, ladder, tickets)
    match = queue_service.status(ladder, tickets[0]).match
    Running(queue_service.service).close(ladder, match.match_id, Ending((TeamEnd(1), TeamEnd(2))))


def test_the_policy_in_force_makes_the_matches_and_each_match_keeps_it(service, ladder, queue_service, clock):
    """Ann and Bob play each other again and again. The queue's own policy pairs them at once, the tried one never.

    The tried policy remembers meetings for longer than the queue's own, so tickets must, too.
    """
    maker = Matchmaker(queue_service)
    first = join_queue(queue_service, ladder, *solos("ann", "bob"))
    maker.step(ladder)
    play(queue_service, ladder, first)
    clock.move(seconds=1)
    begin = clock.now
    experiment = queue_service.start_experiment(ladder, "ranked", APART, DESIGN).number
    offered, tickets = "", []
    for number in range(20):
        clock.now = begin + (30 * number + 12) * SECOND
        if not tickets:
            tickets = join_queue(queue_service, ladder, *solos("ann", "bob"))
        maker.step(ladder)
        is_offered = queue_service.status(ladder, tickets[0]).state == "offered"
        offered += "a" if is_offered else "b"
        if is_offered:
            clock.move(seconds=3)
            play(queue_service, ladder, tickets)
            maker.step(ladder)
            tickets = []
    assert offered == ARMS
    clock.now = begin + 600 * SECOND
    before, *formed = stored(service, ladder)
    assert before.forecast["trial"] is None
    trials = [match.forecast["trial"] for match in formed]
    played = [number for number, arm in enumerate(ARMS) if arm == "a"]
    assert trials == [
        {"experiment": experiment, "arm": "a", "elapsed": (30 * number + 12) * SECOND} for number in played
    ]
    compared = audit(service, ladder)
    assert compared.slices == (10, 10)
    assert (compared.formed, compared.counted) == ((10, 0), (10, 0))
    assert figures(compared)["rematches"].first.value == 1.0
    assert figures(compared)["per_hour"].second.value == 0.0


def test_every_process_knows_the_policy_in_force_and_a_restart_changes_nothing(
    ladder, queue_service, other_service, clock
):
    queue_service.start_experiment(ladder, "ranked", APART, DESIGN)
    begin, state = clock.now, QueueService(other_service).queue_state(ladder)
    state.catch_up(begin)
    waits = [state.policy("ranked", begin + round(30 * (number + 0.5) * SECOND)).rematch_wait for number in range(20)]
    assert waits == [0.0 if arm == "a" else 5000.0 for arm in ARMS]
    queue_service.stop_experiment(ladder, "ranked")
    state.catch_up(begin)
    assert {state.policy("ranked", begin + 30 * number * SECOND).rematch_wait for number in range(20)} == {0.0}


def test_one_experiment_runs_at_a_time(service, ladder, queue_service, clock):
    started = queue_service.start_experiment(ladder, "ranked", {"preset": "quick"}, {"share": 0.25})
    assert started == queue_service.start_experiment(ladder, "ranked", {"preset": "quick"}, {"share": 0.25})
    assert started.design == ExperimentDesign(share=0.25)
    assert (started.second.team_size, started.second.max_odds) == (1, presets()["quick"].max_odds)
    for policy, design in (({"preset": "fair"}, {"share": 0.25}), ({"preset": "quick"}, {"share": 0.5})):
        with pytest.raises(ConflictError, match=r"experiment with two policies since 2026-01-11.*; stop it before"):
            queue_service.start_experiment(ladder, "ranked", policy, design)
    queue_service.set_queue(ladder, "other", DUEL)
    queue_service.start_experiment(ladder, "other", {"preset": "fair"}, {})
    clock.move(seconds=100)
    stopped = queue_service.stop_experiment(ladder, "ranked")
    assert stopped == started._replace(stopped_at=clock.now)
    clock.move(seconds=100)
    assert queue_service.stop_experiment(ladder, "ranked") == stopped  # sent twice
    again = queue_service.start_experiment(ladder, "ranked", {"preset": "fair"}, {})
    assert again.number > started.number
    clock.move(seconds=1)
    audited = LadderQueries(service).queue_audit(ladder, "ranked", *ALWAYS).experiments
    assert [compared.experiment for compared in audited] == [again, stopped]
    assert queue_service.queue(ladder, "other").experiment is not None


def test_what_cannot_be_compared_is_refused(ladder, queue_service):
    start = queue_service.start_experiment
    with pytest.raises(UnknownNameError, match=r"unknown queue 'rankd'.*did you mean 'ranked'"):
        start(ladder, "rankd", {}, {})
    with pytest.raises(UnknownNameError, match=r"unknown policy 'quik'.*did you mean 'quick'"):
        start(ladder, "ranked", {"preset": "quik"}, {})
    with pytest.raises(BadParameterError, match=r"share=1.2: expected a number from 0 to 1"):
        start(ladder, "ranked", {}, {"share": 1.2})
    for values, message in (
        ({"team_size": 2}, "team_size=2: expected 1, as in the queue's own policy"),
        ({"teams": 3}, "teams=3: expected 2, as in the queue's own policy"),
        ({"roles": {"tank": 1}}, "roles={'tank': 1}: expected {}, as in the queue's own policy"),
    ):
        with pytest.raises(BadParameterError, match=message):
            start(ladder, "ranked", values, {})
    with pytest.raises(ConflictError, match="queue 'ranked' runs no experiment"):
        queue_service.stop_experiment(ladder, "ranked")
    assert queue_service.queue(ladder, "ranked").experiment is None


def test_with_its_queue_an_experiment_ends(service, ladder, queue_service, clock):
    queue_service.start_experiment(ladder, "ranked", APART, DESIGN)
    clock.move(seconds=50)
    queue_service.remove_queue(ladder, "ranked")
    queue_service.set_queue(ladder, "ranked", DUEL)
    assert queue_service.queue(ladder, "ranked").experiment is None
    assert select_rows(service, "SELECT stopped_at FROM queue_experiment") == [(clock.now,)]


def form(store, ladder, experiment, elapsed, *, players, waits=(1.0,), spread=1.0, parties=None):
    """Store that a match was offered so many seconds after the start of an experiment, and accepted 4 s later."""
    time = round(elapsed * SECOND)
    number = len(store.all("SELECT match_id FROM formed_match WHERE ladder = ?", ladder))
    trial = {"experiment": experiment.number, "arm": experiment.arm_at(experiment.started_at + time), "elapsed": time}
    parties = parties or [[1] * len(team) for team in players]
    body = forecast(teams=players, parties=parties, spread=spread, waits=list(waits), trial=trial)
    formed_at = experiment.started_at + time + 4 * SECOND
    queue_sql.insert_formed_match(store, ladder, FormedMatch(f"x{number}", "ranked", formed_at, 1, body))


def test_the_washout_and_other_times_are_left_out(service, ladder, queue_service, clock):
    """Slices of 30 s: b a a b b a. A match each 5 s; of slices 0, 1, 3 and 5 the first 10 s do not count."""
    experiment = queue_service.start_experiment(ladder, "ranked", APART, DESIGN)
    with service.database.write() as store:
        number = store.head(ladder).ladder
        for elapsed in range(1, 180, 5):
            form(store, number, experiment, elapsed, players=[[elapsed], [1000 + elapsed]], waits=(elapsed, 0.0))
    clock.move(seconds=180)
    compared = audit(service, ladder)
    assert compared.slices == (3, 3)
    assert compared.formed == (18, 18)
    assert compared.counted == (14, 14)
    found = figures(compared)
    counted_a = [*range(41, 90, 5), *range(161, 180, 5)]
    assert found["wait_p95"].first.value == np.quantile([*counted_a, *[0.0] * len(counted_a)], 0.95)
    assert found["spread"].second.value == 1.0
    assert np.isnan(found["spread"].difference.low)  # too few slices
    assert found["spread"].verdict == "not known yet: too few matches"
    assert compared.summary == ("Nothing is known yet: at least 10 blocks of slices are needed, and there are 3.")
    assert found["per_hour"].first.value == pytest.approx(14 / (20 + 30 + 20) * 3600)
    assert found["per_hour"].second.value == pytest.approx(14 / (20 + 20 + 30) * 3600)
    begin = experiment.started_at
    part = audit(service, ladder, begin + 90 * SECOND, begin + 150 * SECOND)
    assert part.slices == (0, 2)
    assert part.counted == (0, 9)  # the last one was accepted after the period


def test_rematches_are_players_who_meet_a_stranger_again_within_ten_minutes(service, ladder, queue_service, clock):
    """Teams of two; all in slices of the first policy, which decides throughout with a share of 0."""
    queue_service.set_queue(ladder, "ranked", PAIRS)
    experiment = queue_service.start_experiment(ladder, "ranked", {}, {"share": 0.0})
    with service.database.write() as store:
        number = store.head(ladder).ladder
        form(store, number, experiment, 0, players=[[1, 2], [3, 4]], parties=[[2], [2]])
        # 1 and 2 are one party: 2 meets nobody again, and 1 meets 3, of 4 players; 599 s after that match was formed
        form(store, number, experiment, 599, players=[[1, 2], [5, 6]], parties=[[2], [2]])
        form(store, number, experiment, 599, players=[[3, 7], [4, 8]], parties=[[1, 1], [1, 1]])  # 3 and 4
        form(store, number, experiment, 600, players=[[3, 1], [9, 10]], parties=[[1, 1], [1, 1]])  # too late for 1
    clock.move(seconds=700)
    found = figures(audit(service, ladder))["rematches"]
    assert found.first.value == (0 + 0 + 2 + 0) / 16
    assert found.figure.label == "players in a rematch"


def test_the_audit_finds_what_differs_and_says_how_many_matches_are_missing(service, ladder, queue_service, clock):
    """Waits are 20 s and 14 s on average, spreads the same; a third figure differs less than can be seen."""
    luck = np.random.default_rng(6)
    experiment = queue_service.start_experiment(ladder, "ranked", APART, {"seed": 7, "slice_seconds": 60, "washout": 0})
    with service.database.write() as store:
        number = store.head(ladder).ladder
        for minute in range(200):
            common = luck.normal(0, 2)
            for elapsed in 60 * minute + np.sort(luck.uniform(0, 60, 12)):
                is_first = experiment.arm_at(experiment.started_at + round(elapsed * SECOND)) == "a"
                waits = np.maximum((20.0 if is_first else 14.0) + common + luck.normal(0, 4, 2), 0).tolist()
                spread = float(luck.uniform(2, 6))
                form(store, number, experiment, elapsed, players=[[1], [2]], waits=waits, spread=spread)
    clock.move(seconds=12_000)
    compared = audit(service, ladder)
    found = figures(compared)
    wait, spread, slope = found["wait_median"], found["spread"], found["slope"]
    assert wait.first.low < 20 < wait.first.high
    assert wait.difference.low < -6 < wait.difference.high < -4
    assert wait.better == "b"
    assert wait.verdict.startswith("median wait with B: ")
    assert wait.verdict.endswith(" s shorter")
    assert wait.seen.matches == 0
    assert spread.difference.low < 0 < spread.difference.high
    assert spread.better is None
    assert spread.verdict.startswith("no difference worth detecting: at most 0.")
    assert spread.worth.size == pytest.approx(0.4, rel=0.05)
    assert spread.worth.matches == 0
    assert spread.seen.matches > 1000
    days = 200 / 1440 * spread.seen.matches / 2400
    assert spread.seen.days == pytest.approx(days, rel=0.01)
    assert slope.verdict == "not known yet: too few matches"  # none was reported
    assert slope.seen.matches is None
    assert compared.summary == "B does better on median wait and wait of 95 of 100."
