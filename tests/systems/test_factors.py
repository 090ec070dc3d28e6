"""The factors of a change account for it: the rating after can be worked out from the one before and the factors."""

import math

import pytest

from evenmatch import rate, rules
from made_up import made_up_table


def wager(change, p):
    f = change.factors
    moved = f["stake"] * f["rank_modifier"] * f["quitter_modifier"]
    sign = -1 if f["rule"] in ("loss", "quit") else 1
    return max(p.floor, change.before + sign * moved), 0.00501


def scorefactor(change, p):
    f = change.factors
    return (max(p.floor, change.before - f["rot"] + f["k"] * f["gain"]) if f["k"] else change.before), 1e-9


def battlepoints(change, p):
    after = max(p.floor, change.before + change.factors["k"] * change.factors["gain"])
    return (math.floor(after) if p.truncate else after), 1e-9


def prav(change, p):
    f = change.factors
    mean = f["mean_before"] + f["gain"] * (f["window_outcome"] - f["window_expected"])
    doubt = 2 if p.display == "conservative" else 0
    return p.shift + p.scale * (mean - doubt * math.sqrt(f["volatility_after"])), 1e-9


WORKED_OUT = [
    (wager, {}),
    (wager, {"preset": "article"}),
    (wager, {"preset": "limited"}),
    (scorefactor, {}),
    (scorefactor, {"preset": "xonstat", "inactivity_rot": True}),
    (battlepoints, {}),
    (battlepoints, {"preset": "app"}),
    (prav, {}),
    (prav, {"preset": "as_written", "display": "conservative"}),
]


@pytest.mark.parametrize(("work_out", "options"), WORKED_OUT)
def test_the_factors_account_for_every_change(work_out, options):
    by = rules(work_out.__name__, **options)
    ratings = rate(made_up_table(work_out.__name__, 7), by, journal=True)
    for match in range(len(ratings.matches)):
        for team in ratings.changes(match):
            for change in team:
                after, slack = work_out(change, by.parameters)
                assert change.after == pytest.approx(after, rel=1e-9, abs=slack), change
