"""Numbers of players who start with a rating of their own, and of records as they stand at a time, worked by hand."""

import numpy as np
import pytest

from evenmatch import rules
from evenmatch.errors import InputError

DAY = 86_400_000_000

# System, parameters, rating asked for, and fields of the record
STARTS = [
    ("wager", {}, 10.605, {"rating": 10.61}),  # binary 10.605 lies just below the half cent
    ("wager", {}, 1.005, {"rating": 1.01}),
    ("wager", {}, 10.125, {"rating": 10.13}),  # an exact tie, which rounding to even would take down
    ("wager", {}, 10.6049, {"rating": 10.60}),
    ("wager", {}, 21.84, {"rating": 21.84}),
    ("wager", {}, 9999999999.99, {"rating": 9999999999.99}),
    ("wager", {}, 9e11, {"rating": 9e11}),
    ("scorefactor", {}, 1234.5, {"rating": 1234.5, "games": 0, "last_played": 0}),
    ("prav", {}, 1700.0, {"rating": 1700.0, "mean": 1.0, "volatility": 1.0}),
    ("prav", {"display": "conservative"}, 1500.0, {"rating": 1500.0, "mean": 2.0, "volatility": 1.0}),
    ("prav", {"display": "conservative", "start_volatility": 4}, 1100.0, {"rating": 1100.0, "mean": 2.0}),
    ("elo", {"rule": "fide"}, 2500.0, {"rating": 2500.0, "games": 0, "top": 0}),
    ("glicko", {}, 1800.0, {"rating": 1800.0, "deviation": 350.0}),
    ("glicko2", {}, 1200.0, {"rating": 1200.0, "deviation": 350.0, "volatility": 0.06}),
    ("trueskill", {}, 10.0, {"rating": 10.0, "mean": 35.0, "deviation": 25 / 3}),
    ("trueskill", {"display": 0}, 10.0, {"rating": 10.0, "mean": 10.0}),
    ("wenglin", {}, -5.0, {"rating": -5.0, "mean": 20.0, "deviation": 25 / 3}),
    ("elommr", {}, 1900.0, {"rating": 1900.0, "normal_mean": 1900.0, "normal_weight": 350**-2, "deviation": 350.0}),
]


@pytest.mark.parametrize(("name", "values", "rating", "expected"), STARTS)
def test_a_record_that_starts_at_a_rating(name, values, rating, expected):
    record = rules(name, **values).starting(np.array([rating]))[0]
    assert {field: record[field] for field in expected} == pytest.approx(expected, rel=1e-15)


# System, parameters, ratings just inside, ratings just outside
RANGES = [
    ("wager", {}, [1.0, 9e11], [0.99, 0.999, 9.1e11]),
    ("wager", {"floor": 5, "start": 6}, [5.0], [4.99]),
    ("scorefactor", {}, [100.0], [99.9]),
    ("scorefactor", {"floor": 0}, [0.0], [-0.1]),
    ("battlepoints", {}, [700.0], [699.0]),
    ("trophies", {}, [0.0], [-1.0]),
    ("planeswalker", {}, [0.0], [-0.5]),
    ("elommr", {}, [-6000.0, 9000.0], [-6000.5, 9001.0]),
    ("elo", {}, [-1e12, 1e12], [-1.1e12, 1.1e12]),
]


@pytest.mark.parametrize(("name", "values", "inside", "outside"), RANGES)
def test_ratings_that_a_system_cannot_hold_are_refused_and_the_message_says_which_it_can(name, values, inside, outside):
    by = rules(name, **values)
    assert by.starting(np.array(inside))["rating"].tolist() == inside
    for wrong in outside:
        bound = min(inside, key=lambda good: abs(good - wrong))
        with pytest.raises(InputError) as error:
            by.system.start_at(wrong, by.parameters)
        assert f"starting rating {wrong!r}: expected a number from" in str(error.value)
        assert f"{bound:.12g}" in str(error.value)


def made_record(by, **fields):
    """One player's record with these fields, a newcomer's elsewhere."""
    made = by.newcomers(1)
    for name, value in fields.items():
        made[name] = value
    return made


# Days idle, what is left of 1000 points (docs/systems/scorefactor.md: 80 lost after 60 days, 288 after 90)
ROT = [(0, 1000), (30, 1000), (31, 999), (37, 993), (38, 991), (60, 920), (90, 712), (900, 100)]


def test_idle_players_lose_by_weeks_each_by_their_own_last_match():
    by = rules("scorefactor", inactivity_rot=True)
    now = 1000 * DAY
    state = np.concatenate([made_record(by, rating=1000, games=3, last_played=now - days * DAY) for days, _ in ROT])
    assert by.system.as_of(state, now, by.parameters)["rating"].tolist() == [left for _, left in ROT]
    off = rules("scorefactor")
    assert off.system.as_of(state, now, off.parameters)["rating"].tolist() == [1000] * len(ROT)


# System, preset or parameters, fields of the record, days idle, deviation
GROWTH = [
    ("glicko", None, {}, {"deviation": 60}, 0, 60.0),
    ("glicko", None, {}, {"deviation": 60}, 0.5, (3600 + 8.1**2 / 2) ** 0.5),
    ("glicko", None, {}, {"deviation": 60}, 100, 10161**0.5),  # 3600 + 100 · 8.1²
    ("glicko", None, {}, {"deviation": 60}, 10_000, 350.0),  # a newcomer's, at most
    ("glicko", "monthly", {}, {"deviation": 50}, 3000, 122216**0.5),  # 2500 + 100 · 34.6²
    ("glicko2", None, {}, {"deviation": 200, "volatility": 0.06}, 1, 200.2714),  # the definition, on paper
    ("glicko2", None, {}, {"deviation": 200, "volatility": 0.06}, 1e5, 350.0),
    ("elommr", None, {"drift": 100}, {"deviation": 100}, 25, 12500**0.5),
    ("elommr", None, {}, {"deviation": 100}, 25, 100.0),  # the step is a match's and not time's
]


@pytest.mark.parametrize(("name", "preset", "values", "fields", "days", "deviation"), GROWTH)
def test_the_deviation_grows_with_the_days_since_the_last_match(name, preset, values, fields, days, deviation):
    by = rules(name, preset, **values)
    now = 200_000 * DAY
    idle = made_record(by, rating=1700, games=9, last_played=now - int(days * DAY), **fields)
    never = made_record(by, rating=1700, **{**fields, "deviation": 400})  # from before the parameters changed
    later = made_record(by, rating=1700, games=9, last_played=now + 1, **fields)
    state = np.concatenate([idle, never, later])
    seen = by.system.as_of(state, now, by.parameters)
    assert seen["deviation"][0] == pytest.approx(deviation, rel=1e-6)
    assert seen["deviation"][1:].tolist() == state["deviation"][1:].tolist()
    assert seen["rating"].tolist() == [1700] * 3
    assert seen["last_played"].tolist() == state["last_played"].tolist()
