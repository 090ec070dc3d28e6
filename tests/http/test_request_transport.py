"""A response leaves in as few writes as possible, in order, and never later than the event loop is free."""

import asyncio
import json
import threading

import pytest

from evenmatch.http.protocol import HELD_BYTES, RequestTransport
from protocol_server import ProtocolServer, answer, received, received_until

HEAD, BODY, LONG = b"HTTP/1.1 200 OK\r\n\r\n", b"{}", b"x" * (HELD_BYTES + 1)
REQUEST = b"%s / HTTP/1.1\r\nHost: x\r\n\r\n"


class Recorded(asyncio.Transport):
    """A transport that notes what is written to it."""

    def __init__(self):
        super().__init__()
        self.writes, self.closed = [], False

    def write(self, data):
        self.writes.append(data)

    def is_closing(self):
        return self.closed


def protocol_of(send):
    """The protocol of the connection on which the application answers with `send`."""
    return send.__self__.on_response.__self__


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ([HEAD, BODY], [HEAD + BODY]),
        ([HEAD, BODY, HEAD, BODY], [HEAD + BODY, HEAD + BODY]),
        ([HEAD], [HEAD]),
        ([HEAD, b""], [HEAD]),
        ([HEAD, BODY, BODY], [HEAD + BODY, BODY]),
        ([HEAD, LONG, LONG], [HEAD, LONG, LONG]),
        ([LONG, HEAD, BODY], [LONG, HEAD + BODY]),
    ],
)
def test_a_short_write_is_sent_with_the_next_one_or_when_the_loop_is_free(written, sent):
    async def write_all():
        transport = Recorded()
        request_transport = RequestTransport(transport, asyncio.get_running_loop(), transport.close)
        for data in written:
            request_transport.write(data)
        await asyncio.sleep(0)
        return transport.writes

    assert asyncio.run(write_all()) == sent


def test_a_long_response_is_never_held_back_as_a_whole():
    async def write_all():
        transport = Recorded()
        request_transport = RequestTransport(transport, asyncio.get_running_loop(), transport.close)
        for _ in range(100):
            request_transport.write(BODY)
            yield len(transport.writes)

    async def counts():
        return [count async for count in write_all()]

    assert asyncio.run(counts()) == [done // 2 for done in range(1, 101)]


def test_what_is_written_after_the_end_is_dropped():
    async def write_all():
        transport = Recorded()
        request_transport = RequestTransport(transport, asyncio.get_running_loop(), transport.close)
        request_transport.write(HEAD)
        transport.closed = True
        await asyncio.sleep(0)
        request_transport.write(LONG)
        request_transport.flush()
        return transport.writes

    assert asyncio.run(write_all()) == []


def test_a_head_reaches_the_client_before_there_is_a_body():
    released = threading.Event()

    async def slow_body(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        while not released.is_set():
            await asyncio.sleep(0.01)
        await send({"type": "http.response.body", "body": BODY})

    with ProtocolServer(slow_body) as serving, serving.connect() as connection:
        connection.sendall(REQUEST % b"GET")
        assert received_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        released.set()
        assert received_until(connection, BODY) == BODY


@pytest.mark.parametrize("closes", [False, True], ids=["stays open", "is closed"])
def test_a_response_without_a_body_is_sent(closes):
    async def empty(_scope, _receive, send):
        headers = [(b"content-length", b"0")] + [(b"connection", b"close")] * closes
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    with ProtocolServer(empty) as serving, serving.connect() as connection:
        connection.sendall(REQUEST % b"HEAD")
        assert received_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        if closes:
            assert received(connection) == b""


def test_a_response_is_sent_before_the_refusal_of_the_next_request():
    async def refuses_the_next(_scope, _receive, send):
        await answer(send, b"")  # of a request HEAD: only a head is written
        protocol_of(send).data_received(b"no HTTP at all\r\n\r\n")  # before the event loop is free

    with ProtocolServer(refuses_the_next) as serving, serving.connect() as connection:
        connection.sendall(REQUEST % b"HEAD")
        first, _, second = received(connection).partition(b"\r\n\r\n")
        assert first.startswith(b"HTTP/1.1 200")
        assert second.startswith(b"HTTP/1.1 400")
        assert json.loads(second.partition(b"\r\n\r\n")[2])["status"] == 400


def test_a_response_is_not_lost_when_its_connection_is_closed_for_another_one():
    async def closes_it(_scope, _receive, send):
        await answer(send, b"")
        protocol_of(send).transport.abort()

    with ProtocolServer(closes_it) as serving, serving.connect() as connection:
        connection.sendall(REQUEST % b"HEAD")
        assert received(connection).startswith(b"HTTP/1.1 200")


def test_the_invitation_to_send_a_body_comes_before_its_refusal():
    async def refuses_the_body(_scope, receive, send):
        body = asyncio.ensure_future(receive())
        asyncio.get_running_loop().call_soon(protocol_of(send).refuse, 408, "the body arrived too slowly")
        await body

    with ProtocolServer(refuses_the_body) as serving, serving.connect() as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        first, _, second = received(connection).partition(b"\r\n\r\n")
        assert first.startswith(b"HTTP/1.1 100")
        assert second.startswith(b"HTTP/1.1 408")
