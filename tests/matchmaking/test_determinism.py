"""The same tickets, moment and policy give the same matches, whatever happened to the queue before."""

import hashlib
import os
import random
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenmatch.matchmaking import choose_map
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import Tickets
from evenmatch.policy import Policy, presets
from reference import matchmaking as slow

SECOND = 1_000_000
NOW = 1_700_000_000 * SECOND
POLICIES = {
    "pairs": Policy(team_size=2, overdue_after=100.0),
    "roles": Policy(team_size=3, roles={"healer": 1}, max_odds=None),
    "three teams": Policy(team_size=2, teams=3, max_ping=90.0, max_odds=None),
    "smaller teams": Policy(team_size=4, min_team_size=2, smaller_after=30.0, max_wait=400.0),
    "sixes": presets()["balanced"],
}
fuzz = settings(deadline=None, max_examples=10, suppress_health_check=list(HealthCheck))
every_policy = pytest.mark.parametrize("name", POLICIES)


def proposal_values(found: Proposals):
    """Everything that proposals say, to the last bit; regions by name, since a queue numbers them as they come."""
    columns = {one.name: getattr(found, one.name) for one in fields(Proposals) if one.name != "region_names"}
    columns["region"] = np.array([*found.region_names, "anywhere"])[columns["region"]]
    return {
        name: [column.dtype.kind, *column.tolist()] if isinstance(column, np.ndarray) else column
        for name, column in columns.items()
    }


def joined_at_once(tickets):
    queue = Queue()
    queue.join_all(Tickets.of(tickets))
    return queue


def joined_one_by_one(tickets, seed):
    queue = Queue()
    for ticket in random.Random(seed).sample(tickets, len(tickets)):
        queue.join(ticket)
    return queue


def joined_among_others(tickets, seed):
    """Slots, pools, bits of roles and regions as a long day leaves them: others came and went, and some came twice."""
    rng, queue = random.Random(seed), Queue()
    others = [
        replace(
            ticket,
            id=ticket.id + 10**6,
            members=tuple(replace(member, player=member.player + 10**6) for member in ticket.members),
        )
        for ticket in slow.made_up(seed + 1, 150, NOW)
    ]
    stay = rng.sample(tickets, len(tickets))
    queue.join_all(Tickets.of(others[:100]))
    propose(queue, NOW, POLICIES["pairs"])
    for at, ticket in enumerate(stay):
        queue.join(ticket)
        if at < 100:
            queue.leave(others[at].id)
        if at == 10:
            queue.join_all(Tickets.of(others[100:]))
            queue.order()
        if at % 7 == 3:
            back = queue.take([ticket.id, stay[at - 1].id])
            queue.order()
            queue.join_all(back)
    queue.leave_all([one for one in queue.ids if one >= 10**6])
    return queue


@every_policy
def test_the_way_into_the_queue_changes_nothing(name):
    policy, made = POLICIES[name], 0

    @fuzz
    @given(seed=st.integers(0, 2**32 - 2), count=st.integers(30, 110))
    def check(seed, count):
        nonlocal made
        tickets = slow.made_up(seed, count, NOW, largest=3)
        found = propose(joined_at_once(tickets), NOW, policy)
        for queue in (joined_one_by_one(tickets, seed), joined_among_others(tickets, seed)):
            assert proposal_values(propose(queue, NOW, policy)) == proposal_values(found)
        made += len(found)

    check()
    assert made > 10


@every_policy
def test_looking_twice_gives_the_same_and_leaves_the_queue_as_it_is(name):
    queue = joined_at_once(slow.made_up(7, 90, NOW, largest=3))
    before = vars(queue.tickets_of(queue.ids))
    first, second = (
        proposal_values(propose(queue, NOW, POLICIES[name])),
        proposal_values(propose(queue, NOW, POLICIES[name])),
    )
    assert first == second
    assert first["ticket"][1:]
    after = vars(queue.tickets_of(queue.ids))
    for column, values in before.items():
        np.testing.assert_array_equal(values, after[column])


@every_policy
def test_other_numbers_for_players_change_nothing(name):
    """Players' numbers stand in no tie: only who names whom counts."""
    policy, tickets = POLICIES[name], slow.made_up(11, 90, NOW, largest=3)
    number = {at: (at * 7919 + 13) % 100_003 + 2**40 for at in range(400)}
    other = [
        replace(
            ticket,
            members=tuple(
                replace(
                    member,
                    player=number[member.player],
                    avoid=tuple(number[one] for one in member.avoid),
                    met=tuple(one._replace(player=number[one.player]) for one in member.met),
                )
                for member in ticket.members
            ),
        )
        for ticket in tickets
    ]
    found, renamed = propose(joined_at_once(tickets), NOW, policy), propose(joined_at_once(other), NOW, policy)
    assert len(found) > 0
    expected = proposal_values(found)
    expected["player"] = ["i", *(number[player] for player in found.player.tolist())]
    assert proposal_values(renamed) == expected


@pytest.mark.parametrize("days", [-10_000, 1, 20_000])
def test_only_the_time_that_passed_counts(days):
    """The same queue on another day: the calendar enters no decision, nor does rounding far from 1970."""
    shift = days * 86_400 * SECOND
    tickets = slow.made_up(5, 90, NOW, largest=3)
    later = [
        replace(
            ticket,
            queued=ticket.queued + shift,
            members=tuple(
                replace(member, met=tuple(one._replace(time=one.time + shift) for one in member.met))
                for member in ticket.members
            ),
        )
        for ticket in tickets
    ]
    for policy in POLICIES.values():
        found = proposal_values(propose(joined_at_once(tickets), NOW, policy))
        assert proposal_values(propose(joined_at_once(later), NOW + shift, policy)) == found


DIGEST = """
import sys
sys.path[:0] = {path!r}
from matchmaking.test_determinism import digest
print(digest())
"""


def digest():
    """What all policies decide about a few queues and which maps are chosen, in sixteen letters."""
    heard = hashlib.sha256()
    for seed in range(3):
        tickets = slow.made_up(seed, 80, NOW, largest=3)
        for policy in POLICIES.values():
            heard.update(repr(proposal_values(propose(joined_at_once(tickets), NOW, policy))).encode())
    maps = ["dust", "nuke", "mirage", "train", "inferno"]
    heard.update(repr([choose_map(maps, maps[:2], 5, number) for number in range(50)]).encode())
    return heard.hexdigest()[:16]


def test_another_process_with_another_order_of_hashes_decides_the_same():
    path = [str(Path(__file__).parents[1]), *(one for one in sys.path if one)]
    run = subprocess.run(
        [sys.executable, "-c", DIGEST.format(path=path)],
        env={**os.environ, "PYTHONHASHSEED": "4242"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.strip() == digest(), run.stderr
