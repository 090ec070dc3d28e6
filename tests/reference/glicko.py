"""Section 5, `glicko` (Glickman 1995), match by match: the deviation grows with the time between matches."""

import math
from dataclasses import dataclass

from .elo import mean, result, rivals_of
from .model import SlowChange, SlowMatch, SlowTeam

DAY = 86400.0
Q = math.log(10) / 400


@dataclass
class Belief:
    """What is kept of a player. `last_played` in seconds, None before the first match."""

    rating: float
    deviation: float
    last_played: float | None = None


def replay(
    matches: list[SlowMatch],
    *,
    start: float = 1500.0,
    deviation: float = 350.0,
    c: float = 8.1,
    period_days: float = 1.0,
    min_deviation: float = 30.0,
    advantage: float = 0.0,
    compared_as: str = "player",
    state: dict[str, dict] | None = None,
) -> list[SlowChange]:
    """One change per match and player. `state`: {player: {"rating": 1400, "deviation": 30, "last_played": 0.0}}.

    Fields of `state` that are left out are a newcomer's.
    """
    newcomer = {"rating": float(start), "deviation": float(deviation)}
    kept = {name: Belief(**{**newcomer, **fields}) for name, fields in (state or {}).items()}
    changes = []
    for match in matches:
        now = {}
        for team in match.teams:
            for player in team.players:
                old = kept.setdefault(player.name, Belief(**newcomer))
                periods = 0.0 if old.last_played is None else (match.time - old.last_played) / (DAY * period_days)
                grown = min(math.sqrt(old.deviation**2 + c**2 * periods), deviation)
                now[player.name] = Belief(old.rating, grown)

        after = {}
        for index, team in enumerate(match.teams):
            odds = [
                win_chance(team, match.teams[other], lead, now) for other, lead in rivals_of(match, index, advantage)
            ]
            for player in team.players:
                own = now[player.name]
                opponents = []
                for other, lead in rivals_of(match, index, advantage):
                    rival = match.teams[other]
                    opponents.append((team_rating(rival, now) - lead, team_deviation(rival, now), result(team, rival)))
                # Compared as a team, the player is surprised as the team's mean rating would be.
                mates = team_rating(team, now) - own.rating if compared_as == "team" else 0.0
                opponents = [(rating - mates, spread, score) for rating, spread, score in opponents]
                new_rating, new_deviation = rate_period(own.rating, own.deviation, opponents)
                after[player.name] = Belief(new_rating, max(min_deviation, new_deviation), match.time)
                changes.append(SlowChange(match.id, player.name, index, own.rating, new_rating, mean(odds)))
        kept.update(after)
    return changes


def rate_period(rating: float, deviation: float, opponents: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Rating and deviation after a period against opponents (rating, deviation, score), from those at its start.

    `deviation` is the one that has already grown since the period before.
    """
    pulls, precisions = [], [1 / deviation**2]
    for r, rd, s in opponents:
        lead = g(rd) * (rating - r)
        pulls.append(g(rd) * (s - curve(lead)))
        precisions.append(Q**2 * g(rd) ** 2 * curve(lead) * curve(-lead))  # 1 - E, where E is nearly 1 too
    variance = 1 / math.fsum(precisions)
    return rating + Q * variance * math.fsum(pulls), math.sqrt(variance)


def g(deviation: float) -> float:
    return 1 / math.sqrt(1 + 3 * Q**2 * deviation**2 / math.pi**2)


def curve(points: float) -> float:
    """1 / (1 + 10^(-points/400)), written so that no power overflows."""
    if points < 0:
        odds = 10.0 ** (points / 400)
        return odds / (odds + 1)
    return 1 / (1 + 10.0 ** (-points / 400))


def win_chance(team: SlowTeam, rival: SlowTeam, lead: float, now: dict[str, Belief]) -> float:
    both = math.hypot(team_deviation(team, now), team_deviation(rival, now))
    return curve(g(both) * (team_rating(team, now) - team_rating(rival, now) + lead))


def team_rating(team: SlowTeam, now: dict[str, Belief]) -> float:
    return mean([now[player.name].rating for player in team.players])


def team_deviation(team: SlowTeam, now: dict[str, Belief]) -> float:
    """The root of the mean square, of the average member."""
    return math.sqrt(mean([now[player.name].deviation ** 2 for player in team.players]))
