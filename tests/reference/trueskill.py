"""Section 5, `trueskill`: messages along the factor graph (Herbrich, Minka, Graepel 2006), for two teams too.

Teams that tie share a level, see docs/systems/trueskill.md.
"""

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

    def moved(self, towards: "Belief", part: float) -> "Belief":
        """A belief on the way to another: this part of it, and half of it at most if that has less than half to say."""
        part = part if towards.precision > self.precision / 2 else min(part, 0.5)
        return Belief(
            self.precision + part * (towards.precision - self.precision),
            self.weighted + part * (towards.weighted - self.weighted),
        )

    def change(self, old: "Belief") -> float:
        """How much it differs from an older one, relatively."""
        return max(
            abs(self.precision - old.precision) / (1e-9 + self.precision),
            abs(self.weighted - old.weighted) / (1e-9 + abs(self.weighted)),
        )


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
    places = sorted({team.place for team in match.teams})
    levels = [[index for index, team in enumerate(match.teams) if team.place == place] for place in places]
    # Two teams that tie differ by less than a draw margin; of more teams each is within half of it of their level.
    if [len(level) for level in levels] == [2]:
        return list(compare(*performances, draw_margin(*match.teams, draw, beta), drawn=True))
    slacks = [draw_margin(team, team, draw, beta) / 2 for team in match.teams]
    return Levels(levels, performances, slacks, margins(match, levels, draw, beta)).settle(sweeps)


def margins(match: SlowMatch, levels: list[list[int]], draw: float, beta: float) -> list[float]:
    """The draw margins between neighbouring levels, for teams of the mean size of either."""
    sizes = [sum(len(match.teams[index].players) for index in level) / len(level) for level in levels]
    return [NormalDist().inv_cdf((draw + 1) / 2) * math.sqrt(a + b) * beta for a, b in pairwise(sizes)]


class Levels:
    """The teams of a match by place, the best first, and the messages between teams and levels.

    margins  how much the mean performance of a level's teams exceeds that of the next, at least
    """

    def __init__(
        self, levels: list[list[int]], performances: list[Belief], slacks: list[float], margins: list[float]
    ) -> None:
        self.levels, self.performances, self.slacks, self.margins = levels, performances, slacks, margins
        self.told: dict[int, Belief] = {}  # by a team, to its level
        self.spreads: list[float] = []
        for level in levels:
            spreads = [slacks[index] ** 2 / 3 if len(level) > 1 else 0.0 for index in level]
            self.told |= {
                index: widened(performances[index], spread) for index, spread in zip(level, spreads, strict=True)
            }
            self.spreads.append(sum(spreads) / len(level) ** 2)
        self.from_above = [NOTHING for _ in levels]
        self.from_below = [NOTHING for _ in levels]

    def known(self, at: int, without: int) -> Belief:
        """What is known of a level from everything but this team."""
        told = [self.told[index] for index in self.levels[at] if index != without]
        return sum(told, self.from_above[at] + self.from_below[at])

    def tie(self, at: int, index: int) -> tuple[Belief, Belief]:
        """Messages to a tied team and to its level."""
        return compare(self.performances[index], self.known(at, index), self.slacks[index], drawn=True)

    def settle(self, sweeps: int) -> list[Belief]:
        """What the levels say of each team, after this many sweeps at most."""
        part, before = 1.0, math.inf
        for _ in range(sweeps):
            change = max([*self.tie_all(part), *self.compare_all()])
            if change < 1e-13:
                break
            if change > before:
                part = max(part / 2, 1 / 16)
            before = change
        answers = {}
        for at, level in enumerate(self.levels):
            for index in level:
                alone = self.from_above[at] + self.from_below[at]
                answers[index] = self.tie(at, index)[0] if len(level) > 1 else alone
        return [answers[index] for index in range(len(answers))]

    def tie_all(self, part: float) -> list[float]:
        """Let all tied teams speak to their levels at the same time; how much each message changed."""
        new = {
            index: self.told[index].moved(self.tie(at, index)[1], part)
            for at, level in enumerate(self.levels)
            for index in level
            if len(level) > 1
        }
        changes = [new[index].change(self.told[index]) for index in new]
        self.told |= new
        return changes

    def compare_all(self) -> list[float]:
        """Let neighbouring levels speak to each other, down and up; how much each message changed."""
        down = range(len(self.levels) - 1)
        changes = [0.0]
        for at in (*down, *reversed(down)):
            upper = sum((self.told[index] for index in self.levels[at]), self.from_above[at])
            lower = sum((self.told[index] for index in self.levels[at + 1]), self.from_below[at + 1])
            to_upper, to_lower = compare(
                widened(upper, self.spreads[at]), widened(lower, self.spreads[at + 1]), self.margins[at], drawn=False
            )
            to_upper, to_lower = widened(to_upper, self.spreads[at]), widened(to_lower, self.spreads[at + 1])
            changes += [to_upper.change(self.from_below[at]), to_lower.change(self.from_above[at + 1])]
            self.from_below[at], self.from_above[at + 1] = to_upper, to_lower
        return changes


def widened(belief: Belief, spread: float) -> Belief:
    """The belief about a variable that differs from the first by this variance."""
    share = 1 / (1 + belief.precision * spread)
    return Belief(belief.precision * share, belief.weighted * share)


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
