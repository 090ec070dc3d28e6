"""Figures of the whole service: read from the database, the same from every process."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from evenmatch import rules
from evenmatch.errors import StoreError
from evenmatch.http.metrics import HttpMetrics
from evenmatch.http.service_metrics import Figures, TimedMatchmaker
from evenmatch.ladders.activity import ActivityReader
from evenmatch.queues import queue_sql
from evenmatch.queues.leases import Leases
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.queue_sql import FormedMatch
from evenmatch.queues.requests import Accept, Decline, Join, QueuedPlayer
from evenmatch.queues.stored_queues import QueueRules
from evenmatch.webhooks import webhook_sql
from evenmatch.webhooks.webhook_sql import WebhookFailures


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def queue_service(site, service):
    service.create_ladder("duel", "elo", rules("elo"))
    site.queue_service.set_queue("duel", "ranked", {"team_size": 1}, QueueRules(accept_within=20, heartbeat=None))
    return site.queue_service


@pytest.fixture
def figures(site):
    registry = site.metrics.registry
    registry.register(Figures(ActivityReader(site.queue_service)))

    def read():
        found = {}
        for family in text_string_to_metric_families(generate_latest(registry).decode()):
            for sample in family.samples:
                if not sample.name.endswith("_created"):
                    found[
                        sample.name.removeprefix("evenmatch_"), *(value for _, value in sorted(sample.labels.items()))
                    ] = sample.value
        return found

    return read


def join_queue(queue_service, *names):
    wishes = [Join(members=(QueuedPlayer(name=name),), queues=("ranked",)) for name in names]
    return [outcome.ticket for outcome in queue_service.apply("duel", wishes)]


def test_they_tell_who_waits_what_was_offered_and_how_it_ended(queue_service, figures, clock, site):
    maker = TimedMatchmaker(queue_service, site.metrics)
    maker.count_offers("duel")  # what happened before is not counted
    ann, bob, kim = join_queue(queue_service, "ann", "bob", "kim")
    clock.move(seconds=3)
    queue_service.queue_state("duel").catch_up(clock())
    told = figures()
    assert told["players_seated", "duel", "waiting"] == 3
    assert told["queue_tickets", "duel", "ranked"] == 3
    assert told["queue_oldest_seconds", "duel", "ranked"] == 3
    assert ("offers_total", "duel", "made", "ranked") not in told

    offered = asked(queue_service, maker, [ann, bob, kim])
    maker.count_offers("duel")
    assert figures()["offers_total", "duel", "made", "ranked"] == 1
    queue_service.apply("duel", [Accept(offered[0]), Decline(offered[1])])
    clock.move(seconds=1)
    offered = asked(queue_service, maker, [one for one in (ann, bob, kim) if one != offered[1]])
    queue_service.apply("duel", [Accept(one) for one in offered])
    sue, joe = join_queue(queue_service, "sue", "joe")
    asked(queue_service, maker, [sue, joe])
    clock.move(seconds=21)
    maker.step("duel")
    maker.count_offers("duel")

    queue_service.queue_state("duel").catch_up(clock())
    told = figures()
    ended = {labels[2]: value for labels, value in told.items() if labels[0] == "offers_total"}
    assert ended == {"made": 3, "declined": 1, "accepted": 1, "lapsed": 1}
    assert told["players_seated", "duel", "playing"] == 2
    assert told["matches_running", "duel"] == 1
    assert told["players_seated", "duel", "waiting"] == 0
    maker.count_offers("duel")
    assert figures()["offers_total", "duel", "made", "ranked"] == 3  # nothing is counted twice


def asked(queue_service, maker, tickets):
    """Those of these tickets that are asked after a tick."""
    maker.step("duel")
    told = queue_service.statuses("duel", tickets)
    found = [one for one in tickets if told[one].state == "offered"]
    assert len(found) == 2
    return found


def test_the_policies_of_a_running_experiment_are_compared(queue_service, site, service, clock):
    """All in slices of the second policy: waits of 4 and 8 s, and two matches in 1,000 s less the washout."""
    started = queue_service.start_experiment("duel", "ranked", {"preset": "quick"}, {"share": 1.0})
    with service.database.write() as store:
        for number, elapsed in enumerate((200, 900)):
            forecast = {"teams": [[1], [2]], "parties": [[1], [1]], "odds": [0.5, 0.5], "spread": 3.0 + number}
            forecast |= {"percentile": 50.0, "waits": [4.0, 8.0]}
            forecast["trial"] = {"experiment": started.number, "arm": "b", "elapsed": elapsed * 1_000_000}
            formed_at = started.started_at + elapsed * 1_000_000
            match = FormedMatch(f"m{number}", "ranked", formed_at, 1, forecast)
            queue_sql.insert_formed_match(store, store.head("duel").ladder, match)
    clock.move(seconds=1000)
    registry = CollectorRegistry()
    registry.register(Figures(ActivityReader(site.queue_service)))
    lines = generate_latest(registry).decode().splitlines()
    named = 'evenmatch_queue_experiment{arm="b",figure="%s",ladder="duel",queue="ranked"} %s'
    for figure, value in (("wait_median", 6.0), ("spread", 3.5), ("rematches", 0.0), ("per_hour", 2 / 880 * 3600)):
        assert named % (figure, value) in lines
    assert not any("queue_experiment_difference{" in line for line in lines)  # nothing to compare with


def test_a_ladder_whose_ratings_other_kernels_made_is_due(queue_service, service, figures):
    assert figures()["ladder_rebuild_due", "duel"] == 0
    assert figures()["ladder_position", "duel"] == 1  # the ladder's own making
    with service.database.write() as store:
        store.connection.exec_driver_sql("UPDATE generation SET engine = 'another'")
    assert figures()["ladder_rebuild_due", "duel"] == 1
    service.rebuild("duel")
    assert figures()["ladder_rebuild_due", "duel"] == 0


def test_deliveries_that_wait_and_that_are_dead_are_told_apart(queue_service, service, figures):
    with service.database.write() as store:
        for delivery, next_at, delivered_at in (
            (1, "5", "NULL"),
            (2, "NULL", "7"),
            (3, "NULL", "NULL"),
            (4, "9", "NULL"),
        ):
            store.connection.exec_driver_sql(
                "INSERT INTO delivery (delivery, webhook, event, body, made_at, attempts, next_at, delivered_at) "
                f"VALUES ({delivery}, 1, 'match.rated', '{{}}', 1, 1, {next_at}, {delivered_at})"
            )
    told = figures()
    assert (told["webhook_deliveries", "waiting"], told["webhook_deliveries", "dead"]) == (2, 1)
    assert told["webhooks_paused",] == 0
    with service.database.write() as store:
        webhook_sql.put_failures(store, 1, WebhookFailures(12, 1, 2, 3))
        webhook_sql.put_failures(store, 2, WebhookFailures(2, 1))
    assert figures()["webhooks_paused",] == 1


def test_where_the_database_does_not_answer_that_alone_is_told(queue_service, service, figures, monkeypatch):
    assert figures()["database_up",] == 1

    def fail():
        raise StoreError("gone")

    monkeypatch.setattr(service.database, "read", fail)
    assert figures()["database_up",] == 0
    assert not any(labels[0] == "players_seated" for labels in figures())


def test_a_process_tells_whether_it_runs_the_matchmaker_and_how_long_its_ticks_take(queue_service):
    metrics = HttpMetrics()
    maker = TimedMatchmaker(queue_service, metrics)
    maker.step("duel")
    of = metrics.registry.get_sample_value
    assert of("evenmatch_matchmaker_running", {"ladder": "duel"}) == 1
    assert of("evenmatch_tick_seconds_count", {"ladder": "duel"}) == 1

    others = HttpMetrics()
    other = TimedMatchmaker(QueueService(queue_service.service), others)
    assert isinstance(other.leases, Leases)
    assert other.step("duel") is None
    assert others.registry.get_sample_value("evenmatch_matchmaker_running", {"ladder": "duel"}) == 0
    assert others.registry.get_sample_value("evenmatch_tick_seconds_count", {"ladder": "duel"}) is None
