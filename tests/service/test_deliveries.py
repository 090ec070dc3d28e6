"""Webhook deliveries over a real socket: created once, signed, sent in order, tried again, finally given up."""

import asyncio
import hashlib
import hmac
import json
import socket
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import sqlalchemy as sa

from evenmatch import rules
from evenmatch.errors import InputError
from evenmatch.ladders.inactivity import DailyDecay
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import player_rows
from evenmatch.ledger.ladder_rows import reserve_changes
from evenmatch.match import Match, Team
from evenmatch.queues import queue_sql
from evenmatch.queues.leases import Leases
from evenmatch.webhooks import delivery, payloads, subscriptions
from evenmatch.webhooks.delivery import Deliverer
from evenmatch.webhooks.subscriptions import Webhooks
from ledger.sample_matches import START, after, duel

pytestmark = pytest.mark.both_databases

SECOND = 1_000_000
ONE_DATABASE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # what is tried is not its


class Receiver:
    """A server on this machine that keeps what it is sent. answers: what the next requests get, then 204."""

    def __init__(self):
        self.requests, self.answers, self.gate = [], [], threading.Event()
        self.gate.set()
        self.at_once = self.most = 0
        guard, receiver = threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with guard:
                    receiver.requests.append((self.path, self.headers, body))
                    receiver.at_once += 1
                    receiver.most = max(receiver.most, receiver.at_once)
                    status, headers = receiver.answers.pop(0) if receiver.answers else (204, {})
                receiver.gate.wait(20)
                with guard:
                    receiver.at_once -= 1
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self.port = self.server.server_address[1]
        self.url = f"http://hooks.example:{self.port}/in?game=1"

    def bodies(self):
        return [json.loads(body) for _, _, body in self.requests]

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def receiver():
    opened = Receiver()
    yield opened
    opened.close()


@pytest.fixture
def deliverer(webhooks):
    return Deliverer(webhooks)


def send_all(deliverer):
    """Send until nothing is due."""
    asyncio.run(deliverer.drain())


def select_rows(service, sql):
    with service.database.read() as store:
        return [tuple(row) for row in store.connection.execute(sa.text(sql)).all()]


def make_offer(service, ladder, teams, match=None):
    """An open offer as the matchmaker makes it; its number."""
    with service.database.write() as store:
        number = store.head(ladder).ladder
        ids, _ = player_rows.admit(store, [name for team in teams for name in team])
        change = reserve_changes(store, number, 1)
        chairs = [[{"player": one, "id": ids[one], "ticket": 3, "role": None} for one in team] for team in teams]
        body = {"teams": chairs, "match": match, "region": "eu", "ping": 40.0, "odds": [0.525, 0.475], "spread": 4.5}
        made = queue_sql.OfferRow(
            *(change, change, "ranked", queue_sql.OFFERS_OPEN, service.clock(), service.clock() + 20 * SECOND, None),
            {**body, "waited": 12.0, "costs": {"odds": 1.0}, "attributes": {}, "map": None},
        )
        queue_sql.insert_offers(store, number, [made])
        return change


def change_offer(service, ladder, offer, state, match_id=None):
    with service.database.write() as store:
        number = store.head(ladder).ladder
        row = queue_sql.read_offers(store, number, [offer])[offer]
        row.change, row.state, row.match_id = reserve_changes(store, number, 1), state, match_id
        queue_sql.update_offers(store, number, [row])


# what is sent


def test_a_rated_match_is_told_as_its_receipt_has_it_and_signed(service, webhooks, deliverer, receiver, ladder, clock):
    service.record(duel(1, "ann", "bob", ladder))
    service.record(duel(2, "ann", "bob", ladder))
    hook, secret = webhooks.add(receiver.url, ["match.rated"])
    receipt = service.record(Match("Käse & <b>", after(3), (Team.of("ann", place=2), Team.of("bob", place=1)), ladder))
    clock.move(seconds=1.75)
    assert deliverer.make() == 1  # it begins at now: what was before is not told
    send_all(deliverer)

    ((path, headers, body),) = receiver.requests
    (told,) = webhooks.deliveries(hook.webhook)
    assert path == "/in?game=1"
    assert headers["Host"] == f"hooks.example:{receiver.port}"
    assert headers["Content-Type"] == "application/json"
    assert headers["Evenmatch-Event"] == "match.rated"
    assert headers["Evenmatch-Delivery"] == str(told.delivery)
    assert headers["Evenmatch-Timestamp"] == str(clock.now // SECOND)
    signed = f"{clock.now // SECOND}.".encode() + body
    expected = hmac.new(secret.encode("ascii"), signed, hashlib.sha256).hexdigest()
    assert headers["Evenmatch-Signature"] == f"v1={expected}"
    (ann,), (bob,) = receipt.teams
    assert json.loads(body.decode("utf-8")) == {
        "event": "match.rated",
        "ladder": ladder,
        "match_id": "Käse & <b>",
        "position": receipt.position,
        "played_at": "2026-01-01T03:00:00Z",
        "teams": [
            [
                {
                    "player": name,
                    "before": round(line.change.before, 2),
                    "after": round(line.change.after, 2),
                    "change": round(round(line.change.after, 2) - round(line.change.before, 2), 2),
                    "percentile": line.percentile,
                    "division": line.division,
                    "expected": float(f"{line.change.expected:.6g}"),
                }
            ]
            for name, line in (("ann", ann), ("bob", bob))
        ],
    }
    assert ann.percentile is not None
    assert ann.change.after < ann.change.before
    assert (told.state, told.attempts, told.delivered_at, told.error) == ("delivered", 1, clock.now, None)


@ONE_DATABASE
def test_only_what_was_asked_for_is_told(service, webhooks, deliverer, receiver, ladders):
    here, elsewhere = ladders
    webhooks.add(receiver.url + "&hook=season", ["season.closed"])
    webhooks.add(receiver.url + "&hook=arena", ["match.rated"], elsewhere)
    webhooks.add(receiver.url + "&hook=all", ["match.rated", "season.opened", "season.closed"])
    service.record(duel(1, "ann", "bob", here))
    service.record(duel(2, "ann", "bob", elsewhere))
    service.record(duel(3, "ann", "bob", here), rated=False)
    service.open_season(here, title="Two")
    service.rename("ann", "anna")
    deliverer.make()
    send_all(deliverer)
    told = Counter((path.split("hook=")[1], headers["Evenmatch-Event"]) for path, headers, _ in receiver.requests)
    assert told == {
        ("season", "season.closed"): 1,
        ("arena", "match.rated"): 1,
        ("all", "match.rated"): 2,
        ("all", "season.opened"): 1,
        ("all", "season.closed"): 1,
    }


@ONE_DATABASE
def test_a_season_that_ends_is_told_before_the_one_that_begins(service, webhooks, deliverer, receiver, ladder, clock):
    webhooks.add(receiver.url, ["season.opened", "season.closed"])
    clock.move(days=1)
    service.open_season(ladder, title="Two")
    deliverer.make()
    send_all(deliverer)
    by_number = sorted(receiver.requests, key=lambda one: int(one[1]["Evenmatch-Delivery"]))
    closed, opened = (json.loads(body) for _, _, body in by_number)
    begun, ended = "2026-01-11T00:00:00Z", "2026-01-12T00:00:00Z"
    assert (closed["event"], closed["season"], closed["opened_at"], closed["closed_at"]) == (
        "season.closed",
        1,
        begun,
        ended,
    )
    assert (opened["event"], opened["season"], opened["title"], opened["opened_at"], opened["closed_at"]) == (
        "season.opened",
        2,
        "Two",
        ended,
        None,
    )


def test_offers_are_told_when_they_are_made_and_when_all_accepted(
    service, webhooks, deliverer, receiver, ladder, clock
):
    before = make_offer(service, ladder, [["old"], ["older"]])
    webhooks.add(receiver.url, ["proposal.made", "match.made"], ladder)
    first = make_offer(service, ladder, [["ann", "bob"], ["cid", "dan"]])
    second = make_offer(service, ladder, [["eve"], []], match="m7")
    change_offer(service, ladder, first, queue_sql.OFFERS_OPEN)  # somebody accepted
    assert deliverer.make() == 2
    change_offer(service, ladder, first, queue_sql.MADE, "ranked-2-ab")
    change_offer(service, ladder, second, queue_sql.OFF)
    change_offer(service, ladder, before, queue_sql.MADE, "ranked-1-cd")
    third = make_offer(service, ladder, [["fay"], ["gus"]])
    assert deliverer.make() == 3
    change_offer(service, ladder, third, queue_sql.OFF)
    assert deliverer.make() == 0
    send_all(deliverer)
    told = [json.loads(one[0]) for one in select_rows(service, "SELECT body FROM delivery ORDER BY delivery")]
    assert [(one["event"], one["offer"]) for one in told] == [
        ("proposal.made", first),
        ("proposal.made", second),
        ("match.made", first),
        ("match.made", before),
        ("proposal.made", third),
    ]
    assert sorted(json.dumps(one) for one in receiver.bodies()) == sorted(json.dumps(one) for one in told)
    line_up = [
        [{"player": one, "ticket": 3, "role": None} for one in team] for team in (["ann", "bob"], ["cid", "dan"])
    ]
    assert told[0] == {
        "event": "proposal.made",
        "attributes": {},
        "map": None,
        "ladder": ladder,
        "offer": first,
        "queue": "ranked",
        "made_at": "2026-01-11T00:00:00Z",
        "deadline": "2026-01-11T00:00:20Z",
        "backfill": None,
        "teams": line_up,
        "region": "eu",
        "odds": [0.525, 0.475],
        "spread": 4.5,
    }
    assert told[1]["backfill"] == "m7"
    assert told[2] == {
        "event": "match.made",
        "attributes": {},
        "map": None,
        "ladder": ladder,
        "offer": first,
        "queue": "ranked",
        "match_id": "ranked-2-ab",
        "backfill": False,
        "teams": line_up,
        "region": "eu",
        "odds": [0.525, 0.475],
        "spread": 4.5,
    }


def test_a_ladder_that_is_made_later_is_told_from_its_beginning(service, webhooks, deliverer, ladder):
    webhooks.add("http://hooks.example/", ["match.rated"])
    service.create_ladder("new", "elo", rules("elo"))
    service.record(duel(1, "ann", "bob", "new"))
    assert deliverer.make() == 1


# exactly once


def test_two_that_make_at_once_make_everything_once_and_in_order(
    service, other_service, webhooks, deliverer, ladder, monkeypatch
):
    monkeypatch.setattr(payloads, "BATCH", 3)
    hooks = [webhooks.add(f"http://hooks.example/{number}", ["match.rated"])[0] for number in range(3)]
    other = Deliverer(Webhooks(other_service))
    stop, made, failed = threading.Event(), Counter(), []

    def make(one):
        try:
            while not stop.is_set():
                made[one] += one.make()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=make, args=(one,)) for one in (deliverer, other)]
    for thread in threads:
        thread.start()
    for number in range(30):
        service.record_many(ladder, [duel(4 * number + at, f"p{at}", f"q{at}", ladder) for at in range(4)])
    stop.set()
    for thread in threads:
        thread.join()
    assert failed == []
    while rest := deliverer.make():
        made[deliverer] += rest
    assert sum(made.values()) == 360
    for hook in hooks:
        sql = f"SELECT body FROM delivery WHERE webhook = {hook.webhook} ORDER BY delivery"
        assert [json.loads(body)["match_id"] for (body,) in select_rows(service, sql)] == [
            f"m{at}" for at in range(120)
        ]


def test_a_kill_while_deliveries_are_created_loses_and_doubles_none(service, webhooks, deliverer, ladder, monkeypatch):
    webhooks.add("http://hooks.example/", ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))

    def dies(store, *_):
        outbox_keep(store, *_)
        raise KeyboardInterrupt

    outbox_keep = delivery.keep
    with monkeypatch.context() as patch:
        patch.setattr(delivery, "keep", dies)
        with pytest.raises(KeyboardInterrupt):
            deliverer.make()
    assert select_rows(service, "SELECT COUNT(*) FROM delivery") == [(0,)]
    assert deliverer.make() == 1


# trying again


def test_a_failed_delivery_is_tried_again_ever_later_and_then_given_up(
    service, webhooks, deliverer, receiver, ladder, clock
):
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    deliverer.make()
    refused = (500, 404, 301, 429, 503, 400, 500)
    receiver.answers = [(status, {"Location": f"{receiver.url}&elsewhere"}) for status in refused]
    waits = []
    for turn, status in enumerate(refused, 1):
        send_all(deliverer)
        (sent,) = webhooks.deliveries(hook.webhook)
        assert (sent.attempts, sent.error) == (turn, f"the receiver answered {status}")
        if sent.next_at is not None:
            waits.append((sent.next_at - clock.now) / SECOND)
            clock.now = sent.next_at - 1
            send_all(deliverer)  # nothing is due: a microsecond is missing
            clock.now = sent.next_at
    assert waits == [5, 20, 80, 320, 1280, 5120]
    assert webhooks.deliveries(hook.webhook, "dead") == (sent,)
    assert len(receiver.requests) == 7  # no redirect was followed
    assert {path for path, _, _ in receiver.requests} == {"/in?game=1"}
    assert {headers["Evenmatch-Delivery"] for _, headers, _ in receiver.requests} == {str(sent.delivery)}
    clock.move(days=2)
    send_all(deliverer)
    assert len(receiver.requests) == 7

    again = webhooks.redeliver(sent.delivery)
    assert (again.state, again.attempts, again.error) == ("pending", 0, None)
    send_all(deliverer)
    assert webhooks.deliveries(hook.webhook)[0].state == "delivered"
    webhooks.redeliver(sent.delivery)
    send_all(deliverer)
    assert len(receiver.requests) == 9


def test_later_deliveries_wait_for_a_failed_one_and_arrive_in_order(
    service, webhooks, deliverer, receiver, ladder, clock
):
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    for number in range(12):
        service.record(duel(number, "ann", "bob", ladder))
    deliverer.make()
    receiver.answers = [(204, {}), (500, {}), (500, {})]
    send_all(deliverer)
    assert [body["match_id"] for body in receiver.bodies()] == ["m0", "m1"]
    assert webhooks.failing()[hook.webhook].attempts == 1
    clock.move(seconds=5)
    send_all(deliverer)
    clock.move(seconds=19)
    send_all(deliverer)
    assert [body["match_id"] for body in receiver.bodies()] == ["m0", "m1", "m1"]
    assert webhooks.resume(hook.webhook) == hook  # an operator does not want to wait for the last second
    send_all(deliverer)
    assert [body["match_id"] for body in receiver.bodies()] == ["m0", *(["m1"] * 3), *(f"m{at}" for at in range(2, 12))]
    assert webhooks.failing() == {}
    assert {each.state for each in webhooks.deliveries(hook.webhook)} == {"delivered"}


@ONE_DATABASE
def test_a_dead_delivery_that_is_sent_again_after_days_gets_all_attempts_again(
    service, webhooks, deliverer, receiver, ladder, clock
):
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    deliverer.make()
    receiver.answers = [(410, {}), (500, {}), (500, {})]
    send_all(deliverer)
    clock.move(days=3)
    again = webhooks.redeliver(webhooks.deliveries(hook.webhook, "dead")[0].delivery)
    for attempts in (1, 2):
        send_all(deliverer)
        (sent,) = webhooks.deliveries(hook.webhook)
        assert (sent.delivery, sent.state, sent.attempts) == (again.delivery, "pending", attempts)
        clock.now = sent.next_at
    send_all(deliverer)
    assert webhooks.deliveries(hook.webhook)[0].state == "delivered"


@ONE_DATABASE
def test_a_receiver_that_answers_gone_gets_the_next_delivery_at_once(service, webhooks, deliverer, receiver, ladder):
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    service.record(duel(2, "ann", "bob", ladder))
    deliverer.make()
    receiver.answers = [(410, {}), (200, {})]
    send_all(deliverer)
    assert [each.state for each in webhooks.deliveries(hook.webhook)] == ["delivered", "dead"]


@ONE_DATABASE
def test_deliveries_that_waited_a_day_for_a_failing_receiver_are_given_up(
    service, webhooks, deliverer, receiver, ladder, clock
):
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    for number in range(3):
        service.record(duel(number, "ann", "bob", ladder))
    deliverer.make()
    clock.move(days=2)
    receiver.answers = [(204, {}), (500, {}), (500, {})]
    service.record(duel(3, "ann", "bob", ladder))
    deliverer.make()
    send_all(deliverer)  # nothing failed while no process was sending: the first arrives
    assert [(each.state, each.error) for each in webhooks.deliveries(hook.webhook)] == [
        ("pending", "the receiver answered 500"),
        ("dead", delivery.GIVEN_UP),
        ("dead", delivery.GIVEN_UP),
        ("delivered", None),
    ]


@ONE_DATABASE
def test_a_receiver_that_cannot_be_reached_is_tried_again(service, webhooks, deliverer, receiver, ladder, clock):
    receiver.close()
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    deliverer.make()
    send_all(deliverer)
    (sent,) = webhooks.deliveries(hook.webhook)
    assert sent.state == "pending"
    assert sent.error.startswith("ConnectError: ")
    opened = Receiver()
    with service.database.write() as store:
        url = f"http://hooks.example:{opened.port}/"
        store.connection.execute(sa.text("UPDATE webhook SET url = :url"), {"url": url})
    clock.move(seconds=5)
    send_all(deliverer)
    opened.close()
    assert webhooks.deliveries(hook.webhook)[0].state == "delivered"


@ONE_DATABASE
def test_nothing_is_sent_to_a_host_that_resolves_to_a_private_address_by_then(service, receiver, ladder):
    leads = ["93.184.215.14"]
    webhooks = Webhooks(service, find=lambda host, port: list(leads))
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    deliverer = Deliverer(webhooks)
    deliverer.make()
    leads[0] = "127.0.0.1"
    send_all(deliverer)
    (told,) = webhooks.deliveries(hook.webhook)
    assert "resolves to 127.0.0.1, which is not a public address" in told.error
    leads.clear()
    webhooks.redeliver(told.delivery)
    send_all(deliverer)
    assert webhooks.deliveries(hook.webhook)[0].error == "the host has no address"
    assert receiver.requests == []


@ONE_DATABASE
def test_the_second_address_of_a_host_is_tried_where_the_first_refuses(service, receiver, ladder):
    webhooks = Webhooks(service, allow_private=True, find=lambda host, port: ["::1", "127.0.0.1"])
    webhooks.add(receiver.url, ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    deliverer = Deliverer(webhooks)
    deliverer.make()
    send_all(deliverer)
    assert len(receiver.requests) == 1


@ONE_DATABASE
def test_an_attempt_ends_at_its_deadline_whatever_the_receiver_does(service, ladder, monkeypatch):
    monkeypatch.setattr(delivery, "DEADLINE", 0.5)
    release = threading.Event()
    dripping = Dripping()

    def find(host, port):
        return ["127.0.0.1"] * (host != "slow.example" or release.wait(20))

    webhooks = Webhooks(service, allow_private=True, find=find)
    hooks = [webhooks.add(url, ["match.rated"])[0] for url in (dripping.url, "http://slow.example/")]
    service.record(duel(1, "ann", "bob", ladder))
    deliverer = Deliverer(webhooks)
    deliverer.make()
    begun = time.monotonic()
    send_all(deliverer)
    assert 0.5 <= time.monotonic() - begun < 2
    release.set()
    dripping.close()
    errors = {webhooks.deliveries(hook.webhook)[0].error for hook in hooks}
    assert errors == {"the receiver did not answer within 0.5 s"}


# many


class Dripping:
    """A receiver that sends a byte now and then, without end."""

    def __init__(self):
        self.count, self._stop = 0, threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://hooks.example:{self._listening.getsockname()[1]}/"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.count += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
            while not self._stop.wait(0.05):
                connection.sendall(b".")

    def close(self):
        self._stop.set()
        self._listening.close()


@contextmanager
def running(deliverer):
    """Run the loop of a deliverer in a thread, as the service does."""
    stop = threading.Event()
    thread = threading.Thread(target=deliverer.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(20)


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_slow_receivers_hold_up_nobody_else(service, webhooks, deliverer, receiver, ladder, monkeypatch):
    monkeypatch.setattr(delivery, "POLL", 0.01)
    slow = [Dripping() for _ in range(delivery.LADDER_AT_ONCE + 4)]
    service.create_ladder("other", "elo", rules("elo"))
    for each in slow:
        webhooks.add(each.url, ["match.rated"], ladder)
    webhooks.add(receiver.url, ["match.rated"], "other")
    for number in range(10):
        service.record(duel(number, "ann", "bob", ladder))
        service.record(duel(number, "ann", "bob", "other"))
    begun = time.monotonic()
    with running(deliverer):
        wait_for(lambda: len(receiver.requests) == 10)
        assert time.monotonic() - begun < delivery.DEADLINE
        wait_for(lambda: sum(each.count for each in slow) == delivery.LADDER_AT_ONCE)  # one each, sixteen in all
    assert receiver.most == 1
    assert [body["match_id"] for body in receiver.bodies()] == [f"m{number}" for number in range(10)]
    for each in slow:
        each.close()


@ONE_DATABASE
def test_a_stop_waits_two_seconds_for_slow_receivers_and_what_was_cut_off_is_sent_again(
    service, webhooks, deliverer, receiver, ladder
):
    receiver.gate.clear()
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    with running(deliverer):
        wait_for(lambda: len(receiver.requests) == 1)
        begun = time.monotonic()
    assert time.monotonic() - begun < 4
    (sent,) = webhooks.deliveries(hook.webhook)
    assert (sent.state, sent.attempts) == ("pending", 0)
    receiver.gate.set()
    send_all(deliverer)
    assert webhooks.deliveries(hook.webhook)[0].state == "delivered"
    assert len(receiver.requests) == 2


@ONE_DATABASE
def test_a_ladder_has_a_limited_number_of_webhooks(webhooks, ladder, monkeypatch):
    monkeypatch.setattr(subscriptions, "WEBHOOKS_PER_LADDER", 2)
    for number in range(2):
        webhooks.add(f"http://h{number}.example/", ["match.rated"], ladder)
    with pytest.raises(InputError, match="there are 2 webhooks for duel already; remove one first"):
        webhooks.add("http://h3.example/", ["match.rated"], ladder)
    webhooks.add("http://h3.example/", ["match.rated"])
    webhooks.remove(1)
    webhooks.add("http://h3.example/", ["match.rated"], ladder)


def test_the_loop_sends_under_the_lease_alone(service, other_service, webhooks, receiver, ladder, monkeypatch):
    monkeypatch.setattr(delivery, "POLL", 0.01)
    first, second = Leases(service.database, "first"), Leases(other_service.database, "second")
    assert first.hold("webhooks")
    webhooks.add(receiver.url, ["match.rated"])
    elsewhere = Webhooks(other_service, allow_private=True, find=webhooks.find)
    service.record(duel(1, "ann", "bob", ladder))
    with running(Deliverer(elsewhere, second)):
        time.sleep(0.2)
        assert receiver.requests == []
        first.release("webhooks")
        wait_for(lambda: receiver.requests)
    assert len(receiver.requests) == 1
    assert select_rows(service, "SELECT attempts, error FROM delivery") == [(1, None)]
    assert select_rows(service, "SELECT owner FROM lease WHERE name = 'webhooks'") == [("",)]


def test_delivered_ones_are_deleted_after_a_week_and_dead_ones_after_a_month(
    service, webhooks, deliverer, receiver, ladder, clock, monkeypatch
):
    monkeypatch.setattr(delivery, "PRUNED_AT_ONCE", 2)
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    receiver.answers = [(410, {})]
    for number in range(7):
        service.record(duel(number, "ann", "bob", ladder))
        deliverer.make()
        send_all(deliverer)
        clock.move(days=1)
    receiver.answers = [(500, {})]
    service.record(duel(7, "ann", "bob", ladder))
    deliverer.make()
    send_all(deliverer)

    def left():
        return [json.loads(one.body)["match_id"] for one in reversed(webhooks.deliveries(hook.webhook))]

    clock.move(days=2, seconds=1)  # nine days since the first, which is dead
    assert deliverer.prune() == 2
    assert left() == ["m0", "m3", "m4", "m5", "m6", "m7"]
    clock.move(days=21)  # a month since the first; the last one still waits
    assert deliverer.prune() == 5
    assert left() == ["m7"]
    send_all(deliverer)
    clock.move(days=60)
    assert deliverer.prune() == 0  # SQLite would assign its number again
    number = webhooks.deliveries(hook.webhook)[0].delivery
    next_match = Match("next", START + timedelta(days=60), (Team.of("ann", place=1), Team.of("bob", place=2)), ladder)
    service.record(next_match)
    deliverer.make()
    assert webhooks.deliveries(hook.webhook)[0].delivery > number
    assert deliverer.prune() == 1


@ONE_DATABASE
def test_ratings_that_fell_by_inactivity_are_told(service, webhooks, deliverer, receiver, clock):
    clock.now = round(START.timestamp()) * SECOND
    rule = {"placement": 1, "inactivity": "rating", "grace_days": 3, "rating_decay": 10.0}
    service.create_ladder("idle", "elo", rules("elo"), Settings().changed(rule))
    webhooks.add(receiver.url, ["ratings.decayed"], "idle")
    service.record(duel(1, "ann", "bob", "idle"))
    clock.move(days=11)
    DailyDecay(service).apply("idle")
    deliverer.make()
    send_all(deliverer)
    ((_, _, body),) = receiver.requests
    assert json.loads(body) == {
        "event": "ratings.decayed",
        "ladder": "idle",
        "position": 3,
        "until": "2026-01-12T00:00:00Z",
        "players": 1,
        "grace_days": 3.0,
        "rate": 10.0,
        "floor": 1500.0,
        "stop": None,
    }
