"""The scalars that systems share, and the exact arithmetic behind wager's cents."""

import math
from decimal import ROUND_FLOOR, Decimal, localcontext

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenmatch.systems.maths import logistic, normal_cdf, product_at_least, quick_cdf
from package_systems import Fast
from reference.model import SlowMatch, SlowPlayer, SlowTeam

factor = st.integers(0, 62).flatmap(lambda bits: st.integers(0, 2**bits - 1))
four = st.tuples(factor, factor, factor, factor)


@given(four, four)
def test_products_are_compared_exactly(a, b):
    assert product_at_least(a, b) == (math.prod(a) >= math.prod(b))


@given(four, st.permutations(range(4)), st.integers(-1, 1))
def test_products_are_told_apart_by_a_single_unit(a, order, off):
    b = [a[at] for at in order]
    b[0] = min(max(b[0] + off, 0), 2**62 - 1)
    assert product_at_least(a, tuple(b)) == (math.prod(a) >= math.prod(b))


# x, P(X <= x) to twelve digits, from printed tables of the normal distribution
NORMAL = [(0.0, 0.5), (1.0, 0.841344746069), (-1.0, 0.158655253931), (1.959963984540, 0.975), (-6.0, 9.86587645e-10)]


def test_the_normal_distribution_function_is_that_of_the_tables():
    for x, p in NORMAL:
        assert math.isclose(normal_cdf(x), p, rel_tol=1e-9)
    assert normal_cdf(40.0) == 1.0
    assert normal_cdf(-40.0) == 0.0


@given(st.floats(-1e300, 1e300) | st.floats(-9, 9))
def test_the_quick_normal_distribution_function_is_as_good_as_the_standard_librarys(x):
    assert abs(quick_cdf(x) - math.erfc(-x / math.sqrt(2)) / 2) <= 5e-16


def test_the_logistic_function_bears_any_number():
    assert logistic(0.0) == 0.5
    assert logistic(1000.0) == 1.0
    assert logistic(-1000.0) == 0.0
    assert math.isclose(logistic(math.log(3.0)), 0.75)


cents = st.integers(100, 10**12)
thousandths = st.integers(1, 10**7)


@settings(max_examples=300)
@given(a=cents, b=cents, own=thousandths, other=thousandths, won=st.booleans())
@example(a=1010, b=1010, own=600_000, other=600_000, won=True)  # 10.605
@example(a=10**12 - 1, b=10**12 - 3, own=999_999, other=1_000_001, won=True)
# where the same formula in float64 ends a cent off
@example(a=248, b=45_050, own=450_500, other=609_300, won=True)
@example(a=177, b=1_286, own=123_456, other=600_000, won=True)
@example(a=1_875, b=61_728, own=123_456, other=450_500, won=True)
@example(a=801, b=801, own=609_300, other=60_930, won=False)
@example(a=347_040_081_861, b=911_368_731_000, own=1_000, other=60_930, won=True)
@example(a=988_151_087_932, b=772_673_751_980, own=600_000, other=600_000, won=False)
def test_ranks_are_those_of_exact_decimal_arithmetic(a, b, own, other, won):
    with localcontext() as context:
        context.prec = 60
        stake = Decimal(a) / 20
        change = stake * b * other / (Decimal(a) * own) if won else -stake * a * own / (Decimal(b) * other)
        exact = (a + change + Decimal("0.5")).to_integral_value(ROUND_FLOOR)
        expected = max(Decimal(100), exact)
    players = SlowPlayer("a", seconds=own / 1000), SlowPlayer("b", seconds=other / 1000)
    places = (1, 2) if won else (2, 1)
    teams = [SlowTeam(place, None, [player]) for place, player in zip(places, players, strict=True)]
    match = SlowMatch("m", 0.0, None, teams)
    state = {"a": {"rating": a / 100}, "b": {"rating": b / 100}}
    if max(expected, a, b) > 9 * 10**13 or b + b > 9 * 10**13:
        return
    try:
        told = Fast("wager").replay([match], state=state)
    except OverflowError:  # the other one, beyond what is exact
        return
    assert Decimal(round(told[0].after * 100)) == expected
    assert np.isclose(told[0].after * 100, round(told[0].after * 100))
