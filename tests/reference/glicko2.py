"""Section 5, `glicko2` (Glickman 2013), match by match: the deviation grows with the time between matches."""

import math
from dataclasses import dataclass

from .elo import mean, result, rivals_of
from .model import SlowChange, SlowMatch, SlowTeam

DAY = 86400.0
SCALE = 173.7178  # points to one of the paper's units
MIDDLE = 1500.0
NEAR = 1e-6  # the paper's epsilon


@dataclass
class Belief:
    """What is kept of a player, in points. `last_played` in seconds, None before the first match."""

    rating: float
    deviation: float
    volatility: float
    last_played: float | None = None


@dataclass(frozen=True)
class Level:
    """A player, or a team's average member, in the paper's units at the time of a match."""

    mu: float
    phi: float


def replay(
    matches: list[SlowMatch],
    *,
    start: float = 1500.0,
    deviation: float = 350.0,
    volatility: float = 0.06,
    tau: float = 0.5,
    min_deviation: float = 30.0,
    period_days: float = 1.0,
    advantage: float = 0.0,
    compared_as: str = "player",
    state: dict[str, dict] | None = None,
) -> list[SlowChange]:
    """One change per match and player.

    `state`: {player: {"rating": 1400, "deviation": 30, "volatility": 0.06, "last_played": 0.0}}; fields that are left
    out are a newcomer's.
    """
    newcomer = {"rating": float(start), "deviation": float(deviation), "volatility": float(volatility)}
    kept = {name: Belief(**{**newcomer, **fields}) for name, fields in (state or {}).items()}
    changes = []
    for match in matches:
        now = {}
        for team in match.teams:
            for player in team.players:
                old = kept.setdefault(player.name, Belief(**newcomer))
                periods = 0.0 if old.last_played is None else (match.time - old.last_played) / (DAY * period_days)
                phi = math.sqrt((old.deviation / SCALE) ** 2 + periods * old.volatility**2)
                now[player.name] = Level((old.rating - MIDDLE) / SCALE, min(phi, deviation / SCALE))

        after = {}
        for index, team in enumerate(match.teams):
            odds = [
                win_chance(team, match.teams[other], lead, now) for other, lead in rivals_of(match, index, advantage)
            ]
            for player in team.players:
                old, own = kept[player.name], now[player.name]
                opponents = []
                for other, lead in rivals_of(match, index, advantage):
                    rival = average(match.teams[other], now)
                    opponents.append((Level(rival.mu - lead / SCALE, rival.phi), result(team, match.teams[other])))
                meeting = average(team, now) if compared_as == "team" else own
                precision, pull = evidence(meeting, opponents)
                new_volatility = calmed(own.phi, old.volatility, precision, pull, tau)
                variance = 1 / (1 / own.phi**2 + precision)
                new_rating = MIDDLE + SCALE * (own.mu + variance * pull)
                new_deviation = max(min_deviation, SCALE * math.sqrt(variance))
                after[player.name] = Belief(new_rating, new_deviation, new_volatility, match.time)
                changes.append(SlowChange(match.id, player.name, index, old.rating, new_rating, mean(odds)))
        kept.update(after)
    return changes


def rate_period(
    rating: float, deviation: float, volatility: float, opponents: list[tuple[float, float, float]], tau: float = 0.5
) -> tuple[float, float, float]:
    """Rating, deviation, volatility after a period against opponents (rating, deviation, score): the paper's steps.

    The deviation grows inside, by one period.
    """
    own = Level((rating - MIDDLE) / SCALE, deviation / SCALE)
    if not opponents:
        return rating, SCALE * math.hypot(own.phi, volatility), volatility
    levels = [(Level((r - MIDDLE) / SCALE, rd / SCALE), s) for r, rd, s in opponents]
    precision, pull = evidence(own, levels)
    new_volatility = calmed(own.phi, volatility, precision, pull, tau)
    grown = math.hypot(own.phi, new_volatility)
    variance = 1 / (1 / grown**2 + precision)
    return MIDDLE + SCALE * (own.mu + variance * pull), SCALE * math.sqrt(variance), new_volatility


def evidence(own: Level, opponents: list[tuple[Level, float]]) -> tuple[float, float]:
    """1/v and the sum of g(s - E): steps 3 and 4."""
    precisions, pulls = [], []
    for rival, s in opponents:
        lead = g(rival.phi) * (own.mu - rival.mu)
        precisions.append(g(rival.phi) ** 2 * curve(lead) * curve(-lead))  # 1 - E, where E is nearly 1 too
        pulls.append(g(rival.phi) * (s - curve(lead)))
    return math.fsum(precisions), math.fsum(pulls)


def calmed(phi: float, sigma: float, precision: float, pull: float, tau: float) -> float:
    """The new volatility: step 5, by the Illinois method in the paper's order."""
    v = 1 / precision
    delta = v * pull
    a = math.log(sigma**2)

    def f(x: float) -> float:
        power = math.exp(x)
        return power * (delta**2 - phi**2 - v - power) / (2 * (phi**2 + v + power) ** 2) - (x - a) / tau**2

    low = a  # the paper's A
    if delta**2 > phi**2 + v:
        high = math.log(delta**2 - phi**2 - v)
    else:
        steps = 1
        while f(a - steps * tau) < 0:
            steps += 1
        high = a - steps * tau

    f_low, f_high = f(low), f(high)
    while abs(high - low) > NEAR:
        x = low + (low - high) * f_low / (f_high - f_low)
        f_x = f(x)
        # "< 0" in 2013; with it a root that is met exactly is never left, so the paper has had "<= 0" since 2022.
        if f_x * f_high <= 0:
            low, f_low = high, f_high
        else:
            f_low /= 2
        high, f_high = x, f_x
    return math.exp(low / 2)


def g(phi: float) -> float:
    return 1 / math.sqrt(1 + 3 * phi**2 / math.pi**2)


def curve(x: float) -> float:
    """1 / (1 + e^-x), written so that no power overflows."""
    if x < 0:
        odds = math.exp(x)
        return odds / (odds + 1)
    return 1 / (1 + math.exp(-x))


def win_chance(team: SlowTeam, rival: SlowTeam, lead: float, now: dict[str, Level]) -> float:
    a, b = average(team, now), average(rival, now)
    return curve(g(math.hypot(a.phi, b.phi)) * (a.mu - b.mu + lead / SCALE))


def average(team: SlowTeam, now: dict[str, Level]) -> Level:
    """The team's average member: the mean, and the root mean square of the deviations."""
    members = [now[player.name] for player in team.players]
    return Level(mean([member.mu for member in members]), math.sqrt(mean([member.phi**2 for member in members])))
