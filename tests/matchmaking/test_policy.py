"""Policies: what each option accepts, presets, documents in and out, odds."""

import dataclasses
import json
import math
import tomllib

import numpy as np
import pytest

from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.matchmaking import Logistic, Policy, presets
from evenmatch.matchmaking.odds import LineUps, predicted_odds
from evenmatch.options import Number, options_of

INF = float("inf")
MOST = 1_000_000

# Least, most, whether it is a whole number, whether none switches it off
ACCEPTED = {
    "team_size": (1, 50, True, False),
    "teams": (2, 256, True, False),
    "min_team_size": (1, 50, True, True),
    "smaller_after": (0, MOST, False, False),
    "max_odds": (0.5, 1, False, True),
    "max_rating_spread": (0, MOST, False, True),
    "odds_scale": (0.001, MOST, False, False),
    "max_ping": (0, MOST, False, True),
    "max_wait": (0, MOST, False, True),
    "overdue_after": (0, MOST, False, True),
    "party_wait": (0, MOST, False, False),
    "newcomer_wait": (0, MOST, False, False),
    "rematch_wait": (0, MOST, False, False),
    "rematch_fade": (1, MOST, False, False),
    "even_spread": (0, 100, False, False),
    "spread_cost": (0, MOST, False, False),
    "odds_cost": (0, MOST, False, False),
    "vetoes": (0, 63, True, False),
    "map_seed": (0, 2**32 - 1, True, False),
}
NAMES = sorted(ACCEPTED)
BESIDE = {"min_team_size": {"team_size": 50}, "teams": {"team_size": 1}}  # what a value at the edge needs


def test_every_option_of_a_policy_is_in_the_table_or_documented_beside_it():
    options = options_of(Policy)
    assert {name for name, option in options.items() if isinstance(option, Number)} == set(ACCEPTED)
    assert {field.name for field in dataclasses.fields(Policy)} == {*options, "odds"}
    assert all(option.meaning.endswith(".") for option in options.values())


@pytest.mark.parametrize("name", NAMES)
def test_an_option_takes_the_least_and_the_most(name):
    least, most, _, _ = ACCEPTED[name]
    for value in (least, most):
        assert getattr(Policy(**{name: value} | BESIDE.get(name, {})), name) == value


@pytest.mark.parametrize("name", NAMES)
def test_an_option_refuses_values_out_of_range_and_says_what_it_takes(name):
    least, most, whole, optional = ACCEPTED[name]
    bad = [least - 1, math.nan, -INF, "many", "", True, False, [1], (1,), 1j]
    bad += [most + 1, INF]
    bad += [2.5, 2.0] if whole else [np.nextafter(least, -INF)]
    bad += [] if optional else [None]
    for value in bad:
        with pytest.raises(BadParameterError) as caught:
            Policy(**{name: value} | BESIDE.get(name, {}))
        assert f"{name}={value!r}" in str(caught.value)
        assert ("a whole number" if whole else "a number") in str(caught.value)
        assert f"from {least:g} to {most:,.10g}" in str(caught.value)
        assert ("or none" in str(caught.value)) == optional


@pytest.mark.parametrize("name", [name for name in NAMES if ACCEPTED[name][3]])
def test_none_switches_an_optional_rule_off(name):
    assert getattr(Policy(**{name: None}), name) is None
    assert getattr(Policy.from_data({name: "none"}), name) is None  # TOML has no null
    assert getattr(Policy.from_data({name: None}), name) is None


def test_smaller_teams_than_full_ones_only():
    assert Policy(team_size=4, min_team_size=4).min_team_size == 4
    with pytest.raises(BadParameterError, match=r"min_team_size=5.*at most team_size, which is 4"):
        Policy(team_size=4, min_team_size=5)


def test_a_match_has_at_most_256_players():
    assert Policy(team_size=16, teams=16).players == 256
    assert Policy(team_size=1, teams=256).players == 256
    with pytest.raises(BadParameterError, match=r"teams=37 of team_size=7 are 259 players.*at most 256"):
        Policy(team_size=7, teams=37)


# Steps that no policy may have, and what the message names
BAD_STEPS = [
    ([[1, 2]], "do not begin at 0"),
    ([[0, 2], [0, 3]], r"\[0, 3\] after \[0, 2\]"),
    ([[0, 2], [10, 1.5]], r"\[10, 1.5\] after \[0, 2\]"),
    ([[0, 101]], r"\(0, 101\)"),
    ([[0, -1]], r"\(0, -1\)"),
    ([[0, math.nan]], "nan"),
    ([[0, 2, 3]], r"\[0, 2, 3\]"),
    (5, "5"),
    ("none", "none"),
    ({"0": 2}, "0"),
]


@pytest.mark.parametrize(("steps", "named"), BAD_STEPS)
def test_steps_begin_at_zero_and_widen_as_time_goes(steps, named):
    with pytest.raises(BadParameterError, match=named) as caught:
        Policy.from_data({"steps": steps})
    assert "expected" in str(caught.value)


def test_steps_may_stay_as_wide_as_they_were():
    assert Policy.from_data({"steps": [[0, 0], [5, 0], [6.5, 100]]}).steps == ((0.0, 0.0), (5.0, 0.0), (6.5, 100.0))


# Roles that no policy of teams of 4 may have, and what the message names
BAD_ROLES = [
    ({"tank": 0}, "'tank': 0"),
    ({"tank": 1.0}, "'tank': 1.0"),
    ({"tank": "1"}, "'tank': '1'"),
    ({"tank": 2, "healer": 3}, "5 players per team.*at most 4"),
    ({f"role {at}": 1 for at in range(9)}, "9"),
    (["tank"], r"\['tank'\]"),
    ("tank", "'tank'"),
]


@pytest.mark.parametrize(("roles", "named"), BAD_ROLES)
@pytest.mark.parametrize("make", [Policy, lambda **told: Policy.from_data(told)])
def test_roles_are_counts_that_a_team_has_players_for(make, roles, named):
    with pytest.raises(BadParameterError, match=named) as caught:
        make(team_size=4, roles=roles)
    assert "expected" in str(caught.value)


def test_roles_fit_the_smallest_team_too():
    assert Policy(team_size=4, min_team_size=2, roles={"tank": 1, "healer": 1}).roles == {"healer": 1, "tank": 1}
    with pytest.raises(BadParameterError, match=r"2 players per team.*at most 1, the smallest team size"):
        Policy(team_size=4, min_team_size=1, roles={"tank": 1, "healer": 1})


DOCUMENT = """
preset = "quick"
team_size = 5
max_rating_spread = "none"
max_ping = 120
steps = [[0, 3], [20, 7.5], [60, 50]]

[roles]
tank = 1
healer = 2
"""


def test_a_toml_document_changes_the_preset_that_it_names():
    policy = Policy.from_data(tomllib.loads(DOCUMENT))
    assert policy == dataclasses.replace(
        presets()["quick"],
        team_size=5,
        max_ping=120,
        steps=((0.0, 3.0), (20.0, 7.5), (60.0, 50.0)),
        roles={"healer": 2, "tank": 1},
    )
    assert (policy.max_odds, policy.overdue_after, policy.party_wait) == (0.7, 120.0, 0.0)  # as quick has them


def test_the_preset_balanced_is_the_default():
    assert Policy.from_data({}) == Policy() == presets()["balanced"]
    assert list(presets()) == ["balanced", "quick", "fair"]
    assert Policy.from_data({"team_size": 2}) == Policy(team_size=2)


def test_everything_that_can_be_said_comes_back_the_same():
    policy = Policy(
        team_size=3,
        teams=4,
        min_team_size=2,
        steps=((0, 1.5), (10, 99)),
        max_odds=None,
        max_rating_spread=250.5,
        max_ping=80,
        max_wait=600,
        roles={"tank": 1, "healer": 1},
    )
    data = json.loads(json.dumps(policy.to_data()))
    assert Policy.from_data(data) == policy
    assert Policy.from_data(data | {"preset": "fair"}) == policy  # everything is said: the preset adds nothing


# Documents with a name that does not exist, and what the message suggests
UNKNOWN = [
    ({"teamsize": 5}, "unknown option of a policy 'teamsize'", "did you mean 'team_size'?"),
    ({"odds": 0.6}, "unknown option of a policy 'odds'", "known: "),  # code, and not data
    ({"preset": "balance"}, "unknown policy 'balance'", "did you mean 'balanced'?"),
    ({"preset": None}, "unknown policy 'None'", "known: balanced, quick, fair"),
]


@pytest.mark.parametrize(("document", "message", "hint"), UNKNOWN)
def test_an_unknown_name_is_refused_with_what_was_meant(document, message, hint):
    with pytest.raises(UnknownNameError) as caught:
        Policy.from_data(document)
    assert message in str(caught.value)
    assert hint in str(caught.value)


# Seconds waited and the width of the preset balanced
WIDTHS = [(-5, 4.5), (0, 4.5), (59.999, 4.5), (60, 10), (90, 20), (119.9, 20), (120, 40), (240, 100), (1e9, 100)]


@pytest.mark.parametrize(("waited", "expected"), WIDTHS)
def test_a_width_is_that_of_the_last_step_reached(waited, expected):
    assert Policy().width(waited) == expected


# Mean wait in seconds, when tickets are overdue (240 s, or 16 times the mean wait, or 16 times 240 s at most), and when
# they can be in a match with every other loose one, under balanced with its last step at 240 s
OVERDUE = [(0, 240, 480), (15, 240, 480), (16, 256, 496), (100, 1600, 1840), (240, 3840, 4080), (1e6, 3840, 4080)]


@pytest.mark.parametrize(("mean", "overdue", "open_to_all"), OVERDUE)
def test_tickets_are_overdue_relative_to_the_waits_of_their_queue(mean, overdue, open_to_all):
    assert (Policy().overdue_from(mean), Policy().open_to_all_after(mean)) == (overdue, open_to_all)
    assert (
        Policy(overdue_after=None).overdue_from(mean) == Policy(overdue_after=None).open_to_all_after(mean) == math.inf
    )


def test_odds_are_those_of_elos_curve_on_the_policys_scale():
    duels = LineUps(2, np.arange(7), np.arange(6), np.array([1500.0, 1500.0, 1900.0, 1500.0, 1500.0, 1700.0]))
    assert predicted_odds(Policy(), duels) == pytest.approx([0.5, 10 / 11, 1 / (1 + math.sqrt(10))])
    assert predicted_odds(Policy(odds_scale=200.0), duels) == pytest.approx([0.5, 100 / 101, 1 / 11])
    assert Logistic(400.0)(duels) == pytest.approx([0.5, 10 / 11, 1 / (1 + math.sqrt(10))])


def test_odds_are_of_the_teams_means_and_of_more_than_two_teams_of_the_extremes():
    teams = [[1800.0], [1500.0, 1700.0, 1300.0], [1500.0, 1300.0]]
    three = LineUps.of([[1], [2, 3, 4], [5, 6]], teams)
    assert predicted_odds(Policy(), three) == pytest.approx([10 / 11])
    assert predicted_odds(Policy(), LineUps.of([[2, 3, 4], [1]], teams[1::-1])) == pytest.approx([1 / (1 + 10**0.75)])


def test_odds_of_the_ladders_own_system_come_first():
    def even_or_not(line_ups):
        return np.where(line_ups.player[::2] > line_ups.player[1::2], 0.75, 0.25)

    policy = Policy(odds=even_or_not, odds_scale=1.0)
    duels = LineUps(2, np.arange(5), np.array([2, 1, 1, 2]), np.zeros(4))
    assert predicted_odds(policy, duels).tolist() == [0.75, 0.25]
    assert "odds" not in policy.to_data()
