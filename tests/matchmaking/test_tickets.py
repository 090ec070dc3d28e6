"""Members, tickets and columns of them: what they accept, and what they say."""

import math
from dataclasses import replace

import numpy as np
import pytest

from evenmatch.errors import InputError
from evenmatch.matchmaking import Member, Met, Ticket, Tickets
from evenmatch.matchmaking.tickets import FOREVER
from matchmaking.sample_tickets import NOW, party, solo


def member(player=7, **told):
    return Member(**{"player": player, "percentile": 50.0, "rating": 1500.0} | told)


# What a member may not be told with, and what the message names
BAD_MEMBERS = [
    ({"percentile": 100.001}, "percentile is 100.001", "from 0 to 100"),
    ({"percentile": math.nan}, "percentile is nan", "from 0 to 100"),
    ({"percentile": True}, "percentile is True", "from 0 to 100"),
    ({"percentile": 10**400}, "percentile is 1000", "from 0 to 100"),
    ({"rating": math.inf}, "rating is inf", "from -1e"),
    ({"within": -1}, "within is -1", "from 0 to 100"),
    ({"max_ping": -1}, "max_ping is -1", "from 0 upwards"),
    ({"ping": {"eu": -1}}, "ping to 'eu' is -1", "from 0 to 1e+09"),
    ({"avoid": (7,)}, "avoids or met themselves", "other players"),
    ({"avoid": (-1,)}, "=-1", "whole number from 0"),
    ({"met": (Met(2**62, NOW),)}, str(2**62), "whole number from 0"),
]


@pytest.mark.parametrize(("told", "named", "accepted"), BAD_MEMBERS)
def test_a_member_is_refused_by_what_is_wrong(told, named, accepted):
    with pytest.raises(InputError) as caught:
        member(**told)
    assert "player 7" in str(caught.value)
    assert named in str(caught.value)
    assert "expected" in str(caught.value)
    assert accepted in str(caught.value)


@pytest.mark.parametrize("number", [-1, 2**62, 1.0, "1", None, True])
def test_numbers_of_players_and_tickets_and_times_are_whole_and_fit_a_column(number):
    for make in (
        lambda: member(number),
        lambda: Ticket(id=number, queued=NOW, members=(member(),)),
        lambda: Ticket(id=1, queued=number, members=(member(),)),
    ):
        with pytest.raises(InputError, match="a whole number from 0 to 2"):
            make()


def test_a_ticket_is_refused_by_what_is_wrong():
    far, near = {"eu": 20.0, "us": 150.0}, {"eu": 150.0, "us": 20.0}
    cases = [
        ((), "ticket 1 has 0 members"),
        (tuple(member(at) for at in range(51)), "ticket 1 has 51 members; expected 1 to 50"),
        ((member(3), member(3)), "a player twice"),
        ((member(3), member(4, avoid=(9, 3))), "player 4 avoids player 3 of the same party"),
        (
            (member(3, ping=far, max_ping=100), member(4, ping=near, max_ping=100)),
            "common one among eu, us",
        ),
        ((member(3, ping={"eu": 20.0}), member(4, ping={"us": 20.0})), "common one among eu, us"),
        ((member(3, ping={"eu": 20.0}, max_ping=19.9),), "common one among eu"),
    ]
    for members, named in cases:
        with pytest.raises(InputError, match=named):
            Ticket(id=1, queued=NOW, members=members)
    Ticket(id=1, queued=NOW, members=tuple(member(at) for at in range(50)))
    Ticket(id=1, queued=NOW, members=(member(3), member(4, met=(Met(3, NOW),))))  # met, and a party all the same


# Pings and limits of the members, and where the party can play
REGIONS = [
    ([({}, math.inf)], None),
    ([({}, 50), ({}, math.inf)], None),
    ([({"eu": 20, "us": 120}, math.inf)], {"eu", "us"}),
    ([({"eu": 20, "us": 120}, 120)], {"eu", "us"}),  # the limit is inside
    ([({"eu": 20, "us": 120}, 119.9)], {"eu"}),
    ([({"eu": 20, "us": 120}, math.inf), ({"us": 30, "asia": 10}, math.inf)], {"us"}),
    ([({"eu": 20, "us": 120}, math.inf), ({}, 5)], {"eu", "us"}),  # who told none plays anywhere
    ([({"eu": 20, "us": 120}, 100), ({"us": 30, "eu": 90}, 90)], {"eu"}),
]


@pytest.mark.parametrize(("members", "expected"), REGIONS)
def test_a_party_plays_where_all_its_members_can(members, expected):
    ticket = Ticket(
        id=1,
        queued=NOW,
        members=tuple(member(at, ping=ping, max_ping=limit) for at, (ping, limit) in enumerate(members)),
    )
    assert ticket.regions == expected


def test_a_party_is_strict_if_one_member_is():
    def ticket(*loose):
        return Ticket(id=1, queued=NOW, members=tuple(member(at, loose=one) for at, one in enumerate(loose)))

    assert [ticket(*loose).loose for loose in ((True,), (False,), (True, True), (True, False))] == [
        True,
        False,
        True,
        False,
    ]


def test_columns_hold_what_the_tickets_say():
    """By hand: three tickets, one of them a party, with names that only some of them know."""
    first = Ticket(
        id=30,
        queued=5,
        members=(
            member(1, percentile=10.0, roles=("tank", "healer", "tank"), ping={"us": 50.0, "eu": 20.0}, max_ping=60),
            member(2, rating=-3.5, within=7.0, loose=False, ping={"us": 70.0, "eu": 40.0}, avoid=(8, 9)),
        ),
    )
    second = Ticket(id=10, queued=4, members=(member(3, newcomer=True, met=(Met(1, 99),)),))
    third = Ticket(id=20, queued=6, members=(member(4, roles=("damage",), ping={"asia": 1.0, "us": 9.0}, max_ping=5),))
    told = Tickets.of((first, second, third))
    assert len(told) == 3
    assert told.id.tolist() == [30, 10, 20]
    assert told.queued.tolist() == [5, 4, 6]
    assert told.start.tolist() == [0, 2, 3, 4]
    assert told.player.tolist() == [1, 2, 3, 4]
    assert told.percentile.tolist() == [10, 50, 50, 50]
    assert told.rating.tolist() == [1500, -3.5, 1500, 1500]
    assert told.within.tolist() == [2, 7, 2, 2]
    assert told.loose.tolist() == [True, False, True, True]
    assert told.newcomer.tolist() == [False, False, True, False]
    assert told.region_names == ("asia", "eu", "us")
    assert told.role_names == ("damage", "healer", "tank")
    assert told.roles.tolist() == [0b110, 0, 0, 0b001]
    expected = [[math.inf, 40, 70], [math.nan] * 3, [1, math.inf, math.inf]]
    np.testing.assert_array_equal(told.ping, expected)
    assert told.named_start.tolist() == [0, 2, 3, 3]
    assert told.named.tolist() == [8, 9, 1]
    assert told.met.tolist() == [FOREVER, FOREVER, 99]


def test_columns_made_at_once_are_those_of_the_tickets_one_by_one():
    tickets = [solo(4, 20.0, rating=3.0, within=5.0, loose=False), party(2, [30.0, 40.0], within=1.0)]
    slow = Tickets.of(tickets)
    fast = Tickets.plain(
        *(slow.id, slow.queued, np.array([0, 1, 3]), slow.player, slow.percentile, slow.rating, slow.within, slow.loose)
    )
    for name, column in vars(slow).items():
        np.testing.assert_array_equal(column, getattr(fast, name))


def ticket_columns(**changed):
    told = {
        "id": np.array([1, 2]),
        "queued": np.array([NOW, NOW]),
        "start": np.array([0, 1, 3]),
        "player": np.array([11, 12, 13]),
        "percentile": np.array([1.0, 2.0, 3.0]),
        "rating": np.array([1.0, 2.0, 3.0]),
        "within": np.array([1.0, 2.0, 3.0]),
        "loose": np.array([True, True, False]),
    }
    plain = {name: value for name, value in (told | changed).items() if name in told}
    return replace(Tickets.plain(**plain), **{name: value for name, value in changed.items() if name not in told})


# Columns that are wrong, and what the message names
BAD_COLUMNS = [
    ({"percentile": np.array([1.0, 2.0, np.nan])}, "player 13: percentile is nan"),
    ({"rating": np.array([np.inf, 2.0, 3.0])}, "player 11: rating is inf"),
    ({"within": np.array([1.0, -2.0, 3.0])}, "player 12: within is -2"),
    ({"start": np.array([0, 0, 3])}, "ticket 1 has 0 members"),
    ({"id": np.array([1, -2])}, "ticket -2: expected a whole number"),
    ({"player": np.array([11, 12, 2**62])}, "player 4611686018427387904: expected a whole number"),
    ({"named_start": np.array([0, 1, 70]), "named": np.array([5]), "met": np.array([5])}, "named_start must rise"),
    ({"ping": np.array([[1.0], [-2.0]]), "region_names": ("eu",)}, "ticket 2 has a ping below 0"),
    ({"ping": np.array([[1.0], [2.0]])}, "a column for each of 0 regions"),
    ({"roles": np.array([0, 4, 0], np.uint64), "role_names": ("guard", "healer")}, "roles has a bit without a name"),
]


@pytest.mark.parametrize(("changed", "named"), BAD_COLUMNS)
def test_wrong_columns_are_refused_by_the_first_player_or_ticket(changed, named):
    ticket_columns().check()
    with pytest.raises(InputError, match=named):
        ticket_columns(**changed).check()
