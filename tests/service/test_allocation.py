"""A game server is asked for when all have accepted: over a real socket, until the deadline, and never given twice."""

import asyncio
import hashlib
import hmac
import importlib.util
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evenmatch.errors import InputError
from evenmatch.queues import queue_sql
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.requests import Leave
from evenmatch.webhooks import allocation
from evenmatch.webhooks.allocation import Allocator, connection_of
from evenmatch.webhooks.subscriptions import Webhooks
from service.sample_queues import (
    PAIRS,
    Accept,
    accept_all,
    check_everything,
    granted,
    join_queue,
    party,
    select_rows,
    solos,
)

pytestmark = pytest.mark.both_databases

EXAMPLE = Path(__file__).parents[2] / "docs" / "how-to" / "game_servers.py"
AT = {"address": "203.0.113.7:7777", "tokens": {"ann": "a-1", "joe": "j-3"}}


@contextmanager
def listening(server):
    """The address of an HTTP server that runs during the block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://allocator.example:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Receiver:
    """What a studio runs to give out servers. answers: (status, body) of the next requests; the last one stays."""

    def __init__(self, *answers):
        self.requests, self.before_answer = [], lambda: None
        receiver, left = self, list(answers)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((self.path, dict(self.headers), body))
                receiver.before_answer()
                status, answer = left.pop(0) if len(left) > 1 else left[0]
                text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@pytest.fixture
def queue_service(service):
    return QueueService(service)


@pytest.fixture
def allocator(webhooks, queue_service, monkeypatch):
    monkeypatch.setattr(allocation, "RETRY", 0.0)
    return Allocator(webhooks, queue_service)


@pytest.fixture
def accepted(queue_service, ladder, maker):
    """A function that lets ann and bob play eve and joe, who have all accepted: the tickets and the offer."""

    def accept(fallback="requeue"):
        rules = QueueRules(heartbeat=None, allocate_within=10.0, allocate_fallback=fallback)
        queue_service.set_queue(ladder, "ranked", {**PAIRS, "maps": ["nuke"]}, rules)
        tickets = join_queue(queue_service, ladder, party("ann", "bob"), *solos("eve", "joe"))
        maker.step(ladder)
        answers = accept_all(queue_service, ladder, tickets)
        assert [answer.state for answer in answers] == ["offered"] * 3
        return tickets, answers[-1].offer

    return accept


def ask(allocator):
    """Ask once for each offer that wants a server, and wait for the outcomes."""

    async def all_answers():
        await asyncio.gather(*await allocator.begin())

    asyncio.run(all_answers())


def states(queue_service, ladder, tickets):
    return [queue_service.status(ladder, ticket).state for ticket in tickets]


def connections(queue_service, ladder, tickets):
    found = [queue_service.status(ladder, ticket).match.connection for ticket in tickets]
    return [(one.address, dict(one.tokens)) for one in found]


def test_the_answer_reaches_the_tickets_and_the_match_begins(
    allocator, webhooks, queue_service, accepted, ladder, clock, service
):
    tickets, offer = accepted()
    receiver = Receiver((200, AT))
    with listening(receiver.server) as url:
        _, secret = webhooks.add(f"{url}/servers", ["server.wanted"], ladder)
        ask(allocator)
    assert states(queue_service, ladder, tickets) == ["matched"] * 3
    of_pair, of_eve, of_joe = connections(queue_service, ladder, tickets)
    assert (of_pair, of_eve, of_joe) == (
        (AT["address"], {"ann": "a-1"}),
        (AT["address"], {}),
        (AT["address"], {"joe": "j-3"}),
    )
    ((path, headers, body),) = receiver.requests
    assert (path, headers["Evenmatch-Event"], headers["Evenmatch-Delivery"]) == (
        "/servers",
        "server.wanted",
        f"duel/{offer}",
    )
    signed = f"{headers['Evenmatch-Timestamp']}.".encode() + body
    assert headers["Evenmatch-Signature"] == f"v1={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"
    asked = json.loads(body)
    assert (asked["ladder"], asked["queue"], asked["offer"], asked["map"]) == ("duel", "ranked", offer, "nuke")
    assert sorted(sorted(slot["player"] for slot in team) for team in asked["teams"]) == [
        ["ann", "bob"],
        ["eve", "joe"],
    ]
    check_everything(service)


def test_a_request_that_fails_is_repeated_with_its_number_until_the_deadline(
    allocator, webhooks, queue_service, accepted, ladder, clock
):
    tickets, _ = accepted()
    refusals = [(503, {}), (200, {"address": ""}), (200, {"tokens": {}}), (200, b"<p>"), (200, b"[]")]
    strangers = (200, {**AT, "tokens": {"zoe": "z"}})
    receiver = Receiver(*refusals, strangers, (200, AT))
    with listening(receiver.server) as url:
        webhooks.add(url, ["server.wanted"], ladder)
        for _ in range(6):
            ask(allocator)
            assert states(queue_service, ladder, tickets) == ["offered"] * 3
        ask(allocator)
        assert states(queue_service, ladder, tickets) == ["matched"] * 3
        ask(allocator)
    assert len(receiver.requests) == 7
    assert len({headers["Evenmatch-Delivery"] for _, headers, _ in receiver.requests}) == 1


def test_without_a_server_the_players_wait_again_in_their_place_and_without_a_strike(
    allocator, queue_service, accepted, ladder, maker, clock, service
):
    tickets, _ = accepted()
    queued_at = [queue_service.status(ladder, ticket).queued_at for ticket in tickets]
    clock.move(seconds=9)
    maker.step(ladder)
    assert states(queue_service, ladder, tickets) == ["offered"] * 3
    clock.move(seconds=2)
    assert accept_all(queue_service, ladder, tickets[:1])[0].state == "offered"  # repeating it changes nothing
    ask(allocator)  # too late to ask
    assert maker.step(ladder).lapsed
    statuses = [queue_service.status(ladder, ticket) for ticket in tickets]
    assert {status.state for status in statuses} <= {"waiting", "offered"}  # matched again at once, or soon
    assert [status.queued_at for status in statuses] == queued_at
    assert queue_service.penalties(ladder, "ann") is None
    check_everything(service)


def test_without_a_server_the_match_begins_without_a_connection_if_the_queue_says_so(
    queue_service, accepted, ladder, maker, clock, service
):
    tickets, _ = accepted("play")
    clock.move(seconds=11)
    maker.step(ladder)
    assert states(queue_service, ladder, tickets) == ["matched"] * 3
    assert queue_service.status(ladder, tickets[0]).match.connection is None
    check_everything(service)


def test_a_party_that_leaves_while_a_server_is_found_does_not_play(
    allocator, webhooks, queue_service, accepted, ladder, service
):
    tickets, _ = accepted()
    receiver = Receiver((200, AT))
    receiver.before_answer = lambda: granted(queue_service.apply(ladder, [Leave(tickets[1])])[0])
    with listening(receiver.server) as url:
        webhooks.add(url, ["server.wanted"], ladder)
        ask(allocator)
    assert states(queue_service, ladder, tickets) == ["waiting", "gone", "waiting"]
    assert queue_service.penalties(ladder, "eve").strikes == 1.0
    assert "203.0.113.7" not in str(select_rows(service, "SELECT body FROM live"))
    check_everything(service)


def test_an_answer_after_the_deadline_changes_nothing(
    allocator, webhooks, queue_service, accepted, ladder, maker, clock
):
    tickets, offer = accepted()
    receiver = Receiver((200, AT))
    receiver.before_answer = lambda: clock.move(seconds=11)
    with listening(receiver.server) as url:
        webhooks.add(url, ["server.wanted"], ladder)
        ask(allocator)
    assert states(queue_service, ladder, tickets) == ["offered"] * 3
    assert not queue_service.allocate(ladder, offer, {"address": "203.0.113.9:1", "tokens": {}})


def test_of_two_processes_that_ask_for_the_same_offer_one_gives_it_a_server(
    webhooks, queue_service, other_service, accepted, ladder, service
):
    tickets, offer = accepted()
    both, together = [queue_service, QueueService(other_service)], threading.Barrier(2)
    outcomes = {}

    def allocate(number):
        together.wait()
        at = {"address": f"203.0.113.{number}:1", "tokens": {}}
        outcomes[number] = both[number].allocate(ladder, offer, at)

    threads = [threading.Thread(target=allocate, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes.values()) == [False, True]
    (winner,) = [number for number, has_begun in outcomes.items() if has_begun]
    assert {address for address, _ in connections(queue_service, ladder, tickets)} == {f"203.0.113.{winner}:1"}
    assert select_rows(service, "SELECT COUNT(*) FROM live") == [(1,)]
    check_everything(service)


def test_a_tick_that_found_an_offer_overdue_spares_it_if_all_accept_meanwhile(
    queue_service, other_service, ladder, maker, clock, monkeypatch
):
    """The last player accepts at the deadline, after a matchmaker has read the offer and before it writes."""
    rules = QueueRules(heartbeat=None, accept_within=20.0, allocate_within=10.0)
    queue_service.set_queue(ladder, "ranked", PAIRS, rules)
    tickets = join_queue(queue_service, ladder, party("ann", "bob"), *solos("eve", "joe"))
    maker.step(ladder)
    accept_all(queue_service, ladder, tickets[:2])
    elsewhere, at_deadline = QueueService(other_service), clock.now + 20_000_000
    state = queue_service.queue_state(ladder)
    catch_up = state.catch_up

    def accept_after_reading(now):
        catch_up(now)
        clock.now = at_deadline
        granted(elsewhere.apply(ladder, [Accept(tickets[2])])[0])
        clock.now = now

    monkeypatch.setattr(state, "catch_up", accept_after_reading)
    clock.now = at_deadline + 1
    assert maker.step(ladder).lapsed == ()
    assert states(queue_service, ladder, tickets) == ["offered"] * 3
    assert queue_service.status(ladder, tickets[0]).offer.deadline == at_deadline + 10_000_000


ONLY_SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@ONLY_SQLITE
def test_the_webhook_of_the_ladder_comes_before_that_of_all_ladders(allocator, webhooks, accepted, ladder):
    accepted()
    everywhere, own = Receiver((200, AT)), Receiver((200, AT))
    with listening(everywhere.server) as url, listening(own.server) as own_url:
        webhooks.add(url, ["server.wanted"])
        webhooks.add(own_url, ["server.wanted", "match.rated"], ladder)
        ask(allocator)
    assert (len(everywhere.requests), len(own.requests)) == (0, 1)


@ONLY_SQLITE
def test_private_addresses_are_refused_and_the_message_names_the_setting(
    service, queue_service, accepted, ladder, caplog, monkeypatch
):
    monkeypatch.setattr(allocation, "RETRY", 0.0)
    accepted()
    guarded = Webhooks(service, find=lambda host, port: ["10.0.0.7"])
    guarded.add("http://allocator.example/", ["server.wanted"], ladder)
    ask(Allocator(guarded, queue_service))
    assert "EVENMATCH_PRIVATE_WEBHOOKS" in caplog.text


@ONLY_SQLITE
def test_an_answer_that_is_too_large_is_refused(allocator, webhooks, queue_service, accepted, ladder, caplog):
    tickets, _ = accepted()
    receiver = Receiver((200, b" " * (allocation.ANSWER_LIMIT + 1)))
    with listening(receiver.server) as url:
        webhooks.add(url, ["server.wanted"], ladder)
        ask(allocator)
    assert "the answer is too large; at most 1,048,576 bytes" in caplog.text
    assert states(queue_service, ladder, tickets) == ["offered"] * 3


@ONLY_SQLITE
def test_a_queue_without_the_rule_begins_its_matches_at_once(queue_service, ladder, maker):
    queue_service.set_queue(ladder, "ranked", PAIRS, QueueRules(heartbeat=None))
    tickets = join_queue(queue_service, ladder, party("ann", "bob"), *solos("eve", "joe"))
    maker.step(ladder)
    assert accept_all(queue_service, ladder, tickets)[-1].state == "matched"


# the examples of the guide


def example():
    spec = importlib.util.spec_from_file_location("game_servers", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@ONLY_SQLITE
def test_the_example_of_a_list_gives_each_match_the_server_used_longest_ago(
    allocator, webhooks, queue_service, accepted, ladder, clock, maker, monkeypatch
):
    clock.now = time.time_ns() // 1000  # the example refuses old signatures
    tickets, _ = accepted()
    later = join_queue(queue_service, ladder, party("cid", "dan"), *solos("gus", "hal"))
    maker.step(ladder)
    accept_all(queue_service, ladder, later)
    game_servers = example()
    with listening(game_servers.serve(game_servers.ServerList("203.0.113.7:1", "203.0.113.8:1"), port=0)) as url:
        _, secret = webhooks.add(url, ["server.wanted"], ladder)
        monkeypatch.setenv("HOOK_SECRET", "another")
        ask(allocator)
        assert states(queue_service, ladder, tickets) == ["offered"] * 3
        monkeypatch.setenv("HOOK_SECRET", secret)
        ask(allocator)
    found = connections(queue_service, ladder, [*tickets, *later])
    assert sorted({address for address, _ in found}) == ["203.0.113.7:1", "203.0.113.8:1"]
    assert found[0][0] == found[1][0] != found[3][0]
    tokens = [token for _, own in found for token in own.values()]
    assert len(set(tokens)) == 8
    assert [sorted(own) for _, own in found[:3]] == [["ann", "bob"], ["eve"], ["joe"]]


class AgonesStub:
    """The REST interface of Agones' allocator service, with a fleet of one server.

    As pkg/allocation/go/allocation.swagger.json of Agones 1.38 has it: AllocationAllocationRequest,
    AllocationAllocationResponse, and 429 with code 8 (RESOURCE_EXHAUSTED) when no server is ready.
    """

    def __init__(self):
        self.requests, free = [], [7157]
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stub.requests.append((self.path, asked))
                labels = asked["gameServerSelectors"][0]["matchLabels"]
                if labels == {"agones.dev/fleet": "arena-fleet"} and free:
                    ports = [{"name": "default", "port": free.pop()}]
                    status, answer = 200, {"gameServerName": "arena-fleet-x7k2p", "ports": ports, "nodeName": "node-1"}
                    answer |= {"address": "203.0.113.20", "source": "local"}
                else:
                    status, answer = 429, {"code": 8, "message": "there is no available GameServer to allocate"}
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@ONLY_SQLITE
def test_the_example_of_agones_allocates_a_server_of_its_fleet_and_asks_again_when_none_is_free(
    allocator, webhooks, queue_service, accepted, ladder, clock, maker, monkeypatch
):
    clock.now = time.time_ns() // 1000
    tickets, offer = accepted()
    game_servers, agones = example(), AgonesStub()
    with listening(agones.server):
        fleet = game_servers.Agones(f"http://127.0.0.1:{agones.server.server_address[1]}", "arena-fleet")
        with listening(game_servers.serve(fleet, port=0)) as url:
            _, secret = webhooks.add(url, ["server.wanted"], ladder)
            monkeypatch.setenv("HOOK_SECRET", secret)
            ask(allocator)
            later = join_queue(queue_service, ladder, party("cid", "dan"), *solos("gus", "hal"))
            maker.step(ladder)
            accept_all(queue_service, ladder, later)
            ask(allocator)
    assert connections(queue_service, ladder, tickets)[1][0] == "203.0.113.20:7157"
    assert states(queue_service, ladder, later) == ["offered"] * 3  # the fleet has no other server
    (path, asked), _ = agones.requests
    assert (path, asked["namespace"]) == ("/gameserverallocation", "default")
    assert asked["metadata"]["annotations"]["map"] == "nuke"
    assert asked["metadata"]["annotations"]["offer"] == str(offer)


ANSWERS = [
    (b"null", "is not valid"),
    (b'{"address": 7}', "1 to 512 characters"),
    (b'{"address": "a", "tokens": {"ann": 7}}', "at most 4096 characters"),
    (b'{"address": "a", "tokens": ["ann"]}', "is not valid"),
    (b'{"address": "a", "tokens": {"zoe": "z"}}', "'zoe', who is not in the match"),
]


@pytest.mark.parametrize(("answer", "reason"), ANSWERS)
@ONLY_SQLITE
def test_an_answer_that_cannot_be_used_is_refused_with_the_reason(answer, reason, accepted, service, ladder):
    _, number = accepted()
    with service.database.read() as store:
        offer = queue_sql.read_offers(store, store.head(ladder).ladder, [number])[number]
    with pytest.raises(InputError, match=reason):
        connection_of(answer, offer)
