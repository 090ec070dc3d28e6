"""Receivers that are slow or fail: they hold up nobody else, are paused, and go on once they answer again."""

import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from evenmatch import rules
from evenmatch.errors import InputError, UnknownNameError
from evenmatch.webhooks import delivery, subscriptions
from evenmatch.webhooks.delivery import Deliverer, Slots
from evenmatch.webhooks.subscriptions import Webhooks
from evenmatch.webhooks.webhook_sql import Webhook
from ledger.sample_matches import duel

SECOND = 1_000_000
ONE_DATABASE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # what is tried is not its


class Receiver:
    """A server on this machine. reply: what it sends to every request; None: a byte now and then, without end."""

    def __init__(self, reply=b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"):
        self.reply, self.count = reply, 0
        self._stop, self._listening = threading.Event(), socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://hooks.example:{self._listening.getsockname()[1]}/"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            try:
                connection.recv(65536)
                if self.reply is not None:
                    connection.sendall(self.reply)
                    return
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
                while not self._stop.wait(0.05):
                    connection.sendall(b".")
            except OSError:
                return

    def close(self):
        self._stop.set()
        self._listening.close()


@contextmanager
def receiving(*replies):
    opened = [Receiver(reply) for reply in replies]
    try:
        yield opened
    finally:
        for receiver in opened:
            receiver.close()


@pytest.fixture
def deliverer(webhooks):
    opened = Deliverer(webhooks)
    yield opened
    opened.close(0)


def until(condition, within=10.0):
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


OK, BROKEN = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", b"HTTP/1.1 500 No\r\nConnection: close\r\n\r\n"


@ONE_DATABASE
def test_a_receiver_that_sends_a_byte_now_and_then_ends_at_the_deadline(
    service, webhooks, deliverer, ladder, monkeypatch
):
    monkeypatch.setattr(delivery, "DEADLINE", 0.5)
    with receiving(None) as (drips,):
        hook, _ = webhooks.add(drips.url, ["match.rated"])
        service.record(duel(1, "ann", "bob", ladder))
        deliverer.make()
        begun = time.monotonic()
        assert deliverer.send() == 1
        deliverer.finish()
        assert 0.5 <= time.monotonic() - begun < 2
        (sent,) = webhooks.deliveries(hook.webhook)
        assert (sent.state, sent.error) == ("pending", "the receiver did not answer within 0.5 s")


@ONE_DATABASE
def test_a_name_that_is_not_resolved_in_time_ends_at_the_deadline(service, ladder, monkeypatch):
    monkeypatch.setattr(delivery, "DEADLINE", 0.2)
    release = threading.Event()
    webhooks = Webhooks(service, allow_private=True, find=lambda host, port: ["127.0.0.1"] * release.wait(20))
    hook, _ = webhooks.add("http://slow.example/", ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    deliverer = Deliverer(webhooks)
    deliverer.make()
    deliverer.send()
    deliverer.finish()
    assert webhooks.deliveries(hook.webhook)[0].error == "the receiver did not answer within 0.2 s"
    release.set()
    deliverer.close()


def test_two_slow_receivers_hold_up_no_third_one(service, webhooks, deliverer, ladder):
    with receiving(None, None, OK) as (first, second, quick):
        for receiver in (first, second, quick):
            webhooks.add(receiver.url, ["match.rated"])
        for number in range(10):
            service.record(duel(number, "ann", "bob", ladder))
        deliverer.make()

        def step():
            deliverer.send()
            return quick.count == 10

        until(step)
        assert (first.count, second.count) == (4, 4)


@ONE_DATABASE
def test_a_stop_waits_for_slow_receivers_for_two_seconds_and_what_was_cut_off_is_sent_again(
    service, webhooks, ladder, monkeypatch
):
    with receiving(None) as (receiver,):
        hook, _ = webhooks.add(receiver.url, ["match.rated"])
        service.record(duel(1, "ann", "bob", ladder))
        deliverer, stop = Deliverer(webhooks), threading.Event()
        running = threading.Thread(target=deliverer.run, args=(stop,))
        running.start()
        until(lambda: receiver.count == 1)
        begun = time.monotonic()
        stop.set()
        running.join(20)
        assert time.monotonic() - begun < 4
        (sent,) = webhooks.deliveries(hook.webhook)
        assert (sent.state, sent.attempts) == ("pending", 0)
        receiver.reply = OK
        deliverer = Deliverer(webhooks)
        assert deliverer.send() == 1
        assert deliverer.finish() == 1
        deliverer.close()


# slots


def hook(number, ladder="duel"):
    return Webhook(number, ladder, f"https://h{number}.example/", ("match.rated",), 0, b"s")


def take_all(shared, hooks):
    """How many deliveries start to webhooks with many due ones."""
    taken = 0
    for each in hooks:
        while shared.has_room(each):
            shared.take(each)
            taken += 1
    return taken


def test_slots_are_shared_by_receivers_and_ladders():
    shared = Slots()
    assert take_all(shared, [hook(1)]) == 4
    assert take_all(shared, [Webhook(2, "duel", "https://h1.example/elsewhere", (), 0, b"")]) == 0  # the same receiver
    assert take_all(shared, [hook(number) for number in range(2, 100)]) == 28  # 32 of this ladder
    assert shared.has_room(hook(500, "other"))
    assert take_all(shared, [hook(number, "other") for number in range(500, 600)]) == 32
    assert not shared.has_room(hook(1))
    shared.free(hook(1))
    assert shared.has_room(hook(1))


def test_deliveries_of_one_ladder_take_no_slot_of_the_same_receiver_from_another():
    slow, other = hook(1, "duel"), Webhook(2, "other", "https://h1.example/elsewhere", (), 0, b"")
    shared = Slots()
    assert take_all(shared, [slow]) == 4
    assert take_all(shared, [other]) == 4
    failing = Slots()
    failing.set_failing([slow])
    assert take_all(failing, [slow]) == 1
    assert take_all(failing, [other]) == 4


def test_a_ladder_with_no_delivery_in_flight_has_a_slot_when_all_are_in_use():
    shared, many = Slots(), [hook(number, f"l{number}") for number in range(100)]
    assert take_all(shared, many[:16]) == delivery.AT_ONCE
    shared.set_failing(many)
    assert take_all(shared, many[98:]) == 2
    assert not shared.has_room(many[98])


def test_receivers_that_fail_have_one_slot_each_and_a_quarter_in_all():
    shared, many = Slots(), [hook(number, "first" if number < 25 else "second") for number in range(50)]
    shared.set_failing(many)
    assert take_all(shared, many[:25]) == delivery.SLOTS_FOR_FAILING == 16
    assert take_all(shared, many[25:]) == 1  # the one of a ladder that has none in flight
    assert take_all(shared, [hook(number, f"m{number}") for number in range(50, 60)]) == 40


@ONE_DATABASE
def test_a_ladder_has_a_hundred_webhooks_at_most(webhooks, ladder, monkeypatch):
    monkeypatch.setattr(subscriptions, "HOOKS", 2)
    for number in range(2):
        webhooks.add(f"http://h{number}.example/", ["match.rated"], ladder)
    with pytest.raises(InputError, match="there are 2 webhooks for duel already; remove one first"):
        webhooks.add("http://h3.example/", ["match.rated"], ladder)
    webhooks.add("http://h3.example/", ["match.rated"])
    webhooks.remove(1)
    webhooks.add("http://h3.example/", ["match.rated"], ladder)


# pauses


def attempt(deliverer):
    """Make one attempt, or none; how many there were."""
    begun = deliverer.send()
    deliverer.finish()
    return begun


def fail_until_paused(service, webhooks, deliverer, clock, ladder, receiver):
    """Ten failures in over five minutes; the webhook."""
    added, _ = webhooks.add(receiver.url, ["match.rated"], ladder)
    for number in range(20):
        service.record(duel(number, "ann", "bob", ladder))
    deliverer.make()
    for _ in range(400):
        clock.move(seconds=30)
        attempt(deliverer)
        failures = webhooks.failures().get(added.webhook)
        if failures is not None and failures.paused_at is not None:
            return added
    pytest.fail("the webhook was not paused")


def trail(service):
    with service.database.read() as store:
        sql = "SELECT actor, action, ladder, target, body FROM audit ORDER BY entry"
        return [tuple(row) for row in store.connection.exec_driver_sql(sql).all()]


def test_a_receiver_that_keeps_failing_is_paused_with_a_notice(service, webhooks, deliverer, ladder, clock, caplog):
    with receiving(BROKEN) as (receiver,):
        began = clock.now
        added = fail_until_paused(service, webhooks, deliverer, clock, ladder, receiver)
        assert clock.now - began >= 300 * SECOND
        assert receiver.count >= 10
        (actor, action, where, target, body), *others = trail(service)[-1:]
        assert (actor, action, where, target, others) == ("service", "webhook.paused", ladder, str(added.webhook), [])
        assert json.loads(body)["error"] == "the receiver answered 500"
        assert "webhook.paused" in caplog.text
        before = receiver.count
        clock.move(seconds=59)
        assert attempt(deliverer) == 0  # it waits
        clock.move(seconds=1)
        assert attempt(deliverer) == 1  # a probe, of twenty that are due
        assert attempt(deliverer) == 0
        assert receiver.count == before + 1


def test_a_probe_that_arrives_ends_the_pause(service, webhooks, deliverer, ladder, clock):
    with receiving(BROKEN) as (receiver,):
        added = fail_until_paused(service, webhooks, deliverer, clock, ladder, receiver)
        receiver.reply = OK
        clock.move(seconds=60)
        assert attempt(deliverer) == 1
        assert webhooks.failures() == {}
        assert trail(service)[-1][:4] == ("service", "webhook.resumed", ladder, str(added.webhook))
        clock.move(seconds=7 * 3600)
        while attempt(deliverer):
            pass
        assert {each.state for each in webhooks.deliveries(added.webhook)} == {"delivered"}


@ONE_DATABASE
def test_an_operator_ends_a_pause_and_removal_forgets_it(service, webhooks, deliverer, ladder, clock):
    with receiving(BROKEN) as (receiver,):
        added = fail_until_paused(service, webhooks, deliverer, clock, ladder, receiver)
        assert attempt(deliverer) == 0
        assert webhooks.resume(added.webhook) == added
        assert attempt(deliverer) > 0
        webhooks.remove(added.webhook)
        assert webhooks.failures() == {}
        with pytest.raises(UnknownNameError):
            webhooks.resume(added.webhook)


@ONE_DATABASE
def test_deliveries_of_a_pause_are_given_up_after_a_day(service, webhooks, deliverer, ladder, clock):
    with receiving(BROKEN) as (receiver,):
        added = fail_until_paused(service, webhooks, deliverer, clock, ladder, receiver)
        clock.move(seconds=20 * 3600)
        deliverer.prune()
        assert webhooks.deliveries(added.webhook, "dead") == ()
        clock.move(seconds=5 * 3600)
        deliverer.prune()
        assert {(each.state, each.error) for each in webhooks.deliveries(added.webhook)} == {
            ("dead", delivery.GIVEN_UP)
        }


@ONE_DATABASE
def test_few_failures_or_a_short_outage_pause_nothing(service, webhooks, deliverer, ladder, clock):
    with receiving(BROKEN) as (receiver,):
        added, _ = webhooks.add(receiver.url, ["match.rated"])
        for number in range(40):
            service.record(duel(number, "ann", "bob", ladder))
        deliverer.make()
        while attempt(deliverer):
            clock.move(seconds=0.1)
        failures = webhooks.failures()[added.webhook]
        assert (failures.failures >= 40, failures.paused_at) == (True, None)


def test_a_probe_comes_later_the_longer_a_pause_lasts():
    waits = [
        (delivery._next_probe(0, elapsed * SECOND) - elapsed * SECOND) // SECOND
        for elapsed in (0, 60, 120, 3600, 10**6)
    ]
    assert waits == [60, 60, 120, 3600, 3600]


def test_a_ladder_of_another_name_is_not_held_up(service, webhooks, deliverer, ladder):
    """All slots of one ladder are held; the other's webhook is served."""
    service.create_ladder("other", "elo", rules("elo"))
    with receiving(*[None] * 10, OK) as (*drips, quick):
        for receiver in drips:
            webhooks.add(receiver.url, ["match.rated"], ladder)
        webhooks.add(quick.url, ["match.rated"], "other")
        for number in range(6):
            service.record(duel(number, "ann", "bob", ladder))
        service.record(duel(1, "ann", "bob", "other"))
        deliverer.make()

        def step():
            deliverer.send()
            return quick.count == 1

        until(step)
        assert sum(receiver.count for receiver in drips) <= delivery.LADDER
