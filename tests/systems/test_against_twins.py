"""The package's systems against their slow twins in plain Python, on long histories that meet every rule."""

import importlib
import math
import random

import pytest

from fast import Fast
from slow.model import SlowMatch, SlowPlayer, SlowTeam

DAY = 86400.0
PEOPLE = [f"p{number}" for number in range(30)]

# System, parameters
CASES = [
    ("wager", {}),
    ("wager", {"uneven": "mean", "quitter_time": "actual"}),
    ("wager", {"modifier_limit": 1.5, "stake": 0.1}),
    ("wager", {"start": 20.0, "floor": 0.5}),
    ("wager", {"start": 1e9, "stake": 0.123457}),  # far up, where a rank times a mean needs more than 64 bits
    ("scorefactor", {}),
    ("scorefactor", {"spare_favourites": True, "inactivity_rot": True}),
    ("scorefactor", {"start": 1000.0, "k": 60.0, "full_time": 900.0, "min_time": 30.0, "min_share": 0.1}),
    ("prav", {}),
    ("prav", {"share_gain": False}),
    ("prav", {"gain": 1.0, "display": "conservative"}),
    ("prav", {"outcome": "share", "c": 2.0, "start_volatility": 0.7, "start_mean": 0.3}),
    ("battlepoints", {}),
    ("battlepoints", {"lopsided_margin": 4.0, "scale": 250.0}),
    (
        "battlepoints",
        {"brackets": (2100, 2400, 2400), "k": (32, 24, 10, 10), "lopsided": (1, 1, 1, 1), "truncate": True},
    ),
    ("battlepoints", {"start": 1199.0, "k": (90, 60, 40, 20)}),
]


def made_up(system, seed, matches=400):
    """Uneven teams, draws between unequals, three sides and more, idle gaps, quitters, negative and missing values."""
    rng = random.Random(seed)
    time, played = 1e9, []
    skill = {name: rng.gauss(0, 1) for name in PEOPLE}
    for number in range(matches):
        time += rng.choice([60.0, 3600.0, DAY, 45 * DAY * rng.random()])
        sides = 2 if system == "wager" or rng.random() < 0.6 else rng.randint(3, 5)
        sizes = [1] * sides if rng.random() < 0.4 else [rng.randint(1, 4) for _ in range(sides)]
        chosen = rng.sample(PEOPLE, sum(sizes))
        timed, length = rng.random() < 0.8, float(rng.choice([100, 239, 600, 601, 1800]))
        draws = rng.random()
        teams = []
        for size in sizes:
            members, chosen = chosen[:size], chosen[size:]
            place = 1 if draws < 0.1 else rng.randint(1, 3)
            if draws > 0.5 and sides == 2:
                place = 1 if sum(skill[name] for name in members) > 0 else 2
            score = None if draws < 0.2 and system != "prav" else float(rng.choice([0, 0, 1, 2, 5, 8]))
            teams.append(SlowTeam(place, score, [person(rng, name, timed, length) for name in members]))
        if rng.random() < 0.1:  # a team that left entirely
            teams[0] = SlowTeam(1, teams[0].score, [gone(player) for player in teams[0].players])
        if timed and rng.random() < 0.05:  # a team of no time at all
            teams[-1] = SlowTeam(
                teams[-1].place,
                teams[-1].score,
                [SlowPlayer(p.name, p.score, 0.0, p.performance, p.quit) for p in teams[-1].players],
            )
        duration = rng.choice([None, None, length, length + 300]) if system == "scorefactor" else None
        played.append(SlowMatch(str(number), time, duration, teams))
    return played


def person(rng, name, timed, length):
    quits = rng.random() < 0.1
    seconds = length if rng.random() < 0.7 else rng.choice([round(rng.uniform(0, length), 3), length / 2, 119.0])
    performance = None if rng.random() < 0.5 else rng.choice([-1.0, 1.0, round(rng.uniform(-1, 1), 2)])
    score = float(rng.choice([-3, 0, 0, 1, 4, 10, 25]))
    return SlowPlayer(name, score, seconds if timed else None, performance, quits)


def gone(player):
    return SlowPlayer(player.name, player.score, player.seconds, player.performance, quit=True)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("system", "parameters"), CASES)
def test_the_kernel_and_its_twin_agree_on_every_change(system, parameters, seed):
    matches = made_up(system, seed)
    twin = importlib.import_module(f"slow.{system}")
    told = Fast(system).replay(matches, **parameters)
    known = twin.replay(matches, **parameters)
    assert all(math.isfinite(change.after) and math.isfinite(change.expected) for change in told)
    assert len(told) == len(known)
    for mine, his in zip(told, known, strict=True):
        assert (mine.match_id, mine.team, mine.player) == (his.match_id, his.team, his.player)
        if system == "wager":  # whole cents
            assert (mine.before, mine.after) == (his.before, his.after), his
        else:
            assert mine.after == pytest.approx(his.after, rel=1e-9, abs=1e-9), his
        assert mine.expected == pytest.approx(his.expected, rel=1e-9), his
