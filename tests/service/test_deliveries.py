"""What webhooks are told, over a real socket: once made, signed, tried again, in the end given up."""

import hashlib
import hmac
import json
import threading
from collections import Counter
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import sqlalchemy as sa

from evenmatch import rules
from evenmatch.ladders.inactivity import DailyDecay
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import player_rows
from evenmatch.ledger.ladder_rows import reserve_changes
from evenmatch.match import Match, Team
from evenmatch.queues import queue_sql
from evenmatch.queues.leases import Leases
from evenmatch.webhooks import delivery, payloads
from evenmatch.webhooks import delivery as module
from evenmatch.webhooks.delivery import Deliverer
from evenmatch.webhooks.subscriptions import Webhooks
from ledger.sample_matches import START, after, duel

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
    opened = Deliverer(webhooks)
    yield opened
    opened.close()


def send_all(deliverer):
    """Send until nothing is due; how many attempts."""
    count = 0
    while begun := deliverer.send():
        count += begun
        deliverer.finish()
    return count


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
    assert send_all(deliverer) == 1

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
    monkeypatch.setattr(payloads, "TOGETHER", 3)
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
    other.close()
    assert sum(made.values()) == 360
    for hook in hooks:
        sql = f"SELECT body FROM delivery WHERE webhook = {hook.webhook} ORDER BY delivery"
        assert [json.loads(body)["match_id"] for (body,) in select_rows(service, sql)] == [
            f"m{at}" for at in range(120)
        ]


def test_a_making_that_is_cut_off_is_done_anew_as_a_whole(service, webhooks, deliverer, ladder, monkeypatch):
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


def test_what_fails_is_tried_again_ever_later_and_then_dead(service, webhooks, deliverer, receiver, ladder, clock):
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    deliverer.make()
    refused = (500, 404, 301, 429, 503, 400, 500)
    receiver.answers = [(status, {"Location": f"{receiver.url}&elsewhere"}) for status in refused]
    waits = []
    for turn, status in enumerate(refused, 1):
        assert send_all(deliverer) == 1
        (told,) = webhooks.deliveries(hook.webhook)
        assert (told.attempts, told.error) == (turn, f"the receiver answered {status}")
        if told.next_at is not None:
            waits.append((told.next_at - clock.now) / SECOND)
            clock.now = told.next_at - 1
            assert deliverer.send() == 0  # not a microsecond before its time
            clock.now = told.next_at
    least = [5, 30, 120, 600, 3600, 21600]
    assert all(low <= wait <= 1.1 * low for low, wait in zip(least, waits, strict=True))
    assert webhooks.deliveries(hook.webhook, "dead") == (told,)
    assert len(receiver.requests) == 7  # no redirect was followed
    assert {path for path, _, _ in receiver.requests} == {"/in?game=1"}
    assert {headers["Evenmatch-Delivery"] for _, headers, _ in receiver.requests} == {str(told.delivery)}
    clock.move(days=2)
    assert deliverer.send() == 0

    again = webhooks.redeliver(told.delivery)
    assert (again.state, again.attempts, again.error) == ("pending", 0, None)
    assert send_all(deliverer) == 1
    assert webhooks.deliveries(hook.webhook)[0].state == "delivered"
    webhooks.redeliver(told.delivery)
    assert send_all(deliverer) == 1
    assert len(receiver.requests) == 9


def test_no_two_deliveries_come_back_at_the_same_moment():
    waits = [delivery.retry_at(number, 1, 0) for number in range(1, 1001)]
    assert min(waits) >= 5 * SECOND
    assert max(waits) <= 5.5 * SECOND
    assert len(set(waits)) == 1000
    tenths = Counter(int((wait / SECOND - 5) / 0.05) for wait in waits)
    assert all(90 <= tenths[one] <= 110 for one in range(10))  # spread evenly
    assert waits == [delivery.retry_at(number, 1, 0) for number in range(1, 1001)]


@ONE_DATABASE
def test_who_is_gone_is_asked_once(service, webhooks, deliverer, receiver, ladder):
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    service.record(duel(2, "ann", "bob", ladder))
    deliverer.make()
    receiver.answers = [(410, {}), (200, {})]
    assert send_all(deliverer) == 2
    assert {one.state for one in webhooks.deliveries(hook.webhook)} == {"dead", "delivered"}
    assert webhooks.list() == [hook]


@ONE_DATABASE
def test_who_cannot_be_reached_is_tried_again(service, webhooks, deliverer, receiver, ladder, clock):
    receiver.close()
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    deliverer.make()
    assert send_all(deliverer) == 1
    (told,) = webhooks.deliveries(hook.webhook)
    assert told.state == "pending"
    assert told.error.startswith("ConnectError: ")
    opened = Receiver()
    with service.database.write() as store:
        url = f"http://hooks.example:{opened.port}/"
        store.connection.execute(sa.text("UPDATE webhook SET url = :url"), {"url": url})
    clock.move(seconds=6)
    assert send_all(deliverer) == 1
    opened.close()
    assert webhooks.deliveries(hook.webhook)[0].state == "delivered"


@ONE_DATABASE
def test_a_name_that_leads_inside_when_it_is_sent_to_gets_nothing(service, receiver, ladder):
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
    assert webhooks.deliveries(hook.webhook)[0].error == "the host 'hooks.example' has no address"
    assert receiver.requests == []
    deliverer.close()


@ONE_DATABASE
def test_the_second_address_of_a_host_is_tried_where_the_first_refuses(service, receiver, ladder):
    webhooks = Webhooks(service, allow_private=True, find=lambda host, port: ["::1", "127.0.0.1"])
    webhooks.add(receiver.url, ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    deliverer = Deliverer(webhooks)
    deliverer.make()
    send_all(deliverer)
    assert len(receiver.requests) == 1
    deliverer.close()


@ONE_DATABASE
def test_a_receiver_that_never_answers_is_given_up(service, webhooks, receiver, ladder, monkeypatch):
    monkeypatch.setattr(delivery, "DEADLINE", 0.2)
    hook, _ = webhooks.add(receiver.url, ["match.rated"])
    service.record(duel(1, "ann", "bob", ladder))
    deliverer = Deliverer(webhooks)
    deliverer.make()
    receiver.gate.clear()
    send_all(deliverer)
    receiver.gate.set()
    (told,) = webhooks.deliveries(hook.webhook)
    assert told.error == "the receiver did not answer within 0.2 s"
    deliverer.close()


# many


def test_a_slow_receiver_holds_up_nobody_else(service, webhooks, deliverer, receiver, ladder):
    quick = Receiver()
    slow_hook, _ = webhooks.add(receiver.url, ["match.rated"])
    quick_hook, _ = webhooks.add(quick.url, ["match.rated"])
    for number in range(10):
        service.record(duel(number, "ann", "bob", ladder))
    deliverer.make()
    receiver.gate.clear()
    for _ in range(300):
        deliverer.send()
        if len(quick.requests) == 10:
            break
        threading.Event().wait(0.01)
    assert len(quick.requests) == 10
    assert (receiver.most, quick.most <= 4) == (4, True)  # of all that wait for it, four are in flight
    receiver.gate.set()
    deliverer.finish()
    send_all(deliverer)
    quick.close()
    for hook, taken in ((slow_hook, receiver), (quick_hook, quick)):
        assert {one.state for one in webhooks.deliveries(hook.webhook)} == {"delivered"}
        assert sorted(one["match_id"] for one in taken.bodies()) == [f"m{number}" for number in range(10)]


@ONE_DATABASE
def test_deliveries_go_out_in_the_order_in_which_they_were_made(
    service, webhooks, deliverer, receiver, ladder, monkeypatch
):
    monkeypatch.setattr(delivery, "RECEIVER", 1)
    webhooks.add(receiver.url, ["match.rated"])
    for number in range(12):
        service.record(duel(number, "ann", "bob", ladder))
    deliverer.make()
    send_all(deliverer)
    assert [one["match_id"] for one in receiver.bodies()] == [f"m{number}" for number in range(12)]


def test_the_loop_sends_under_the_lease_alone(service, other_service, webhooks, receiver, ladder, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.01)
    first, second = Leases(service.database, "first"), Leases(other_service.database, "second")
    assert first.hold("webhooks")
    webhooks.add(receiver.url, ["match.rated"])
    stop = threading.Event()
    elsewhere = Webhooks(other_service, allow_private=True, find=webhooks.find)
    thread = threading.Thread(target=Deliverer(elsewhere, second).run, args=(stop,))
    service.record(duel(1, "ann", "bob", ladder))
    thread.start()
    threading.Event().wait(0.2)
    assert receiver.requests == []
    first.release("webhooks")
    for _ in range(500):
        if receiver.requests:
            break
        threading.Event().wait(0.01)
    stop.set()
    thread.join()
    assert len(receiver.requests) == 1
    assert select_rows(service, "SELECT attempts, error FROM delivery") == [(1, None)]
    assert select_rows(service, "SELECT owner FROM lease WHERE name = 'webhooks'") == [("",)]


def test_delivered_ones_are_forgotten_after_a_week_and_dead_ones_after_a_month(
    service, webhooks, deliverer, receiver, ladder, clock, monkeypatch
):
    monkeypatch.setattr(delivery, "PAGE", 2)
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
    clock.move(days=21)  # a month since the first; the last one is not over
    assert deliverer.prune() == 5
    assert left() == ["m7"]
    send_all(deliverer)
    clock.move(days=60)
    assert deliverer.prune() == 0  # its number is not to be given again
    number = webhooks.deliveries(hook.webhook)[0].delivery
    service.record(
        Match("next", START + timedelta(days=60), (Team.of("ann", place=1), Team.of("bob", place=2)), ladder)
    )
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
