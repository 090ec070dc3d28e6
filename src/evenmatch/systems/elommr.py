"""Elo-MMR: each match yields a performance by robust comparison with everyone in it; the rating is their robust mean.

Definition: docs/systems/elommr.md, after Ebtekar & Liu, "An Elo-like System for Massive Multiplayer Competitions"
(2021), with logistic performances and the defaults of their published code. The last 16 performances are remembered
individually, older ones as one normal summary. In team matches each rival team is one opponent, its average member.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenmatch.systems.finish_order import rank_teams
from evenmatch.systems.growing_deviation import COMPARED_AS, average, grow, idle_time
from evenmatch.systems.maths import DAY, logistic, newton, score_of
from evenmatch.systems.system import (
    Change,
    Columns,
    Factor,
    Floats,
    Integers,
    Parameters,
    Reason,
    Records,
    System,
    choice,
    fields,
    flag,
    in_time,
    kernel,
    number,
    rarely,
    starting_rating,
    uncertain_note,
    whole,
    wording,
)

MEMORY = 16  # performances
MULTIPLIER = math.pi / math.sqrt(3.0)  # scale of the logistic curve with a normal curve's variance
REACH = 7500.0  # points: performances lie within this distance of a newcomer's rating
CLOSE = 1e-6  # points: a step this small ends a search; the next one would be a millionth of it
STEPS = 200


@dataclass(frozen=True)
class ElommrParameters(Parameters):
    """Ratings and deviations in points."""

    start: float = number(1500.0, -1e6, 1e6, "rating of a newcomer")
    deviation: float = number(350.0, 1, 10_000, "deviation of a newcomer", search=(10, 1000))
    beta: float = number(200.0, 1, 10_000, "deviation of a performance around the skill", search=(50, 2000))
    limit: float = number(80.0, 0.1, 10_000, "deviation that a player approaches over many matches", search=(1, 400))
    rho: float = number(1.0, 0, 100, "how fast performances lose their robustness to outliers", search=(0.01, 10))
    drift: float = number(0.0, 0, 1e6, "variance that each day adds, in points squared", search=(0, 100))
    split_ties: bool = flag(False, "a tie counts as half a win and half a loss, not as a win and a loss", search=True)
    advantage: float = number(0.0, -1e5, 1e5, "points added to the team that is listed first", search=(-100, 200))
    compared_as: str = choice(
        "player",
        COMPARED_AS,
        "what is compared with the rival teams: the player's own rating, or the mean rating of their team",
        search=True,
    )
    rivals: int = whole(
        500,
        1,
        1_000_000,
        "the most rivals that a player is compared with; if there are more, a sample across all places",
    )

    def conflict(self) -> str:
        """The limit, a deviation after many performances, must be below that of a single one."""
        if self.limit < self.beta:
            return ""
        return f"limit={self.limit:g} is not below beta={self.beta:g}; expected a smaller limit"


class Elommr(NamedTuple):
    """Parameters in the form that kernels read; `step` is the variance added per match, `drift` per microsecond."""

    start: float
    beta2: float
    step: float
    rho: float
    drift: float
    split_ties: bool
    advantage: float
    by_team: bool
    rivals: int


def _compile(p: ElommrParameters) -> Elommr:
    step = p.limit**4 / (p.beta**2 - p.limit**2)
    by_team = p.compared_as == "team"
    return Elommr(p.start, p.beta**2, step, p.rho, p.drift / DAY, p.split_ties, p.advantage, by_team, p.rivals)


STATE = np.dtype(
    [
        ("rating", "f8"),
        ("deviation", "f8"),
        ("normal_mean", "f8"),  # prior and all performances before the last 16
        ("normal_weight", "f8"),  # one over the variance
        ("games", "i8"),
        ("last_played", "i8"),
        ("performance", "f8", MEMORY),
        ("weight", "f8", MEMORY),  # the tanh terms' factor
    ],
    align=True,
)
FACTORS = (
    Factor("performance", "the rating at which the result would have been expected"),
    Factor("noise", "variance added for the time since the last match and for this match"),
    Factor("deviation_before", "deviation before the match, including the noise"),
    Factor("deviation_after", "deviation after it"),
)
# Columns of scratch. Rows are teams in listed order; RANK is the best rank among equal teams.
MEAN, WEIGHT, BONUS, RANK = range(4)
ORDER = 4  # rows are ranks: the team that finished there
SAMPLE = 5  # rows are numbers: the sampled rivals
EMPTY_MEMORY = (0.0,) * MEMORY


@kernel
def noise_at(state: Records, player: int, now: int, params: Elommr) -> float:
    """The variance added before a match at this time, for the elapsed time and for the match."""
    return params.step + params.drift * idle_time(state, player, now)


@kernel
def variance_at(state: Records, player: int, now: int, params: Elommr) -> float:
    """The variance in a match at this time, including the noise."""
    deviation = state[player].deviation
    return deviation * deviation + noise_at(state, player, now, params)


@kernel
def drifted_variance_at(state: Records, player: int, now: int, params: Elommr) -> float:
    """The variance at a time without a match, which adds no step."""
    deviation = state[player].deviation
    return deviation * deviation + params.drift * idle_time(state, player, now)


@rarely
def age(state: Records, now: int, params: Elommr) -> None:
    """Advance the deviations to this time."""
    grow(state, now, params, drifted_variance_at)


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Elommr) -> tuple[float, float]:
    """The probability that one average member outperforms the other. Draws count half and are not predicted."""
    own, own_variance = average(a, now, state, params, variance_at)
    other, other_variance = average(b, now, state, params, variance_at)
    deviation = math.sqrt(own_variance + other_variance + 2.0 * params.beta2)
    lead = own - other + (params.advantage if home else 0.0)
    return logistic(MULTIPLIER * lead / deviation), 0.0


@kernel
def pull_of(
    h: Columns, first: int, team: int, rival: int, x: float, tied: float, scratch: Floats
) -> tuple[float, float]:
    """A rival's term in Σ w (S − E(x)) and in its slope; `tied` is how often a tie counts each way."""
    ahead = h.place[rival] - h.place[team]
    w = scratch[rival - first, WEIGHT]
    bonus = scratch[team - first, BONUS] - scratch[rival - first, BONUS]
    chance = logistic(w * (x + bonus - scratch[rival - first, MEAN]))
    times = 2.0 * tied if ahead == 0 else 1.0
    return times * w * (score_of(ahead) - chance), times * w * w * chance * (1.0 - chance)


@rarely
def choose_rivals(rank: int, teams: int, most: int, scratch: Floats) -> None:
    """Write a sample of rivals into scratch, evenly spaced around the order of finish from this rank."""
    for index in range(most):
        other = (rank + 1 + (2 * index + 1) * (teams - 1) // (2 * most)) % teams
        scratch[index, SAMPLE] = scratch[other, ORDER]


@rarely
def performance_of(
    h: Columns, first: int, end: int, team: int, own: float, weight: float, params: Elommr, scratch: Floats
) -> float:
    """The rating x at which Σ w (S − E(x)) over all opponents is 0; the player is an opponent tied with themself.

    A tie is a win and a loss, or half of each (split_ties). If there are more than `rivals`, a sample of that size,
    evenly spaced around the order of finish, stands for all. Compared as a team, the player is as far above their own
    rating as the team performed above its mean. Newton's method within shrinking bounds.
    """
    low, high, x = params.start - REACH, params.start + REACH, own
    tied = 0.5 if params.split_ties else 1.0  # how often a tie counts as a win, and as a loss
    lift = scratch[team - first, MEAN] - own if params.by_team else 0.0
    teams, most = int(np.int64(end - first)), params.rivals
    if teams - 1 > most:
        choose_rivals(int(scratch[team - first, RANK]), teams, most, scratch)
    for _ in range(STEPS):
        chance = logistic(weight * (x - own))
        value = tied * weight * (1.0 - 2.0 * chance)
        slope = 2.0 * tied * weight * weight * chance * (1.0 - chance)
        if teams - 1 <= most:
            for rival in range(first, end):
                if rival != team:
                    pull, steep = pull_of(h, first, team, rival, x + lift, tied, scratch)
                    value += pull
                    slope += steep
        else:
            times = (teams - 1.0) / most  # rivals that each sampled one stands for
            for index in range(most):
                rival = first + int(scratch[index, SAMPLE])
                pull, steep = pull_of(h, first, team, rival, x + lift, tied, scratch)
                value += times * pull
                slope += times * steep
        before = x
        x, low, high = newton(x, value, slope, low, high)
        if abs(x - before) < CLOSE:
            break
    return x


@rarely
def robust_mean(state: Records, player: int, guess: float, params: Elommr) -> float:
    """The mean of the normal summary and the remembered performances. Distant ones pull no harder than near ones."""
    record = state[player]
    low, high, x = params.start - REACH, params.start + REACH, guess
    steep = MULTIPLIER / math.sqrt(params.beta2)
    for _ in range(STEPS):
        value = record.normal_weight * (record.normal_mean - x)
        slope = record.normal_weight
        for index in range(min(record.games, MEMORY)):
            share = logistic(steep * (x - record.performance[index]))
            value += record.weight[index] * (1.0 - 2.0 * share)
            slope += 2.0 * record.weight[index] * steep * share * (1.0 - share)
        before = x
        x, low, high = newton(x, value, slope, low, high)
        if abs(x - before) < CLOSE:
            break
    return x


@rarely
def diffuse(state: Records, player: int, noise: float, params: Elommr) -> None:
    """Add the noise: all remembered weights shrink, and part of the performances' weight moves to the summary."""
    record = state[player]
    before = record.deviation * record.deviation
    decay = before / (before + noise)
    transfer = decay**params.rho
    performances = 0.0
    for index in range(min(record.games, MEMORY)):
        performances += record.weight[index] / (MULTIPLIER * math.sqrt(params.beta2))
        record.weight[index] *= transfer * decay
    remaining = transfer * record.normal_weight
    moved = (1.0 - transfer) * (record.normal_weight + performances)
    record.normal_mean = (remaining * record.normal_mean + moved * record.rating) / (remaining + moved)
    record.normal_weight = decay * (remaining + moved)
    record.deviation = math.sqrt(before + noise)


@rarely
def remember(state: Records, player: int, performance: float, now: int, params: Elommr) -> None:
    """Store the performance in place of the oldest, which joins the summary, and compute the new rating."""
    record = state[player]
    oldest = record.games % MEMORY
    if record.games >= MEMORY:
        weight = record.weight[oldest] / (MULTIPLIER * math.sqrt(params.beta2))
        total = record.normal_weight + weight
        record.normal_mean = (record.normal_weight * record.normal_mean + weight * record.performance[oldest]) / total
        record.normal_weight = total
    record.performance[oldest] = performance
    record.weight[oldest] = MULTIPLIER / math.sqrt(params.beta2)
    record.games += 1
    record.last_played = now
    record.rating = robust_mean(state, player, record.rating, params)
    record.deviation = 1.0 / math.sqrt(1.0 / (record.deviation * record.deviation) + 1.0 / params.beta2)


@kernel
def update(
    h: Columns, m: int, state: Records, params: Elommr, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Find each player's or team's performance against the rival teams' average members, then the robust means."""
    first, end = h.team_start[m], h.team_start[m + 1]
    now = h.time[m]
    for team in range(first, end):
        rating, variance = average(
            h.player[h.slot_start[team] : h.slot_start[team + 1]], now, state, params, variance_at
        )
        scratch[team - first, MEAN] = rating
        scratch[team - first, WEIGHT] = MULTIPLIER / math.sqrt(variance + params.beta2)
        scratch[team - first, BONUS] = params.advantage if team == first else 0.0
    if end - first - 1 > params.rivals:
        rank_teams(h, first, int(np.int64(end - first)), MEAN, RANK, scratch, ORDER, RANK)
    for team in range(first, end):
        for slot in range(h.slot_start[team], h.slot_start[team + 1]):
            player = h.player[slot]
            record = state[player]
            noise = noise_at(state, player, now, params)
            diffuse(state, player, noise, params)
            before = record.deviation
            weight = MULTIPLIER / math.sqrt(before * before + params.beta2)
            performance = performance_of(h, first, end, team, record.rating, weight, params, scratch)
            remember(state, player, performance, now, params)
            if len(factors):
                note = factors[slot]
                note.performance = performance
                note.noise = noise
                note.deviation_before = before
                note.deviation_after = record.deviation


def _note(change: Change, p: ElommrParameters) -> Reason | None:
    """The performance in this match, if the rating moved towards it, or that the rating is uncertain."""
    uncertain = uncertain_note(change, p.deviation / 2, 0.1)
    performance = float(change.factors["performance"])
    if (performance - change.before) * change.moved <= 0:
        return uncertain
    return Reason(wording.PERFORMED[uncertain is not None], {"performance": f"{performance:,.0f}"})


def _start_at(rating: float, p: ElommrParameters) -> tuple[object, ...]:
    rating = starting_rating(rating, p.start - REACH, p.start + REACH)
    return (rating, p.deviation, rating, p.deviation**-2, 0, 0, EMPTY_MEMORY, EMPTY_MEMORY)


def _move(state: Records, rating: Floats, p: ElommrParameters) -> Records:
    moved = state.copy()
    moved["rating"] = np.maximum(rating, p.start - REACH)
    change = moved["rating"] - state["rating"]
    moved["normal_mean"] += change
    played = np.arange(MEMORY) < state["games"][:, None]
    moved["performance"] += np.where(played, change[:, None], 0.0)
    return moved


SYSTEM = System(
    name="elommr",
    title="for large free-for-alls: an average of performances, in which one bad day counts little",
    source="Ebtekar & Liu 2021, An Elo-like System for Massive Multiplayer Competitions",
    parameters=ElommrParameters,
    presets={"split_ties": {"split_ties": True}},
    compile=_compile,
    state=STATE,
    newcomer=lambda p: _start_at(p.start, p),
    start_at=_start_at,
    as_of=in_time(age, _compile),
    move=_move,
    columns=fields("deviation"),
    factors=FACTORS,
    pair=pair,
    update=update,
    scratch_columns=6,
    note=_note,
)
