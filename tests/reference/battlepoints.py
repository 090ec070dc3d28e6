"""Section 4, `battlepoints`: Elo with brackets, one pair of teams after the other."""

import math

from .elo import rivals_of
from .model import SlowChange, SlowMatch, SlowTeam


def replay(
    matches: list[SlowMatch],
    *,
    start: float = 1000.0,
    floor: float = 700.0,
    scale: float = 400.0,
    brackets: tuple[float, ...] = (1200, 1500, 2000),
    k: tuple[float, ...] = (32, 28, 24, 16),
    lopsided: tuple[float, ...] = (1.2, 1.5, 1.8, 2.1),
    lopsided_margin: float | None = None,
    truncate: bool = False,
    provisional_games: int = 0,
    provisional_k: float = 64.0,
    advantage: float = 0.0,
    state: dict[str, dict] | None = None,
) -> list[SlowChange]:
    """One change per match and player. `state`: {player: {"rating": 1250}}."""
    ratings = {name: float(fields["rating"]) for name, fields in (state or {}).items()}
    games: dict[str, int] = {}
    changes = []
    for match in matches:
        for team in match.teams:
            for player in team.players:
                ratings.setdefault(player.name, float(start))

        after = {}
        for index, team in enumerate(match.teams):
            rivals = [(match.teams[other], lead) for other, lead in rivals_of(match, index, advantage)]
            own_mean = mean_rating(team, ratings)
            odds = [win_chance(own_mean + lead, mean_rating(rival, ratings), scale) for rival, lead in rivals]
            expected = sum(odds) / len(rivals)
            for player in team.players:
                rating = ratings[player.name]
                own_bracket = bracket(rating, brackets)
                own_k = provisional_k if games.get(player.name, 0) < provisional_games else k[own_bracket]
                total = 0.0
                for rival, lead in rivals:
                    e = win_chance(rating + lead, mean_rating(rival, ratings), scale)
                    m = lopsided[own_bracket] if is_lopsided(team, rival, lopsided_margin) else 1.0
                    total += own_k * (result(team, rival) - e) * m
                new = max(floor, rating + total / len(rivals))
                if truncate:
                    # "Result truncated to an integer": the floor is part of the result.
                    new = float(math.trunc(new))
                after[player.name] = new
                changes.append(SlowChange(match.id, player.name, index, rating, new, expected))
        ratings.update(after)
        for name in after:
            games[name] = games.get(name, 0) + 1
    return changes


def bracket(rating: float, brackets: tuple[float, ...]) -> int:
    b = math.floor(rating)
    for index, bound in enumerate(brackets):
        if b <= bound:
            return index
    return len(brackets)


def win_chance(own: float, rival: float, scale: float) -> float:
    """1 / (1 + 10^((rival - own)/scale)), written so that no power overflows."""
    exponent = (rival - own) / scale
    if exponent > 0:
        odds = 10.0**-exponent
        return odds / (odds + 1)
    return 1 / (1 + 10.0**exponent)


def mean_rating(team: SlowTeam, ratings: dict[str, float]) -> float:
    return sum(ratings[player.name] for player in team.players) / len(team.players)


def result(team: SlowTeam, rival: SlowTeam) -> float:
    if team.place == rival.place:
        return 0.5
    return 1.0 if team.place < rival.place else 0.0


def is_lopsided(team: SlowTeam, rival: SlowTeam, margin: float | None) -> bool:
    """Whether the pair was; the winner is the better placed, whatever the scores say."""
    if team.place == rival.place or team.score is None or rival.score is None:
        return False
    winner, loser = (team, rival) if team.place < rival.place else (rival, team)
    if margin is not None:
        return winner.score - loser.score >= margin
    return winner.score > 0 and loser.score == 0
