"""`even`, written from docs/even.md: every expert with its own state, the mixture by matrices."""

import math
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from .model import SlowChange, SlowMatch, SlowPlayer, SlowTeam

DAY = 86400.0
K, EPSILON = 1.6, 0.2
# v0, variance per match, variance per day, pull per day, alpha, lambda, rho, variance of a player of many matches
TABLE = {
    "steady": (0.64, 0.02**2, 0.003**2, 0.0, 0.5, 0.66, 0.4, 0.03),
    "quick": (0.1, 0.08**2, 0.015**2, 0.002, 0.5, 0.97, 0.4, 0.05),
    "wide": (1.0, 0.04**2, 0.008**2, 0.0, 0.5, 0.93, 0.4, 0.06),
    "results": (1.5, 0.02**2, 0.005**2, 0.002, 1.0, 0.0, 1.0, 0.05),
    "scores": (0.3, 0.03**2, 0.008**2, 0.0, 0.4, 0.85, 0.4, 0.03),
    "alone": (0.4, 0.04**2, 0.008**2, 0.0, 0.5, 0.75, 0.4, 0.04),
}


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def clip(x: float, most: float) -> float:
    return max(-most, min(most, x))


@dataclass
class Belief:
    """A normal belief about a number of the ladder."""

    mean: float
    variance: float

    def learn(self, feature: float, gradient: float, curvature: float, least: float = 0.05) -> None:
        before = self.variance
        self.mean += before * feature * gradient
        self.variance = before * max(least, 1 - before * feature**2 * curvature)

    def learn_all(self, gradient: float, curvature: float) -> None:
        """Learn from several teams at once: the sums of what they say by the number."""
        self.variance = 1 / (1 / self.variance + curvature)
        self.mean += self.variance * gradient


@dataclass
class View:
    """One expert: its constants, its beliefs about players by name, and about the ladder."""

    v0: float
    per_match: float
    per_day: float
    pull: float
    alpha: float
    part: float
    rho: float
    settled: float
    players: dict[str, list[float]] = field(default_factory=dict)  # mean and variance
    side: Belief = field(default_factory=lambda: Belief(0, 0.003))
    own_side: Belief = field(default_factory=lambda: Belief(0, 0.003))
    body: Belief = field(default_factory=lambda: Belief(1.5, 1))
    leavers: Belief = field(default_factory=lambda: Belief(1.5, 1))
    experience: Belief = field(default_factory=lambda: Belief(0, 0.002))
    entry: Belief = field(default_factory=lambda: Belief(0, 0.05))
    slope: Belief = field(default_factory=lambda: Belief(0, 0.02))  # ν
    offsets: dict[tuple[str, int, str], Belief] = field(default_factory=dict)  # by player, column and value
    gains: dict[int, Belief] = field(default_factory=lambda: defaultdict(lambda: Belief(0.6, 0.2)))  # by column
    value_sides: dict[tuple[int, str], Belief] = field(default_factory=lambda: defaultdict(lambda: Belief(0, 0.003)))
    square: float = 0.0  # A, B and C of the margins
    product: float = 0.0
    spread: float = 0.0

    @property
    def points(self) -> float:
        return 400 / math.log(10) * K / math.sqrt(1 + 2 * self.settled)

    def teach_newcomers(self, counted: float, gradient: float, curvature: float) -> None:
        self.entry.learn(counted, gradient, curvature, least=0.2)
        self.keep_newcomers_near()

    def offset(self, name: str, column: int, value: str) -> Belief:
        return self.offsets.setdefault((name, column, value), Belief(0, 0.15 * self.v0))

    def offset_lead(self, team: SlowTeam, column: int, value: str) -> float:
        w = len(team.players) ** -self.alpha
        return w * sum(self.offset(player.name, column, value).mean for player in team.players)

    def learn_gain(self, column: int, gradient: float, curvature: float) -> None:
        self.gains[column].learn_all(gradient, curvature)
        self.gains[column].mean = min(max(self.gains[column].mean, 0), 2)

    def keep_newcomers_near(self) -> None:
        self.entry.mean = clip(self.entry.mean, 3 * math.sqrt(self.v0))
        self.entry.variance += 1e-6


def replay(
    matches: list[SlowMatch],
    *,
    start: float = 1500.0,
    single: bool = False,
    performance: bool = False,
    wins_gain: bool = False,
    pooled: bool = True,
    rivals: int = 500,
    margin: float = 1.0,
    deviation: float = 1.0,
    drift: float = 1.0,
    idle_drift: float = 1.0,
) -> list[SlowChange]:
    """One change per match and player."""
    names = ["alone"] if single else ["steady", "quick", "wide", "results"]
    views = []
    for name in [*names, "scores"] if performance else names:
        v0, per_match, per_day, pull, alpha, part, rho, settled = TABLE[name]
        days = idle_drift**2
        by_time = per_match * drift**2, per_day * days, pull * days
        views.append(View(v0 * deviation**2, *by_time, alpha, part * margin, rho, settled))
    slow = SlowEven(views, start, "scores" if performance else None, wins_gain, rivals)
    return [change for match in matches for change in slow.rate(match)]


@dataclass
class Running:
    """Running means over decided matches with a margin: of |d|, o, their squares and their product."""

    means: np.ndarray = field(default_factory=lambda: np.zeros(5))
    count: int = 0

    def watch(self, size: float, odds: float) -> None:
        values = np.array([size, odds, size * size, odds * odds, size * odds])
        self.means += max(1 / (self.count + 1), 0.0005) * (values - self.means)
        self.count += 1

    def worth(self) -> float:
        size, odds, size_square, odds_square, product = self.means
        correlation = 0.0
        if size_square - size**2 > 0.01 * size_square and odds_square > odds**2:
            correlation = (product - size * odds) / math.sqrt((size_square - size**2) * (odds_square - odds**2))
        matches = min(self.count, 2000)
        return min(max((matches * correlation + 50 * 0.1) / (matches + 50) / 0.1, 0), 1)


class SlowEven:
    """A ladder that is rated match by match."""

    def __init__(self, views: list[View], start: float, scores: str | None, wins_gain: bool, rivals: int) -> None:
        self.views, self.start, self.wins_gain, self.rivals = views, start, wins_gain, rivals
        self.reader = views[-1] if scores else None
        self.weights = np.full(len(views), 1 / len(views))
        self.covariance = np.eye(len(views)) * 0.1
        self.calibration = Belief(1, 0.005)
        self.margins = self.scored = self.score_square = 0.0
        self.sizes: Running = Running()
        self.trust = Belief(1.2, 0.1)  # τ
        self.turns: dict[str, float] = defaultdict(float)  # s of each player
        self.count: dict[str, int] = {}
        self.last: dict[str, float] = {}
        self.shown: dict[str, float] = {}
        self.scales: dict[tuple[int, str], Belief] = defaultdict(lambda: Belief(0, 0.003))  # by column and value
        self.values: dict[int, set[str]] = defaultdict(set)  # seen so far, by column
        self.laws: dict[int, Belief] = defaultdict(lambda: Belief(0, 0.1))  # η, by column
        self.lengths: dict[int, list[float]] = defaultdict(list)  # logs seen so far, by column
        self.numbers: list[float] = []  # of the newcomers so far

    def rate(self, match: SlowMatch) -> list[SlowChange]:
        players = [player for team in match.teams for player in team.players]
        before = {player.name: self.shown.get(player.name, self.start) for player in players}
        for view in self.views:
            for player in players:
                self.bring_up(view, player, match.time)
        weights = self.calibration.mean * self.weights
        self.columns = [(c, value) for c, value in enumerate(match.context) if len(self.values[c]) > 1]
        expected = self.two(match) if len(match.teams) == 2 else self.many(match)
        if self.reader:
            self.read_scores(players)
        for column, value in enumerate(match.context):
            self.values[column].add(value)
            if value.isdigit():
                self.lengths[column].append(math.log(int(value)))
        newcomers = [player.entry for player in players if player.name not in self.count]
        self.numbers += [number for number in newcomers if number is not None]
        changes = []
        for number, team in enumerate(match.teams):
            for player in team.players:
                name = player.name
                self.shown[name] = self.start + sum(
                    weight * view.points * view.players[name][0]
                    for weight, view in zip(weights, self.views, strict=True)
                )
                self.count[name] = self.count.get(name, 0) + 1
                self.last[name] = match.time
                changes.append(
                    SlowChange(match.id, name, number, before[name], self.shown[name], float(expected[number]))
                )
        return changes

    def unit(self, player: SlowPlayer) -> float | None:
        """ζ: the player's number in deviations from the mean of the newcomers so far."""
        if player.entry is None or not self.numbers or np.std(self.numbers) == 0:
            return None
        return clip((player.entry - np.mean(self.numbers)) / np.std(self.numbers), 3)

    def bring_up(self, view: View, player: SlowPlayer, time: float) -> None:
        """Step 1: the belief about a player as a match begins."""
        name, unit = player.name, self.unit(player)
        if name not in view.players and unit is not None:
            known = view.slope.mean
            view.players[name] = [view.entry.mean + known * unit, view.v0 / (1 + known**2 / view.v0)]
        elif name not in view.players:
            view.players[name] = [view.entry.mean, view.v0]
        else:
            idle = (time - self.last[name]) / DAY
            mean, variance = view.players[name]
            grown = variance + view.per_day * idle + view.per_match
            view.players[name] = [mean / (1 + view.pull * idle), min(grown, 4 * view.v0)]

    def sums(self, view: View, team: SlowTeam) -> tuple[float, float, float]:
        w = len(team.players) ** -view.alpha
        beliefs = [view.players[player.name] for player in team.players]
        for column, value in self.columns:
            gain = view.gains[column].mean
            offsets = [view.offset(player.name, column, value) for player in team.players]
            beliefs += [[gain * offset.mean, gain**2 * offset.variance] for offset in offsets]
        return w, w * sum(mean for mean, _ in beliefs), w * w * sum(variance for _, variance in beliefs)

    def doublings(self, team: SlowTeam) -> float:
        return sum(math.log2(1 + self.count.get(player.name, 0)) for player in team.players) / len(team.players)

    def new_share(self, view: View, team: SlowTeam, w: float) -> float:
        """c of step 3 for one team: how much those of fewer than 25 matches count."""
        young = [player.name for player in team.players if self.count.get(player.name, 0) < 25]
        return sum(w * min(view.players[name][1] / view.v0, 1) for name in young)

    def by_number(self, view: View, team: SlowTeam, w: float) -> float:
        """c′ of step 3 for one team."""
        young = [player for player in team.players if player.name not in self.count]
        known = [(view.players[player.name][1], self.unit(player)) for player in young]
        return sum(w * min(variance / view.v0, 1) * unit for variance, unit in known if unit is not None)

    def learn_players(
        self, view: View, team: SlowTeam, w: float, total: float, rho: float, gradient: float, curvature: float
    ) -> None:
        for player in team.players:
            belief = view.players[player.name]
            own = w * w * belief[1]
            belief[0] += w * belief[1] * gradient
            belief[1] *= max(0.05, 1 - (own + rho * (total - own)) * curvature)
            for column, value in self.columns:
                offset, weight = view.offset(player.name, column, value), w * view.gains[column].mean
                own = weight**2 * offset.variance
                offset.mean += weight * offset.variance * gradient
                offset.variance *= max(0.05, 1 - (own + rho * (total - own)) * curvature)

    # two teams

    def two(self, match: SlowMatch) -> tuple[float, float]:
        first, second = match.teams
        result = (second.place > first.place) - (second.place < first.place)
        u = math.log(len(first.players) / len(second.players))
        left = self.left(match, u)
        e = self.doublings(first) - self.doublings(second)
        d = margin_of(first, second, result)
        log_odds = np.zeros(len(self.views))
        names = [[player.name for player in team.players] for team in match.teams]
        turned = sum(self.turns[name] for name in names[0]) - sum(self.turns[name] for name in names[1])
        shared_turn = turned / float(self.calibration.mean * self.weights.sum())
        weights = self.calibration.mean * self.weights
        for index, view in enumerate(self.views):
            (w1, m1, q1), (w2, m2, q2) = self.sums(view, first), self.sums(view, second)
            z = m1 - m2 + view.side.mean + view.own_side.mean + u * view.body.mean + e * view.experience.mean
            v = q1 + q2 + view.side.variance + view.own_side.variance + 1
            v += u**2 * view.body.variance + e**2 * view.experience.variance
            for pair in self.columns:
                z += 0.3 * view.value_sides[pair].mean
                v += 0.3**2 * view.value_sides[pair].variance
            k = K / math.sqrt(v)
            p = (sigma(k * (z + EPSILON)) + sigma(k * (z - EPSILON))) / 2
            log_odds[index] = clip(math.log(p / (1 - p)), 20) if 1e-9 < p < 1 - 1e-9 else math.copysign(20, p - 0.5)
            z += left * view.leavers.mean
            gradient, curvature, turn = self.evidence(view, z, v, result, d)
            turn -= curvature * shared_turn
            for team, w, sign in ((names[0], w1, 1), (names[1], w2, -1)):
                for name in team:
                    self.turns[name] += sign * weights[index] * w**2 * view.players[name][1] * turn
            c = self.new_share(view, first, w1) - self.new_share(view, second, w2)
            by_number = self.by_number(view, first, w1) - self.by_number(view, second, w2)
            leads = [view.offset_lead(first, *pair) - view.offset_lead(second, *pair) for pair in self.columns]
            self.learn_players(view, first, w1, q1, view.rho, gradient, curvature)
            self.learn_players(view, second, w2, q2, view.rho, -gradient, curvature)
            for (column, _), lead in zip(self.columns, leads, strict=True):
                view.learn_gain(column, lead * gradient, lead**2 * curvature)
            view.teach_newcomers(c, gradient, curvature)
            view.slope.learn_all(by_number * gradient, by_number**2 * curvature)
            view.side.learn(1, gradient, curvature)
            view.own_side.learn(1, gradient, curvature)
            view.body.learn(u, gradient, curvature)
            for pair in self.columns:
                view.value_sides[pair].learn(0.3, gradient, curvature)
            view.experience.learn(e, gradient, curvature)
            if left:
                view.leavers.learn(left, gradient, curvature)
        self.margins += d is not None
        if d is not None and result:
            self.sizes.watch(abs(d), result * float(self.weights @ log_odds))
        mixed, score = float(self.weights @ log_odds), 0.5 + result / 2
        calibrated, chance = sigma(self.factor() * mixed), sigma(mixed)
        t, over = K * turned, max(self.trust.mean - 1, 0)
        trusting = sigma(self.factor() * mixed + over * t)
        self.trust.learn_all((score - trusting) * t, trusting * (1 - trusting) * t**2)
        self.trust.mean = max(self.trust.mean, 0)
        self.calibrate((score - calibrated) * mixed, calibrated * (1 - calibrated) * mixed**2)
        self.mix((score - chance) * log_odds, chance * (1 - chance) * np.outer(log_odds, log_odds))
        return calibrated, 1 - calibrated

    def left(self, match: SlowMatch, u: float) -> float:
        """By how much those who quit changed u."""
        if not any(player.quit for team in match.teams for player in team.players):
            return 0.0
        longest = [player.seconds for team in match.teams for player in team.players if player.seconds is not None]
        duration = max(longest, default=None) if match.duration is None else match.duration
        first, second = (max(sum(part_of(player, duration) for player in team.players), 0.5) for team in match.teams)
        return math.log(first / second) - u

    def evidence(self, view: View, z: float, v: float, result: int, d: float | None) -> tuple[float, float, float]:
        """Step 3: the gradient by z and the curvature, of result and margin, and the change of the former by τ."""
        k = K / math.sqrt(v)
        above, over = sigma(k * (z + EPSILON)), sigma(k * (z - EPSILON))
        gradient = {1: k * (1 - over), -1: -k * above, 0: k * (1 - above - over)}[result]
        rise, fall = above * (1 - above), over * (1 - over)
        curvature = k * k * {1: fall, -1: rise, 0: rise + fall}[result]
        if d is None:
            return gradient, curvature, 0.0
        turn = 0.0
        if self.margins >= 3 and view.square > 0:
            root = math.sqrt(view.product**2 + 4 * view.square * view.spread)
            kappa = (view.product + root) / (2 * view.square)
            whole = view.part * self.sizes.worth() * self.margins / (self.margins + 5)
            part, by_margin = min(self.trust.mean, 1) * whole, clip(kappa * d - z, 4 * math.sqrt(v)) / v
            turn = whole * (by_margin - gradient)
            gradient = part * by_margin + (1 - part) * gradient
            curvature = part / v + (1 - part) * curvature
            if self.wins_gain and result:
                gradient = result * max(result * gradient, 0)
        rate = max(1 / (self.margins + 1), 0.0005)
        view.square += rate * (d * d - view.square)
        view.product += rate * (d * z - view.product)
        view.spread += rate * (v - view.spread)
        return gradient, curvature, turn

    # the mixture

    def mix(self, gradient: np.ndarray, curvature: np.ndarray, times: float = 1.0) -> None:
        """Step 4."""
        self.covariance = np.linalg.inv(np.linalg.inv(self.covariance) + curvature)
        self.weights = np.maximum(self.weights + self.covariance @ gradient, 0)
        self.covariance = self.covariance + times * 3e-6 * np.eye(len(self.views))
        if self.weights.sum() > 1.3:
            self.weights = self.weights * 1.3 / self.weights.sum()
        if self.weights.sum() < 0.2:
            self.weights = np.full(len(self.views), 0.2 / len(self.views))

    def longer(self, column: int, value: str) -> float:
        """How much longer a match is than usual, if the value is a number."""
        if not value.isdigit():
            return 0.0
        seen = self.lengths[column]
        return math.log(int(value)) - (sum(seen) / len(seen) if seen else 0.0)

    def factor(self) -> float:
        scales = sum(self.scales[pair].mean + self.laws[pair[0]].mean * self.longer(*pair) for pair in self.columns)
        return max(self.calibration.mean + scales, 0.1)

    def calibrate(self, gradient: float, curvature: float, times: float = 1.0) -> None:
        for pair in self.columns:
            self.scales[pair].learn_all(gradient, curvature)
            more = self.longer(*pair)
            self.laws[pair[0]].learn_all(more * gradient, more**2 * curvature)
        factor = self.calibration
        factor.variance = 1 / (1 / factor.variance + curvature)
        factor.mean = min(max(factor.mean + factor.variance * gradient, 0.5), 1.5)
        factor.variance += times * 3e-6

    # three teams or more

    def many(self, match: SlowMatch) -> list[float]:
        teams = match.teams
        known = [self.doublings(team) for team in teams]
        means, noise = np.zeros((len(self.views), len(teams))), np.zeros((len(self.views), len(teams)))
        for index, view in enumerate(self.views):
            for number, team in enumerate(teams):
                _, mean, variance = self.sums(view, team)
                means[index, number], noise[index, number] = mean + known[number] * view.experience.mean, variance + 0.5
        pairs = [(i, j) for i in range(len(teams)) for j in range(i + 1, len(teams))]
        expected = np.zeros(len(teams))
        for i, j in pairs:
            slopes = K / np.sqrt(noise[:, i] + noise[:, j])
            mixed = float(self.weights @ (slopes * (means[:, i] - means[:, j])))
            chance = sigma(self.factor() * mixed)
            expected[i] += chance / (len(teams) - 1)
            expected[j] += (1 - chance) / (len(teams) - 1)
        exact = [(*means[:, i], *noise[:, i], known[i]) for i in range(len(teams))]
        keys = [(team.place, *np.float32(numbers)) for team, numbers in zip(teams, exact, strict=True)]
        order = sorted(range(len(teams)), key=lambda i: (*keys[i], *exact[i]))
        compared = pairs if len(teams) - 1 <= self.rivals else ring(order, self.rivals)
        push, pull = np.zeros_like(means), np.zeros_like(means)
        gradient, curvature = np.zeros(len(self.views)), np.zeros((len(self.views), len(self.views)))
        calibration_gradient = calibration_curvature = 0.0
        for i, j in compared:
            score = 0.5 + 0.5 * ((teams[j].place > teams[i].place) - (teams[j].place < teams[i].place))
            slopes = K / np.sqrt(noise[:, i] + noise[:, j])
            log_odds = slopes * (means[:, i] - means[:, j])
            p = 1 / (1 + np.exp(-log_odds))
            g, h = slopes * (score - p), slopes**2 * p * (1 - p)
            for one, sign in ((i, 1), (j, -1)):
                precision = h / (1 - np.minimum(noise[:, one] * h, 0.99))
                pull[:, one] += precision
                push[:, one] += sign * g * (1 + noise[:, one] * precision)
            mixed = float(self.weights @ log_odds)
            calibrated, chance = sigma(self.factor() * mixed), sigma(mixed)
            calibration_gradient += mixed * (score - calibrated)
            calibration_curvature += mixed**2 * calibrated * (1 - calibrated)
            gradient += log_odds * (score - chance)
            curvature += chance * (1 - chance) * np.outer(log_odds, log_odds)
        if compared is not pairs:
            for alike in ([i for i, key in enumerate(keys) if key == one] for one in set(keys)):
                for messages in (push, pull):
                    messages[:, alike] = messages[:, alike].mean(axis=1, keepdims=True)
        factor = len(pairs) / len(compared)
        average = sum(known) / len(known)
        for index, view in enumerate(self.views):
            entry, slope, experience = np.zeros(2), np.zeros(2), np.zeros(2)  # gradient and curvature by each
            damp = 1 + noise[index] * factor * pull[index]
            told = list(zip(factor * push[index] / damp, factor * pull[index] / damp, strict=True))
            leads = [np.array([view.offset_lead(team, *pair) for team in teams]) for pair in self.columns]
            for number, team in enumerate(teams):
                g, h = told[number]
                w = len(team.players) ** -view.alpha
                c, by_number = self.new_share(view, team, w), self.by_number(view, team, w)
                self.learn_players(view, team, w, 0.0, 0.0, g, 0.6 * h)
                entry += c * g, c * c * h
                slope += by_number * g, by_number**2 * h
                more = known[number] - average
                experience += more * g, more * more * h
            gradients, curvatures = np.array(told).T
            for (column, _), lead in zip(self.columns, leads, strict=True):
                apart = lead - lead.mean()
                view.learn_gain(column, apart @ gradients, apart**2 @ curvatures)
            view.entry.learn_all(*entry)
            view.slope.learn_all(*slope)
            view.keep_newcomers_near()
            view.experience.learn_all(*experience)
        times = min(len(teams) / 2, 20) / len(compared)
        self.calibrate(times * calibration_gradient, times * calibration_curvature, times * len(compared))
        self.mix(times * gradient, times * curvature, times * len(compared))
        return expected.tolist()

    # players' scores

    def read_scores(self, players: list[SlowPlayer]) -> None:
        """Step 6."""
        scored = [player for player in players if player.score is not None]
        if len(scored) < 2:
            return
        view, middle = self.reader, sum(player.score for player in scored) / len(scored)
        if self.score_square > 0:
            skill = sum(view.players[player.name][0] for player in scored) / len(scored)
            for player in scored:
                belief = view.players[player.name]
                r = clip((player.score - middle) / math.sqrt(self.score_square), 3)
                gain = belief[1] / (belief[1] + 3 * view.v0)
                belief[0] += gain * (1.5 * math.sqrt(view.v0) * r - (belief[0] - skill))
                belief[1] *= 1 - gain
        square = sum((player.score - middle) ** 2 for player in scored) / len(scored)
        self.scored += len(scored)
        rate = max(len(scored) / self.scored, 1 - 0.9995 ** len(scored))
        self.score_square += rate * (square - self.score_square)


def part_of(player: SlowPlayer, duration: float | None) -> float:
    """The part of the match that counts for a player: all of it but for those who quit."""
    if not player.quit or player.seconds is None or not duration:
        return 1.0
    return min(max(player.seconds / duration, 1e-4), 1.0)


def margin_of(first: SlowTeam, second: SlowTeam, result: int) -> float | None:
    """d of step 3; None without scores."""
    if first.score is None or second.score is None:
        return None
    a, b = (math.copysign(math.sqrt(abs(team.score)), team.score) for team in (first, second))
    return result * abs(a - b) ** 0.9


def ring(order: list[int], rivals: int) -> list[tuple[int, int]]:
    """The pairs that are compared in a large contest: teams at certain distances around this order."""
    teams, half = len(order), rivals // 2
    pairs = []
    for step in range(1, half + 1):
        apart = max(step * (teams // 2) // (half + 1), 1)
        ranks = range(teams // 2 if 2 * apart == teams else teams)
        pairs += [(order[rank], order[(rank + apart) % teams]) for rank in ranks]
    return pairs
