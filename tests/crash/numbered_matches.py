"""The matches that every process of these tests knows by number: the same number is the same match."""

from datetime import UTC, datetime, timedelta
from random import Random

from evenmatch import Match, Team

LADDER = "default"
BEGIN = datetime(2016, 1, 1, tzinfo=UTC)
PLAYERS = 40
# Sizes and places of the teams: duels, uneven teams, an unequal draw, free-for-alls with a tie and a gap in the places.
SHAPES = (
    ((1, 1), (1, 2)),
    ((1, 1), (1, 1)),
    ((3, 2), (2, 1)),
    ((4, 4), (1, 2)),
    ((1, 1, 1), (1, 2, 2)),
    ((1, 1, 2, 1), (2, 1, 4, 2)),
)


def numbered_match(number: int, ladder: str = LADDER, players: int = PLAYERS) -> Match:
    """Match `m<number>`; some are reported late, and some come after an idle month."""
    chance = Random(number)
    sizes, places = chance.choice(SHAPES)
    who = iter(chance.sample(range(players), sum(sizes)))
    teams = [
        Team.of(*(f"player {next(who)}" for _ in range(size)), place=place)
        for size, place in zip(sizes, places, strict=True)
    ]
    late = chance.choice((0, 0, 0, 7200))
    minutes = number * 3 + number // 1000 * 43_200
    return Match(f"m{number}", BEGIN + timedelta(minutes=minutes, seconds=-late), tuple(teams), ladder)


def numbered_matches(first: int, end: int, ladder: str = LADDER) -> list[Match]:
    return [numbered_match(number, ladder) for number in range(first, end)]


def number_of(match_id: str) -> int:
    return int(match_id[1:])
