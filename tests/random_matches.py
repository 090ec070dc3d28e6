"""Made-up matches that meet every rule of the systems, for the slow twins and for the package."""

import random
from dataclasses import replace

from evenmatch import from_matches
from package_systems import as_match
from reference.model import SlowMatch, SlowPlayer, SlowTeam

DAY = 86400.0
DUELLISTS = ("wager", "trophies")  # rate matches of exactly two teams
TIMED = ("scorefactor", "trueskill", "wenglin")  # go by the length of the match
PEOPLE = [f"p{number}" for number in range(30)]


CONTEXT = (("dust", "mirage", "nuke"), ("3", "5"), tuple("abcdefghijkl"))  # values of context columns


def with_context(matches, seed):
    """The same matches with context columns; the second column has one value at first."""
    rng = random.Random(seed)
    return [
        replace(
            match,
            context=tuple(values[0] if c == 1 and at < 99 else rng.choice(values) for c, values in enumerate(CONTEXT)),
        )
        for at, match in enumerate(matches)
    ]


def with_entry(matches, seed):
    """The same matches with a number known about most players, one of them far from the others."""
    rng = random.Random(seed)
    numbers = {
        name: None if rng.random() < 0.2 else 1500 + 100 * rng.choice([-2, -1, 0, 0.5, 1, 50]) for name in PEOPLE
    }
    return [
        replace(
            match,
            teams=[replace(team, players=[told(p, numbers[p.name]) for p in team.players]) for team in match.teams],
        )
        for match in matches
    ]


def told(player, number):
    return replace(player, entry=number)


def random_matches(system, seed, matches=400):
    """Uneven teams, draws between unequals, three sides and more, idle gaps, quitters, negative and missing values."""
    rng = random.Random(seed)
    time, played = 1e9, []
    skill = {name: rng.gauss(0, 1) for name in PEOPLE}
    for number in range(matches):
        time += rng.choice([60.0, 3600.0, DAY, 45 * DAY * rng.random()])
        sides = 2 if system in DUELLISTS or rng.random() < 0.6 else rng.randint(3, 5)
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
        duration = rng.choice([None, None, length, length + 300]) if system in TIMED else None
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


def random_table(system, seed, matches=300):
    """The same as a table of the package."""
    return from_matches(as_match(match, number) for number, match in enumerate(random_matches(system, seed, matches)))
