"""Compiled scalar functions that several systems share: distributions, scores, and the means of teams."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Columns, Integers
from evenmatch.systems.compiled import allocating, kernel, rarely

DAY = 86_400_000_000  # microseconds
LOG_10 = math.log(10.0)
DENSITY = 1.0 / math.sqrt(2.0 * math.pi)  # density of a standard normal at 0
MILLION = 1_000_000  # exact arithmetic counts seconds and limits in millionths
LEAST_PLAY = 1e-4  # the smallest share of a match that a player counts as having played
NARROW = 1e-6  # deviations: a smaller draw margin counts as zero
_SQRT_HALF = math.sqrt(0.5)
_HALF = 31  # bits of half a factor
_MASK = (1 << _HALF) - 1
_EXACT = 2.0**62  # products below it are exact in int64

Four = tuple[int, int, int, int]
Records = NDArray[np.void]


@kernel
def normal_cdf(x: float) -> float:
    """P(a standard normal is at most x)."""
    return 0.5 * math.erfc(-x * _SQRT_HALF)


@kernel
def tail_ratio(a: float) -> float:
    """P(a standard normal exceeds a) over exp(−a²/2), for a from 0 to 40; relative error 1e-13 up to 4, 4e-6 at 40.

    Hart 1968, algorithm 5666, from West, "Better approximations to cumulative normal functions" (2005), who multiplies
    by the exponential.
    """
    over = 0.0352624965998911
    over = over * a + 0.700383064443688
    over = over * a + 6.37396220353165
    over = over * a + 33.912866078383
    over = over * a + 112.079291497871
    over = over * a + 221.213596169931
    over = over * a + 220.206867912376
    under = 0.0883883476483184
    under = under * a + 1.75566716318264
    under = under * a + 16.064177579207
    under = under * a + 86.7807322029461
    under = under * a + 296.564248779674
    under = under * a + 637.333633378831
    under = under * a + 793.826512519948
    under = under * a + 440.413735824752
    return over / under


@kernel
def quick_cdf(x: float) -> float:
    """P(a standard normal is at most x) with an absolute error of 3e-16; twice as fast as with erfc."""
    a = min(abs(x), 40.0)  # beyond it the tail is 0, and powers of x overflow
    tail = math.exp(-0.5 * a * a) * tail_ratio(a)
    return 1.0 - tail if x > 0.0 else tail


@rarely
def far_ratio(a: float) -> float:
    """`tail_ratio` times √(2π) for a from 4 up, with a relative error of 1e-12, by Laplace's continued fraction."""
    under = a
    for k in range(24, 0, -1):
        under = a + k / under
    return 1.0 / under


@rarely
def mills(x: float) -> float:
    """P(a standard normal exceeds x) over its density at x, with a relative error of 1e-12, for x from −37 up."""
    if x > 4.0:
        return far_ratio(x)
    a = abs(x)
    if x >= 0.0:
        return tail_ratio(a) / DENSITY
    e = math.exp(-0.5 * a * a)
    return (1.0 - e * tail_ratio(a)) / (DENSITY * e)


@kernel
def v_win(x: float) -> float:
    """TrueSkill's v for a win, the weight of a surprise: the normal density at x over the probability up to x."""
    if x < -4.0:
        return 1.0 / far_ratio(-x)
    a = min(abs(x), 40.0)
    e, ratio = math.exp(-0.5 * a * a), tail_ratio(a)
    above = x > 0.0
    return DENSITY * (e if above else 1.0) / (1.0 - e * ratio if above else ratio)


@kernel
def w_win(x: float, v: float) -> float:
    """TrueSkill's w for a win: the share by which it reduces the variance; v is v_win(x)."""
    return min(max(v * (v + x), 0.0), 1.0)


@rarely
def draw_v_w(t: float, e: float) -> tuple[float, float]:
    """TrueSkill's v and w for a draw with a lead of t and a margin of e, both in deviations.

    Numerator and denominator are divided by the density at |t| − e, so that neither underflows.
    """
    if e < NARROW:  # the limit for no margin at all: the difference is known to be 0
        return -t, 1.0
    a = abs(t)
    fade = math.exp(-2.0 * a * e)
    between = mills(a - e) - fade * mills(a + e)
    v = (fade - 1.0) / between
    w = v * v + ((e - a) + (e + a) * fade) / between
    return (v if t >= 0.0 else -v), min(max(w, 0.0), 1.0)


@kernel
def logistic(x: float) -> float:
    """1 / (1 + exp(−x))."""
    return 1.0 / (1.0 + math.exp(-x))


@kernel
def newton(x: float, value: float, slope: float, low: float, high: float) -> tuple[float, float, float]:
    """One step towards the root of a function that falls by `slope` at x: the next x, and new bounds of the root.

    Newton's method, or bisection where that would leave the bounds.
    """
    low, high = (x, high) if value > 0.0 else (low, x)
    new = x + value / slope
    inside = low < new < high or new == x  # x is one of the bounds
    return new if inside else 0.5 * (low + high), low, high


@kernel
def mean_rating(team: Integers, state: Records) -> float:
    """Mean rating of a team."""
    if len(team) == 1:
        return state[team[0]].rating
    total = 0.0
    for i in range(len(team)):
        total += state[team[i]].rating
    return total / len(team)


@kernel
def score_of(lead: int) -> float:
    """1 for a win, 0.5 for a draw, 0 for a loss; `lead` is the rival's place minus one's own."""
    return 1.0 if lead > 0 else 0.5 if lead == 0 else 0.0


@kernel
def team_result(h: Columns, first: int, end: int, team: int) -> float:
    """The mean over a team's rivals (teams from `first` up to `end`) of 1 for a win, 0.5 for a draw, 0 for a loss."""
    total = 0.0
    for rival in range(first, end):
        if rival != team:
            total += score_of(h.place[rival] - h.place[team])
    return total / (end - first - 1)


@kernel
def play_share(h: Columns, m: int, slot: int) -> float:
    """The part of match m that a player was present, by seconds: from 0.0001 to 1, and 1 if not recorded."""
    share = h.seconds[slot] / h.duration[m]
    if math.isnan(share):  # not recorded, or a match of zero length
        return 1.0
    return min(max(share, LEAST_PLAY), 1.0)


@kernel
def ratio_of_wholes(over: float, under: float, scale: int, limit: int) -> tuple[int, int]:
    """over/under as whole numbers in units of 1/scale, kept from 1/limit to limit; limit in millionths, 0: none."""
    if over == under:
        return 1, 1
    if limit > 0 and over * MILLION > limit * under:
        return limit, MILLION
    if limit > 0 and over * limit < under * MILLION:
        return MILLION, limit
    return int(over * scale + 0.5), int(under * scale + 0.5)


@kernel
def product_at_least(a: Four, b: Four) -> bool:
    """Whether the product of a's four whole numbers is at least that of b's, exactly; each from 0 to 2**62 − 1."""
    if max(float(a[0]) * a[1] * a[2] * a[3], float(b[0]) * b[1] * b[2] * b[3]) < _EXACT:
        return a[0] * a[1] * a[2] * a[3] >= b[0] * b[1] * b[2] * b[3]
    return _long_product_at_least(a, b)


@allocating
def _long_product_at_least(a: Four, b: Four) -> bool:
    left, right = np.zeros(9, np.uint64), np.zeros(9, np.uint64)
    _multiply(left, a)
    _multiply(right, b)
    for limb in range(8, -1, -1):
        if left[limb] != right[limb]:
            return bool(left[limb] > right[limb])
    return True


@rarely
def _multiply(limbs: NDArray[np.uint64], factors: Four) -> None:
    """Write the product to `limbs` of 31 bits each, lowest first; a factor has two limbs."""
    limbs[0] = 1
    for factor in factors:
        low, high = np.uint64(factor & _MASK), np.uint64(factor >> _HALF)
        carry = below = np.uint64(0)  # below: the next lower limb before this factor
        for limb in range(len(limbs)):
            limb_before = limbs[limb]
            total = limb_before * low + below * high + carry  # below 2**64
            limbs[limb] = total & np.uint64(_MASK)
            carry, below = total >> np.uint64(_HALF), limb_before
