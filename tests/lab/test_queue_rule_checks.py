"""The count of broken rules: against a slow twin in plain Python, and against rules broken on purpose."""

from dataclasses import replace

import numpy as np
import pytest

from evenmatch.lab.queue.runs import RunMatches, broken
from evenmatch.matchmaking.tickets import Member, Ticket, Tickets, starts
from evenmatch.policy import Policy

SECOND = 1_000_000
DUEL = Policy(team_size=1, teams=2, steps=((0, 2), (10, 5), (20, 40)))
PAIRS = Policy(team_size=2, teams=2, steps=((0, 2), (10, 5), (20, 40)))


def solo(number, percentile, *, within=2.0, loose=True, queued=0, **more):
    member = Member(player=number, percentile=percentile, rating=1500.0, within=within, loose=loose, **more)
    return Ticket(id=number, queued=queued * SECOND, members=(member,))


def party(number, queued, *members):
    return Ticket(
        id=number,
        queued=queued * SECOND,
        members=tuple(
            Member(player=100 * number + at, percentile=p, rating=1500.0, within=w, loose=loose)
            for at, (p, w, loose) in enumerate(members)
        ),
    )


def played_matches(now, *matches, region=None, names=(), roles=None, role_names=()):
    """Matches at one time: each a list of teams, which are lists of tickets; and all tickets."""
    tickets = [ticket for match in matches for team in match for ticket in team]
    team = [at for match in matches for at, one in enumerate(match) for _ in one]
    players = sum(len(ticket.members) for ticket in tickets)
    return RunMatches(
        time=np.full(len(matches), now * SECOND),
        start=starts(np.array([sum(map(len, match)) for match in matches])),
        ticket=np.arange(len(tickets)),
        team=np.array(team),
        region=np.array(region or [-1] * len(matches)),
        role=np.array(roles or [-1] * players),
        odds=np.full(len(matches), 0.5),
        region_names=names,
        role_names=role_names,
    ), Tickets.of(tickets)


def test_a_filter_widens_at_its_step_and_bounds_are_included():
    for gap, waited, bad in [
        (2.0, 0, 0),
        (2.25, 0, 2),
        (2.25, 9, 2),
        (2.25, 10, 0),
        (5.0, 19, 0),
        (5.25, 19, 2),
        (40, 20, 0),
    ]:
        found = broken(*played_matches(waited, [[solo(1, 30.0)], [solo(2, 30.0 + gap)]]), DUEL)
        assert found.players == bad, (gap, waited)


def test_a_region_has_to_be_one_where_all_can_play():
    near = solo(1, 30.0, ping={"eu": 20.0, "us": 110.0}, max_ping=100.0)
    far = solo(2, 30.0, ping={"eu": 90.0, "us": 30.0})
    anywhere = solo(3, 30.0)
    cases = [
        ([near, far], 0, None, [False, False]),
        ([near, far], 1, None, [True, False]),
        ([near, far], 0, 80.0, [False, True]),
        ([near, far], -1, None, [True, True]),
        ([anywhere, far], 1, None, [False, False]),
        ([anywhere, far], 2, None, [False, True]),
    ]
    for (one, other), region, most, bad in cases:
        policy = replace(DUEL, max_ping=most)
        found = broken(*played_matches(0, [[one], [other]], region=[region], names=("eu", "us", "asia")), policy)
        assert found.region.tolist() == bad
    assert broken(*played_matches(0, [[anywhere], [solo(4, 30.0)]]), DUEL).players == 0


def test_a_match_has_a_value_accepted_by_all_unless_nobody_still_insists():
    policy = replace(
        DUEL,
        attributes={"platform": {"values": ["pc", "console"]}, "input": {"values": ["pad", "keys"], "worth": 30}},
        maps=("dust", "nuke", "train"),
        vetoes=2,
    )

    def wronged(first, second, waits=(0, 0)):
        pair = [
            solo(number, 50.0, queued=100 - wait, attributes=own.get("attributes", {}), vetoes=own.get("vetoes", ()))
            for number, (own, wait) in enumerate(zip((first, second), waits, strict=True))
        ]
        return broken(*played_matches(100, [[pair[0]], [pair[1]]]), policy).attributes.tolist()

    pc, console, pad, keys = (
        {"attributes": {name: (value,)}}
        for name, value in (("platform", "pc"), ("platform", "console"), ("input", "pad"), ("input", "keys"))
    )
    assert wronged(pc, {}) == wronged(pc, pc) == wronged(pc, pad) == [False, False]
    assert wronged(pc, console) == wronged(pc, console, (90, 90)) == [True, True]
    assert wronged(pad, keys, (29, 31)) == [True, False]
    assert wronged(pad, keys, (30, 31)) == [False, False]
    assert wronged({"vetoes": ("dust", "nuke")}, {"vetoes": ("train",)}) == [True, True]
    assert wronged({"vetoes": ("dust",)}, {"attributes": {"map": ("nuke",)}}) == [False, False]


def test_teams_are_full_or_all_small_after_long_waiting():
    one, two, three, four = (solo(number, 30.0) for number in (1, 2, 3, 4))
    small = replace(PAIRS, min_team_size=1, smaller_after=60.0)
    assert broken(*played_matches(0, [[one, two], [three, four]]), PAIRS).players == 0
    assert broken(*played_matches(0, [[one, two, three], [four]]), PAIRS).players == 4
    assert broken(*played_matches(0, [[one], [two]]), PAIRS).players == 2
    assert broken(*played_matches(60, [[one], [two]]), small).players == 0
    assert broken(*played_matches(60, [[one], [solo(5, 30.0, queued=1)]]), small).players == 2
    assert broken(*played_matches(60, [[one, two], [three]]), small).players == 3
    assert broken(*played_matches(0, [[one, two], [three, four], [solo(5, 30.0), solo(6, 30.0)]]), PAIRS).players == 6


def test_a_ticket_in_two_matches_spoils_both():
    matches, tickets = played_matches(0, [[solo(1, 30.0)], [solo(2, 30.0)]], [[solo(3, 30.0)], [solo(4, 30.0)]])
    found = broken(replace(matches, ticket=np.array([0, 1, 0, 3])), tickets, DUEL)
    assert found.size.tolist() == [True] * 4


def test_roles_are_covered_by_players_who_offer_them():
    policy = replace(PAIRS, roles={"tank": 1})
    tank, healer, both, any_role = (
        solo(at, 30.0, roles=roles) for at, roles in enumerate([("tank",), ("healer",), ("healer", "tank"), ()], 1)
    )
    line = [[tank, healer], [both, any_role]]
    told = {"role_names": ("tank", "healer")}
    assert broken(*played_matches(0, line, roles=[0, 1, 1, 0], **told), policy).players == 0
    assert broken(*played_matches(0, line, roles=[-1, 1, 1, 0], **told), policy).players == 4
    assert broken(*played_matches(0, line, roles=[0, 0, 1, 0], **told), policy).players == 4
    assert broken(*played_matches(0, line, **told), PAIRS).players == 0


def twin(matches, tickets, policy):
    """The window, region and avoid rules, one ticket and one player after the other."""
    wronged = []
    for match in range(len(matches)):
        rows = [int(row) for row in matches.ticket[matches.start[match] : matches.start[match + 1]]]
        for row in rows:
            own = range(tickets.start[row], tickets.start[row + 1])
            waited = (matches.time[match] - tickets.queued[row]) / SECOND
            loose = all(tickets.loose[one] for one in own)
            width = {
                one: max(tickets.within[one], policy.width(waited)) if loose else tickets.within[one] for one in own
            }
            bottom = min(tickets.percentile[one] - width[one] for one in own)
            top = max(tickets.percentile[one] + width[one] for one in own)
            names = range(tickets.named_start[row], tickets.named_start[row + 1])
            avoided = {int(tickets.named[name]) for name in names if tickets.met[name] == np.iinfo(np.int64).max}
            bad = False
            for other in rows:
                for one in range(tickets.start[other], tickets.start[other + 1]):
                    if other != row and not bottom <= tickets.percentile[one] <= top:
                        bad = True
                    if int(tickets.player[one]) in avoided:
                        bad = True
            ping = tickets.ping[row]
            if len(ping) and not np.isnan(ping).all():
                region = matches.region[match]
                bad |= region < 0 or not ping[tickets.region_names.index(matches.region_names[region])] < np.inf
            wronged.append(bool(bad))
    return wronged


@pytest.mark.parametrize("seed", range(8))
def test_the_count_is_that_of_a_slow_twin(seed):
    rng = np.random.default_rng(seed)
    tickets, number = [], 0
    for at in range(300):
        members = []
        home = {"eu": 20.0, "us": 90.0} if rng.random() < 0.7 else {}
        for _ in range(rng.integers(1, 4)):
            members.append(
                Member(
                    player=number,
                    percentile=float(np.clip(50 + rng.normal(0, 3), 0, 100)),
                    rating=1500.0,
                    within=float(rng.uniform(0, 9)),
                    loose=bool(rng.random() < 0.7),
                    ping=home,
                    max_ping=float(rng.choice([50.0, 100.0])) if home else np.inf,
                    avoid=tuple(
                        {int(one) for one in rng.integers(0, 600, 3) if one != number and one // 4 != number // 4}
                    ),
                )
            )
            number += 1
        number += -number % 4  # so that nobody avoids their own party
        tickets.append(Ticket(id=at, queued=int(rng.integers(0, 300)) * SECOND, members=tuple(members)))
    order = rng.permutation(300)
    sizes = rng.integers(1, 6, 60)
    sizes = sizes[np.cumsum(sizes) <= 300]
    used = int(sizes.sum())
    matches = RunMatches(
        time=np.full(len(sizes), 300 * SECOND),
        start=starts(sizes),
        ticket=order[:used],
        team=rng.integers(0, 2, used),
        region=rng.integers(-1, 2, len(sizes)),
        role=np.full(900, -1),
        odds=np.full(len(sizes), 0.5),
        region_names=("us", "eu"),
    )
    policy = Policy(steps=((0, 1), (60, 3), (120, 6), (200, 12)))
    columns = Tickets.of(tickets)
    found = broken(matches, columns, policy)
    expected = twin(matches, columns, policy)
    assert 0.1 < np.mean(expected) < 0.95
    assert (found.window | found.region | found.avoid).tolist() == expected
