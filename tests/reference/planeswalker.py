"""Section 5, `planeswalker`: points for taking part, winning and drawing, which never fall."""

import math

from .model import SlowChange, SlowMatch, SlowTeam

# Players of the event from which on taking part is worth so many points
PARTICIPATION = [(2048, 9), (1024, 8), (512, 7), (256, 6), (128, 5), (64, 4), (32, 3), (16, 2), (0, 1)]


def replay(
    matches: list[SlowMatch],
    *,
    multiplier: float = 1.0,
    start: float = 0.0,
    sharpness: float = 1.0,
    prior: float = 1.0,
    state: dict[str, dict] | None = None,
) -> list[SlowChange]:
    """One change per match and player. `state`: {player: {"rating": 120}}."""
    points = {name: float(fields["rating"]) for name, fields in (state or {}).items()}
    changes = []
    for match in matches:
        for team in match.teams:
            for player in team.players:
                points.setdefault(player.name, float(start))

        size = sum(len(team.players) for team in match.teams)
        after = {}
        for index, team in enumerate(match.teams):
            rivals = [rival for other, rival in enumerate(match.teams) if other != index]
            wins = sum(1 for rival in rivals if team.place < rival.place)
            draws = sum(1 for rival in rivals if team.place == rival.place)
            earned = (participation(size) + 3 * wins + draws) * multiplier
            own = (mean_points(team, points) + prior) ** sharpness
            shares = []
            for rival in rivals:
                theirs = (mean_points(rival, points) + prior) ** sharpness
                shares.append(own / (own + theirs))
            expected = math.fsum(shares) / len(shares)
            for player in team.players:
                before = points[player.name]
                after[player.name] = before + earned
                changes.append(SlowChange(match.id, player.name, index, before, before + earned, expected))
        points.update(after)
    return changes


def participation(players: int) -> int:
    return next(worth for size, worth in PARTICIPATION if players >= size)


def mean_points(team: SlowTeam, points: dict[str, float]) -> float:
    return math.fsum(points[player.name] for player in team.players) / len(team.players)
