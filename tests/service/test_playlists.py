"""One party in the queues of several ladders: the first match ends the waiting on all of them."""

import threading

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Ban
from evenmatch.errors import ConflictError, InputError, NotYetError, UnknownNameError
from evenmatch.live.live_matches import Running
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.parties import QueueFilter
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from service.sample_queues import (
    DUEL,
    PAIRS,
    Accept,
    Decline,
    Leave,
    accept_all,
    always,
    check_everything,
    granted,
    hold_lease,
    join_one,
    join_queue,
    party,
    select_rows,
    solos,
)

DUELS, ARENA, THIRD = "duel", "arena", "race"
BOTH = {ARENA: ("pairs",)}


@pytest.fixture
def ladders(service, ladders):
    return [*ladders, service.create_ladder(THIRD, "wager", rules("wager")).name]


@pytest.fixture
def queue_service(service, ladders):
    made = QueueService(service)
    made.set_queue(DUELS, "ranked", DUEL, QueueRules(accept_within=20, penalty=30))
    made.set_queue(ARENA, "pairs", PAIRS, QueueRules(accept_within=20, penalty=30))
    made.set_queue(THIRD, "ranked", DUEL)
    for ladder in ladders:
        hold_lease(made, ladder)
    return made


@pytest.fixture
def maker(queue_service):
    return always(queue_service)


def states(queue_service, result, ladder=DUELS):
    """The states of the tickets of a playlist, by ladder."""
    own = queue_service.status(ladder, result.ticket)
    return {ladder: own.state} | {entry.ladder: entry.state for entry in own.playlist}


def test_a_party_waits_on_two_ladders_with_a_ticket_on_each(queue_service, service):
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    assert joined.playlist.keys() == {ARENA}
    here = queue_service.status(DUELS, joined.ticket)
    there = queue_service.status(ARENA, joined.playlist[ARENA])
    assert (here.queues, there.queues) == (("ranked",), ("pairs",))
    assert [tuple(entry) for entry in here.playlist] == [(ARENA, there.ticket, "waiting")]
    assert [tuple(entry) for entry in there.playlist] == [(DUELS, here.ticket, "waiting")]
    assert queue_service.seat(ARENA, "ann").ticket == there.ticket
    check_everything(service)


def test_the_first_match_that_comes_ends_the_other_ticket(queue_service, service, maker):
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    (rival,) = join_queue(queue_service, DUELS, party("bob"))
    assert maker.step(ARENA).offers == ()
    assert len(maker.step(DUELS).offers) == 1
    assert states(queue_service, joined) == {DUELS: "offered", ARENA: "elsewhere"}
    check_everything(service)
    accept_all(queue_service, DUELS, [joined.ticket, rival])
    assert states(queue_service, joined) == {DUELS: "matched", ARENA: "gone"}
    there = queue_service.status(ARENA, joined.playlist[ARENA])
    assert there.ended == "its party got a match on another ladder of the playlist"
    assert [tuple(entry) for entry in there.playlist] == [(DUELS, joined.ticket, "matched")]
    check_everything(service)
    with pytest.raises(NotYetError, match=r"'ann' plays match '.*' of ladder 'duel'"):
        join_one(queue_service, ARENA, party("ann", queues=("pairs",)))


def test_a_match_on_the_other_ladder_moves_the_seat_there(queue_service, service, maker):
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    others = join_queue(queue_service, ARENA, *solos("bob", "cat", "dan", queues=("pairs",)))
    assert len(maker.step(ARENA).offers) == 1
    assert states(queue_service, joined) == {DUELS: "elsewhere", ARENA: "offered"}
    accept_all(queue_service, ARENA, [joined.playlist[ARENA], *others])
    assert states(queue_service, joined) == {DUELS: "gone", ARENA: "matched"}
    assert queue_service.seat(DUELS, "ann") is None
    assert queue_service.seat(ARENA, "ann").match_id is not None
    check_everything(service)
    match_id = queue_service.seat(ARENA, "ann").match_id
    Running(service).cancel(ARENA, match_id, "over")
    assert join_one(queue_service, DUELS, party("ann")).state == "waiting"


def test_nobody_with_an_offer_is_offered_another_match(queue_service, service, maker):
    """Both ladders could make a match with ann at the same time."""
    joined = join_one(queue_service, DUELS, party("ann", playlist={THIRD: ("ranked",)}))
    join_queue(queue_service, DUELS, party("bob"))
    join_queue(queue_service, THIRD, party("cat"))
    other = always(QueueService(service))
    other.queue_service.queue_state(THIRD).catch_up(service.clock())  # an old copy in the other process
    assert len(maker.step(DUELS).offers) == 1
    assert other.step(THIRD).offers == ()
    assert states(queue_service, joined) == {DUELS: "offered", THIRD: "elsewhere"}
    check_everything(service)


def test_a_decision_on_a_copy_that_is_out_of_date_is_not_written(queue_service, service, maker, monkeypatch):
    """The other process has decided with ann before this one offered her a match."""
    joined = join_one(queue_service, DUELS, party("ann", playlist={THIRD: ("ranked",)}))
    join_queue(queue_service, DUELS, party("bob"))
    join_queue(queue_service, THIRD, party("cat"))
    other = always(QueueService(service))
    decide = other.queue_service.queue_state(THIRD).odds.expected

    def meanwhile(line_ups):
        if maker is not None:
            maker.step(DUELS)
        return decide(line_ups)

    monkeypatch.setattr(other.queue_service.queue_state(THIRD).odds, "expected", meanwhile)
    assert other.step(THIRD).offers == ()
    assert states(queue_service, joined) == {DUELS: "offered", THIRD: "elsewhere"}
    check_everything(service)


def test_two_processes_that_step_at_once_never_offer_twice(queue_service, service, other_service):
    """Each round both ladders could match the same people; threads of two processes race for them."""
    makers = [always(QueueService(each)) for each in (service, other_service)]
    for turn in range(6):
        names = [f"p{turn}-{number}" for number in range(6)]
        results = [join_one(queue_service, DUELS, party(name, playlist={THIRD: ("ranked",)})) for name in names]
        start = threading.Barrier(2)
        failures = []

        def race(maker, ladder, start=start, failures=failures):
            start.wait()
            try:
                maker.step(ladder)
            except Exception as error:
                failures.append(error)

        threads = [
            threading.Thread(target=race, args=(maker, ladder))
            for maker, ladder in zip(makers, (DUELS, THIRD), strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        check_everything(service)
        offered = [sum(state == "offered" for state in states(queue_service, result).values()) for result in results]
        assert max(offered) <= 1
        assert sum(offered) >= 4
        for result in results:
            for ladder, ticket in {DUELS: result.ticket, THIRD: result.playlist[THIRD]}.items():
                if queue_service.status(ladder, ticket).state == "offered":
                    granted(queue_service.apply(ladder, [Accept(ticket)])[0])
        for result in results:
            if set(states(queue_service, result).values()) == {"waiting"}:
                granted(queue_service.apply(DUELS, [Leave(result.ticket)])[0])
        check_everything(service)


def test_a_place_is_kept_when_somebody_else_declines(queue_service, service, maker, clock):
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    queued_at = queue_service.status(ARENA, joined.playlist[ARENA]).queued_at
    clock.move(seconds=3)
    (rival,) = join_queue(queue_service, DUELS, party("bob"))
    maker.step(DUELS)
    granted(queue_service.apply(DUELS, [Decline(rival)])[0])
    assert states(queue_service, joined) == {DUELS: "waiting", ARENA: "waiting"}
    assert queue_service.status(ARENA, joined.playlist[ARENA]).queued_at == queued_at
    join_queue(queue_service, ARENA, *solos("cat", "dan", "eve", queues=("pairs",)))
    assert len(maker.step(ARENA).offers) == 1
    check_everything(service)


@pytest.mark.parametrize("left", [DUELS, ARENA])
def test_leaving_one_leaves_all(queue_service, service, left):
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    ticket = {DUELS: joined.ticket, **joined.playlist}[left]
    granted(queue_service.apply(left, [Leave(ticket)])[0])
    assert states(queue_service, joined) == {DUELS: "gone", ARENA: "gone"}
    assert queue_service.status(ARENA, joined.playlist[ARENA]).ended == "left the queue"
    check_everything(service)
    assert join_one(queue_service, ARENA, party("ann", queues=("pairs",))).state == "waiting"


@pytest.mark.parametrize("answer", [Decline, None], ids=["declines", "is silent"])
def test_who_declines_or_is_silent_leaves_all_with_a_strike_where_the_offer_was(
    queue_service, service, maker, clock, answer
):
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    (rival,) = join_queue(queue_service, DUELS, party("bob"))
    maker.step(DUELS)
    granted(queue_service.apply(DUELS, [Accept(rival)])[0])
    if answer is not None:
        granted(queue_service.apply(DUELS, [answer(joined.ticket)])[0])
    else:
        clock.move(seconds=21)
        maker.step(DUELS)
    assert states(queue_service, joined) == {DUELS: "gone", ARENA: "gone"}
    assert queue_service.status(DUELS, rival).state == "waiting"
    assert queue_service.penalties(DUELS, "ann").strikes == 1
    assert queue_service.penalties(ARENA, "ann") is None
    check_everything(service)
    with pytest.raises(NotYetError, match="'ann' declined, missed or left a match"):
        join_one(queue_service, ARENA, party("ann", queues=("pairs",), playlist={DUELS: ("ranked",)}))
    assert select_rows(service, "SELECT player FROM seat JOIN player USING (player) WHERE name = 'ann'") == []
    assert join_one(queue_service, ARENA, party("ann", queues=("pairs",))).state == "waiting"


def test_an_answer_to_a_ticket_that_has_its_offer_elsewhere_says_where_it_belongs(queue_service, maker, service):
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    join_queue(queue_service, DUELS, party("bob"))
    maker.step(DUELS)
    for request in (Accept, Decline, Leave):
        with pytest.raises(ConflictError, match="has an offer on another ladder of its playlist; answer it there"):
            granted(queue_service.apply(ARENA, [request(joined.playlist[ARENA])])[0])
    check_everything(service)


def test_a_queue_that_goes_leaves_the_rest_of_the_playlist(queue_service, service, maker):
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    queue_service.remove_queue(DUELS, "ranked", force=True)
    assert states(queue_service, joined) == {DUELS: "gone", ARENA: "waiting"}
    assert queue_service.seat(ARENA, "ann").ticket == joined.playlist[ARENA]
    check_everything(service)
    others = join_queue(queue_service, ARENA, *solos("bob", "cat", "dan", queues=("pairs",)))
    maker.step(ARENA)
    accept_all(queue_service, ARENA, [joined.playlist[ARENA], *others])
    assert states(queue_service, joined) == {DUELS: "gone", ARENA: "matched"}
    check_everything(service)


def test_the_longest_wait_of_one_queue_does_not_end_the_others(queue_service, service, clock):
    maker = Matchmaker(queue_service)
    queue_service.set_queue(DUELS, "ranked", {**DUEL, "max_wait": 10.0})
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    maker.step(DUELS)
    clock.move(seconds=11)
    assert maker.step(DUELS).dropped == (joined.ticket,)
    assert states(queue_service, joined) == {DUELS: "gone", ARENA: "waiting"}
    assert queue_service.seat(ARENA, "ann").ticket == joined.playlist[ARENA]
    check_everything(service)


def test_a_sign_of_life_counts_on_all_ladders(queue_service, service, maker, clock):
    queue_service.set_queue(ARENA, "pairs", PAIRS, QueueRules(heartbeat=30))
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    for _ in range(3):
        maker.step(ARENA)
        clock.move(seconds=15)
        queue_service.heartbeats.note(DUELS, queue_service.status(DUELS, joined.ticket))
        queue_service.heartbeats.write()
    assert maker.step(ARENA).dropped == ()
    clock.move(seconds=37)
    assert maker.step(ARENA).dropped == (joined.playlist[ARENA],)


def test_a_repeated_request_that_names_no_other_ladder_returns_the_ticket(queue_service):
    """A sender who may not read the other ladders of the playlist repeats the request on one."""
    joined = join_one(queue_service, DUELS, party("ann", request="r", playlist=BOTH))
    again = join_one(queue_service, DUELS, party("ann", request="r"))
    assert (again.ticket, dict(again.playlist)) == (joined.ticket, {})


def test_an_attribute_counts_on_the_ladders_that_declare_it(queue_service, service, maker):
    """And an attribute of no ladder, or with which a party can play on one of them only, refuses the playlist."""
    pools = {"platform": {"kind": "meet", "values": ["pc", "console"]}}
    queue_service.set_queue(ARENA, "pairs", {**PAIRS, "attributes": pools})
    console = {"platform": ("console",)}
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH, attributes=console))
    others = solos("bob", "cat", "dan", queues=("pairs",), attributes={"platform": ("pc",)})
    join_queue(queue_service, ARENA, *others)
    assert maker.step(ARENA).offers == ()
    queue_service.set_filter(ARENA, "ann", QueueFilter(within=50.0, attributes={"platform": ("pc",)}))
    assert len(maker.step(ARENA).offers) == 1
    assert states(queue_service, joined) == {DUELS: "elsewhere", ARENA: "offered"}
    check_everything(service)
    with pytest.raises(InputError, match="attribute 'mode' is not declared; expected platform"):
        join_one(queue_service, DUELS, party("eve", playlist=BOTH, attributes={"mode": ("ctf",)}))
    queue_service.set_queue(THIRD, "ranked", {**DUEL, "attributes": {"platform": {"kind": "meet", "values": ["pc"]}}})
    with pytest.raises(InputError, match="no accepted value of platform in queue 'race/ranked'; expected one or more"):
        join_one(queue_service, DUELS, party("eve", playlist={**BOTH, THIRD: ("ranked",)}, attributes=console))


def test_the_same_request_again_gets_the_same_tickets(queue_service, service, maker):
    wish = party("ann", request="r1", playlist=BOTH)
    first, again = (granted(each) for each in queue_service.apply(DUELS, [wish, wish]))
    assert again == first
    assert join_one(queue_service, DUELS, wish) == first
    join_queue(queue_service, ARENA, *solos("bob", "cat", "dan", queues=("pairs",)))
    maker.step(ARENA)
    later = join_one(queue_service, DUELS, wish)
    assert (later.ticket, later.playlist, later.state) == (first.ticket, first.playlist, "elsewhere")
    assert len(select_rows(service, "SELECT ticket FROM ticket JOIN ladder USING (ladder) WHERE name = 'duel'")) == 1


REFUSED = [
    ({"arena": ("pairz",)}, UnknownNameError, "unknown queue 'pairz' (did you mean 'pairs'?)"),
    ({"arenas": ("pairs",)}, UnknownNameError, "unknown ladder 'arenas' (did you mean 'arena'?)"),
    ({"arena": ()}, InputError, "name at least one queue of ladder 'arena' to join"),
    ({"arena": ("pairs", "pairs")}, InputError, "queue 'pairs' of ladder 'arena' is named twice"),
    ({"duel": ("ranked",)}, InputError, "the playlist names ladder 'duel', whose queues are in `queues`"),
    ({f"l{number}": ("q",) for number in range(16)}, InputError, "the playlist has 17 ladders; at most 16 are allowed"),
]


@pytest.mark.parametrize(("playlist", "kind", "said"), REFUSED, ids=[said for _, _, said in REFUSED])
def test_a_playlist_is_joined_wholly_or_not_at_all(queue_service, service, playlist, kind, said):
    with pytest.raises(kind) as refused:
        join_one(queue_service, DUELS, party("ann", playlist=playlist))
    assert said in str(refused.value)
    assert select_rows(service, "SELECT * FROM seat") == []
    assert select_rows(service, "SELECT * FROM ticket") == []


def test_a_party_too_large_for_one_of_the_ladders_joins_none(queue_service, service):
    with pytest.raises(InputError, match="a party of 2 is too large for queue 'duel/ranked'; its teams have 1 player"):
        join_one(queue_service, ARENA, party("ann", "bob", queues=("pairs",), playlist={DUELS: ("ranked",)}))
    assert select_rows(service, "SELECT * FROM ticket") == []


def test_a_ban_or_an_archived_ladder_refuses_the_playlist_and_names_it(queue_service, service):
    join_queue(queue_service, ARENA, party("ann", queues=("pairs",)))
    granted(queue_service.apply(ARENA, [Leave(queue_service.seat(ARENA, "ann").ticket)])[0])
    service.correct(ARENA, Ban("ann", reason="bot"))
    with pytest.raises(ConflictError, match="player 'ann' is banned from ladder 'arena' and cannot queue"):
        join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    assert join_one(queue_service, DUELS, party("ann")).state == "waiting"
    service.change_settings(THIRD, {"archived": True})
    with pytest.raises(ConflictError, match="'race' is archived"):
        join_one(queue_service, DUELS, party("bob", playlist={THIRD: ("ranked",)}))


def test_who_waits_on_one_ladder_of_a_playlist_waits_on_all(queue_service):
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    for ladder, queue in ((ARENA, "pairs"), (THIRD, "ranked")):
        with pytest.raises(ConflictError, match=f"waits in ticket {joined.ticket} of ladder 'duel'"):
            join_one(queue_service, ladder, party("ann", queues=(queue,)))


def test_followers_of_all_tickets_are_told(queue_service, service, maker):
    heard = []
    queue_service.listen(lambda ladder, numbers: heard.append((ladder, numbers)))
    joined = join_one(queue_service, DUELS, party("ann", playlist=BOTH))
    (rival,) = join_queue(queue_service, DUELS, party("bob"))
    maker.step(DUELS)
    assert (ARENA, [joined.playlist[ARENA]]) in heard
    heard.clear()
    accept_all(queue_service, DUELS, [joined.ticket, rival])
    assert (ARENA, [joined.playlist[ARENA]]) in heard
