"""The choice of maps: the same where it is repeated, in turn, and with equal shares over time."""

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


def test_the_only_map_is_played_and_seeds_give_other_courses():
    assert course(20, 1, lambda _: ["train"]) == ["train"] * 20
    assert course(40, 1) != course(40, 2)
    assert course(40, 1) == course(40, 1)


def test_only_the_latest_matches_count():
    old = ["nuke"] * 50
    recent = ["dust", "mirage"] * 50
    for number in range(50):
        assert choose_map(MAPS, old + recent, 1, number) == choose_map(MAPS, recent, 1, number)


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


def most_even(matches, favourite, maps=MAPS, seed=1):
    """The maps of matches in which favourite(number, played) is the favourite's chance on each map."""
    played: list[str] = []
    for number in range(matches):
        played.append(choose_map(maps, played, seed, number, favourite(number, played)))
    return played


def test_the_most_even_of_the_accepted_maps_is_played_and_near_ones_are_drawn():
    """By hand: one percentage point is near, two are not; nothing was played yet."""
    sure = [choose_map(MAPS, [], 1, number, [0.7, 0.66, 0.54, 0.8, 0.56]) for number in range(200)]
    assert set(sure) == {"mirage"}
    near = Counter(choose_map(MAPS, [], 1, number, [0.7, 0.545, 0.54, 0.55, 0.56]) for number in range(3000))
    assert near.keys() == {"nuke", "mirage", "train"}
    assert all(abs(count - 1000) < 100 for count in near.values())
    assert choose_map(["dust", "train"], [], 1, 5, [0.7, 0.8]) == "dust"


def test_a_map_with_twice_the_matches_of_another_must_wait():
    """Of the latest 8 matches, for two maps: n + 1 may be up to twice m + 1, as 5 + 1 and 2 + 1."""
    even = [0.5, 0.9]
    assert choose_map(["dust", "nuke"], ["nuke"] * 2 + ["dust"] * 4, 1, 1, even) == "dust"
    assert choose_map(["dust", "nuke"], ["nuke"] * 2 + ["dust"] * 5 + ["mill"], 1, 1, even) == "dust"
    assert choose_map(["dust", "nuke"], ["nuke"] * 2 + ["dust"] * 6, 1, 1, even) == "nuke"
    assert choose_map(["dust", "nuke"], ["nuke"] * 40 + ["dust"] * 6 + ["nuke"] * 2, 1, 1, even) == "nuke"


def always(number, played):
    return [0.5, 0.53, 0.56, 0.59, 0.62]


def taking_turns(number, played):
    """For 70 matches the same map is by far the most even."""
    return [0.5 + 0.05 * ((place + number // 70) % 5) for place in range(5)]


def most_played(number, played):
    """The map that was played most lately is the most even: the worst case."""
    lately = Counter(played[-100:])
    return [0.9 - lately[name] / 1000 * 4 for name in MAPS]


def drawn(number, played):
    return np.random.default_rng(number).uniform(0.5, 0.8, 5).tolist()


@pytest.mark.parametrize("favourite", [always, taking_turns, most_played, drawn])
def test_no_map_is_played_always_and_none_is_forgotten(favourite):
    """Were there no bound, `always` would play dust only. Twice as often as four others would be 33 of 100."""
    for seed in range(3):
        played = most_even(2000, favourite, seed=seed)
        for begin in range(0, 1900, 20):
            counts = Counter(played[begin : begin + 100])
            assert 7 <= min(counts[name] for name in MAPS) <= max(counts.values()) <= 34, (begin, counts)
        for begin in range(1900):
            assert len(set(played[begin : begin + 9])) > 1


@pytest.mark.parametrize("count", [2, 3, 7, 12])
def test_with_any_number_of_maps_the_most_even_has_less_than_twice_its_share(count):
    maps = [f"map {place}" for place in range(count)]
    played = most_even(2400, lambda number, _: [0.5 + 0.02 * place for place in range(count)], maps)
    shares = sorted(counted / 2400 * count for counted in Counter(played).values())
    assert len(shares) == count
    assert 0.35 < shares[0] < 1 < shares[-1] < 2


def test_only_accepted_maps_are_played_and_without_odds_the_choice_is_the_old_one():
    """Whatever is vetoed and however even it would be; the old choice is fixed by test_determinism."""
    rng, played = np.random.default_rng(8), []
    for number in range(2000):
        maps = [MAPS[place] for place in np.sort(rng.choice(5, int(rng.integers(1, 6)), replace=False)).tolist()]
        chosen = choose_map(maps, played, 1, number, rng.uniform(0.5, 1, len(maps)).tolist())
        assert chosen in maps
        assert choose_map(maps, played, 1, number, [0.6] * len(maps)) in maps
        played.append(chosen)
    assert min(Counter(played).values()) > 250
