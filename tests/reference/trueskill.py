"""Section 5, `trueskill`: messages along the factor graph (Herbrich, Minka, Graepel 2006), for two teams too."""

import math
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import NormalDist

from .model import SlowChange, SlowMatch, SlowPlayer, SlowTeam

LEAST_WEIGHT = 0.0001
NODES = 20  # of each panel of the quadrature


@dataclass(frozen=True)
class Belief:
    """A normal distribution by its precision and its precision times its mean; precision 0 says nothing."""

    precision: float
    weighted: float

    @staticmethod
    def of(mean: float, variance: float) -> "Belief":
        return Belief(1 / variance, mean / variance)

    @property
    def mean(self) -> float:
        return self.weighted / self.precision

    @property
    def variance(self) -> float:
        return 1 / self.precision

    def __add__(self, other: "Belief") -> "Belief":
        """What both together say."""
        return Belief(self.precision + other.precision, self.weighted + other.weighted)


NOTHING = Belief(0.0, 0.0)


@dataclass
class Skill:
    """What is kept of a player."""

    mean: float
    deviation: float


def replay(
    matches: list[SlowMatch],
    *,
    mean: float = 25.0,
    deviation: float = 25 / 3,
    beta: float = 25 / 6,
    tau: float = 25 / 300,
    draw: float = 0.10,
    display: float = 3.0,
    partial_play: bool = True,
    advantage: float = 0.0,
    sweeps: int = 1000,
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
        prior = {}
        for team in match.teams:
            for player in team.players:
                skill = skills.setdefault(player.name, Skill(mean, deviation))
                prior[player.name] = Belief.of(skill.mean, skill.deviation**2 + tau**2)
        weights = {p.name: weight(p, match) if partial_play else 1.0 for team in match.teams for p in team.players}

        # Down to the teams' performances, along their order, and up again.
        performances = []
        for index, team in enumerate(match.teams):
            own_mean, own_variance = performance(team.players, prior, weights, beta)
            performances.append(Belief.of(own_mean + lead_at_home(index, advantage), own_variance))
        messages = learn(match, performances, draw, beta, sweeps)

        after = {}
        for index, team in enumerate(match.teams):
            others = [other for other in range(len(match.teams)) if other != index]
            chances = [score_chance(match, index, other, prior, draw, beta, advantage) for other in others]
            for player in team.players:
                # The team's performance is w times this player's skill, and the rest.
                mates = [mate for mate in team.players if mate is not player]
                w = weights[player.name]
                rest_mean, rest_variance = performance(mates, prior, weights, beta)
                rest = (rest_mean + lead_at_home(index, advantage), rest_variance + w**2 * beta**2)
                posterior = prior[player.name] + about_skill(messages[index], w, *rest)
                after[player.name] = Skill(posterior.mean, math.sqrt(posterior.variance))
                before, now = shown(skills[player.name]), shown(after[player.name])
                changes.append(SlowChange(match.id, player.name, index, before, now, sum(chances) / len(chances)))
        skills.update(after)
    return changes


def performance(
    players: list[SlowPlayer], prior: dict[str, Belief], weights: dict[str, float], beta: float
) -> tuple[float, float]:
    """Mean and variance of the sum of what these players perform."""
    mean = sum(weights[p.name] * prior[p.name].mean for p in players)
    return mean, sum(weights[p.name] ** 2 * (prior[p.name].variance + beta**2) for p in players)


def about_skill(told: Belief, w: float, rest_mean: float, rest_variance: float) -> Belief:
    """What a message about w times a skill plus the rest says of the skill."""
    # The precision is w² / (1 / told.precision + rest_variance), written so that told.precision may be 0.
    share = w / (1 + told.precision * rest_variance)
    return Belief(w * told.precision * share, (told.weighted - told.precision * rest_mean) * share)


def score_chance(
    match: SlowMatch, one: int, other: int, prior: dict[str, Belief], draw: float, beta: float, advantage: float
) -> float:
    """P(win) and half of P(draw), everybody playing all the time."""
    team, rival = match.teams[one], match.teams[other]
    all_of_it = dict.fromkeys(prior, 1.0)
    own_mean, own_variance = performance(team.players, prior, all_of_it, beta)
    mean, variance = performance(rival.players, prior, all_of_it, beta)
    lead = own_mean + lead_at_home(one, advantage) - mean - lead_at_home(other, advantage)
    c, eps = math.sqrt(own_variance + variance), draw_margin(team, rival, draw, beta)
    return cdf((lead - eps) / c) + (cdf((eps - lead) / c) - cdf((-eps - lead) / c)) / 2


def draw_margin(team: SlowTeam, rival: SlowTeam, draw: float, beta: float) -> float:
    count = len(team.players) + len(rival.players)
    return NormalDist().inv_cdf((draw + 1) / 2) * math.sqrt(count) * beta


def learn(match: SlowMatch, performances: list[Belief], draw: float, beta: float, sweeps: int) -> list[Belief]:
    """What the places say of each team's performance."""
    order = sorted(range(len(match.teams)), key=lambda index: match.teams[index].place)
    neighbours = [(match.teams[a], match.teams[b]) for a, b in pairwise(order)]
    told = sweep(
        [performances[index] for index in order],
        [draw_margin(team, rival, draw, beta) for team, rival in neighbours],
        [team.place == rival.place for team, rival in neighbours],
        sweeps,
    )
    return [told[order.index(index)] for index in range(len(order))]


def sweep(teams: list[Belief], margins: list[float], drawn: list[bool], sweeps: int) -> list[Belief]:
    """What all comparisons of neighbours, the best team first, say of each team."""
    pairs = range(len(teams) - 1)
    to_upper, to_lower = [NOTHING for _ in pairs], [NOTHING for _ in pairs]

    def send(pair: int) -> float:
        """Let a pair of neighbours say anew what it knows; the largest change, relative to the message."""
        upper = teams[pair] + (to_lower[pair - 1] if pair > 0 else NOTHING)
        lower = teams[pair + 1] + (to_upper[pair + 1] if pair + 1 < len(pairs) else NOTHING)
        before = (to_upper[pair], to_lower[pair])
        to_upper[pair], to_lower[pair] = compare(upper, lower, margins[pair], drawn[pair])
        change = 0.0
        for old, new in zip(before, (to_upper[pair], to_lower[pair]), strict=True):
            change = max(
                change,
                abs(new.precision - old.precision) / (1e-9 + new.precision),
                abs(new.weighted - old.weighted) / (1e-9 + abs(new.weighted)),
            )
        return change

    for _ in range(sweeps):
        change = 0.0
        for pair in pairs:
            change = max(change, send(pair))
        for pair in reversed(pairs):
            change = max(change, send(pair))
        if change < 1e-13:
            break
    return [
        (to_upper[team] if team < len(pairs) else NOTHING) + (to_lower[team - 1] if team > 0 else NOTHING)
        for team in range(len(teams))
    ]


def compare(upper: Belief, lower: Belief, margin: float, drawn: bool) -> tuple[Belief, Belief]:
    """Messages to the upper and the lower team of a pair, from what else is believed of them."""
    variance = upper.variance + lower.variance
    c = math.sqrt(variance)
    lead = upper.mean - lower.mean
    v, w, rest = between(lead / c, margin / c) if drawn else above(lead / c - margin / c)
    if rest == 0:
        # A draw without any margin: the two performances were the same.
        return lower, upper
    # The cut normal as a normal, divided by the uncut one.
    lead_told = Belief(w / rest / variance, (lead / variance * w + v / c) / rest)

    def shift(other: Belief, sign: float) -> Belief:
        """The sum of another team's performance and the lead, with the lead's precision perhaps 0."""
        total = lead_told.precision + other.precision
        precision = lead_told.precision * other.precision / total
        return Belief(precision, precision * other.mean + sign * other.precision / total * lead_told.weighted)

    return shift(lower, 1.0), shift(upper, -1.0)


def above(x: float) -> tuple[float, float, float]:
    """v, w and 1 − w of a win: of a standard normal above −x, the mean is v and the variance 1 − w."""
    if x > -5:
        v = density(x) / cdf(x)
        w = v * (v + x)
        return v, w, 1 - w
    beyond = mills_excess(-x)
    v = beyond - x
    return v, v * beyond, 1 - v * beyond


def mills_excess(u: float) -> float:
    """density(u) / P(normal > u) − u for large u, by Laplace's continued fraction 1/(u + 2/(u + 3/(u + …)))."""
    tail = u
    for k in range(300, 1, -1):
        tail = u + k / tail
    return 1 / tail


def between(t: float, e: float) -> tuple[float, float, float]:
    """v, w and 1 − w of a draw: of a standard normal from −e − t to e − t, the mean is v and the variance 1 − w."""
    low, high = abs(t) - e, abs(t) + e
    # The density is largest at the peak; what is e⁻⁵⁰ of it does not count.
    peak = max(low, 0.0)
    reach = math.sqrt(peak * peak + 100)
    low, high = max(low, -reach), min(high, reach)
    panels = math.ceil((high - low) * max(1.0, abs(low), abs(high)) / 4) or 1
    half = (high - low) / 2 / panels
    points = []
    for panel in range(panels):
        middle = low + (2 * panel + 1) * half
        # Distances from the centre of the interval are summed, not places: the interval may be narrow and far out.
        points += [
            (
                (2 * panel + 1 - panels) * half + half * node,
                share * math.exp((peak * peak - (middle + half * node) ** 2) / 2),
            )
            for node, share in legendre(NODES)
        ]
    mass = math.fsum(m for _, m in points)
    offset = math.fsum(d * m for d, m in points) / mass
    variance = math.fsum((d - offset) ** 2 * m for d, m in points) / mass
    v = (low + high) / 2 + offset
    return math.copysign(v, -t), 1 - variance, variance


@cache
def legendre(count: int) -> list[tuple[float, float]]:
    """Places and weights of the Gauss–Legendre quadrature on −1..1, by Newton's method."""
    found = []
    for i in range(count):
        x = math.cos(math.pi * (i + 0.75) / (count + 0.5))
        for _ in range(50):
            below, value = 1.0, x
            for n in range(2, count + 1):
                below, value = value, ((2 * n - 1) * x * value - (n - 1) * below) / n
            slope = count * (x * value - below) / (x * x - 1)
            x -= value / slope
        found.append((x, 2 / ((1 - x * x) * slope * slope)))
    return found


def weight(player: SlowPlayer, match: SlowMatch) -> float:
    """Share of the match that the player was in; the whole of it where it is not known."""
    recorded = [p.seconds for team in match.teams for p in team.players if p.seconds is not None]
    duration = match.duration if match.duration is not None else max(recorded, default=None)
    if player.seconds is None or not duration:
        return 1.0
    return min(1.0, max(LEAST_WEIGHT, player.seconds / duration))


def lead_at_home(index: int, advantage: float) -> float:
    return advantage if index == 0 else 0.0


def density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))
