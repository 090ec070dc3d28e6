"""Who is still there after a month: more leave where leaving is likelier, and policies are compared in pairs."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from evenmatch.lab.backtests.workers import Threads
from evenmatch.lab.fairness.audit import Contestant, interval
from evenmatch.lab.fairness.retention import GROUPS, compare_policies, kept_players
from evenmatch.lab.seasons.settings import SeasonSettings

ELO = Contestant("elo")
MONTHLY = SeasonSettings(game="duel", players=120, matches=1200, weeks=5.0)


@cache
def kept(**settings):
    return kept_players(ELO, replace(MONTHLY, **settings))


def test_more_players_leave_where_leaving_is_likelier():
    never, usual, often = (kept(leaving=leaving) for leaving in (0.0, 1.0, 8.0))
    assert never.kept == 1.0
    assert never.by_skill == (1.0,) * GROUPS
    assert never.kept > usual.kept > often.kept > 0.0
    assert np.mean(often.by_skill) == pytest.approx(often.kept, abs=0.1)
    assert often.matches < never.matches


def test_only_who_left_within_a_month_is_missing():
    longer = [kept(leaving=3.0, weeks=weeks, matches=round(240 * weeks)).kept for weeks in (5.0, 20.0)]
    assert longer[1] > 0.5 * longer[0]


def test_policies_are_compared_on_the_same_seeds():
    settings = replace(MONTHLY, leaving=3.0, matches=600, players=80)
    with Threads(2) as workers:
        found = compare_policies(["balanced", "quick"], ELO, settings, [1, 2, 3], workers)
    alone = {
        policy: np.array([kept_players(ELO, replace(settings, policy=policy, seed=seed)).kept for seed in (1, 2, 3)])
        for policy in ("balanced", "quick")
    }
    assert [one.policy for one in found] == ["balanced", "quick"]
    assert [one.kept for one in found] == [interval(alone[one.policy], 0.05) for one in found]
    assert found[0].against_first == (0.0, 0.0, 0.0)
    assert found[1].against_first == interval(alone["quick"] - alone["balanced"], 0.05)
    assert (alone["quick"] != alone["balanced"]).any()
