"""Weng–Lin: a mean and a deviation per player by closed formulas, for any number of teams, in three models.

Definition: docs/systems/wenglin.md, after Weng & Lin, JMLR 12:267–300 (2011), with the defaults and conventions of
openskill 6.2, so that results agree. Plackett–Luce is the paper's algorithm 4, Bradley–Terry full its algorithm 1,
Thurstone–Mosteller full its algorithm 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from evenmatch.systems.maths import draw_v_w, logistic, play_share, quick_cdf, score_of, v_win, w_win
from evenmatch.systems.mean_and_deviation import (
    STATE,
    because,
    certainty_note,
    mean_strength,
    move,
    newcomer,
    recall,
    start_at,
    sums,
)
from evenmatch.systems.system import (
    Columns,
    Factor,
    Floats,
    Integers,
    Parameters,
    Records,
    System,
    choice,
    fields,
    flag,
    kernel,
    number,
)

VARIANTS = ("plackett_luce", "bradley_terry_full", "thurstone_mosteller_full")
LARGEST = 300.0  # exponent: the squares of such powers are finite
PLACKETT_LUCE, BRADLEY_TERRY, THURSTONE_MOSTELLER = range(3)


@dataclass(frozen=True)
class WenglinParameters(Parameters):
    """Skill in TrueSkill's points: 25 in the middle."""

    variant: str = choice("plackett_luce", VARIANTS, "the model that explains the finishing places", search=True)
    mean: float = number(
        25.0, -1e6, 1e6, "mean of a newcomer, and so what one more player is worth to a team", search=(0, 50)
    )
    deviation: float = number(25 / 3, 1e-3, 1e6, "deviation of a newcomer", search=(0.1, 250))
    beta: float = number(25 / 6, 1e-3, 1e6, "deviation of a performance around the skill")
    tau: float = number(25 / 300, 0, 1e6, "deviation that each match adds", search=(0.00003, 15))
    kappa: float = number(1e-4, 1e-12, 1, "every match leaves at least this share of a variance")
    margin: float = number(0.1, 1e-6, 1e6, "draw margin of thurstone_mosteller_full", search=(0.01, 10))
    display: float = number(3.0, -100, 100, "the shown rating is the mean minus this many deviations")
    limit_sigma: bool = flag(False, "a deviation never rises", search=True)
    partial_play: bool = flag(True, "players count for the part of the match they played, by `seconds`", search=True)
    advantage: float = number(0.0, -1e5, 1e5, "points added to the team that is listed first", search=(-4, 12))


class Wenglin(NamedTuple):
    """Parameters in the form that kernels read."""

    variant: int
    beta2: float
    tau2: float
    kappa: float
    margin: float
    display: float
    limit_sigma: bool
    partial_play: bool
    advantage: float


def _compile(p: WenglinParameters) -> Wenglin:
    variant = VARIANTS.index(p.variant)
    return Wenglin(
        variant, p.beta**2, p.tau**2, p.kappa, p.margin, p.display, p.limit_sigma, p.partial_play, p.advantage
    )


FACTORS = (
    Factor("weight", "part of the match that counts, by seconds"),
    Factor("share", "the player's share of the team's variance"),
    Factor("team_change", "change of the team's mean"),
    Factor("deviation_before", "deviation before the match"),
    Factor("deviation_after", "deviation after it"),
)
# Columns of scratch, a row per team, except ORDER and REST, which follow the order of finish.
MEAN, VARIANCE, OMEGA, DELTA, STRENGTH, REST, ORDER = range(7)


@kernel
def together(team: Integers, state: Records, params: Wenglin) -> tuple[float, float]:
    """Mean and variance of a team, summed over its players."""
    mean, variance = sums(team, state)
    return mean, variance + len(team) * params.tau2


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Wenglin) -> tuple[float, float]:
    """The model's own probability for two teams. Draws count half and are not predicted."""
    own, own_variance = together(a, state, params)
    other, other_variance = together(b, state, params)
    lead = own - other + (params.advantage if home else 0.0)
    lead /= math.sqrt(own_variance + other_variance + 2.0 * params.beta2)
    if params.variant == THURSTONE_MOSTELLER:
        return quick_cdf(lead), 0.0
    return logistic(lead), 0.0


@kernel
def plackett_luce(h: Columns, first: int, end: int, params: Wenglin, scratch: Floats) -> None:
    """Algorithm 4: each place is won against all teams there or behind, by sums along the order of finish."""
    count = end - first
    total, most = 0.0, -math.inf
    for i in range(count):
        total += scratch[i, VARIANCE] + params.beta2
        most = max(most, scratch[i, MEAN])
    c = math.sqrt(total)
    for i in range(count):
        scratch[i, STRENGTH] = math.exp(max((scratch[i, MEAN] - most) / c, -LARGEST))  # only ratios count
        place, ahead = h.place[first + i], 0
        for q in range(first, end):
            ahead += h.place[q] < place
        for q in range(first, first + i):
            ahead += h.place[q] == place
        scratch[ahead, ORDER] = float(i)
    rest = 0.0
    for rank in range(count):
        rest += scratch[int(scratch[count - 1 - rank, ORDER]), STRENGTH]
        scratch[count - 1 - rank, REST] = rest
    begin, once, twice = 0, 0.0, 0.0
    while begin < count:
        place, tied = h.place[first + int(scratch[begin, ORDER])], 1
        while begin + tied < count and h.place[first + int(scratch[begin + tied, ORDER])] == place:
            tied += 1
        once += 1.0 / scratch[begin, REST]
        twice += 1.0 / (scratch[begin, REST] * scratch[begin, REST])
        for rank in range(begin, begin + tied):
            i = int(scratch[rank, ORDER])
            strength, variance = scratch[i, STRENGTH], scratch[i, VARIANCE]
            scratch[i, OMEGA] = (1.0 / tied - strength * once) * variance / c
            scratch[i, DELTA] = strength * (once - strength * twice) * variance * math.sqrt(variance) / (c * c * c)
        begin += tied


@kernel
def by_pairs(h: Columns, first: int, end: int, params: Wenglin, scratch: Floats) -> None:
    """Algorithms 1 and 3: each pair of teams separately."""
    count = end - first
    for i in range(count):
        scratch[i, OMEGA] = scratch[i, DELTA] = 0.0
    for i in range(count):
        for q in range(i + 1, count):
            c = math.sqrt(scratch[i, VARIANCE] + scratch[q, VARIANCE] + 2.0 * params.beta2)
            lead = (scratch[i, MEAN] - scratch[q, MEAN]) / c
            ahead = h.place[first + q] - h.place[first + i]
            pull, shrink = 0.0, 0.0
            if params.variant == BRADLEY_TERRY:
                p = logistic(lead)
                pull = score_of(ahead) - p
                shrink = p * (1.0 - p)
            elif ahead == 0:
                pull, shrink = draw_v_w(lead, params.margin / c)
            else:
                sign = 1.0 if ahead > 0 else -1.0
                x = sign * lead - params.margin / c
                v = v_win(x)
                pull, shrink = sign * v, w_win(x, v)
            own, other = scratch[i, VARIANCE] / c, scratch[q, VARIANCE] / c
            scratch[i, OMEGA] += own * pull
            scratch[q, OMEGA] -= other * pull
            scratch[i, DELTA] += own * math.sqrt(own / c) / c * shrink
            scratch[q, DELTA] += other * math.sqrt(other / c) / c * shrink


@kernel
def update(
    h: Columns, m: int, state: Records, params: Wenglin, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Move each team's players by their share of the team's variance."""
    first, end = h.team_start[m], h.team_start[m + 1]
    for team in range(first, end):
        mean, variance = together(h.player[h.slot_start[team] : h.slot_start[team + 1]], state, params)
        scratch[team - first, MEAN] = mean + (params.advantage if team == first else 0.0)
        scratch[team - first, VARIANCE] = variance
    if params.variant == PLACKETT_LUCE:
        plackett_luce(h, first, end, params, scratch)
    else:
        by_pairs(h, first, end, params, scratch)
    for team in range(first, end):
        row = team - first
        for slot in range(h.slot_start[team], h.slot_start[team + 1]):
            record = state[h.player[slot]]
            weight = play_share(h, m, slot) if params.partial_play else 1.0
            variance = record.deviation * record.deviation + params.tau2
            share = variance / scratch[row, VARIANCE]
            before = record.deviation
            after = math.sqrt(variance * max(1.0 - share * scratch[row, DELTA] * weight, params.kappa))
            record.mean += share * scratch[row, OMEGA] * weight
            record.deviation = min(after, before) if params.limit_sigma else after
            record.rating = record.mean - params.display * record.deviation
            if len(factors):
                note = factors[slot]
                note.weight = weight
                note.share = share
                note.team_change = scratch[row, OMEGA]
                note.deviation_before = before
                note.deviation_after = record.deviation


SYSTEM = System(
    name="wenglin",
    title="a skill and how sure of it, like trueskill but by simpler formulas",
    source="Weng & Lin 2011, A Bayesian Approximation Method for Online Ranking; openskill 6.2",
    needs="any matches; `seconds` if players are to count for the part of the match they played",
    parameters=WenglinParameters,
    presets={
        "bradley_terry": {"variant": "bradley_terry_full"},
        "thurstone_mosteller": {"variant": "thurstone_mosteller_full"},
    },
    compile=_compile,
    state=STATE,
    newcomer=newcomer,
    start_at=start_at,
    move=move,
    columns=fields("mean", "deviation"),
    factors=FACTORS,
    pair=pair,
    update=update,
    scratch_columns=7,
    because=because,
    note=certainty_note,
    recall=recall,
    strength=mean_strength,
)
