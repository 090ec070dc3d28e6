"""The numbers that the definitions print of `trueskill` and `wenglin`, of the package and of its slow twins."""

import importlib

import pytest

from package_systems import Fast
from reference.model import SlowMatch, SlowPlayer, SlowTeam

BRADLEY_TERRY = {"variant": "bradley_terry_full", "tau": 0.0}
STRONG = {"B": {"mean": 30.0, "deviation": 25 / 3}}
SURE = {"B": {"mean": 30.0, "deviation": 1.0}}
# The definitions' own 25 against 30 was computed with this deviation of both; 25/3 gives 30.768067 and 24.231933.
ROUNDED = {"A": {"mean": 25.0, "deviation": 8.333}, "B": {"mean": 30.0, "deviation": 8.333}}

# system, parameters, teams by place, states before, then per player the mean and the deviation, as they are printed
PRINTED = [
    ("trueskill", {}, {"A": 1, "B": 2}, {}, {"A": ("29.395832", "7.171476"), "B": ("20.604168", "7.171476")}),
    ("trueskill", {}, {"A": 1, "B": 1}, {}, {"A": ("25.000000", "6.457516"), "B": ("25.000000", "6.457516")}),
    (
        "trueskill",
        {},
        {"AB": 1, "CD": 2},
        {},
        dict.fromkeys("AB", ("28.108322",)) | dict.fromkeys("CD", ("21.891678",)),
    ),
    ("trueskill", {}, {"A": 1, "B": 2}, ROUNDED, {"A": ("30.767843",), "B": ("24.232157",)}),
    ("trueskill", {}, {"A": 1, "B": 2}, STRONG, {"A": ("30.768067",), "B": ("24.231933",)}),
    ("trueskill", {}, {"A": 1, "B": 2}, SURE, {"A": ("33.025148", "5.955455"), "B": ("29.883647", "0.999900")}),
    # What is listed first need not have won.
    ("trueskill", {}, {"B": 2, "A": 1}, SURE, {"A": ("33.025148", "5.955455"), "B": ("29.883647", "0.999900")}),
    (
        "trueskill",
        {},
        {"C": 3, "A": 1, "B": 2},
        {},
        {"A": ("31.675", "6.656"), "B": ("25.000", "6.208"), "C": ("18.325", "6.656")},
    ),
    ("wenglin", BRADLEY_TERRY, {"A": 1, "B": 2}, {}, {"A": ("27.635231", "8.065506"), "B": ("22.364769", "8.065506")}),
]


@pytest.mark.parametrize("implementation", ["package", "twin"])
@pytest.mark.parametrize(("system", "parameters", "teams", "state", "printed"), PRINTED)
def test_means_and_deviations_are_those_that_are_printed(implementation, system, parameters, teams, state, printed):
    replay = (
        Fast(system).replay if implementation == "package" else importlib.import_module(f"reference.{system}").replay
    )
    match = SlowMatch("1", 0.0, None, [SlowTeam(at, None, [SlowPlayer(p) for p in team]) for team, at in teams.items()])

    means = {change.player: change.after for change in replay([match], **parameters, display=0.0, state=state)}
    lower = {change.player: change.after for change in replay([match], **parameters, display=1.0, state=state)}

    for player, numbers in printed.items():
        told = (means[player], means[player] - lower[player])
        for value, number in zip(told, numbers, strict=False):
            half_a_unit = 0.5000001 * 10.0 ** -len(number.partition(".")[2])
            assert value == pytest.approx(float(number), abs=half_a_unit, rel=0), player


@pytest.mark.parametrize("implementation", ["package", "twin"])
@pytest.mark.parametrize("system", ["trueskill", "wenglin"])
def test_three_deviations_below_the_mean_is_what_players_see(implementation, system):
    replay = (
        Fast(system).replay if implementation == "package" else importlib.import_module(f"reference.{system}").replay
    )
    match = SlowMatch("1", 0.0, None, [SlowTeam(1, None, [SlowPlayer("A")]), SlowTeam(2, None, [SlowPlayer("B")])])

    winner, loser = replay([match])

    assert winner.before == pytest.approx(0.0, abs=1e-12)
    (mean, _), (lower, _) = replay([match], display=0.0), replay([match], display=1.0)
    assert winner.after == pytest.approx(mean.after - 3 * (mean.after - lower.after))
    assert loser.after < winner.after
