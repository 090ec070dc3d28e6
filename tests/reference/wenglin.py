"""Section 5, `wenglin` (Weng & Lin, JMLR 12:267–300, 2011): algorithms 1, 3 and 4, one team after the other."""

import math
from dataclasses import dataclass

from .model import SlowChange, SlowMatch
from .trueskill import above, between, cdf, lead_at_home, weight

PLACKETT_LUCE = "plackett_luce"
BRADLEY_TERRY = "bradley_terry_full"
THURSTONE_MOSTELLER = "thurstone_mosteller_full"


@dataclass
class Skill:
    """What is kept of a player."""

    mean: float
    deviation: float


@dataclass(frozen=True)
class Strength:
    """A team as the formulas see it: sums over its members."""

    place: int
    mean: float
    variance: float


def replay(
    matches: list[SlowMatch],
    *,
    variant: str = PLACKETT_LUCE,
    mean: float = 25.0,
    deviation: float = 25 / 3,
    beta: float = 25 / 6,
    kappa: float = 0.0001,
    tau: float = 25 / 300,
    margin: float = 0.1,
    display: float = 3.0,
    partial_play: bool = True,
    limit_sigma: bool = False,
    advantage: float = 0.0,
    state: dict[str, dict] | None = None,
) -> list[SlowChange]:
    """One change per match and player. `state`: {player: {"mean": 30, "deviation": 1}}.

    Fields that are left out are a newcomer's.
    """
    skills = {
        name: Skill(fields.get("mean", mean), fields.get("deviation", deviation))
        for name, fields in (state or {}).items()
    }

    def shown(skill: Skill) -> float:
        return skill.mean - display * skill.deviation

    changes = []
    for match in matches:
        for team in match.teams:
            for player in team.players:
                skills.setdefault(player.name, Skill(mean, deviation))

        variances = {p.name: skills[p.name].deviation ** 2 + tau**2 for team in match.teams for p in team.players}
        teams = [
            Strength(
                team.place,
                sum(skills[p.name].mean for p in team.players) + lead_at_home(index, advantage),
                sum(variances[p.name] for p in team.players),
            )
            for index, team in enumerate(match.teams)
        ]

        after = {}
        for index, team in enumerate(match.teams):
            own = teams[index]
            rivals = [rival for other, rival in enumerate(teams) if other != index]
            expected = sum(win_chance(own, rival, variant, beta) for rival in rivals) / len(rivals)
            if variant == PLACKETT_LUCE:
                omega, delta = plackett_luce(teams, index, beta)
            else:
                omega, delta = pairs(own, rivals, variant, beta, margin)
            for player in team.players:
                w = weight(player, match) if partial_play else 1.0
                old, variance = skills[player.name], variances[player.name]
                share = variance / own.variance
                new = Skill(old.mean + share * omega * w, math.sqrt(variance * max(1 - share * delta * w, kappa)))
                if limit_sigma:
                    new.deviation = min(new.deviation, old.deviation)
                after[player.name] = new
                changes.append(SlowChange(match.id, player.name, index, shown(old), shown(new), expected))
        skills.update(after)
    return changes


def pairs(own: Strength, rivals: list[Strength], variant: str, beta: float, margin: float) -> tuple[float, float]:
    """Omega and Delta of a team: sums over the rivals."""
    omega = delta = 0.0
    for rival in rivals:
        c = spread(own, rival, beta)
        gamma = math.sqrt(own.variance) / c
        x = (own.mean - rival.mean) / c
        if variant == BRADLEY_TERRY:
            p = logistic(x)
            s = 1.0 if own.place < rival.place else 0.5 if own.place == rival.place else 0.0
            surprise, certainty = s - p, p * logistic(-x)
        elif own.place < rival.place:
            surprise, certainty, _ = above(x - margin / c)
        elif own.place > rival.place:
            surprise, certainty, _ = above(-x - margin / c)
            surprise = -surprise
        else:
            surprise, certainty, _ = between(x, margin / c)
        omega += own.variance / c * surprise
        delta += gamma * own.variance / c**2 * certainty
    return omega, delta


def plackett_luce(teams: list[Strength], index: int, beta: float) -> tuple[float, float]:
    """Omega and Delta of a team: sums over the places at which it could have been chosen."""
    own = teams[index]
    c = math.sqrt(sum(team.variance + beta**2 for team in teams))
    gamma = math.sqrt(own.variance) / c
    omega = delta = 0.0
    for q, chosen in enumerate(teams):
        if chosen.place > own.place:
            continue
        # Who was there to be chosen when `chosen` was, with their odds against the own team.
        left = {s: team for s, team in enumerate(teams) if team.place >= chosen.place}
        highest = max(team.mean for team in left.values())
        odds = {s: math.exp((team.mean - highest) / c) for s, team in left.items()}
        p = odds[index] / sum(odds.values())
        not_p = sum(odds[s] for s in left if s != index) / sum(odds.values())
        ties = sum(team.place == chosen.place for team in teams)
        omega += (not_p if q == index else -p) / ties
        delta += p * not_p / ties
    return omega * own.variance / c, gamma * delta * own.variance / c**2


def win_chance(own: Strength, rival: Strength, variant: str, beta: float) -> float:
    x = (own.mean - rival.mean) / spread(own, rival, beta)
    return cdf(x) if variant == THURSTONE_MOSTELLER else logistic(x)


def spread(own: Strength, rival: Strength, beta: float) -> float:
    return math.sqrt(own.variance + rival.variance + 2 * beta**2)


def logistic(x: float) -> float:
    """1 / (1 + exp(−x)), written so that no power overflows."""
    if x > 0:
        return 1 / (1 + math.exp(-x))
    return math.exp(x) / (1 + math.exp(x))
