"""TrueSkill: a mean and a deviation per player, learned from the order of finish; teams, draws, free-for-alls.

Definition: docs/systems/trueskill.md, after Herbrich, Minka & Graepel 2006. Two teams are rated in closed form, three
or more by message passing along the order of finish, until it converges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from evenmatch.systems.maths import draw_v_w, play_share, quick_cdf, v_win, w_win
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
from evenmatch.systems.message_passing import ANSWER_PI, ANSWER_TAU, COLUMNS, MEAN, PLAYERS, VARIANCE, pass_messages
from evenmatch.systems.system import (
    Columns,
    Factor,
    Floats,
    Integers,
    Parameters,
    Records,
    System,
    fields,
    flag,
    kernel,
    number,
    rarely,
    whole,
)


@dataclass(frozen=True)
class TrueskillParameters(Parameters):
    """Skill in TrueSkill's own points: 25 in the middle; a lead of beta means odds of about three to one."""

    mean: float = number(
        25.0, -1e6, 1e6, "mean of a newcomer, and so what one more player is worth to a team", search=(0, 50)
    )
    deviation: float = number(25 / 3, 1e-3, 1e6, "deviation of a newcomer", search=(0.1, 250))
    beta: float = number(25 / 6, 1e-3, 1e6, "deviation of a performance around the skill")
    tau: float = number(25 / 300, 0, 1e6, "deviation that each match adds", search=(0.00003, 15))
    draw: float = number(0.1, 0, 0.99, "probability of a draw between equals", search=(0, 0.5))
    display: float = number(3.0, -100, 100, "the shown rating is the mean minus this many deviations")
    partial_play: bool = flag(True, "players count for the part of the match they played, by `seconds`", search=True)
    advantage: float = number(0.0, -1e5, 1e5, "points added to the team that is listed first", search=(-4, 12))
    sweeps: int = whole(1000, 1, 1000, "the most message passes in a match of three or more teams; fewer are faster")


class Trueskill(NamedTuple):
    """Parameters in the form that kernels read; `margin` is the draw margin of one player."""

    beta2: float
    tau2: float
    margin: float
    display: float
    partial_play: bool
    advantage: float
    sweeps: int


def _compile(p: TrueskillParameters) -> Trueskill:
    margin = NormalDist().inv_cdf((p.draw + 1) / 2) * p.beta
    return Trueskill(p.beta**2, p.tau**2, margin, p.display, p.partial_play, p.advantage, p.sweeps)


FACTORS = (
    Factor("weight", "part of the match that counts, by seconds"),
    Factor("mean_change", "change of the mean"),
    Factor("deviation_before", "deviation before the match"),
    Factor("deviation_after", "deviation after it"),
)


@kernel
def performance(team: Integers, state: Records, params: Trueskill) -> tuple[float, float]:
    """Mean and variance of a team's performance if all its players play to the end."""
    mean, variance = sums(team, state)
    return mean, variance + len(team) * (params.tau2 + params.beta2)


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Trueskill) -> tuple[float, float]:
    """P(the difference of performances exceeds the draw margin), P(it lies within)."""
    own, own_variance = performance(a, state, params)
    other, other_variance = performance(b, state, params)
    lead = own - other + (params.advantage if home else 0.0)
    scale = 1.0 / math.sqrt(own_variance + other_variance)
    margin = params.margin * math.sqrt(len(a) + len(b))
    win, loss = quick_cdf((lead - margin) * scale), quick_cdf((-lead - margin) * scale)
    return win, max(0.0, 1.0 - win - loss)


@kernel
def weighed(h: Columns, m: int, team: int, state: Records, params: Trueskill) -> tuple[float, float]:
    """Mean and variance of a team's performance, each player weighted by their share of the match."""
    mean, variance = 0.0, 0.0
    for slot in range(h.slot_start[team], h.slot_start[team + 1]):
        record = state[h.player[slot]]
        weight = play_share(h, m, slot) if params.partial_play else 1.0
        mean += weight * record.mean
        variance += weight * weight * (record.deviation * record.deviation + params.tau2 + params.beta2)
    return mean + (params.advantage if team == h.team_start[m] else 0.0), variance


@kernel
def learn(
    h: Columns, m: int, team: int, state: Records, params: Trueskill, shift: float, shrink: float, factors: Records
) -> None:
    """Move a team's means by `shift` per unit of weighted variance, and shrink their variances by `shrink`."""
    for slot in range(h.slot_start[team], h.slot_start[team + 1]):
        record = state[h.player[slot]]
        weight = play_share(h, m, slot) if params.partial_play else 1.0
        variance = record.deviation * record.deviation + params.tau2
        change = weight * variance * shift
        before = record.deviation
        record.mean += change
        record.deviation = math.sqrt(variance * (1.0 - weight * weight * variance * shrink))
        record.rating = record.mean - params.display * record.deviation
        if len(factors):
            note = factors[slot]
            note.weight = weight
            note.mean_change = change
            note.deviation_before = before
            note.deviation_after = record.deviation


@rarely
def settle(h: Columns, m: int, state: Records, params: Trueskill, factors: Records, scratch: Floats) -> None:
    """Rate a match of three or more teams by message passing."""
    first, end = h.team_start[m], h.team_start[m + 1]
    count = int(np.int64(end - first))
    for row in range(count):
        team = first + row
        scratch[row, MEAN], scratch[row, VARIANCE] = weighed(h, m, team, state, params)
        scratch[row, PLAYERS] = float(h.slot_start[team + 1] - h.slot_start[team])
    pass_messages(h, first, count, params.margin, params.sweeps, scratch)
    for row in range(count):
        pi, tau = scratch[row, ANSWER_PI], scratch[row, ANSWER_TAU]
        mean, variance = scratch[row, MEAN], scratch[row, VARIANCE]
        scale = 1.0 / (1.0 + pi * variance)
        learn(h, m, first + row, state, params, (tau - pi * mean) * scale, pi * scale, factors)


@kernel
def update(
    h: Columns, m: int, state: Records, params: Trueskill, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Rate two teams in closed form, more by message passing."""
    first, end = h.team_start[m], h.team_start[m + 1]
    if end - first == 2:
        own, own_variance = weighed(h, m, first, state, params)
        other, other_variance = weighed(h, m, first + 1, state, params)
        scale = 1.0 / math.sqrt(own_variance + other_variance)
        players = h.slot_start[end] - h.slot_start[first]
        margin = params.margin * math.sqrt(float(players)) * scale
        lead = (own - other) * scale
        ahead = h.place[first + 1] - h.place[first]
        sign = 1.0 if ahead >= 0 else -1.0
        v, w = 0.0, 0.0
        if ahead == 0:
            v, w = draw_v_w(lead, margin)
        else:
            v = v_win(sign * lead - margin)
            w = w_win(sign * lead - margin, v)
        shift, shrink = sign * v * scale, w * scale * scale
        for side in range(2):
            learn(h, m, first + side, state, params, shift if side == 0 else -shift, shrink, factors)
    else:
        settle(h, m, state, params, factors, scratch)


SYSTEM = System(
    name="trueskill",
    title="a skill and how sure of it, for teams, free-for-alls, draws and partial play",
    source="Herbrich, Minka & Graepel 2006, TrueSkill: A Bayesian Skill Rating System",
    needs="any matches; `seconds` if players are to count for the part of the match they played",
    parameters=TrueskillParameters,
    presets={
        "points": {
            "mean": 1500.0,
            "deviation": 500.0,
            "beta": 250.0,
            "tau": 5.0,
            "display": 0.0,
        }
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
    scratch_columns=COLUMNS,
    because=because,
    note=certainty_note,
    recall=recall,
    strength=mean_strength,
)
