"""What a process remembers of players is never older than the ledger: names and ratings, whoever wrote meanwhile."""

import random
import threading

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Ban, Void
from evenmatch.errors import InputError, StoreError
from evenmatch.ledger import player_rows, rating_rows
from evenmatch.operations.service import Service
from evenmatch.recording import player_states, recorder
from evenmatch.recording.report_batch import ReportBatch
from ledger.sample_matches import duel, ratings, team_match

pytestmark = pytest.mark.both_databases


@pytest.fixture
def other(service, clock):
    """Another process, as far as memory goes."""
    with Service.open(service.database.url.render_as_string(hide_password=False), clock) as opened:
        yield opened


@pytest.fixture
def seen_reads(monkeypatch):
    """The names, and the ids of players whose states were looked for in the database."""
    seen = []
    admit, roster = player_rows.admit, rating_rows.read_roster

    def admitting(store, names, **more):
        seen.extend(names)
        return admit(store, names, **more)

    def calling(store, head, by, ids=None):
        seen.extend([] if ids is None else ids.tolist())
        return roster(store, head, by, ids)

    monkeypatch.setattr(player_rows, "admit", admitting)
    monkeypatch.setattr(rating_rows, "read_roster", calling)
    return seen


def check_replay(service, ladder="default"):
    """Ratings are what a replay of the whole ledger gives."""
    verified = service.verify(ladder)
    assert (verified.differences, verified.damage) == ((), ())


@pytest.mark.usefixtures("ladder")
def test_a_rated_player_is_not_read_again(service, seen_reads):
    for number, names in enumerate([("ann", "bob"), ("ann", "bob"), ("eve", "bob"), ("eve", "ann")], 1):
        seen_reads.clear()
        service.record(duel(number, *names))
        assert len(seen_reads) == {1: 4, 3: 2}.get(number, 0)
    check_replay(service)


@pytest.mark.usefixtures("ladder")
def test_a_thread_that_has_the_ladder_sees_whole_states_while_another_one_keeps_its_own(service, monkeypatch):
    longer, told = player_states._longer, []

    def record():
        batch = ReportBatch.of([team_match(3, (1, "eve"), (2, "kim"))], [True])
        told.append(service.recorder.record("default", batch)[0])

    thread = threading.Thread(target=record, daemon=True)

    def grown_slowly(array, length):  # the ladder is free by then; the rows that are to come have no states yet
        if thread.ident is None:
            thread.start()
            thread.join(0.5)
        return longer(array, length)

    service.record(duel(1, "ann", "bob"))
    monkeypatch.setattr(player_states, "_longer", grown_slowly)
    first = service.record(team_match(2, (1, "eve", "joe"), (2, "kim", "sue")))
    thread.join(20)
    after = {player.change.player: player.change.after for team in first.teams for player in team}
    assert [player.change.before for (player,) in told[0].teams] == [after["eve"], after["kim"]]
    check_replay(service)


@pytest.mark.usefixtures("ladder")
def test_matches_recorded_by_another_process_are_read(service, other):
    rng = random.Random(5)
    names = ["ann", "bob", "eve", "joe", "kim"]
    for number in range(1, 40):
        rng.choice([service, other]).record(duel(number, *rng.sample(names, 2)))
    assert ratings(service) == ratings(other)
    check_replay(service)


@pytest.mark.usefixtures("ladder")
def test_a_report_waits_for_the_server_four_times_and_once_more_after_another_process(service, other, monkeypatch):
    psycopg = pytest.importorskip("psycopg")
    if service.database.url.get_backend_name() == "sqlite":
        pytest.skip("SQLite has no server")
    waits, wait, own = [], psycopg.Connection.wait, threading.current_thread()

    def waiting(connection, steps, *arguments, **more):
        is_own = threading.current_thread() is own  # another one may refresh the standings of receipts
        if is_own and not steps.__name__.startswith("_rollback"):  # after a commit there is nothing to roll back
            waits.append(steps.__name__)
        return wait(connection, steps, *arguments, **more)

    for number in range(1, 4):
        service.record(duel(number, "ann", "bob"))
    monkeypatch.setattr(psycopg.Connection, "wait", waiting)

    def waits_of(number):
        waits.clear()
        service.record(duel(number, "ann", "bob"))
        return len(waits)

    counts = []
    for number in range(4, 13, 3):
        alone = waits_of(number)
        other.record(duel(number + 1, "ann", "joe"))
        counts.append((alone, waits_of(number + 2)))
        service.record(duel(number + 2.5, "ann", "bob"))
    # Alone: lock, look-up, rows, commit; else the state of ann, too. If the machine stands still for seconds, a report
    # also reads the standings.
    assert (min(alone for alone, _ in counts), min(after for _, after in counts)) == (4, 5), counts
    check_replay(service)


@pytest.mark.usefixtures("ladder")
@pytest.mark.parametrize("who", ["service", "other"])
def test_a_new_name_is_told_at_once(request, service, who):
    service.record(duel(1, "ann", "bob"))
    request.getfixturevalue(who).rename("ann", "Anna")
    receipt = service.record(duel(2, "ann", "bob"))
    assert [line.change.player for team in receipt.teams for line in team] == ["Anna", "bob"]
    receipt = service.record(duel(3, "Anna", "bob"))
    assert receipt.teams[0][0].change.before == pytest.approx(ratings(service)["Anna"], abs=20)
    assert set(ratings(service)) == {"Anna", "bob"}
    check_replay(service)


@pytest.mark.usefixtures("ladder")
@pytest.mark.parametrize("who", ["service", "other"])
def test_merged_players_are_rated_as_one(request, service, who):
    for number, names in enumerate([("ann", "bob"), ("eve", "joe"), ("ann", "joe")], 1):
        service.record(duel(number, *names))
    request.getfixturevalue(who).merge("eve", "ann")
    service.record(duel(4, "eve", "joe"))
    assert set(ratings(service)) == {"ann", "bob", "joe"}
    assert not service.record(team_match(5, (1, "ann"), (2, "eve"))).rated
    check_replay(service)


@pytest.mark.usefixtures("ladder")
@pytest.mark.parametrize("who", ["service", "other"])
def test_the_name_of_an_erased_player_belongs_to_a_newcomer(request, service, who):
    service.record(duel(1, "ann", "bob"))
    request.getfixturevalue(who).erase("ann")
    receipt = service.record(duel(2, "ann", "bob"))
    assert receipt.teams[0][0].change.before == 1500.0
    check_replay(service)


@pytest.mark.usefixtures("ladder")
@pytest.mark.parametrize("who", ["service", "other"])
@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.correct("default", Void("m1")),
        lambda one: one.correct("default", Ban("ann")),
        lambda one: one.open_season("default", reset="full"),
        lambda one: one.change_rules("default", "glicko2", rules("glicko2")),
        lambda one: one.start_ratings("default", {"zed": 1800.0}),
        lambda one: one.rebuild("default", whole=True),
    ],
)
def test_states_are_read_again_after_a_correction(request, service, who, change):
    for number, names in enumerate([("ann", "bob"), ("bob", "eve"), ("eve", "zoe")], 1):
        service.record(duel(number, *names))
    change(request.getfixturevalue(who))
    for number, names in enumerate([("bob", "eve"), ("zed", "bob"), ("eve", "zoe")], 4):
        service.record(duel(number, *names))
    check_replay(service)


@pytest.mark.usefixtures("ladder")
def test_uncommitted_changes_are_not_remembered(service, monkeypatch):
    service.record(duel(1, "ann", "bob"))

    def lost(*_):
        raise StoreError("the database has gone")

    with monkeypatch.context() as patch:
        patch.setattr(recorder, "_checkpoint", lost)
        patch.setattr(recorder, "CHECKPOINT", 1)
        with pytest.raises(StoreError):
            service.record(duel(2, "ann", "new"))
    receipt = service.record(duel(3, "ann", "new"))
    assert [line.change.before for team in receipt.teams for line in team] == [1516.0, 1500.0]
    check_replay(service)


@pytest.mark.usefixtures("ladder")
def test_a_match_that_is_refused_among_others_leaves_them_right(service):
    service.record(duel(1, "ann", "bob"))
    service.rename("ann", "Anna")
    outcomes = service.record_many(
        "default", [duel(2, "ann", "bob"), duel(3, "ann", "x\0"), duel(4, "bob", "eve"), duel(5, "eve", "x")]
    )
    assert [isinstance(one, InputError) for one in outcomes] == [False, True, False, False]
    check_replay(service)


@pytest.mark.usefixtures("ladder")
def test_more_players_than_are_remembered_are_rated_as_well(service, monkeypatch):
    monkeypatch.setattr(player_states, "MOST_CACHED", 3)
    for number in range(1, 12):
        service.record(duel(number, f"p{number % 5}", f"p{(number + 2) % 5}"))
    check_replay(service)


@pytest.mark.usefixtures("ladder")
def test_only_states_that_another_process_changed_are_read_again(service, other, seen_reads):
    for number, names in enumerate([("ann", "bob"), ("eve", "joe")], 1):
        service.record(duel(number, *names))
    other.record(duel(3, "ann", "joe"))
    seen_reads.clear()
    service.record(team_match(4, (1, "ann", "bob"), (2, "eve", "joe")))
    with service.database.read() as store:
        assert sorted(player_rows.names_of(store, seen_reads).values()) == ["ann", "joe"]
    check_replay(service)


@pytest.mark.usefixtures("ladder")
def test_after_many_matches_of_another_process_all_states_are_read_again(service, other, seen_reads, monkeypatch):
    monkeypatch.setattr(player_states, "FOLLOWED", 1)
    service.record(duel(1, "ann", "bob"))
    for number in (2, 3):
        other.record(duel(number, "ann", "eve"))
    seen_reads.clear()
    service.record(duel(4, "ann", "bob"))
    assert len(seen_reads) == 2
    check_replay(service)


@pytest.fixture
def shared(service, other):
    """A ladder on which both processes record, so that each reads ahead."""
    for number, names in enumerate([("ann", "bob"), ("eve", "joe"), ("ann", "joe"), ("bob", "eve")], 1):
        (service, other, other, service)[number - 1].record(duel(number, *names))


def id_of(service, name):
    with service.reading("default") as (store, _):
        return player_rows.find(store, name)


def prepared(service, number, *names):
    """A match for which names and states have been read, but that is not written."""
    ready = service.recorder.prepare("default", ReportBatch.of([duel(number, *names)], [True]))
    assert ready.parts[0][1].ahead is not None
    return ready


@pytest.mark.usefixtures("ladder", "shared")
@pytest.mark.parametrize("who", ["service", "other"])
@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.record(duel(5, "ann", "eve")),
        lambda one: one.record(duel(5, "joe", "new")),
        lambda one: one.merge("eve", "ann"),
        lambda one: one.rename("ann", "Anna"),
        lambda one: one.erase("ann"),
        lambda one: one.correct("default", Void("m1")),
        lambda one: one.correct("default", Ban("ann")),
        lambda one: one.open_season("default", reset="full"),
        lambda one: one.change_rules("default", "glicko2", rules("glicko2")),
    ],
)
def test_states_that_changed_after_they_were_read_ahead_are_read_again(request, service, who, change):
    ready = prepared(service, 6, "ann", "new")
    change(request.getfixturevalue(who))
    service.recorder.write(ready)
    service.record(duel(7, "eve", "new"))
    check_replay(service)


@pytest.mark.usefixtures("ladder", "shared")
def test_under_the_lock_only_what_changed_since_is_read(service, other, seen_reads):
    other.record(duel(5, "bob", "eve"))
    ready = prepared(service, 6, "ann", "bob")
    seen_reads.clear()
    service.recorder.write(ready)
    assert seen_reads == []
    other.record(duel(7, "bob", "eve"))
    service.record(duel(8, "bob", "eve"))
    ready = prepared(service, 9, "ann", "joe")
    other.record(duel(10, "ann", "kim"))
    seen_reads.clear()
    service.recorder.write(ready)
    assert seen_reads == [id_of(service, "ann")]
    check_replay(service)


@pytest.mark.usefixtures("ladder", "shared")
def test_a_process_that_is_alone_again_does_not_read_ahead(service):
    service.record(duel(5, "ann", "bob"))
    ready = service.recorder.prepare("default", ReportBatch.of([duel(6, "ann", "bob")], [True]))
    assert ready.parts[0][1].ahead is None
