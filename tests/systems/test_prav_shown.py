"""PRAV as people are shown it: by the article the volatility may be multiplied, and is not shifted."""

import pytest

from evenmatch import from_matches, rate, rules
from ledger.sample_matches import duel, team_match

MATCHES = [
    duel(1, "a", "b"),
    duel(2, "a", "c"),
    team_match(3, (1, "a", "b"), (2, "c")),
    team_match(4, (1, "b"), (1, "d")),
]


def shown(**parameters):
    table = rate(from_matches(MATCHES), rules("prav", **parameters)).standings(placement=1)
    return {row["player"]: row for row in table.to_pylist()}


def test_the_shown_volatility_is_scaled_and_not_shifted():
    """After one win V is .9, as in the definition: shown as 90 by a scale of 100, whatever rating and shift are."""
    table = rate(from_matches(MATCHES[:1]), rules("prav", volatility_scale=100, shift=5000)).standings(placement=1)
    assert [row["volatility"] for row in table.to_pylist()] == pytest.approx([90, 90])


@pytest.mark.parametrize("scale", [0.25, 3.0, 40_000.0])
def test_no_rating_depends_on_the_scale_of_the_volatility(scale):
    plain, scaled = shown(), shown(volatility_scale=scale)
    assert len({round(row["volatility"], 6) for row in plain.values()}) > 1
    for player, row in plain.items():
        other = scaled[player]
        assert other["volatility"] == pytest.approx(scale * row["volatility"])
        assert {**other, "volatility": 0} == {**row, "volatility": 0}
