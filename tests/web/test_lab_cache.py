"""What the lab keeps between requests: a health that is worked out once for all who ask, and one simulator."""

import asyncio
import contextlib

import pytest

from evenmatch.errors import ConflictError
from evenmatch.web import lab_cache, lab_jobs
from evenmatch.web.lab_cache import LabCache
from ledger.sample_matches import duel


@pytest.fixture
def health_calls(monkeypatch):
    """How often a health was worked out."""
    asked, real = [], lab_jobs.health_of

    def health_of(service, ladder):
        asked.append(ladder)
        return real(service, ladder)

    monkeypatch.setattr(lab_jobs, "health_of", health_of)
    return asked


def test_many_who_ask_at_once_wait_for_the_same_health(site, league, health_calls):
    kept, view = LabCache(), site.service.view(league)

    async def ask():
        return await asyncio.gather(*(kept.health(site, view) for _ in range(8)))

    found = asyncio.run(ask())
    assert health_calls == [league]
    assert all(one is found[0] for one in found)
    assert found[0].health.matches.sum() == 6
    assert kept.known(view) is found[0]


def test_a_health_is_shown_for_a_while_though_matches_came(site, league, health_calls, monkeypatch):
    kept = LabCache()
    first = asyncio.run(kept.health(site, site.service.view(league)))
    site.service.record(duel(9, "ann", "bob", league))
    later = site.service.view(league)
    assert kept.known(later) is first
    monkeypatch.setattr(lab_cache.time, "monotonic", lambda: first.until + 1)
    assert kept.known(later) is None
    assert asyncio.run(kept.health(site, later)).health.matches.sum() == 7
    assert health_calls == [league, league]


def test_a_health_that_is_as_it_was_is_never_worked_out_again(site, league, health_calls, monkeypatch):
    kept, view = LabCache(), site.service.view(league)
    first = asyncio.run(kept.health(site, view))
    monkeypatch.setattr(lab_cache.time, "monotonic", lambda: first.until + 1)
    assert asyncio.run(kept.health(site, view)) is first
    assert health_calls == [league]


def test_few_wait_for_the_simulator_and_one_uses_it():
    kept, inside, most = LabCache(), [], []

    async def use():
        async with kept.turn():
            inside.append(1)
            most.append(len(inside))
            await asyncio.sleep(0.01)
            inside.pop()

    async def all_at_once():
        return await asyncio.gather(*(use() for _ in range(lab_cache.PATIENT + 2)), return_exceptions=True)

    told = asyncio.run(all_at_once())
    assert max(most) == 1
    assert [type(one) for one in told] == [type(None)] * lab_cache.PATIENT + [ConflictError] * 2
    with contextlib.suppress(ConflictError):
        asyncio.run(use())
    assert len(most) == lab_cache.PATIENT + 1  # it is free again
