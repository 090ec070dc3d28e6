"""Attributes and maps: what tickets ask of all players of their match; the twin is reference.matchmaking."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenmatch.errors import BadParameterError, InputError
from evenmatch.matchmaking import (
    Member,
    Opening,
    Policy,
    Queue,
    Ticket,
    Tickets,
    backfill,
    check_choices,
    propose,
    why,
)
from matchmaking.sample_tickets import NOW, SECOND, matched_tickets, party, plain_policy, proposed, queue_of, solo
from matchmaking.test_laws import HASTY, POLICIES
from reference import matchmaking as slow

PLATFORM = {"values": ["pc", "console"]}
MODE = {"kind": "equal", "values": ["ctf", "dm", "koth"]}
INPUT = {"values": ["pad", "keys"], "worth": 30.0}
VERSION = {"kind": "equal", "values": ["1.4", "1.5"], "worth": 200.0}
MAPS = ["dust", "nuke", "mirage", "train"]
DECLARED = {
    "platform": {"attributes": {"platform": PLATFORM}},
    "input, waived": {"attributes": {"input": INPUT}},
    "mode and maps": {"attributes": {"mode": MODE}, "maps": MAPS, "vetoes": 3},
    "all": {"attributes": {"platform": PLATFORM, "mode": MODE, "input": INPUT, "version": VERSION}, "maps": MAPS},
}
fuzz = settings(deadline=None, suppress_health_check=list(HealthCheck))


def choosing(ticket, percentile=50.0, *, vetoes=(), waited=0.0, **attributes):
    """One player who accepts these values."""
    return solo(ticket, percentile, waited=waited, attributes=attributes, vetoes=vetoes)


def joined(tickets):
    queue = Queue()
    queue.join_all(Tickets.of(tickets))
    return queue


SOME = ("pairs", "threes with roles", "three teams", "sixes")
DECLARING = [(name, "all") for name in POLICIES]
DECLARING += [(name, declared) for name in SOME for declared in DECLARED if declared != "all"]


@pytest.mark.parametrize(("name", "declared"), DECLARING)
def test_no_proposal_breaks_a_rule_with_attributes(name, declared):
    policy, made = replace(POLICIES[name], **DECLARED[declared]), 0

    @settings(fuzz, max_examples=6)
    @given(seed=st.integers(0, 2**32 - 1), count=st.integers(100, 260))
    def check(seed, count):
        nonlocal made
        tickets = slow.made_up(seed, count, NOW, largest=policy.team_size + 1 if seed % 4 else 2)
        tickets = slow.with_choices(tickets, policy, seed)
        found = propose(joined(tickets), NOW, policy)
        assert slow.broken(found, tickets, NOW, policy) == []
        made += len(found)

    check()
    assert made > 0  # the rules were looked at


places = st.integers(0, 8)


def test_two_meet_if_they_accept_one_value_of_each_attribute():
    policy = plain_policy(attributes={"platform": PLATFORM, "mode": MODE})
    cases = [
        ({"platform": ("pc",)}, {"platform": ("console",)}, False),
        ({"platform": ("pc",)}, {"platform": ("console", "pc")}, True),
        ({"platform": ("pc",)}, {}, True),
        ({"mode": ("ctf",)}, {"mode": ("dm",)}, False),
        ({"mode": ("ctf",), "platform": ("pc",)}, {"mode": ("ctf",), "platform": ("console",)}, False),
        ({"mode": ("ctf",)}, {"platform": ("console",)}, True),
    ]
    for first, second, meet in cases:
        assert bool(matched_tickets([choosing(1, **first), choosing(2, **second)], policy)) == meet, (first, second)


def test_all_players_of_a_match_share_one_value_and_not_only_each_pair():
    """pc or phone, pc or pad, phone or pad: any two could meet, the three have nothing in common."""
    policy = plain_policy(team_size=1, teams=3, attributes={"device": {"values": ["pc", "phone", "pad"]}})
    three = [
        choosing(1, device=("pc", "phone")),
        choosing(2, device=("pc", "pad")),
        choosing(3, device=("pad", "phone")),
    ]
    assert matched_tickets(three, policy) == []
    assert matched_tickets([*three, choosing(4, 51)], policy) == [[1, 2, 4]]


def test_a_rare_value_is_found_among_thousands():
    """Six of 3,000 want king of the hill, 500 places apart in the order; a search nearby would never see them."""
    tickets = [
        choosing(number, number / 30, mode=("koth",) if number % 500 == 7 else ("ctf",)) for number in range(3000)
    ]
    rare = [number for number in range(3000) if number % 500 == 7]
    policy = plain_policy(team_size=3, attributes={"mode": MODE}, steps=((0.0, 100.0),))
    matches = [match for match in matched_tickets(tickets, policy) if set(match) & set(rare)]
    assert matches == [rare]


# Waits of two who want different values, whether they meet where agreement is worth 30 seconds
WAIVED = [(29.999, 40.0, False), (30.0, 40.0, True), (40.0, 29.999, False), (30.0, 30.0, True), (0.0, 1e4, False)]


@pytest.mark.parametrize(("first", "second", "meet"), WAIVED)
def test_a_wish_is_broken_only_once_each_whose_wish_it_is_has_waited_for_it(first, second, meet):
    policy = plain_policy(attributes={"input": INPUT})
    two = [choosing(1, waited=first, input=("pad",)), choosing(2, waited=second, input=("keys",))]
    assert bool(matched_tickets(two, policy)) == meet
    if meet:
        (match,) = proposed(two, policy)
        assert (match.attributes, match.costs["attributes"]) == ({}, 30.0)


def test_agreement_comes_before_a_broken_wish():
    policy = plain_policy(attributes={"input": INPUT})
    four = [
        choosing(1, 50.0, waited=60, input=("pad",)),
        choosing(2, 50.1, waited=60, input=("keys",)),
        choosing(3, 52.0, waited=60, input=("pad",)),
        choosing(4, 52.1, waited=60, input=("keys",)),
    ]
    assert matched_tickets(four, policy) == [[1, 3], [2, 4]]


def test_an_overdue_player_is_matched_only_with_players_who_agree():
    policy = Policy(team_size=2, steps=HASTY, overdue_after=60.0, attributes={"platform": PLATFORM}, max_odds=None)
    old = choosing(1, 10.0, waited=100, platform=("pc",))
    near = [choosing(number, 10.0 + number, waited=50, platform=("console",)) for number in range(2, 8)]
    far = [choosing(number, 90.0, waited=50, platform=("pc", "console")) for number in range(10, 13)]
    assert [1, 10, 11, 12] in matched_tickets([old, *near, *far], policy)
    assert not [match for match in matched_tickets([old, *near], policy) if 1 in match]


def test_a_match_says_with_what_it_is_played():
    policy = plain_policy(attributes={"platform": PLATFORM, "mode": MODE}, maps=MAPS, vetoes=2)
    two = [
        choosing(1, platform=("console", "pc"), vetoes=("dust",)),
        choosing(2, platform=("pc", "console"), mode=("koth",), vetoes=("train",)),
    ]
    (match,) = proposed(two, policy)
    assert match.attributes == {"platform": "pc", "mode": "koth"}  # pc is declared first
    assert match.maps == ("nuke", "mirage")
    assert match.costs["attributes"] == 0


def test_a_party_accepts_what_all_its_members_accept():
    members = (
        Member(player=1, percentile=50, rating=1500, attributes={"platform": ("pc", "console")}, vetoes=("dust",)),
        Member(player=2, percentile=50, rating=1500, attributes={"platform": ("console", "phone"), "mode": ("dm",)}),
        Member(player=3, percentile=50, rating=1500, vetoes=("train", "dust")),
    )
    choice = Ticket(id=1, queued=NOW, members=members).choice
    assert choice.accepted == (("mode", ("dm",)), ("platform", ("console",)))
    assert choice.vetoes == ("dust", "train")


def test_members_who_do_not_agree_are_both_named():
    def members(*values):
        return tuple(
            Member(player=number, percentile=50, rating=1500, attributes={"platform": own})
            for number, own in enumerate(values, 1)
        )

    with pytest.raises(InputError, match=r"player 1 and player 3 are in one party .* platform: pc and console"):
        Ticket(id=1, queued=NOW, members=members(("pc",), ("pc", "console"), ("console",)))
    with pytest.raises(InputError, match="player 1, player 2, player 3: they do not all accept one value of platform"):
        Ticket(id=1, queued=NOW, members=members(("pc", "phone"), ("pc", "console"), ("console", "phone")))
    with pytest.raises(InputError, match=r"every accepted map is vetoed \(dust\)"):
        choosing(1, map=("dust",), vetoes=("dust",))


def test_a_value_that_is_not_declared_any_more_keeps_the_place_and_is_named():
    before = plain_policy(attributes={"version": {"kind": "equal", "values": ["1.4"]}})
    after = plain_policy(attributes={"version": {"kind": "equal", "values": ["1.5", "1.6"]}})
    two = [choosing(1, version=("1.4",)), choosing(2, version=("1.4",))]
    assert matched_tickets(two, before) == [[1, 2]]
    queue = queue_of(*two)
    assert len(propose(queue, NOW, after)) == 0
    assert why(1, queue, NOW, after).sentences == ["version 1.4 is not played here; expected 1.5 or 1.6"]
    assert queue.ids == [1, 2]


def test_why_tells_which_attribute_keeps_people_apart():
    policy = plain_policy(attributes={"platform": PLATFORM, "input": INPUT}, maps=MAPS, vetoes=2)
    others = [choosing(number, platform=("console",)) for number in range(2, 6)]
    queue = queue_of(
        choosing(1, platform=("pc",), vetoes=("dust",), input=("pad",)), *others, party(9, [50, 50], within=9.0)
    )
    told = why(1, queue, NOW, policy)
    assert told.sentences[:2] == [
        "searching near your level for 1 more player, 0 found so far",
        "4 other players wait, 0 of them accept platform pc",
    ]
    assert told.within == 0
    assert list(told.attributes) == ["platform"]
    free = why(1, queue, NOW, plain_policy(maps=MAPS, vetoes=2))
    assert (free.within, free.attributes) == (4, {})


def test_a_duel_that_waits_for_agreement_to_be_waived_is_estimated():
    policy = plain_policy(attributes={"input": INPUT}, even_spread=5.0)
    queue = queue_of(choosing(1, waited=10, input=("pad",)), choosing(2, waited=25, input=("keys",)))
    for number in (1, 2):
        assert why(number, queue, NOW, policy).estimate <= 20.0
    hard = plain_policy(attributes={"input": INPUT | {"worth": None}}, even_spread=5.0)
    assert why(1, queue_of(choosing(1, input=("pad",)), choosing(2, input=("keys",))), NOW, hard).within == 0


# of backfill: what the match is played with; what the player who comes accepts; whether they come
COMING = [
    ({}, {"platform": ("pc",)}, True),
    ({}, {"platform": ("console",)}, False),
    ({"platform": "pc"}, {"platform": ("pc", "console")}, True),
    ({"platform": "pc", "map": "nuke"}, {"vetoes": ("nuke",)}, False),
    ({"platform": "pc", "map": "nuke"}, {"vetoes": ("mirage",)}, True),
    ({"map": "nuke"}, {"map": ("mirage",)}, False),
]


@pytest.mark.parametrize(("played", "wish", "comes"), COMING)
def test_a_player_who_fills_a_seat_accepts_the_values_of_the_match(played, wish, comes):
    policy = plain_policy(team_size=2, attributes={"platform": PLATFORM}, maps=MAPS, vetoes=3)
    inside = choosing(10, platform=("pc",), vetoes=("train",), waited=300)
    opening = Opening(
        match=1,
        formed=NOW - 200 * SECOND,
        teams=((inside,), (choosing(11, waited=300),)),
        seats=(1, 0),
        attributes=played,
    )
    assert bool(backfill([opening], queue_of(choosing(1, **wish)), NOW, policy)) == comes


@pytest.mark.parametrize("name", ["pairs", "three teams", "sixes"])
def test_backfill_breaks_no_agreement(name):
    policy, filled = replace(POLICIES[name], **DECLARED["all"]), 0
    for seed in range(20):
        tickets = slow.with_choices(slow.made_up(seed, 80, NOW, largest=2), policy, seed)
        for proposal in propose(joined(tickets), NOW, policy):
            by_id = {ticket.id: ticket for ticket in tickets}
            gone = proposal.tickets[-1]
            teams = tuple(tuple(by_id[one] for one in team if one != gone) for team in proposal.teams)
            seats = tuple(policy.team_size - sum(len(one.members) for one in team) for team in teams)
            opening = Opening(match=1, formed=NOW, teams=teams, seats=seats, region=proposal.region)
            rest = [ticket for ticket in tickets if ticket.id not in proposal.tickets]
            for filling in backfill([opening], joined(rest), NOW, policy):
                match = [*(ticket for team in teams for ticket in team)]
                match += [by_id[one] for team in filling.teams for one in team]
                assert slow.disagreements(match, NOW, policy) == []
                filled += 1
    assert filled > 5


def test_what_none_of_the_joined_queues_declares_is_refused():
    policies = {
        "duels": plain_policy(attributes={"platform": PLATFORM}),
        "sixes": plain_policy(team_size=6, attributes={"mode": MODE}, maps=MAPS, vetoes=1),
    }

    def check(names, **wish):
        members = {"player 1": choosing(1, **wish).members[0]}
        check_choices(members, {name: policies[name] for name in names})

    for names, wish, message in [
        (["duels"], {"colour": ("red",)}, "player 1: attribute 'colour' is not declared; expected platform"),
        (["duels"], {"platform": ("amiga",)}, "player 1: platform has 'amiga'; expected pc, console"),
        (["sixes"], {"mode": ("ctf", "dm")}, "player 1: mode has 2 values; expected one of ctf, dm, koth"),
        (["duels"], {"vetoes": ("dust",)}, "player 1: vetoes has 'dust'; no maps are declared here"),
        (["duels", "sixes"], {"vetoes": ("tower",)}, "vetoes has 'tower'; expected dust, nuke, mirage, train"),
        (["sixes"], {"vetoes": ("dust", "nuke")}, r"2 maps are vetoed .* 'sixes' \(dust, nuke\); expected at most 1"),
        (["sixes"], {"map": ("dust", "nuke")}, r"\(mirage, train\); expected at most 1"),
        (["duels"], {"map": ("dust",)}, "attribute 'map' is not declared"),
    ]:
        with pytest.raises(InputError, match=message):
            check(names, **wish)
    check(["duels", "sixes"], platform=("pc",), mode=("dm",), vetoes=("dust",))


WRONG = [
    ({"attributes": {"map": {"values": ["a"]}}}, "declare maps with the option maps"),
    ({"attributes": {"mode": {"values": ["a", "a"]}}}, "'a' twice"),
    ({"attributes": {"mode": {"values": ["a"], "kind": "same"}}}, "expected equal or meet"),
    ({"attributes": {"mode": {"values": ["a"], "worth": -1}}}, "worth=-1: expected a number from 0"),
    ({"attributes": {"mode": {"values": [f"m{n}" for n in range(60)], "worth": 5}}, "maps": MAPS}, "65 values"),
    (
        {"attributes": {name: {"values": list("abcdefghi")} for name in "uvwx"}},
        "6561 combinations; expected at most 4096",
    ),
    ({"maps": ["dust", "nuke"], "vetoes": 2}, "vetoes=2: expected fewer than the 2 maps"),
    ({"maps": "dust"}, "expected a list of names"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_a_policy_refuses_attributes_that_cannot_be(options, message):
    with pytest.raises(BadParameterError, match=message):
        Policy(**options)


def test_choices_of_tickets_that_left_are_forgotten():
    queue, policy = Queue(), plain_policy(maps=[f"m{number}" for number in range(40)], vetoes=3)
    rng = np.random.default_rng(1)
    for number in range(3000):
        vetoes = tuple(f"m{place}" for place in sorted(rng.choice(40, 3, replace=False).tolist()))
        queue.join(choosing(number, vetoes=vetoes))
        if number >= 20:
            queue.leave(number - 20)
        queue.settle()
    assert len(queue.choices.known) < 200
    columns = queue.tickets_of(queue.ids)
    kept = [columns.choices[row].vetoes for row in columns.choice.tolist()]
    assert len(kept) == 20
    assert all(len(vetoes) == 3 for vetoes in kept)
    assert len(propose(queue, NOW, policy)) == 10
