"""The choice of maps: the same where it is repeated, in turn, and with equal shares over time."""

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from evenmatch.matchmaking import Member, Queue, Ticket, choose_map, propose
from evenmatch.matchmaking.attributes import common_maps, fields_of, mask_of
from evenmatch.matchmaking.tick import _hash, cells_of, shuffled
from evenmatch.matchmaking.tickets import TicketChoice
from evenmatch.policy import Policy

MAPS = ["dust", "nuke", "mirage", "train", "inferno"]
SECOND = 1_000_000


def course(matches, seed, accepted=lambda number: MAPS):
    played: list[str] = []
    for number in range(matches):
        played.append(choose_map(accepted(number), played, seed, 3 * number))
    return played


def test_the_hash_is_that_of_the_paper():
    """The first outputs of splitmix64 from 0, as published with the algorithm (Vigna, splitmix64.c)."""
    assert _hash(0) == 0xE220A8397B1DCDAF
    assert _hash(0x9E3779B97F4A7C15) == 0x6E789E6AA1B965F4


def test_maps_that_nobody_vetoes_have_equal_shares():
    """1,000 matches on five maps: by luck alone the deviation from 200 would be sqrt(1000 * 0.2 * 0.8) = 12.6."""
    counts = np.array([list(Counter(course(1000, seed)).values()) for seed in range(20)])
    assert counts.shape == (20, 5)
    assert np.sqrt(np.mean((counts - 200) ** 2)) < 9.0
    assert np.abs(counts.mean(axis=0) - 200).max() < 6.0


def test_a_map_comes_sooner_again_the_longer_it_has_waited():
    """By hand: never played of three, the weights are 3, 2 and 1 after dust and nuke; nuke was the last."""
    drawn = Counter(choose_map(MAPS[:3], ["dust", "nuke"], 7, number) for number in range(60_000))
    assert drawn["mirage"] / 60_000 == pytest.approx(3 / 6, abs=0.01)
    assert drawn["dust"] / 60_000 == pytest.approx(2 / 6, abs=0.01)
    assert drawn["nuke"] / 60_000 == pytest.approx(1 / 6, abs=0.01)


def test_a_map_that_half_of_the_matches_veto_is_played_more_often_when_it_can_be():
    """Were the choice even, dust would have a fifth of the half in which it is accepted: 10 %."""
    rng = np.random.default_rng(3)
    vetoed = rng.random(6000) < 0.5
    played = course(6000, 1, lambda number: MAPS[1:] if vetoed[number] else MAPS)
    assert not any(name == "dust" for name, without in zip(played, vetoed, strict=True) if without)
    counts = Counter(played)
    assert 0.12 < counts["dust"] / 6000 < 0.2
    assert max(counts[name] for name in MAPS[1:]) - min(counts[name] for name in MAPS[1:]) < 80


def test_another_process_chooses_the_same():
    program = (
        "from evenmatch.matchmaking import choose_map\n"
        f"print([choose_map({MAPS!r}, {MAPS[:2]!r}, 5, n) for n in range(50)])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == str([choose_map(MAPS, MAPS[:2], 5, number) for number in range(50)])


def test_the_map_that_is_searched_first_changes_with_time():
    """A tick searches the matches of one map after another; each map is first as often as the others."""
    assert sorted(shuffled(5, 1, 12)) == [0, 1, 2, 3, 4]
    policy = Policy(team_size=1, maps=MAPS, vetoes=2)
    fields = fields_of(policy)
    masks = [mask_of(TicketChoice((), vetoes), fields) for vetoes in [(), *((name,) for name in MAPS)]]
    accepts = np.array(masks * 3, np.uint64)
    first = Counter()
    for second in range(2000):
        cells = cells_of(accepts, fields, policy, second * SECOND)
        first[common_maps(int(cells[0]), fields)] += 1
    assert first.keys() == {(name,) for name in MAPS}
    assert all(abs(count - 400) < 80 for count in first.values())


def test_over_many_ticks_maps_have_equal_shares_although_players_veto():
    """Twelve players a second join and veto two of five maps at random: no map is preferred."""
    policy = Policy(team_size=2, maps=MAPS, vetoes=2, max_odds=None, party_wait=0.0)
    rng, played, queue, number = np.random.default_rng(5), [], Queue(), 0
    for second in range(400):
        now = 10**15 + second * SECOND
        for _ in range(12):
            vetoes = tuple(MAPS[place] for place in rng.choice(5, 2, replace=False).tolist())
            member = Member(player=number, percentile=50.0, rating=1500.0, vetoes=vetoes, within=5.0)
            queue.join(Ticket(id=number, queued=now, members=(member,)))
            number += 1
        found = propose(queue, now, policy)
        for match in found:
            played.append(choose_map(match.maps, played, policy.map_seed, match.tickets[0]))
        queue.leave_all(found.ticket)
    counts = Counter(played)
    assert len(played) > 1000
    for name in MAPS:
        assert counts[name] / len(played) == pytest.approx(0.2, abs=0.03), counts
