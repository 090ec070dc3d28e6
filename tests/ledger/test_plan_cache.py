"""The plan that a process has in memory is always the one that all corrections in the database give."""

import random
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from evenmatch import rules, systems
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.errors import ConflictError, InputError, StoreError, UsageError
from evenmatch.ladders.ladders import ChangeRules
from evenmatch.ledger import event_rows
from evenmatch.ledger.events import (
    MatchReinstated,
    MatchVoided,
    PlayerBanned,
    PlayerMerged,
    PlayerReinstated,
    RatingsStarted,
    RulesChanged,
    SeasonOpened,
)
from evenmatch.ledger.plan import plan_of
from evenmatch.ledger.plan_cache import MAX_LADDERS, PLANS_PER_LADDER, PlanCache
from evenmatch.operations.service import Service
from ledger.sample_matches import duel, run_sql

pytestmark = pytest.mark.both_databases

OWN_SYSTEM = Path(__file__).parents[2] / "docs" / "how-to" / "league_points.py"
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
    listed, read = [], event_rows.read_corrections

    def noting(*arguments, **more):
        rows = read(*arguments, **more)
        listed.extend(row.position for row in rows)
        return rows

    monkeypatch.setattr(event_rows, "read_corrections", noting)
    return listed


def plan_in(service):
    """The plan up to the last correction, as any request reads it."""
    with service.database.read() as store:
        head = store.head("default")
        return event_rows.read_plan(store, head, head.corrected)


def all_in(service):
    """All corrections in the database."""
    with service.database.read() as store:
        head = store.head("default")
        return event_rows.read_corrections(store, head, head.corrected)


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
    wanted = {MatchVoided, MatchReinstated, PlayerBanned, PlayerReinstated, PlayerMerged, RulesChanged, SeasonOpened}
    assert wanted | {RatingsStarted} <= {type(correction.change) for correction in all_in(other)}


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
    for number in range(11, 16):
        played_service.record(duel(number, "ann", "bob"))
    assert read_positions in ([12], [12, 12])  # also by the thread that refreshes the view meanwhile


def append(store, change):
    """Append a correction; the plan in the same transaction."""
    head = store.lock("default")
    position = event_rows.append_correction(store, head, change, f"c{change}", 1)
    return event_rows.read_plan(store, store.head("default"), position)


@contextmanager
def rolled_back(service):
    """A write transaction that is rolled back."""
    with suppress(ZeroDivisionError), service.database.write() as store:
        yield store
        raise ZeroDivisionError


LOST = (
    MatchVoided(4, "m3"),
    PlayerBanned(1, since=None, rule="void"),
    PlayerMerged(1, into=2),
    SeasonOpened("Season 2", 2, 0.5, ""),
)


@pytest.mark.parametrize("change", LOST, ids=lambda change: change.kind)
def test_a_rolled_back_correction_is_in_no_plan(played_service, change):
    before = content(plan_in(played_service))
    with rolled_back(played_service) as store:
        assert content(append(store, change)) != before
    assert content(plan_in(played_service)) == before
    with played_service.database.write() as store:
        assert append(store, MatchVoided(5, "m4")).void == {5}  # at the same position
    assert plan_in(played_service).void == {5}
    assert content(plan_in(played_service)) == content(plan_of(all_in(played_service)))


def test_an_edited_file_of_a_system_is_read_again_and_a_missing_one_is_named(service, tmp_path):
    file = tmp_path / "league_points.py"
    file.write_text(OWN_SYSTEM.read_text(encoding="utf-8"), encoding="utf-8")
    service.create_ladder("default", str(file), rules(str(file)))
    before = plan_in(service)
    assert plan_in(service) is before
    file.write_text(file.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    after = plan_in(service)
    assert after.last_rules.system is systems.find(str(file)) is not before.last_rules.system
    service.correct("default", ChangeRules(str(file), rules(str(file)), start=False))
    assert {each.system for _, each in plan_in(service).rules} == {systems.find(str(file))}
    file.unlink()
    with pytest.raises(UsageError, match=r"league_points\.py: No such file"):
        plan_in(service)


FAILOVER = (
    "DELETE FROM event WHERE position = 12",
    "DELETE FROM correction WHERE position = 12",
    "UPDATE ladder SET position = 11, corrected = 1, generation = 1, "
    "seal = (SELECT seal FROM event WHERE position = 11)",
    "DELETE FROM generation WHERE generation = 2",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()",
)


def test_a_correction_that_a_lost_server_had_and_its_successor_has_not_is_in_no_plan(played_service, clock):
    if not played_service.database.url.drivername.startswith("postgresql"):
        pytest.skip("SQLite has no server")
    played_service.correct("default", Void("m3"))
    assert plan_in(played_service).void == {4}
    with Service.open(played_service.database.address, clock) as successor:
        run_sql(successor, *FAILOVER)
        with successor.database.write() as store:
            append(store, MatchVoided(5, "m4"))
    with pytest.raises(StoreError):
        plan_in(played_service)
    assert plan_in(played_service).void == {5}


def test_few_plans_are_kept_of_the_ladders_that_were_read_last(played_service):
    plan, cache = plan_in(played_service), PlanCache()
    for ladder in range(MAX_LADDERS):
        cache.add(ladder, plan)
    assert cache.find(0, plan.upto) is plan
    cache.add(MAX_LADDERS, plan)
    assert cache.find(0, plan.upto) is plan
    assert cache.find(1, plan.upto) is None
    for upto in (4, 2, 3):
        cache.add(5, replace(plan, upto=upto))
    assert PLANS_PER_LADDER == 2
    assert cache.find(5, 2) is None
    assert [cache.find(5, upto).upto for upto in (3, 4, 9)] == [3, 4, 4]
