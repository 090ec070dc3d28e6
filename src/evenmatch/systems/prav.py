"""PRAV: predictive rating and volatility. A player's last games are re-evaluated with their present numbers.

Definition: docs/systems/prav.md, after the article "Designing a Rating System for Esports".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.systems.maths import normal_cdf, quick_cdf
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
    flag,
    kernel,
    match_of,
    number,
    starting_rating,
    whole,
    wording,
)

LONGEST = 10  # games in a window at most; more would enlarge every record and slow every match


@dataclass(frozen=True)
class PravParameters(Parameters):
    """The mean R and the volatility V (a variance) are in the system's own units; the shown rating is in points."""

    start_mean: float = number(0.0, -100, 100, "R of a newcomer")
    start_volatility: float = number(1.0, 1e-6, 1000, "V of a newcomer", search=(0.01, 10))
    c: float = number(
        4.0, 1e-6, 1000, "V is c times the variance of the outcomes, at least a twentieth of c", search=(0.5, 200)
    )
    gain: float = number(0.5, 0, 100, "standard deviations that R moves per unit of surprise", search=(0.01, 20))
    window: int = whole(10, 1, LONGEST, "games that are re-evaluated after each match")
    share_gain: bool = flag(True, "divide the gain by the size of the player's team", search=True)
    outcome: str = choice(
        "result", ("result", "share"), "what a game counts by: its result, or the share of team_score", search=True
    )
    display: str = choice("mean", ("mean", "conservative"), "the shown rating is R, or R − 2·√V, shifted and scaled")
    shift: float = number(1500.0, -1e6, 1e6, "shown rating of R = 0")
    scale: float = number(200.0, 1e-6, 1e6, "shown points per unit of R")
    volatility_scale: float = number(1.0, 1e-6, 1e6, "shown volatility per unit of V, which is never shifted")
    advantage: float = number(
        0.0, -1e5, 1e5, "shown points added to the sum of the team that is listed first", search=(-200, 800)
    )


class Prav(NamedTuple):
    """Parameters in the form that kernels read.

    doubt      how many deviations the shown rating lies below the mean
    advantage  in units of R
    """

    start_volatility: float
    c: float
    gain: float
    share_gain: bool
    by_share: bool
    window: int
    doubt: float
    shift: float
    scale: float
    advantage: float


def _compile(p: PravParameters) -> Prav:
    doubt = 2.0 if p.display == "conservative" else 0.0
    advantage = p.advantage / p.scale
    by_share = p.outcome == "share"
    return Prav(p.start_volatility, p.c, p.gain, p.share_gain, by_share, p.window, doubt, p.shift, p.scale, advantage)


STATE = np.dtype(
    [
        ("rating", "f8"),
        ("mean", "f8"),
        ("volatility", "f8"),
        ("games", "i8"),
        ("provisional", "i8"),  # 1 until the window is full; a bool would leave padding undefined
        ("outcome", "f8", LONGEST),
        ("lead", "f8", LONGEST),  # team-mates' minus opponents' rating sum, and the advantage
        ("variance", "f8", LONGEST),  # of all others in the game
    ],
    align=True,
)
FACTORS = (
    Factor("outcome", "what the match counted as, from 0 for a loss to 1 for a win, with the player's performance"),
    Factor("window", "how many of the last games are evaluated together"),
    Factor("window_outcome", "what these games counted as, on average"),
    Factor("window_expected", "what was expected of them, on average, with the player's present strength"),
    Factor("gain", "how far the strength moves if these games are a whole win better than expected"),
    Factor("mean_before", "strength before the match, in the system's own unit; 0: a newcomer's by default"),
    Factor("volatility_before", "how much the results vary, before the match"),
    Factor("volatility_after", "how much the results vary, after it"),
)
MEAN, VARIANCE = range(2)  # columns of scratch, a row per team
NO_GAMES = (0.0,) * LONGEST


@kernel
def sums(team: Integers, state: Records) -> tuple[float, float]:
    """Sums of R and of V over a team."""
    mean, variance = 0.0, 0.0
    for i in range(len(team)):
        record = state[team[i]]
        mean += record.mean
        variance += record.volatility
    return mean, variance


@kernel
def pair(a: Integers, b: Integers, home: bool, now: int, state: Records, params: Prav) -> tuple[float, float]:
    """Φ of the lead over the combined deviation of all performances. Draws are not predicted."""
    own, own_variance = sums(a, state)
    other, other_variance = sums(b, state)
    lead = own - other + (params.advantage if home else 0.0)
    return normal_cdf(lead / math.sqrt(own_variance + other_variance)), 0.0


@kernel
def shown(mean: float, volatility: float, params: Prav) -> float:
    """The rating that players see."""
    return params.shift + params.scale * (mean - params.doubt * math.sqrt(volatility))


@kernel
def outcome_of(h: Columns, team: int, rival: int, performance: float, params: Prav) -> float:
    """S against one rival: the result or share of scores, pulled towards 1 or 0 by the performance (NaN: none)."""
    ahead = h.place[rival] - h.place[team]
    if ahead == 0:
        return 0.5
    value = 1.0 if ahead > 0 else 0.0
    if params.by_share:
        share = h.team_score[team] / (h.team_score[team] + h.team_score[rival])
        if (ahead > 0 and share > 0.5) or (ahead < 0 and share < 0.5):
            value = share
    if performance > 0.0:
        return value + performance * ((1.0 if ahead > 0 else 0.5) - value)
    if performance < 0.0:
        return value - performance * ((0.5 if ahead > 0 else 0.0) - value)
    return value


@kernel
def judge(state: Records, player: int, window: int) -> tuple[float, float, float]:
    """Mean outcome of the window, its population variance, and the mean forecast with the current R and V."""
    record = state[player]
    games = min(record.games, window)
    total, forecast = 0.0, 0.0
    for k in range(games):
        total += record.outcome[k]
        forecast += quick_cdf((record.lead[k] + record.mean) / math.sqrt(record.variance[k] + record.volatility))
    mean = total / games
    spread = 0.0
    for k in range(games):
        spread += (record.outcome[k] - mean) * (record.outcome[k] - mean)
    return mean, spread / games, forecast / games


@kernel
def update(
    h: Columns, m: int, state: Records, params: Prav, expected: Floats, factors: Records, scratch: Floats
) -> None:
    """Add the match to every player's window, and re-evaluate the windows."""
    first, end = h.team_start[m], h.team_start[m + 1]
    rivals = end - first - 1
    all_mean, all_variance = 0.0, 0.0
    for team in range(first, end):
        mean, variance = sums(h.player[h.slot_start[team] : h.slot_start[team + 1]], state)
        scratch[team - first, MEAN], scratch[team - first, VARIANCE] = mean, variance
        all_mean += mean
        all_variance += variance
    for team in range(first, end):
        own_mean, own_variance = scratch[team - first, MEAN], scratch[team - first, VARIANCE]
        if rivals == 1:
            other = end - 1 - team  # the row of the other of two
            rival_mean, rival_variance = scratch[other, MEAN], scratch[other, VARIANCE]
        else:
            rival_mean, rival_variance = (all_mean - own_mean) / rivals, (all_variance - own_variance) / rivals
        bonus = params.advantage if team == first else -params.advantage / rivals  # the first-listed rival's advantage
        size = h.slot_start[team + 1] - h.slot_start[team]
        for slot in range(h.slot_start[team], h.slot_start[team + 1]):
            record = state[h.player[slot]]
            outcome = 0.0
            for rival in range(first, end):
                if rival != team:
                    outcome += outcome_of(h, team, rival, h.performance[slot], params)
            outcome /= rivals
            oldest = record.games % params.window
            record.outcome[oldest] = outcome
            record.lead[oldest] = own_mean - record.mean - rival_mean + bonus
            record.variance[oldest] = own_variance - record.volatility + rival_variance
            record.games += 1
            mean_outcome, variance, mean_forecast = judge(state, h.player[slot], params.window)
            gain = params.gain * math.sqrt(record.volatility) / (size if params.share_gain else 1)
            games = min(record.games, params.window)
            missing = params.window - games
            padded = (games * variance + missing * params.start_volatility / params.c) / params.window
            volatility = max(0.05 * params.c, params.c * padded)
            if len(factors):
                note = factors[slot]
                note.outcome = outcome
                note.window = games
                note.window_outcome = mean_outcome
                note.window_expected = mean_forecast
                note.gain = gain
                note.mean_before = record.mean
                note.volatility_before = record.volatility
                note.volatility_after = volatility
            record.mean += gain * (mean_outcome - mean_forecast)
            record.volatility = volatility
            record.provisional = record.games < params.window
            record.rating = shown(record.mean, volatility, params)


def _refuse(h: Columns, parameters: PravParameters) -> Iterator[tuple[int, str]]:
    if parameters.outcome != "share":
        return
    unread = np.isnan(h.team_score) | (h.team_score < 0)
    for match in np.unique(match_of(h, np.flatnonzero(unread))).tolist():
        yield (
            match,
            "team_score is empty or negative for a team; prav with outcome=share needs 0 or more for every team",
        )


def _first_shown(p: PravParameters) -> float:
    doubt = 2.0 if p.display == "conservative" else 0.0
    return p.shift + p.scale * (p.start_mean - doubt * math.sqrt(p.start_volatility))


def _start_at(rating: float, p: PravParameters) -> tuple[object, ...]:
    rating = starting_rating(rating)
    mean = p.start_mean - (_first_shown(p) - rating) / p.scale  # unlike inverting `shown`, exact for newcomers
    return (rating, mean, p.start_volatility, 0, 1, NO_GAMES, NO_GAMES, NO_GAMES)


def _move(state: Records, rating: Floats, p: PravParameters) -> Records:
    moved = state.copy()
    change = (rating - state["rating"]) / p.scale
    moved["mean"] += change
    moved["rating"] = rating
    window = moved["lead"].shape[1]
    played = np.arange(window) < state["games"][:, None]  # their forecasts do not change
    moved["lead"] -= np.where(played, change[:, None], 0.0)
    return moved


def _columns(state: Records, p: PravParameters) -> dict[str, NDArray[np.generic]]:
    return {
        "mean": state["mean"],
        "volatility": p.volatility_scale * state["volatility"],
        "games": state["games"],
        "provisional": state["provisional"] != 0,
    }


def _because(change: Change, p: PravParameters) -> Reason | None:
    f, rose, against = change.factors, change.moved > 0, change.is_against_result
    if change.moved and (float(f["window_outcome"]) > float(f["window_expected"])) != rose:
        return Reason(wording.VARIED_LESS if rose else wording.VARIED_MORE) if against else None
    if f["window"] == 1:
        return Reason(wording.PERFORMANCE) if against else None
    own, games = float(f["outcome"]), f"{float(f['window']):.0f}"
    standing = wording.NO_CHANGE if not change.moved else wording.RISE if rose else wording.FALL
    share, due = wording.percentages(float(f["window_outcome"]), float(f["window_expected"]))
    counted = "result" if own == change.result else "share" if p.outcome == "share" else "performance"
    then = (
        Reason(wording.COUNTED[counted], {"own": f"{100 * own:.0f}"}),
        Reason(wording.STANDING[standing], {"share": share, "due": due}),
    )
    return Reason(wording.NOT_ALONE if against else wording.LAST_GAMES, {"games": games}, then=then)


SYSTEM = System(
    name="prav",
    title="looks at a player's last ten games again after every match",
    source='the article "Designing a Rating System for Esports"',
    needs="any matches; `performance` if it is to count; `team_score` with outcome=share",
    parameters=PravParameters,
    presets={
        "as_written": {"gain": 2.0, "share_gain": False},
        "two_deviations": {"gain": 2.0},
        "steady": {"gain": 1.0},
    },
    compile=_compile,
    state=STATE,
    newcomer=lambda p: (_first_shown(p), p.start_mean, p.start_volatility, 0, 1, NO_GAMES, NO_GAMES, NO_GAMES),
    start_at=_start_at,
    move=_move,
    columns=_columns,
    factors=FACTORS,
    pair=pair,
    update=update,
    scratch_columns=2,
    refuse=_refuse,
    because=_because,
    strength=lambda records, p: p.shift + p.scale * records["mean"],
)
