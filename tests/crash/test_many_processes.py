"""Several processes write, correct, rebuild and read at once: nobody fails, nothing is lost, doubled or half seen."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from crash.child_tasks import (
    CHEATER,
    SYSTEM,
    ban_or_reinstate,
    correct_something,
    in_small_steps,
    read_until_told,
    rebuild_whole,
    record_range,
    repeat,
)
from crash.children import Child, run_together
from crash.numbered_matches import LADDER, numbered_matches
from crash.plain_sql import check_events, dead_rows, select_rows
from evenmatch import rules
from evenmatch.operations.service import Service

pytestmark = pytest.mark.slow

LADDERS = ["north", "east", "south", "west"]


@pytest.fixture
def service(url: str):
    with Service.open(url) as opened:
        opened.create_ladder(LADDER, SYSTEM, rules(SYSTEM))
        yield opened


def test_four_processes_record_on_one_ladder(url: str, service: Service):
    """Two of them report the same matches, as senders do that got no answer."""
    ranges = [range(60), range(60), range(60, 200), range(200, 400)]
    with ExitStack() as stack:
        children = [
            stack.enter_context(Child(record_range, url, [LADDER], numbers, size))
            for numbers, size in zip(ranges, (1, 2, 3, 25), strict=True)
        ]
        took = run_together(children)
    print(f"{400 / took:.0f} matches a second by four processes on one ladder")
    kinds = check_events(url, {f"m{number}" for number in range(400)})
    assert kinds.count("match-recorded") == 400
    assert service.verify(LADDER).is_equal


def test_four_processes_record_on_four_ladders_among_new_players(url: str, service: Service):
    """Each goes through the ladders in another order; the same new names come up on all of them."""
    for ladder in LADDERS:
        service.create_ladder(ladder, SYSTEM, rules(SYSTEM))
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                Child(record_range, url, LADDERS[at:] + LADDERS[:at], range(at * 40, at * 40 + 80), 4, 2000)
            )
            for at in range(4)
        ]
        took = run_together(children)
    print(f"{4 * 4 * 80 / took:.0f} matches a second by four processes on four ladders")
    for ladder in LADDERS:
        kinds = check_events(url, {f"m{number}" for number in range(200)}, ladder)
        assert kinds.count("match-recorded") == 200
        assert service.verify(ladder).is_equal
    check_identities(url)


def check_identities(url: str) -> None:
    """Every name leads to one player who bears it, and nobody was made for nothing."""
    named = select_rows(url, "SELECT n.name, p.name FROM name n LEFT JOIN player p ON p.player = n.player")
    assert all(name == borne for name, borne in named)
    assert [row[0] for row in select_rows(url, "SELECT COUNT(*) FROM player")] == [len(named)]
    strangers = "SELECT COUNT(*) FROM appearance a LEFT JOIN player p ON p.player = a.player WHERE p.player IS NULL"
    assert select_rows(url, strangers)[0][0] == 0


def test_corrections_go_on_while_others_record(url: str, service: Service):
    service.record_many(LADDER, numbered_matches(0, 100))
    with ExitStack() as stack:
        children = [
            stack.enter_context(Child(record_range, url, [LADDER], range(100 + 150 * at, 250 + 150 * at), 3))
            for at in range(3)
        ]
        children.append(stack.enter_context(Child(repeat, url, correct_something, 8)))
        run_together(children)
    kinds = check_events(url, {f"m{number}" for number in range(550)})
    assert kinds.count("match-recorded") == 550
    assert len(kinds) == 1 + 550 + 8
    assert service.verify(LADDER).is_equal
    assert dead_rows(url) == {"state": 0, "journal": 0, "checkpoint": 0}


def test_a_rebuild_catches_up_with_what_another_process_recorded_meanwhile(url: str, service: Service):
    service.record_many(LADDER, numbered_matches(0, 400))
    with in_small_steps(), Child(record_range, url, [LADDER], range(400, 440), 10) as child:
        assert child.next() == "ready"
        told: list[object] = []

        def let_it_record(_: int) -> None:
            if not told:
                child.pipe.send("start")
                told.append(child.next())

        made = service.rebuild(LADDER, whole=True, progress=let_it_record)
    assert told == ["done"]
    assert made is not None
    assert check_events(url, {f"m{number}" for number in range(440)}).count("match-recorded") == 440
    assert service.verify(LADDER).is_equal


def test_two_processes_rebuild_the_same_ladder_while_others_record(url: str, service: Service):
    service.record_many(LADDER, numbered_matches(0, 400))
    with ExitStack() as stack:
        children = [stack.enter_context(Child(repeat, url, rebuild_whole, 4)) for _ in range(2)]
        children += [
            stack.enter_context(Child(record_range, url, [LADDER], range(400 + 100 * at, 500 + 100 * at), 2))
            for at in range(2)
        ]
        run_together(children)
    assert check_events(url, {f"m{number}" for number in range(600)}).count("match-recorded") == 600
    assert service.verify(LADDER).is_equal
    assert dead_rows(url) == {"state": 0, "journal": 0, "checkpoint": 0}


def ratings(url: str) -> frozenset[tuple[object, ...]]:
    """(id, rating) of everybody but one, read by plain SQL."""
    sql = (
        "SELECT s.player, s.rating FROM state s JOIN ladder l ON l.ladder = s.ladder AND l.generation = s.generation "
        "JOIN player p ON p.player = s.player WHERE p.name <> :left_out"
    )
    return frozenset((player, rating) for player, rating in select_rows(url, sql, left_out=CHEATER))


def test_readers_see_the_old_ratings_or_the_new_ones(url: str, service: Service, tmp_path: Path):
    """Two processes read while another bans, rebuilds, reinstates, rebuilds …, and opens a season at last."""
    service.record_many(LADDER, numbered_matches(0, 400))
    twin = str(tmp_path / "twin.db")
    with Service.open(twin) as other:
        other.create_ladder(LADDER, SYSTEM, rules(SYSTEM))
        other.record_many(LADDER, numbered_matches(0, 400))
        expected = [ratings(twin)]
        ban_or_reinstate(other)
        expected.append(ratings(twin))
        ban_or_reinstate(other)
        assert ratings(twin) == expected[0]
        other.open_season(LADDER, reset="soft", factor=0.5)
        expected.append(ratings(twin))
    assert len(set(expected)) == 3
    with ExitStack() as stack, in_small_steps():
        readers = [stack.enter_context(Child(read_until_told, url)) for _ in range(2)]
        for reader in readers:
            assert reader.next() == "ready"
            reader.pipe.send("start")
        for _ in range(6):
            ban_or_reinstate(service)
        service.open_season(LADDER, reset="soft", factor=0.5)
        for reader in readers:
            reader.pipe.send("stop")
        told = [reader.next() for reader in readers]
    for seen, count in told:  # type: ignore[attr-defined]
        print(f"{count} standings read, {len(seen)} different ones")
        assert set(seen) <= set(expected)
        assert len(seen) >= 2
    assert ratings(url) == expected[2]
