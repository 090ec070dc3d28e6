"""The package's systems against their slow twins in plain Python, on long histories that meet every rule."""

import importlib
import math

import pytest

from evenmatch import systems
from package_systems import Fast
from random_matches import random_matches, with_context, with_entry

# System, parameters
CASES = [
    ("wager", {}),
    ("wager", {"uneven": "mean", "quitter_time": "actual"}),
    ("wager", {"modifier_limit": 1.5, "stake": 0.1}),
    ("wager", {"start": 20.0, "floor": 0.5}),
    ("wager", {"start": 7.0, "advantage": 12.3}),
    ("wager", {"start": 1.0, "floor": 0.01, "advantage": -90.0, "modifier_limit": 3.0}),
    ("wager", {"start": 1e9, "stake": 0.123457}),  # far up, where a rank times a mean needs more than 64 bits
    ("scorefactor", {}),
    ("scorefactor", {"summed": True}),
    ("scorefactor", {"advantage": 80.0, "start": 500.0}),
    ("scorefactor", {"advantage": -250.0, "start": 500.0, "spare_favourites": True}),
    ("scorefactor", {"spare_favourites": True, "inactivity_rot": True}),
    ("scorefactor", {"start": 1000.0, "k": 60.0, "full_time": 900.0, "min_time": 30.0, "min_share": 0.1}),
    ("prav", {}),
    ("prav", {"gain": 2.0, "window": 3}),
    ("prav", {"window": 7}),
    ("prav", {"advantage": 150.0, "scale": 100.0}),
    ("prav", {"advantage": -70.0, "share_gain": False, "window": 4}),
    ("prav", {"share_gain": False}),
    ("prav", {"gain": 1.0, "display": "conservative"}),
    ("prav", {"outcome": "share", "c": 2.0, "start_volatility": 0.7, "start_mean": 0.3}),
    ("battlepoints", {}),
    ("battlepoints", {"provisional_games": 5, "provisional_k": 50.0}),
    ("battlepoints", {"lopsided_margin": 4.0, "scale": 250.0}),
    (
        "battlepoints",
        {"brackets": (2100, 2400, 2400), "k": (32, 24, 10, 10), "lopsided": (1, 1, 1, 1), "truncate": True},
    ),
    ("battlepoints", {"start": 1199.0, "k": (90, 60, 40, 20)}),
    ("battlepoints", {"start": 1199.0, "advantage": 90.0}),
    ("battlepoints", {"advantage": -60.0, "scale": 250.0}),
    ("elo", {}),
    ("elo", {"k": 60.0, "scale": 250.0, "clamp": 300.0, "start": 1000.0, "advantage": 70.0}),
    ("elo", {"rule": "fide", "clamp": 400.0, "start": 2300.0}),  # so that some reach 2400 and fall again
    ("elo", {"rule": "uscf"}),
    ("elo", {"rule": "uscf", "start": 2200.0, "advantage": -90.0}),
    ("even", {}),
    ("even", {"performance": True, "wins_gain": True}),
    ("even", {"single": True, "start": 0.0, "rivals": 2}),
    ("even", {"single": True, "performance": True, "rivals": 3, "pooled": False}),
    ("even", {"margin": 0.3, "deviation": 1.5, "drift": 2.0, "idle_drift": 0.3}),
    ("glicko", {}),
    ("glicko", {"compared_as": "team"}),
    ("glicko", {"compared_as": "team", "min_deviation": 90.0, "advantage": 40.0}),
    ("glicko", {"c": 34.6, "period_days": 30.0, "advantage": 50.0}),
    ("glicko", {"start": 0.0, "deviation": 120.0, "min_deviation": 90.0, "c": 25.0, "advantage": -80.0}),
    # The paper ends its search for the volatility at 1e-6, so that a rounding may be a step more or less: farther from
    # the defaults two correct programs differ by up to 5e-4.
    ("glicko2", {}),
    ("glicko2", {"start": 1000.0, "deviation": 110.0, "min_deviation": 90.0, "period_days": 0.5}),
    ("glicko2", {"tau": 0.3, "advantage": 60.0}),
    ("glicko2", {"compared_as": "team"}),
    ("trueskill", {}),
    ("trueskill", {"mean": 1500.0, "deviation": 500.0, "beta": 250.0, "tau": 5.0, "display": 0.0}),
    ("trueskill", {"draw": 0.4, "advantage": 2.0, "partial_play": False}),
    ("trueskill", {"sweeps": 1}),
    ("trueskill", {"sweeps": 2, "draw": 0.3, "deviation": 3.0}),
    ("trueskill", {"draw": 0.0, "tau": 0.5, "display": 1.0, "advantage": -1.0}),
    ("wenglin", {}),
    ("wenglin", {"partial_play": False, "tau": 1.0, "display": 2.0}),
    ("wenglin", {"kappa": 0.9, "limit_sigma": True, "advantage": 3.0, "beta": 2.0}),
    ("wenglin", {"variant": "bradley_terry_full"}),
    ("wenglin", {"variant": "bradley_terry_full", "advantage": -2.0, "limit_sigma": True, "tau": 0.5}),
    ("wenglin", {"variant": "thurstone_mosteller_full"}),
    ("wenglin", {"variant": "thurstone_mosteller_full", "margin": 2.0, "advantage": 1.0, "partial_play": False}),
    ("elommr", {}),
    ("elommr", {"split_ties": True, "drift": 30.0}),
    ("elommr", {"advantage": 90.0}),
    ("elommr", {"compared_as": "team"}),
    ("elommr", {"compared_as": "team", "advantage": -50.0, "split_ties": True}),
    ("elommr", {"rivals": 2, "advantage": 30.0}),  # of up to four
    ("elommr", {"rivals": 1, "compared_as": "team"}),
    ("elommr", {"start": 0.0, "deviation": 150.0, "beta": 300.0, "limit": 150.0, "rho": 0.3}),
    ("trophies", {}),
    ("trophies", {"attack": "mutual"}),
    ("trophies", {"start": 900.0, "floor": 850.0}),
    ("planeswalker", {}),
    ("planeswalker", {"multiplier": 3.0, "start": 20.0, "sharpness": 2.5, "prior": 40.0}),
]


def test_every_system_of_the_package_has_a_twin_and_cases():
    assert {system for system, _ in CASES} == set(systems.names())


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("system", "parameters"), CASES)
def test_the_kernel_and_its_twin_agree_on_every_change(system, parameters, seed):
    check_agreement(system, parameters, random_matches(system, seed))


@pytest.mark.parametrize("parameters", [values for system, values in CASES if system == "even"])
def test_even_and_its_twin_agree_on_matches_with_context_columns(parameters):
    check_agreement("even", parameters, with_context(random_matches("even", 3), 3))


@pytest.mark.parametrize("parameters", [{}, {"single": True}, {"pooled": False, "performance": True}])
def test_even_and_its_twin_agree_on_what_is_known_about_newcomers(parameters):
    matches = with_entry(random_matches("even", 5), 5)
    check_agreement("even", parameters, matches)
    check_agreement("even", parameters, with_context(matches, 5))


def check_agreement(system, parameters, matches):
    twin = importlib.import_module(f"reference.{system}")
    told = Fast(system).replay(matches, **parameters)
    known = twin.replay(matches, **parameters)
    assert all(math.isfinite(change.after) and math.isfinite(change.expected) for change in told)
    assert len(told) == len(known)
    for mine, his in zip(told, known, strict=True):
        assert (mine.match_id, mine.team, mine.player) == (his.match_id, his.team, his.player)
        if system == "wager":  # whole cents
            assert (mine.before, mine.after) == (his.before, his.after), his
        else:
            assert is_near(mine.after, his.after, 1e-9), his
        assert is_near(mine.expected, his.expected, 1e-12), his


def is_near(mine, his, absolute):
    """As pytest.approx(his, rel=1e-9, abs=absolute) has it, of which the 200,000 here would take half the time."""
    return abs(mine - his) <= max(1e-9 * abs(his), absolute)
