"""Pages that are open hear when a ladder or its queue has changed."""

import asyncio
from contextlib import ExitStack

import pytest

from evenmatch.errors import BusyError
from evenmatch.http.waiting_requests import Waiter
from evenmatch.queues.requests import Join, QueuedPlayer
from evenmatch.web import page_request
from evenmatch.web.page_request import ChangeStream
from evenmatch.web.view_models import seen_of
from ledger.sample_matches import duel


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(page_request, "POLL_EVERY", 0.1)


async def heard(site, league, seen, acts):
    """What a page hears that shows this state of the ladder, while these things are done."""
    stream, told, polls = ChangeStream(site), [], []
    read = stream._read_changes

    def counted(ladder):
        polls.append(ladder)
        return read(ladder)

    stream._read_changes = counted

    async def listen():
        async for what in stream.of(league, seen, Waiter()):
            told.append(what)  # noqa: PERF401 - what was told is needed where this is cancelled

    async def two_more_polls():
        until = len(polls) + 2
        async with asyncio.timeout(30):
            while len(polls) < until:
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)

    listening = asyncio.create_task(listen())
    await two_more_polls()
    for act in acts:
        await asyncio.to_thread(act)
        await two_more_polls()
    assert len(stream) == 1
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    assert len(stream) == 0
    return told


def test_a_page_hears_of_matches_and_of_the_queue(site, league, service):
    site.queue_service.set_queue(league, "main", {"team_size": 1})
    acts = [
        lambda: service.record(duel(30, "joe", "ann", ladder=league)),
        lambda: site.queue_service.apply(league, [Join(members=(QueuedPlayer(name="zoe"),), queues=("main",))]),
    ]
    seen = seen_of(service.view(league))
    assert asyncio.run(heard(site, league, seen, acts)) == ["ladder", "queue"]


def test_a_page_that_shows_what_was_before_hears_so_at_once(site, league, service):
    seen = seen_of(service.view(league))
    service.record(duel(30, "joe", "ann", ladder=league))
    service.view(league)
    assert asyncio.run(heard(site, league, seen, [])) == ["ladder"]


def test_the_stream_is_one_of_events_and_ends_with_the_process(anyone, site, league):
    site.stopping.set()
    answer = anyone.get(f"/ladders/{league}/pulse?seen=other")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.startswith("retry: 3000\n\nevent: ladder\ndata: changed\n\n")


def test_streams_are_counted_by_address_from_before_they_begin(site):
    stream = page_request.ChangeStream(site)
    with ExitStack() as open_streams:
        for _ in range(page_request.STREAMS_OF_CLIENT):
            open_streams.enter_context(stream.place("1.2.3.4"))
        with pytest.raises(BusyError), stream.place("1.2.3.4"):
            pass
        with stream.place("5.6.7.8"):
            pass
    with stream.place("1.2.3.4"):
        pass
