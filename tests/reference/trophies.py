"""Section 5, `trophies` (after Clash of Clans): the first-listed team attacks, and stakes by the lead in trophies."""

import math

from .model import SlowChange, SlowMatch, SlowTeam

MOST = 59.0  # trophies that one attack can move


def replay(
    matches: list[SlowMatch],
    *,
    start: float = 0.0,
    floor: float = 0.0,
    attack: str = "first",
    state: dict[str, dict] | None = None,
) -> list[SlowChange]:
    """One change per match and player. `state`: {player: {"rating": 1250}}."""
    ratings = {name: float(fields["rating"]) for name, fields in (state or {}).items()}
    changes = []
    for match in matches:
        for team in match.teams:
            for player in team.players:
                ratings.setdefault(player.name, float(start))

        first, second = match.teams
        lead = mean_rating(first, ratings) - mean_rating(second, ratings)
        if attack == "first":
            win, defeat = gain(lead), loss(lead)
        else:
            # Half an attack of the winner and half a defence against the loser's.
            win, defeat = (gain(lead) + loss(-lead)) / 2, (gain(-lead) + loss(lead)) / 2
        expected = 0.5 if win + defeat == 0 else defeat / (win + defeat)

        moved = 0.0
        if first.place < second.place:
            moved = rounded(win)
        elif first.place > second.place:
            moved = -rounded(defeat)

        after = {}
        for index, (team, change, odds) in enumerate([(first, moved, expected), (second, -moved, 1 - expected)]):
            for player in team.players:
                new = max(floor, ratings[player.name] + change)
                after[player.name] = new
                changes.append(SlowChange(match.id, player.name, index, ratings[player.name], new, odds))
        ratings.update(after)
    return changes


def gain(lead: float) -> float:
    """What an attacker who is so far ahead wins."""
    return within(-0.63599 + 60.07066 / (1 + 0.991798 * power(0.00576 * lead)))


def loss(lead: float) -> float:
    """What an attacker who is so far ahead loses."""
    return within(39.0907 - 39.0619 / (1 + 0.993 * power(0.00595 * lead)))


def power(x: float) -> float:
    """e^x, infinite where a float cannot hold it."""
    return math.inf if x > 700 else math.exp(x)


def within(stake: float) -> float:
    return min(max(stake, 0.0), MOST)


def rounded(stake: float) -> float:
    """Half upwards: a stake is never negative."""
    return float(math.floor(stake + 0.5))


def mean_rating(team: SlowTeam, ratings: dict[str, float]) -> float:
    return math.fsum(ratings[player.name] for player in team.players) / len(team.players)
