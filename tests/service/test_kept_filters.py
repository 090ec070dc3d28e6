"""Filters that players keep: used where a join names none, changed while waiting without losing the place."""

import pytest

from evenmatch import rules
from evenmatch.errors import BadParameterError, ConflictError, InputError, UnknownNameError
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.parties import QueueFilter
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.requests import Join, QueuedPlayer
from ledger.sample_matches import duel
from service.sample_queues import DUEL, check_everything, hold_lease, join_queue, party, select_rows, solos

STRICT = QueueFilter(within=7, loose=False, regions=("eu", "us"), max_ping=80.0)


@pytest.fixture
def queue_service(service, ladder):
    made = QueueService(service)
    made.set_queue(ladder, "ranked", DUEL)
    hold_lease(made, ladder)
    return made


@pytest.fixture
def played(service, ladder):
    """A match of ann and kim: a filter is kept for players whom the ladder knows."""
    service.record(duel(0, "ann", "kim", ladder))


def waiting(queue_service, ladder, ticket, service):
    """The member of a single player's ticket as the matchmaker sees it."""
    state = queue_service.queue_state(ladder)
    state.catch_up(service.clock())
    return state.queues["ranked"].tickets_of([ticket])


@pytest.mark.usefixtures("played")
def test_a_join_takes_what_it_does_not_name_from_the_kept_filter(queue_service, ladder, service):
    assert queue_service.filter_of(ladder, "ann") is None
    queue_service.set_filter(ladder, "ann", STRICT)
    assert queue_service.filter_of(ladder, "ann") == STRICT
    (kept,) = join_queue(queue_service, ladder, *solos("ann", ping={"eu": 20.0, "asia": 10.0}))
    seen = waiting(queue_service, ladder, kept, service)
    assert (seen.within.tolist(), seen.loose.tolist()) == ([7.0], [False])
    assert dict(zip(seen.region_names, seen.ping[0].tolist(), strict=True)) == {"eu": 20.0}
    (named,) = join_queue(queue_service, ladder, *solos("bob", within=3.0))
    queue_service.set_filter(ladder, "kim", STRICT)
    (both,) = join_queue(queue_service, ladder, *solos("kim", within=1.0, loose=True, regions=()))
    seen = waiting(queue_service, ladder, named, service)
    assert (seen.within.tolist(), seen.loose.tolist()) == ([3.0], [True])
    seen = waiting(queue_service, ladder, both, service)
    assert (seen.within.tolist(), seen.loose.tolist()) == ([1.0], [True])
    queue_service.set_filter(ladder, "kim", None)
    assert queue_service.filter_of(ladder, "kim") is None


@pytest.mark.usefixtures("played")
def test_a_filter_is_kept_for_each_ladder(queue_service, ladders):
    queue_service.set_filter("duel", "ann", STRICT)
    assert queue_service.filter_of("arena", "ann") is None
    with pytest.raises(UnknownNameError, match="unknown ladder 'none'"):
        queue_service.set_filter("none", "ann", STRICT)


@pytest.mark.usefixtures("played")
def test_a_filter_is_for_players_of_the_ladder_and_creates_none(queue_service, ladder, service):
    """A name that only another ladder knows is answered like one that nobody has."""
    service.create_ladder("arena", "elo", rules("elo"))
    queue_service.set_queue("arena", "ranked", DUEL)
    names = select_rows(service, "SELECT name FROM name ORDER BY name")
    for name in ("ann", "new"):
        with pytest.raises(ConflictError, match=f"player '{name}' has not played on ladder 'arena' and waits in none"):
            queue_service.set_filter("arena", name, STRICT)
        queue_service.set_filter("arena", name, None)
        assert queue_service.filter_of("arena", name) is None
    assert select_rows(service, "SELECT name FROM name ORDER BY name") == names
    join_queue(queue_service, "arena", *solos("new"))
    queue_service.set_filter("arena", "new", STRICT)
    assert queue_service.filter_of("arena", "new") == STRICT


def test_a_change_while_waiting_keeps_the_place(queue_service, other_service, ladder, service, clock):
    """Two players 50 percentiles apart meet once the filter of the strict one is wide enough."""
    for number in range(4):
        service.record(duel(number, "ann", "bob", ladder))
    service.view(ladder)
    tickets = join_queue(
        queue_service, ladder, party("ann", within=1.0, loose=False), party("bob", within=100.0, loose=False)
    )
    maker = Matchmaker(queue_service)
    assert maker.step(ladder).offers == ()
    clock.move(seconds=20)
    before = queue_service.statuses(ladder, tickets)
    QueueService(other_service).set_filter(ladder, "ann", QueueFilter(within=100, loose=False))
    after = queue_service.statuses(ladder, tickets)
    assert [after[ticket].queued_at for ticket in tickets] == [before[ticket].queued_at for ticket in tickets]
    assert after[tickets[0]].change > before[tickets[0]].change
    assert len(maker.step(ladder).offers) == 1
    check_everything(service)


def test_a_filter_by_which_a_party_could_play_nowhere_is_refused_and_changes_nothing(queue_service, ladder, service):
    friends = Join(
        members=(QueuedPlayer(name="ann", ping={"eu": 20.0}), QueuedPlayer(name="bob", ping={"eu": 30.0, "us": 90.0})),
        queues=("pairs",),
    )
    queue_service.set_queue(ladder, "pairs", {**DUEL, "team_size": 2})
    (ticket,) = join_queue(queue_service, ladder, friends)
    before = queue_service.status(ladder, ticket).change
    with pytest.raises(InputError, match="us"):
        queue_service.set_filter(ladder, "bob", QueueFilter(regions=("us",)))
    assert queue_service.filter_of(ladder, "bob") is None
    assert queue_service.status(ladder, ticket).change == before
    queue_service.set_filter(ladder, "bob", QueueFilter(regions=("eu",)))
    assert queue_service.status(ladder, ticket).change > before


@pytest.mark.usefixtures("played")
def test_a_kept_filter_that_does_not_fit_a_join_is_named(queue_service, ladder):
    queue_service.set_filter(ladder, "ann", STRICT)
    (refused,) = queue_service.apply(ladder, solos("ann", ping={"asia": 10.0}))
    assert "no ping to any of the chosen regions" in str(refused)
    assert "eu, us" in str(refused)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"within": 101}, "within=101"),
        ({"max_ping": -1}, "max_ping=-1"),
        ({"regions": "eu"}, "expected a list of names"),
        ({"regions": ["eu\0"]}, "region"),
        ({"mode": "ctf"}, "unknown value of a filter 'mode'"),
    ],
)
def test_what_is_no_filter_is_refused(values, words):
    with pytest.raises((BadParameterError, UnknownNameError), match=words):
        QueueFilter.from_data(values)
