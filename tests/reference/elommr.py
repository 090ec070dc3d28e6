"""Section 5, `elommr`: Elo-MMR with logistic performances (Ebtekar & Liu 2021), roots by halving the interval."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .elo import rivals_of
from .model import SlowChange, SlowMatch, SlowPlayer

MEMORY = 16
REACH = 7500.0  # performances and means are looked for so far from `start`
DAY = 86400.0
LOGISTIC = math.pi / math.sqrt(3)  # the standard deviation of the logistic distribution


@dataclass
class Term:
    """A performance that is remembered, or an opponent: w_out · tanh(w_arg · (x − mu)) is its pull at x."""

    mu: float
    w_out: float
    w_arg: float

    @staticmethod
    def of(mu: float, deviation: float) -> "Term":
        return Term(mu, LOGISTIC / deviation, LOGISTIC / deviation / 2)

    def pull(self, x: float) -> float:
        return self.w_out * math.tanh((x - self.mu) * self.w_arg)

    @property
    def weight(self) -> float:
        """1 / deviation² as long as nothing has faded, so that it adds to a normal's."""
        return self.w_out * self.w_arg * 2 / LOGISTIC**2


@dataclass
class Pulls:
    """The opponents of a match by how they finished; `tie` is how often a tie counts, `each` how often a rival does."""

    behind: list[Term]
    ahead: list[Term]
    level: list[Term]
    own: Term
    tie: int
    each: float

    def at(self, x: float) -> float:
        rivals = sum(term.pull(x) - term.w_out for term in self.behind)
        rivals += sum(term.pull(x) + term.w_out for term in self.ahead)
        rivals += sum(term.pull(x) for term in self.level) * self.tie
        return rivals * self.each + self.own.pull(x) * self.tie


@dataclass
class Player:
    """What is kept of a player: the posterior, and the factors it comes from, the oldest term first."""

    mean: float
    deviation: float
    normal_mean: float
    normal_deviation: float
    terms: list[Term] = field(default_factory=list)
    last_played: float | None = None


def replay(
    matches: list[SlowMatch],
    *,
    start: float = 1500.0,
    deviation: float = 350.0,
    beta: float = 200.0,
    limit: float = 80.0,
    rho: float = 1.0,
    drift: float = 0.0,
    split_ties: bool = False,
    advantage: float = 0.0,
    compared_as: str = "player",
    rivals: int = 500,
    state: dict[str, dict] | None = None,
) -> list[SlowChange]:
    """One change per match and player; the mean is what is shown.

    `state`: {player: {"mean": 1600, "deviation": 90}}, with "normal_mean", "normal_deviation" (both as the posterior
    where left out), "terms" [(mu, w_out), …] (the oldest first) and "last_played" (seconds, None for never).
    """
    known = {name: remembered(fields, start, deviation, beta) for name, fields in (state or {}).items()}
    changes = []
    for match in matches:
        for team in match.teams:
            for player in team.players:
                known.setdefault(player.name, Player(start, deviation, start, deviation))

        for team in match.teams:
            for player in team.players:
                add_noise(known[player.name], limit**4 / (beta**2 - limit**2), rho, drift, match.time)

        after = {}
        for index, team in enumerate(match.teams):
            others = rivals_of(match, index, advantage)
            odds = [win_chance(known, team.players, match.teams[other].players, lead, beta) for other, lead in others]
            expected = sum(odds) / len(others)
            met = sampled(match, known, others, index, rivals)
            for player in team.players:
                own = known[player.name]
                # Level with oneself: without this nobody who beat all others would have a finite performance.
                self_term = Term.of(own.mean, math.hypot(own.deviation, beta))
                behind, ahead, level = [], [], []
                mates = average(known, team.players)[0] - own.mean if compared_as == "team" else 0.0
                for other, lead in met:
                    rival = match.teams[other]
                    mean, variance = average(known, rival.players)
                    side = behind if rival.place > team.place else ahead if rival.place < team.place else level
                    side.append(Term.of(mean - lead - mates, math.sqrt(variance + beta**2)))
                tie = 1 if split_ties else 2
                pulls = Pulls(behind, ahead, level, self_term, tie, len(others) / len(met))
                performance = root(pulls.at, start)
                after[player.name] = learn(own, performance, beta, start, match.time)
                changes.append(SlowChange(match.id, player.name, index, own.mean, after[player.name].mean, expected))
        known.update(after)
    return changes


def add_noise(player: Player, noise: float, rho: float, drift: float, now: float) -> None:
    """Widen the posterior by a variance, and let the factors fade so that they still make up its mean."""
    if player.last_played is not None:
        noise += drift * (now - player.last_played) / DAY
    decay = player.deviation**2 / (player.deviation**2 + noise)
    transfer = decay**rho
    player.deviation = math.sqrt(player.deviation**2 + noise)

    normal = player.normal_deviation**-2
    kept = transfer * normal
    moved = (1 - transfer) * (normal + sum(term.weight for term in player.terms))
    player.normal_mean = (kept * player.normal_mean + moved * player.mean) / (kept + moved)
    player.normal_deviation = 1 / math.sqrt(decay * (kept + moved))
    player.terms = [Term(term.mu, term.w_out * transfer * decay, term.w_arg) for term in player.terms]


def learn(player: Player, performance: float, beta: float, start: float, now: float) -> Player:
    """The player after a match of this performance."""
    normal, normal_mean, terms = player.normal_deviation**-2, player.normal_mean, list(player.terms)
    if len(terms) == MEMORY:
        oldest = terms.pop(0)
        normal_mean = (normal * normal_mean + oldest.weight * oldest.mu) / (normal + oldest.weight)
        normal += oldest.weight
    terms.append(Term.of(performance, beta))
    mean = root(lambda x: normal * (x - normal_mean) + sum(term.pull(x) for term in terms), start)
    deviation = 1 / math.sqrt(player.deviation**-2 + beta**-2)
    return Player(mean, deviation, normal_mean, 1 / math.sqrt(normal), terms, now)


def root(rising: Callable[[float], float], start: float) -> float:
    """Where a rising function is 0, to the last bit."""
    low, high = start - REACH, start + REACH
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        if rising(middle) > 0:
            high = middle
        else:
            low = middle


def sampled(
    match: SlowMatch, known: dict[str, Player], rivals: list[tuple[int, float]], index: int, most: int
) -> list[tuple[int, float]]:
    """The rivals that a team is compared with: all, or as many as `most`, evenly spaced around the order of finish.

    At one place the weaker team comes first, then the less certain one, then one without an advantage over the other.
    Of teams that are the same in all that, up to rounding, each takes the rivals of the first.
    """
    if len(rivals) <= most:
        return rivals
    leads, teams = {**dict(rivals), index: 0.0}, len(rivals) + 1

    def exact(other: int) -> tuple[float, ...]:
        mean, variance = average(known, match.teams[other].players)
        return mean, -variance, -leads[other]

    def key(other: int) -> tuple[float, ...]:
        return match.teams[other].place, *(float(np.float32(number)) for number in exact(other))

    order = sorted(range(teams), key=lambda other: (*key(other), *exact(other)))
    own = next(rank for rank, other in enumerate(order) if key(other) == key(index))
    width = (teams - 1) / most  # of the stretch of the order that each of them stands for
    steps = (1 + math.floor((stretch + 0.5) * width) for stretch in range(most))
    return [(other, leads[other]) for other in (order[(own + step) % teams] for step in steps)]


def win_chance(
    known: dict[str, Player], team: list[SlowPlayer], rival: list[SlowPlayer], lead: float, beta: float
) -> float:
    (own_mean, own_variance), (mean, variance) = average(known, team), average(known, rival)
    x = LOGISTIC * (own_mean - mean + lead) / math.sqrt(own_variance + variance + 2 * beta**2)
    return (1 + math.tanh(x / 2)) / 2


def average(known: dict[str, Player], team: list[SlowPlayer]) -> tuple[float, float]:
    """Mean of the members' means and of their variances."""
    players = [known[player.name] for player in team]
    return (
        sum(player.mean for player in players) / len(players),
        sum(player.deviation**2 for player in players) / len(players),
    )


def remembered(fields: dict, start: float, deviation: float, beta: float) -> Player:
    mean, spread = fields.get("mean", start), fields.get("deviation", deviation)
    return Player(
        mean,
        spread,
        fields.get("normal_mean", mean),
        fields.get("normal_deviation", spread),
        [Term(mu, w_out, LOGISTIC / beta / 2) for mu, w_out in fields.get("terms", [])],
        fields.get("last_played"),
    )
