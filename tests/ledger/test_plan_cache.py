"""The plan that a process has in memory is always the one that all corrections in the database give."""

import random
from dataclasses import replace

import pytest

from evenmatch import rules
from evenmatch.errors import ConflictError, InputError
from evenmatch.ledger.events import NO_IDS, NO_RATINGS, Kind
from evenmatch.ledger.plan import plan_of
from evenmatch.ledger.plan_cache import LADDERS, OF_LADDER, PlanCache
from evenmatch.ledger.tables import corrections
from evenmatch.service.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.service.ladders import ChangeRules
from evenmatch.service.service import Service
from ledger.sample_matches import duel

PLAYERS = ("ann", "bob", "cat", "dan", "eve")


@pytest.fixture
def played_service(service, ladder):
    """Ten duels, each of a player with the next one, at positions 2 to 11 of the ladder."""
    for number in range(1, 11):
        service.record(duel(number, PLAYERS[number % 5], PLAYERS[(number + 1) % 5]))
    return service


@pytest.fixture
def other(played_service, clock):
    """Another process, which has plans of its own in memory."""
    with Service.open(played_service.database.address, clock) as opened:
        yield opened


@pytest.fixture
def read_positions(monkeypatch):
    """The positions of the corrections that were read from the database."""
    listed, read = [], corrections.read

    def noting(*arguments, **more):
        rows = read(*arguments, **more)
        listed.extend(row.position for row in rows)
        return rows

    monkeypatch.setattr(corrections, "read", noting)
    return listed


def plan_in(service):
    """The plan up to the last correction, as any request reads it."""
    with service.database.read() as store:
        head = store.head("default")
        return corrections.read_plan(store, head, head.corrected)


def all_in(service):
    """All corrections in the database."""
    with service.database.read() as store:
        head = store.head("default")
        return corrections.read(store, head, head.corrected)


def content(plan):
    """All that a plan says, in values that can be compared."""
    listed = [(position, each.system.name, each.values()) for position, each in plan.rules]
    turns = [turn.position for turn in plan.turns]
    return plan.upto, listed, turns, plan.void, plan.bans, plan.merged, plan.systems


def correct(service, chance, number):
    """A correction of any kind; some contradict those before."""
    match_id, player, rule = f"m{chance.randint(1, 10)}", chance.choice(PLAYERS), chance.choice(("void", "refund"))
    elo, start = rules("elo", k=chance.choice((16.0, 24.0))), chance.random() < 0.5
    chance.choice((
        lambda: service.correct("default", Void(match_id)),
        lambda: service.correct("default", Unvoid(f"m{chance.choice(sorted(plan_in(service).void) or [2]) - 1}")),
        lambda: service.correct("default", Ban(player, rule)),
        lambda: service.correct("default", Reinstate(player)),
        lambda: service.correct("default", ChangeRules("elo", elo, start=start)),
        lambda: service.correct("default", ChangeRules("glicko2", rules("glicko2"), start=True)),
        lambda: service.open_season("default", reset="soft", factor=0.5),
        lambda: service.start_ratings("default", {f"new {number}": 1700.0}),
        lambda: service.merge(*chance.sample(PLAYERS, 2)),
    ))()  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_plans_of_two_processes_follow_each_other_through_corrections_of_all_kinds(played_service, other, seed):
    chance = random.Random(seed)
    for number in range(60):
        try:
            correct(chance.choice((played_service, other)), chance, number)
        except (ConflictError, InputError):
            continue
        for_all = plan_of(all_in(other))
        for plan in (plan_in(played_service), plan_in(other)):
            assert content(plan) == content(for_all)
    wanted = {Kind.VOIDED, Kind.UNVOIDED, Kind.BANNED, Kind.REINSTATED, Kind.CHANGED, Kind.SEASON, Kind.STARTED}
    assert wanted | {Kind.MERGED} <= {correction.kind for correction in all_in(other)}


def test_starting_ratings_of_the_former_system_count_again_when_the_ladder_returns_to_it(played_service):
    played_service.start_ratings("default", {"zoe": 1700.0})
    for system, turns in (("glicko2", 0), ("elo", 1)):
        played_service.correct("default", ChangeRules(system, rules(system)))
        assert len(plan_in(played_service).turns) == turns


def test_a_request_reads_only_the_corrections_that_are_new(played_service, other, read_positions):
    played_service.correct("default", Void("m3"))
    assert plan_in(played_service).void == {4}
    read_positions.clear()
    assert plan_in(played_service).void == {4}
    assert read_positions == []
    other.correct("default", Void("m4"))
    read_positions.clear()
    assert plan_in(played_service).void == {4, 5}
    assert read_positions == [13]


def test_reports_read_only_the_corrections_that_are_new(played_service, other, read_positions):
    other.correct("default", Void("m3"))
    read_positions.clear()
    for number in (11, 12):
        played_service.record(duel(number, "ann", "bob"))
    assert read_positions == [12]


def append(store, match):
    """Void the match at a position; the plan in the same transaction."""
    head, body = store.lock("default"), f'{{"match": {match}}}'
    position = corrections.append(store, head, Kind.VOIDED, f"c{match}", b"", body, 1, NO_IDS, NO_RATINGS)
    return corrections.read_plan(store, store.head("default"), position)


def fail_after_append(service):
    with service.database.write() as store:
        assert append(store, 4).void == {4}
        raise ZeroDivisionError


def test_what_was_rolled_back_is_in_no_plan(played_service):
    with pytest.raises(ZeroDivisionError):
        fail_after_append(played_service)
    assert plan_in(played_service).void == set()
    with played_service.database.write() as store:
        assert append(store, 5).void == {5}  # at the same position
    assert plan_in(played_service).void == {5}


def test_few_plans_are_kept(played_service):
    plan, cache = plan_in(played_service), PlanCache()
    for ladder in range(LADDERS + 1):
        cache.add(ladder, plan)
    assert cache.find(0, plan.upto) is None
    assert cache.find(1, plan.upto) is plan
    for upto in range(2, OF_LADDER + 3):
        cache.add(1, replace(plan, upto=upto))
    assert cache.find(1, 2) is None
    assert [cache.find(1, upto).upto for upto in (3, 4, 9)] == [3, 4, 4]
