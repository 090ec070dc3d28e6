"""Limits of the HTTP protocol over real sockets: heads, bodies, slow clients, and how many connections there may be."""

import asyncio
import json
import logging
import threading
import time

import pytest

from evenmatch.http import protocol
from evenmatch.http.protocol import HEAD_BYTES, HEADERS, PIPELINED
from protocol_server import ProtocolServer, answer, echo, received, received_until, wait_for

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
def server():
    with ProtocolServer(echo) as serving:
        yield serving


def status_of(text):
    return int(text.split()[1]) if text else 0


def check_problem(text, status, *words):
    """The only response is a problem that says these words, after which the connection is closed."""
    head, _, body = text.partition(b"\r\n\r\n")
    assert text.count(b"HTTP/1.1 ") == 1
    assert status_of(text) == status
    assert b"connection: close" in head
    assert b"content-type: application/problem+json" in head
    problem = json.loads(body)
    assert problem["status"] == status
    for word in words:
        assert word in problem["detail"]


def ask(connection, request=GET):
    """The status of the response to a request whose connection stays open."""
    connection.sendall(request)
    return status_of(connection.recv(1 << 16))


# heads


def test_a_silent_connection_is_closed_without_a_word(server):
    with server.connect() as connection:
        begun = time.monotonic()
        assert received(connection) == b""
        assert 0.4 < time.monotonic() - begun < 5
    assert server.reasons == ["slow-head"]
    assert len(server.connections) == 0


def test_a_head_that_drips_is_refused(server):
    with server.connect() as connection:
        for letter in GET[:20]:
            try:
                connection.sendall(bytes([letter]))
            except OSError:
                break
            time.sleep(0.05)
        check_problem(received(connection), 408, "0.5 s")


def test_a_second_head_has_its_time_too_and_no_more(server):
    with server.connect() as connection:
        assert ask(connection) == 200
        time.sleep(1)  # between requests the connection may rest
        assert ask(connection) == 200
        connection.sendall(GET[:10])
        check_problem(received(connection), 408)


def test_blank_lines_are_no_request(server):
    with server.connect() as connection:
        assert ask(connection) == 200
        connection.sendall(b"\r\n" * 10)
        received(connection)
    assert server.reasons == ["slow-head"]


@pytest.mark.parametrize(
    "sent",
    [
        GET[:-2] + b"".join(b"X-%d: y\r\n" % at for at in range(HEADERS)) + b"\r\n",
        GET[:-2] + b"X: " + b"a" * HEAD_BYTES + b"\r\n\r\n",
        GET[:-2] + b"X" * HEAD_BYTES + b": a\r\n\r\n",
        b"GET /" + b"a" * HEAD_BYTES + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["many headers", "a long value", "a long name", "a long path"],
)
def test_too_large_a_head_is_refused(server, sent):
    with server.connect() as connection:
        connection.sendall(sent)
        check_problem(received(connection), 431, f"{HEAD_BYTES:,} bytes in {HEADERS} headers")


def test_a_head_just_within_the_limits_is_read(server):
    values = b"".join(b"X-%d: %s\r\n" % (at, b"a" * 600) for at in range(HEADERS - 1))
    with server.connect() as connection:
        connection.sendall(GET[:-2] + values + b"\r\n")
        assert connection.recv(1 << 16).endswith(b"100 headers")


def send_all_of(connection, pieces):
    """Send until the server does not take any more; how many bytes it took."""
    sent = 0
    try:
        for piece in pieces:
            connection.sendall(piece)
            sent += len(piece)
    except OSError:
        pass
    return sent


@pytest.mark.parametrize("piece", [b"X: y\r\n" * 10_000, b"a" * 60_000], ids=["headers", "one value"])
def test_a_head_without_an_end_is_cut_off(server, piece):
    with server.connect() as connection:
        assert send_all_of(connection, [GET[:-2], b"X: ", *[piece] * 500]) < 10_000_000
        received(connection)
    assert server.reasons == ["large-head"]


@pytest.mark.parametrize("piece", [b"X: y\r\n" * 10_000, b"a" * 60_000], ids=["headers", "one value"])
def test_what_stands_after_a_body_in_chunks_has_the_limits_of_a_head(server, piece):
    with server.connect() as connection:
        chunked = POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: "
        assert send_all_of(connection, [chunked, *[piece] * 500]) < 10_000_000
        received(connection)
    assert server.reasons[0] in ("large-head", "invalid")


def test_a_few_headers_after_a_body_are_left_out(server):
    with server.connect() as connection:
        body = b"Transfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: Bearer x\r\n\r\n"
        connection.sendall(POST + body)
        assert connection.recv(1 << 16).endswith(b"2 headers")


def test_what_is_no_http_is_told_so_in_the_form_of_all_problems(server):
    for sent in (b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"):
        with server.connect() as connection:
            connection.sendall(sent)
            check_problem(received(connection), 400, "HTTP/1.1")


def test_a_web_socket_is_no_way_around_the_limits(server):
    upgrade = (
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhl\r\n\r\n"
    )
    with server.connect() as connection:
        connection.sendall(GET[:-2] + upgrade)
        assert status_of(connection.recv(1 << 16)) == 200


def test_a_client_that_sends_many_requests_at_once_is_cut_off(server):
    with server.connect() as connection:
        connection.sendall(GET.replace(b"/", b"/slow", 1) + GET * (PIPELINED - 2))
        text = connection.recv(1 << 16)
        while text.count(b"HTTP/1.1 200") < PIPELINED - 1:
            text += connection.recv(1 << 16)
    with server.connect() as connection:
        connection.sendall(GET.replace(b"/", b"/slow", 1) + GET * 10_000)
        assert received(connection) == b""


# several requests at once

CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


class OneAtATime:
    """Answers /held when it is released, /watched never, others once the body is read; `ended`: what ended, and why."""

    def __init__(self):
        self.begun, self.released, self.ended = threading.Event(), threading.Event(), []

    async def __call__(self, scope, receive, send):
        if scope["path"] == "/held":
            message = await receive()
            self.begun.set()
            while not self.released.is_set():
                await asyncio.sleep(0.01)
            await answer(send, b"held")
        elif scope["path"] == "/watched":
            await receive()
            self.begun.set()
            message = await receive()
        else:
            message = {"type": "http.request", "more_body": True}
            while message.get("more_body", False):
                message = await receive()
            await answer(send, b"at once")
        self.ended.append((scope["path"], message["type"]))


@pytest.fixture
def held(caplog):
    """A server of such an application, in whose log there must not be an error."""
    app = OneAtATime()
    with caplog.at_level(logging.WARNING), ProtocolServer(app, head_within=60) as serving:
        serving.app = app
        yield serving
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    "second",
    [CHUNKED + b"ZZ\r\n", b"no HTTP at all\r\n\r\n", b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n"],
    ids=["a bad chunk", "no HTTP", "a bad address"],
)
def test_the_refusal_of_a_request_is_never_the_response_to_the_one_before(held, second):
    with held.connect() as connection:
        connection.sendall(GET.replace(b"/", b"/held", 1))
        assert held.app.begun.wait(5)
        connection.sendall(second)
        assert received(connection) == b""
    held.app.released.set()
    wait_for(lambda: held.app.ended == [("/held", "http.request")])


def test_a_client_that_hangs_up_is_noticed_by_the_request_that_is_answered(held):
    with held.connect() as connection:
        connection.sendall(GET.replace(b"/", b"/watched", 1) + GET)
        assert held.app.begun.wait(5)
    wait_for(lambda: held.app.ended == [("/watched", "http.disconnect")])


def test_a_response_to_a_client_that_has_hung_up_is_dropped(held):
    with held.connect() as connection:
        connection.sendall(GET.replace(b"/", b"/held", 1) + GET)
        assert held.app.begun.wait(5)
    wait_for(lambda: len(held.connections) == 0)
    held.app.released.set()
    wait_for(lambda: held.app.ended == [("/held", "http.request")])


def test_a_second_body_may_arrive_after_the_first_response(held):
    body = POST + b"Content-Length: 4\r\n\r\n"
    with held.connect() as connection:
        connection.sendall(GET.replace(b"/", b"/held", 1) + body + b"ab")
        assert held.app.begun.wait(5)
        held.app.released.set()
        assert received_until(connection, b"held").count(b"HTTP/1.1 200") == 1
        connection.sendall(b"cd" + GET)
        text = received_until(connection, b"at once")
        if text.count(b"at once") == 1:
            text += received_until(connection, b"at once")
        assert text.count(b"HTTP/1.1 200") == text.count(b"at once") == 2


# bodies


def test_a_body_that_drips_is_refused(server):
    with server.connect() as connection:
        connection.sendall(POST + b"Content-Length: 1000\r\n\r\n")
        for _ in range(20):
            try:
                connection.sendall(b"a")
            except OSError:
                break
            time.sleep(0.05)
        check_problem(received(connection), 408, "10000 bytes per second")
    assert server.reasons == ["slow-body"]


def test_a_body_that_never_comes_is_refused(server):
    with server.connect() as connection:
        connection.sendall(POST + b"Content-Length: 1000\r\n\r\n")
        check_problem(received(connection), 408)


def test_a_body_that_is_slow_enough_is_read(server):
    """It takes twice as long as a body may take that does not come at all."""
    with server.connect() as connection:
        connection.sendall(POST + b"Content-Length: 20000\r\n\r\n")
        for _ in range(20):
            connection.sendall(b"a" * 1000)
            time.sleep(0.05)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_a_response_that_comes_before_the_body_is_read_reaches_the_client(server):
    """Closing at once would reset the connection, and with it the response on its way."""
    for closing in (b"", b"Connection: close\r\n"):
        with server.connect() as connection:
            connection.sendall(POST.replace(b"/", b"/early", 1) + closing + b"Content-Length: 4000000\r\n\r\n")
            send_all_of(connection, [b"a" * 100_000] * 40)
            assert received(connection).endswith(b"early")


def test_a_client_that_never_ends_its_body_is_let_go(server, monkeypatch):
    monkeypatch.setattr(protocol, "LINGER", 0.2)
    with server.connect() as connection:
        connection.sendall(POST.replace(b"/", b"/early", 1) + b"Content-Length: 4000000\r\n\r\n")
        assert received(connection).endswith(b"early")
        wait_for(lambda: len(server.connections) == 0)


# clients that do not read


@pytest.mark.parametrize("closing", [b"", b"Connection: close\r\n"])
def test_a_client_that_does_not_read_is_let_go(server, monkeypatch, closing):
    monkeypatch.setattr(protocol, "WRITE_WITHIN", 0.2)
    with server.connect() as connection:
        connection.sendall(GET.replace(b"/", b"/large", 1)[:-2] + closing + b"\r\n")
        wait_for(lambda: server.reasons == ["slow-reader"])
        wait_for(lambda: len(server.connections) == 0)


def test_a_client_that_reads_slowly_gets_everything(server, monkeypatch):
    monkeypatch.setattr(protocol, "WRITE_WITHIN", 0.3)
    with server.connect() as connection:
        connection.sendall(GET.replace(b"/", b"/large", 1)[:-2] + b"Connection: close\r\n\r\n")
        size = 0
        while piece := connection.recv(400_000):
            size += len(piece)
            time.sleep(0.05)
        assert size > 8_000_000


def test_a_client_that_reads_ever_less_than_a_body_must_bring_is_let_go(monkeypatch):
    monkeypatch.setattr(protocol, "WRITE_WITHIN", 0.3)
    with ProtocolServer(echo, body_rate=50_000_000) as server, server.connect() as connection:
        connection.sendall(GET.replace(b"/", b"/large", 1))
        while not server.reasons:
            assert connection.recv(400_000)
            time.sleep(0.05)
        assert server.reasons == ["slow-reader"]


# how many


def test_the_longest_idle_connection_makes_room_for_a_new_one():
    with ProtocolServer(echo, total=10, head_within=60) as server:
        silent = [server.connect() for _ in range(30)]
        with server.connect() as connection:
            assert ask(connection) == 200
        assert len({connection.fileno() for connection in silent}) == 30
    assert server.reasons == []


def test_a_connection_with_a_request_under_way_is_never_closed_for_another():
    with ProtocolServer(echo, total=3, head_within=60) as server:
        busy = [server.connect() for _ in range(3)]
        for connection in busy:
            connection.sendall(GET.replace(b"/", b"/slow", 1))
        time.sleep(0.2)
        with server.connect() as refused:
            check_problem(received(refused), 503, "too many connections")
        assert [status_of(connection.recv(1 << 16)) for connection in busy] == [200] * 3
    assert server.reasons == ["connections-total"]


HALF = POST + b"Content-Length: 50\r\n\r\nhalf of"


@pytest.mark.parametrize("request_text", [HALF, GET + HALF], ids=["the first", "a later one"])
def test_bodies_of_strangers_that_do_not_end_keep_nobody_out(request_text):
    with ProtocolServer(echo, total=3, head_within=60) as server:
        for _ in range(8):
            half = server.connect()
            half.sendall(request_text)
            wait_for(lambda: any(len(idle.idle) for idle in server.connections._addresses.values()))
            if request_text != HALF:
                received_until(half, b"headers")
        with server.connect() as connection:
            assert ask(connection) == 200
    assert server.reasons == []


def test_the_body_of_a_known_caller_may_take_its_time():
    with ProtocolServer(echo, total=3, head_within=60) as server, server.connect() as known:
        assert ask(known, GET.replace(b"/", b"/known", 1)) == 200
        known.sendall(HALF)
        wait_for(lambda: not server.connections._addresses["127.0.0.1"].idle)
        for _ in range(8):
            server.connect().sendall(HALF)
        with server.connect() as connection:
            assert ask(connection) == 200
        assert ask(known, b"." * 43) == 200


def test_one_address_has_its_share_and_others_theirs():
    with ProtocolServer(echo, total=10, each=3, head_within=60) as server:
        busy = [server.connect() for _ in range(3)]
        for connection in busy:
            connection.sendall(GET.replace(b"/", b"/slow", 1))
        time.sleep(0.2)
        with server.connect() as refused, server.connect("127.0.0.2") as other:
            check_problem(received(refused), 503)
            assert ask(other) == 200
        assert [status_of(connection.recv(1 << 16)) for connection in busy] == [200] * 3
    assert server.reasons == ["connections-address"]


def test_a_trusted_proxy_may_open_any_number_of_connections():
    with ProtocolServer(echo, total=50, each=2, proxies=["127.0.0.1/32"], head_within=60) as server:
        connections = [server.connect() for _ in range(20)]
        assert [ask(connection) for connection in connections] == [200] * 20


def test_addresses_of_known_callers_have_a_reserve():
    slow = GET.replace(b"/", b"/slow", 1)
    with ProtocolServer(echo, total=6, reserve=2, head_within=60) as server:
        with server.connect("127.0.0.5") as known:
            assert ask(known, GET.replace(b"/", b"/known", 1)) == 200
        wait_for(lambda: len(server.connections) == 0)
        strangers = []
        for number in range(1, 5):  # one after the other: a connection without a request would make room for the next
            strangers.append(server.connect("127.0.0.2"))
            strangers[-1].sendall(slow)
            wait_for(lambda number=number: len(server.connections) == number and not server.connections._idle_strangers)
        strangers.append(server.connect("127.0.0.2"))
        with server.connect("127.0.0.5") as known:
            assert ask(known) == 200
        assert [status_of(connection.recv(1 << 16)) for connection in strangers] == [200] * 4 + [503]


def test_an_idle_connection_of_a_known_caller_stays():
    with ProtocolServer(echo, total=4, head_within=60) as server, server.connect() as known:
        assert ask(known, GET.replace(b"/", b"/known", 1)) == 200
        others = [server.connect("127.0.0.2") for _ in range(20)]
        assert ask(others[-1]) == 200
        assert ask(known) == 200


@pytest.mark.parametrize("has_half_a_body", [False, True], ids=["idle", "half a body"])
def test_connections_of_players_make_room_where_no_stranger_is_idle(has_half_a_body):
    """A player's token opens many connections from several addresses; the reserve is theirs, too."""
    with ProtocolServer(echo, total=8, each=3, reserve=2, head_within=60) as server, server.connect() as known:
        assert ask(known, GET.replace(b"/", b"/known", 1)) == 200
        for number in range(7):
            player = server.connect(f"127.0.0.{2 + number % 4}")
            assert ask(player, GET.replace(b"/", b"/player", 1)) == 200
            if has_half_a_body:
                player.sendall(HALF)
        for source in ("127.0.0.8", "127.0.0.9"):
            with server.connect(source) as other:
                assert ask(other) == 200
        assert ask(known) == 200
    assert server.reasons == []


def test_a_connection_over_which_a_key_asked_stays_a_keys_connection():
    with ProtocolServer(echo, total=3, head_within=60) as server, server.connect() as both:
        for path in (b"/player", b"/known", b"/player"):
            assert ask(both, GET.replace(b"/", path, 1)) == 200
        for _ in range(8):
            with server.connect("127.0.0.2") as other:
                assert ask(other, GET.replace(b"/", b"/player", 1)) == 200
        assert ask(both) == 200
