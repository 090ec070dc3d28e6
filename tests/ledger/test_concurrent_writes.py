"""Names that change while others record under them: no deadlock, and everybody is one player afterwards."""

import threading

import pytest
import sqlalchemy as sa

from evenmatch import from_matches, rules
from evenmatch.errors import BadRowsError, ConflictError
from evenmatch.operations.service import Service
from evenmatch.recording import imports
from evenmatch.recording.recorder import AT_ONCE
from ledger.sample_matches import duel, everybody, positions

pytestmark = pytest.mark.both_databases

ROUNDS = 12


def at_once(*acts):
    """Do these at the same moment; what each gave or raised."""
    gate, results = threading.Barrier(len(acts)), [None] * len(acts)

    def run(at, act):
        gate.wait(20)
        try:
            results[at] = act()
        except Exception as error:
            results[at] = error

    threads = [threading.Thread(target=run, args=one, daemon=True) for one in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


def check_identities(service):
    """No name leads to a merged player, and nobody who was merged has a rating."""
    with service.database.read() as store:
        dead = "SELECT COUNT(*) FROM {} t JOIN player p ON p.player = t.player WHERE p.merged_into IS NOT NULL"
        live = " AND t.generation = (SELECT generation FROM ladder l WHERE l.ladder = t.ladder)"
        assert store.connection.execute(sa.text(dead.format("name"))).scalar() == 0
        assert store.connection.execute(sa.text(dead.format("state") + live)).scalar() == 0
    for ladder in service.ladders():
        assert service.verify(ladder.name).is_equal


def test_renames_while_others_record_under_the_new_names(service, ladder):
    service.record(duel(0, "old", "bob"))
    for number in range(1, ROUNDS):
        recorded, renamed = at_once(
            lambda n=number: service.record(duel(n, f"n{n}", "old")), lambda n=number: service.rename("old", f"n{n}")
        )
        assert renamed is True or isinstance(renamed, ConflictError), renamed
        if not recorded.rated:  # the rename came first: both names are one player's now
            assert renamed is True
    check_identities(service)


def test_one_player_is_not_merged_into_two(service, ladder):
    for number in range(ROUNDS):
        names = [f"{who}{number}" for who in "abc"]
        for at, name in enumerate(names):
            service.record(duel(3 * number + at, name, "x"))
        a, b, c = names
        results = at_once(lambda a=a, b=b: service.merge(a, b), lambda a=a, c=c: service.merge(a, c))
        assert all(one == ["default"] for one in results), results  # the second one merges all of the first
        assert len({service.player(name) for name in names}) == 1
        now = everybody(service)
        assert sum(now[name].matches for name in names if name in now) == 3
    check_identities(service)


def test_a_merge_while_the_player_begins_on_another_ladder(service, ladder):
    service.create_ladder("other", "elo", rules("elo"))
    for number in range(ROUNDS):
        a, b = f"a{number}", f"b{number}"
        service.record(duel(2 * number, a, "x"))
        service.record(duel(2 * number + 1, b, "x"))
        merged, recorded = at_once(
            lambda a=a, b=b: service.merge(a, b), lambda a=a, n=number: service.record(duel(n, a, "y", ladder="other"))
        )
        assert isinstance(merged, list), merged
        assert recorded.rated
        assert everybody(service, "other")[b].matches == 1
    check_identities(service)


def test_two_who_make_the_same_ladder(service):
    made = at_once(*(lambda: service.create_ladder("new", "elo", rules("elo")) for _ in range(4)))
    assert sorted(type(one).__name__ for one in made) == ["ConflictError"] * 3 + ["Ladder"]


@pytest.fixture
def import_while(service, ladder, made_url, clock, monkeypatch):
    """Imports m1 to m4, two at a time, while another process acts between the batches."""

    def run(act, **options):
        def progress(done):
            if done == 2:
                with Service.open(made_url, clock) as other:
                    act(other)

        monkeypatch.setattr(imports, "AT_ONCE", 2)
        table = from_matches([duel(number, "ann", "bob") for number in range(1, 5)])
        return service.import_matches("default", table, progress=progress, **options)

    return run


def test_an_import_compares_matches_that_another_process_has_recorded_meanwhile(service, import_while):
    with pytest.raises(BadRowsError, match="'m3': is already on ladder 'default', with other content") as raised:
        import_while(lambda other: other.record(duel(3, "cat", "dan")))
    assert raised.value.outcome == "2 matches were added before"
    assert positions(service) == [1, 2, 3, 4]


def test_an_import_ends_when_another_process_archives_the_ladder(service, import_while):
    with pytest.raises(ConflictError, match="archived"):
        import_while(lambda other: other.change_settings("default", {"archived": True}))
    assert service.ladder("default").matches == 2


def test_a_recording_does_not_wait_long_for_others_that_compute(service, ladder):
    taken, done = [threading.Event() for _ in range(AT_ONCE)], threading.Event()

    def compute(at):
        with service.recorder._turns.turn():
            taken[at].set()
            assert done.wait(60)

    threads = [threading.Thread(target=compute, args=(at,), daemon=True) for at in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    assert all(each.wait(20) for each in taken)
    assert service.record(duel(1, "ann", "bob")).rated  # none of them ends before this one
    done.set()
    for thread in threads:
        thread.join(20)
    assert all(service.recorder._turns._free.acquire(blocking=False) for _ in range(AT_ONCE))
    assert not service.recorder._turns._free.acquire(blocking=False)
