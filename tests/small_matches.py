"""Small matches written by hand, for the tests of printed and computed numbers, and what came of them."""

import pytest

from reference.model import SlowMatch, SlowPlayer, SlowTeam

DAY = 86400.0
AHEAD, LEVEL, BEHIND = (1, 2), (1, 1), (2, 1)  # places of the first team and of the second


def slow_match(*teams, time=0.0, name="m"):
    """`teams` are (place, "AB") for the team of A and B."""
    return SlowMatch(name, time, None, [SlowTeam(place, None, [SlowPlayer(p) for p in who]) for place, who in teams])


def duel(places=AHEAD, who="AB", **match_fields):
    return slow_match((places[0], who[0]), (places[1], who[1]), **match_fields)


def ratings(*values, **fields):
    """Starting states of A, B, C … with these ratings, all with the same other fields."""
    return {"ABCDEFGHIJ"[i]: {"rating": value, **fields} for i, value in enumerate(values)}


def beliefs(**told):
    """Starting states, each told as (rating, deviation)."""
    return {name: {"rating": rating, "deviation": deviation} for name, (rating, deviation) in told.items()}


def after(changes):
    """Shown rating of each player after the last match of theirs."""
    return {change.player: change.after for change in changes}


def gained(changes):
    return {change.player: change.after - change.before for change in changes}


def expected_by_player(changes):
    return {change.player: change.expected for change in changes}


def close(*values, digits):
    """Equal to what is printed with so many digits: half a unit in the last place."""
    return pytest.approx(values if len(values) > 1 else values[0], abs=0.500001 * 10**-digits, rel=0)
