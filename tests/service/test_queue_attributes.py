"""Attributes and maps in served queues: asked for, kept, refused, offered, played and filled."""

import json
from collections import Counter

import pytest

from evenmatch.errors import BadParameterError, ConflictError, InputError
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.live.attendance import Ending, Presence, TeamEnd
from evenmatch.live.live_matches import Running
from evenmatch.matchmaking import choose_map
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.parties import QueueFilter
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.requests import Accept, Join, QueuedPlayer
from ledger.sample_matches import duel
from service.sample_queues import (
    DUEL,
    PAIRS,
    accept_all,
    check_everything,
    hold_lease,
    join_one,
    join_queue,
    party,
    select_rows,
)

MAPS = ["dust", "nuke", "mirage", "train"]
ATTRIBUTES = {
    "mode": {"kind": "equal", "values": ["ctf", "dm"]},
    "platform": {"values": ["pc", "console"]},
    "input": {"values": ["pad", "keys"], "worth": 30},
}
CHOOSY = {**DUEL, "attributes": ATTRIBUTES, "maps": MAPS, "vetoes": 2}
NEVER = QueueRules(heartbeat=None)


@pytest.fixture
def queue_service(service, ladder):
    made = QueueService(service)
    made.set_queue(ladder, "ranked", CHOOSY, NEVER)
    hold_lease(made, ladder)
    return made


def asking(name, *, vetoes=None, queues=("ranked",), **attributes):
    """A wish of one player."""
    member = QueuedPlayer(name=name, attributes=attributes or None, vetoes=vetoes)
    return Join(members=(member,), queues=queues)


def test_players_who_do_not_agree_are_kept_apart_and_told_why(queue_service, ladder, maker):
    tickets = join_queue(queue_service, ladder, asking("ann", platform=("pc",)), asking("bob", platform=("console",)))
    assert maker.step(ladder).offers == ()
    waiting = queue_service.status(ladder, tickets[0]).waiting["ranked"]
    assert "1 other player waits, 0 of them accept platform pc" in waiting.sentences
    (third,) = join_queue(queue_service, ladder, asking("cat", platform=("pc", "console"), mode=("dm",)))
    (offer,) = maker.step(ladder).offers
    asked = queue_service.status(ladder, third).offer
    assert asked.offer == offer
    assert asked.attributes["mode"] == "dm"
    assert asked.attributes["platform"] in {"pc", "console"}
    assert asked.map in MAPS
    check_everything(queue_service.service)


def test_a_preference_is_waived_after_its_worth(queue_service, ladder, maker, clock):
    tickets = join_queue(queue_service, ladder, asking("ann", input=("pad",)), asking("bob", input=("keys",)))
    clock.move(seconds=29)
    assert maker.step(ladder).offers == ()
    clock.move(seconds=1)
    assert len(maker.step(ladder).offers) == 1
    offer = queue_service.status(ladder, tickets[0]).offer
    assert "input" not in offer.attributes
    assert offer.costs["attributes"] == 30


# the wish of one player, the words of the refusal
REFUSED = [
    ({"colour": ("red",)}, None, "player 'ann': attribute 'colour' is not declared; expected input, mode, platform"),
    ({"platform": ("amiga",)}, None, "player 'ann': platform has 'amiga'; expected pc, console"),
    ({"mode": ("ctf", "dm")}, None, "player 'ann': mode has 2 values; expected one of ctf, dm"),
    ({"map": ("tower",)}, None, "player 'ann': map has 'tower'; expected dust, nuke, mirage, train"),
    ({}, ("tower",), "player 'ann': vetoes has 'tower'; expected dust, nuke, mirage, train"),
    ({}, ("dust", "nuke", "train"), "player 'ann': 3 maps are vetoed"),
    ({}, tuple(MAPS), "player 'ann': 4 maps are vetoed"),
    ({"map": ("dust",)}, ("dust",), "every accepted map is vetoed"),
    ({"player 77": ("player 78",)}, None, "attribute 'player 77' is not declared"),
]


@pytest.mark.parametrize(("attributes", "vetoes", "words"), REFUSED)
def test_what_is_not_declared_is_refused_by_name(queue_service, ladder, attributes, vetoes, words):
    (before,) = join_queue(queue_service, ladder, asking("bob", platform=("pc",)))
    refused, joined = queue_service.apply(ladder, [asking("ann", vetoes=vetoes, **attributes), asking("cat")])
    assert isinstance(refused, InputError)
    assert words in str(refused)
    assert joined.state == queue_service.status(ladder, before).state == "waiting"


def test_friends_who_do_not_agree_are_both_named(queue_service, ladder):
    queue_service.set_queue(ladder, "pairs", {**PAIRS, "attributes": ATTRIBUTES, "maps": MAPS, "vetoes": 2})
    members = (
        QueuedPlayer(name="ann", attributes={"mode": ("ctf",)}),
        QueuedPlayer(name="bob", attributes={"mode": ("dm",)}),
    )
    (refused,) = queue_service.apply(ladder, [Join(members=members, queues=("pairs",))])
    assert "player 'ann' and player 'bob' are in one party and do not agree on mode: ctf and dm" in str(refused)
    vetoing = (QueuedPlayer(name="ann", vetoes=("dust", "nuke")), QueuedPlayer(name="bob", vetoes=("mirage", "train")))
    (refused,) = queue_service.apply(ladder, [Join(members=vetoing, queues=("pairs",))])
    assert "player 'ann', player 'bob': every map is vetoed in queue 'pairs'" in str(refused)


def test_a_kept_filter_gives_attributes_and_vetoes(queue_service, ladder, service):
    kept = QueueFilter(attributes={"platform": ("pc",), "mode": ("dm",)}, vetoes=("dust",))
    service.record(duel(1, "ann", "dan", ladder))  # a filter is kept for players whom the ladder knows
    queue_service.set_filter(ladder, "ann", kept)
    assert queue_service.filter_of(ladder, "ann") == kept
    tickets = join_queue(queue_service, ladder, party("ann"), asking("bob", vetoes=()), asking("cat"))
    queue_service.set_filter(ladder, "bob", kept)
    queue_service.set_queue(ladder, "plain", DUEL, NEVER)
    queue_service.set_filter(ladder, "dan", kept)
    tickets += join_queue(queue_service, ladder, party("dan", queues=("plain",)))  # which declares nothing of it
    state = queue_service.queue_state(ladder)
    state.catch_up(service.clock())
    expected = ((("mode", ("dm",)), ("platform", ("pc",))), ("dust",))
    choices = [_choice(state, ticket) for ticket in tickets]
    assert choices == [expected, expected, ((), ()), ((), ())]


def _choice(state, ticket):
    name = next(name for name, queue in state.queues.items() if ticket in queue)
    columns = state.queues[name].tickets_of([ticket])
    return columns.choices[columns.choice[0]]


def test_a_filter_that_asks_for_what_no_queue_declares_is_refused_and_changes_nothing(queue_service, ladder):
    (ticket,) = join_queue(queue_service, ladder, asking("ann", platform=("pc",)))
    before = queue_service.status(ladder, ticket).change
    for chosen, words in [
        (QueueFilter(attributes={"colour": ("red",)}), "player 'ann': attribute 'colour' is not declared"),
        (QueueFilter(vetoes=("tower",)), "vetoes has 'tower'"),
        (QueueFilter(vetoes=("dust", "nuke", "train")), "3 maps are vetoed"),
    ]:
        with pytest.raises(InputError, match=words):
            queue_service.set_filter(ladder, "ann", chosen)
    assert queue_service.filter_of(ladder, "ann") is None
    assert queue_service.status(ladder, ticket).change == before


def test_a_queue_that_declares_something_else_keeps_the_places(queue_service, ladder, service, maker, clock):
    service.record(duel(1, "bob", "cat", ladder))
    tickets = join_queue(queue_service, ladder, asking("ann", mode=("ctf",), vetoes=("dust",)))
    queue_service.set_filter(
        ladder, "bob", QueueFilter(attributes={"mode": ("ctf",), "platform": ("pc",)}, vetoes=("dust",))
    )
    clock.move(seconds=10)
    queue_service.set_queue(
        ladder, "ranked", {**DUEL, "attributes": {"mode": {"values": ["koth", "dm"]}}, "maps": ["lake"]}, NEVER
    )
    assert maker.step(ladder).dropped == ()
    status = queue_service.status(ladder, tickets[0])
    assert (status.state, status.waited) == ("waiting", 10)
    assert status.waiting["ranked"].sentences == ["mode ctf is not played here; expected koth or dm"]
    (refused,) = queue_service.apply(ladder, [party("bob")])
    assert "player 'bob': mode has 'ctf'; expected koth, dm" in str(refused)
    queue_service.set_queue(ladder, "ranked", {**DUEL, "attributes": ATTRIBUTES, "maps": MAPS, "vetoes": 1}, NEVER)
    join_queue(queue_service, ladder, party("bob"))
    assert len(maker.step(ladder).offers) == 1
    check_everything(queue_service.service)


def test_offer_match_and_forecast_say_with_what_it_is_played(queue_service, ladder, service, maker):
    tickets = join_queue(
        queue_service, ladder, asking("ann", mode=("dm",), vetoes=("dust", "nuke")), asking("bob", vetoes=("train",))
    )
    maker.step(ladder)
    offer = queue_service.status(ladder, tickets[0]).offer
    assert (offer.map, offer.attributes["mode"]) == ("mirage", "dm")
    match_id = accept_all(queue_service, ladder, tickets)[-1].match_id
    started = queue_service.status(ladder, tickets[0]).match
    assert (started.map, started.attributes) == ("mirage", offer.attributes)
    live = Running(service).status(ladder, match_id)
    assert (live.map, live.attributes) == ("mirage", offer.attributes)
    ((body,),) = select_rows(service, "SELECT body FROM formed_match")
    assert '"map": "mirage"' in body
    assert queue_service.recent(ladder, 5)[0].map == "mirage"


@pytest.mark.parametrize(
    ("context", "stored"),
    [
        ({}, {"map": "mirage"}),
        ({"mode": "dm"}, {"mode": "dm", "map": "mirage"}),
        ({"map": "other"}, {"map": "other"}),
        (dict.fromkeys("abcd", "x"), dict.fromkeys("abcd", "x")),
    ],
)
def test_a_closed_match_was_played_on_the_map_that_the_queue_chose(
    queue_service, ladder, service, maker, context, stored
):
    wishes = (asking("ann", vetoes=("dust", "nuke")), asking("bob", vetoes=("train",)))
    tickets = join_queue(queue_service, ladder, *wishes)
    maker.step(ladder)
    match_id = accept_all(queue_service, ladder, tickets)[-1].match_id
    ending = Ending((TeamEnd(1), TeamEnd(2)), context=context)
    receipt = Running(service).close(ladder, match_id, ending)
    assert LadderQueries(service).match(ladder, match_id)[1].context == stored
    assert Running(service).close(ladder, match_id, ending) == receipt
    with pytest.raises(ConflictError):
        Running(service).close(ladder, match_id, Ending((TeamEnd(1), TeamEnd(2)), context={"map": "dust"}))


def test_a_seat_goes_to_somebody_who_accepts_what_is_played(queue_service, ladder, service, clock, maker):
    queue_service.set_queue(ladder, "ranked", {**PAIRS, "attributes": ATTRIBUTES, "maps": MAPS, "vetoes": 3}, NEVER)
    friends = [
        Join(members=tuple(QueuedPlayer(name=name, vetoes=("dust", "train")) for name in names), queues=("ranked",))
        for names in (("ann", "bob"), ("cat", "eve"))
    ]
    tickets = join_queue(queue_service, ladder, *friends)
    maker.step(ladder)
    match_id = accept_all(queue_service, ladder, tickets)[-1].match_id
    played = queue_service.status(ladder, tickets[0]).match
    assert played.map in {"nuke", "mirage"}
    running = Running(service)
    clock.move(seconds=30)
    running.leaves(ladder, match_id, [Presence("bob", clock(), back=False)])
    seats = [int("bob" in [one.player for one in team]) for team in played.teams]
    running.openings(ladder, match_id, "ranked", seats)
    (unwilling,) = join_queue(queue_service, ladder, asking("dan", vetoes=(played.map,)))
    assert maker.step(ladder).offers == ()
    (willing,) = join_queue(queue_service, ladder, asking("fay", vetoes=("dust",)))
    assert len(maker.step(ladder).offers) == 1
    asked = queue_service.status(ladder, willing).offer
    assert (asked.match_id, asked.map) == (match_id, played.map)
    assert queue_service.status(ladder, unwilling).state == "waiting"
    check_everything(service)


def test_maps_come_in_turn_and_are_chosen_again_from_what_is_stored(
    queue_service, other_service, ladder, service, clock
):
    """Two processes serve one after the other; each choice follows from seed, number and the offers before it."""
    makers = [Matchmaker(one, queue_service.leases) for one in (queue_service, QueueService(other_service))]
    rounds = 30
    for turn in range(rounds):
        names = [f"p{turn}.{number}" for number in range(4)]
        tickets = join_queue(
            queue_service, ladder, *(asking(name, vetoes=("dust",) if turn % 3 == 0 else ()) for name in names)
        )
        assert len(makers[turn % 2].step(ladder).offers) == 2
        for ticket in tickets[:2] if turn % 2 else tickets:
            join_one(queue_service, ladder, Accept(ticket))
        clock.move(seconds=21)
    rows = select_rows(service, "SELECT offer, body FROM offer ORDER BY offer")
    played: list[str] = []
    for number, text in rows:
        body = json.loads(text)
        assert body["map"] == choose_map(body["maps"], played, 1, number)
        played.append(body["map"])
    assert len(played) == 2 * rounds
    counts = Counter(played)
    assert set(counts) == set(MAPS)
    assert max(counts[name] for name in MAPS[1:]) - min(counts[name] for name in MAPS[1:]) <= 8


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"attributes": {"mode": {"values": []}}}, "'mode': values is empty"),
        ({"attributes": {"map": {"values": ["a"]}}}, "declare maps with the option maps"),
        ({"maps": ["a", "a"]}, "'a' twice"),
        ({"maps": ["a"], "vetoes": 1}, "fewer than the 1 maps"),
    ],
)
def test_a_queue_with_attributes_that_cannot_be_is_refused(queue_service, ladder, policy, words):
    with pytest.raises(BadParameterError, match=words):
        queue_service.set_queue(ladder, "ranked", {**DUEL, **policy})
    assert queue_service.queue(ladder, "ranked").policy.maps == tuple(MAPS)
