"""The C loops of the benchmarks, written from the definitions, rate as the package does."""

import shutil

import pytest
from benchmarks.limit import Limit, compiled
from benchmarks.matches import Season, play
from benchmarks.rate import AIMS, ANY_TEAMS, difference, spread

import evenmatch
from evenmatch.systems import loop

SEASONS = Season(4_000, 300, 1, 2), Season(1_500, 200, 5, 2), Season(400, 100, 1, 8)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_c_and_the_package_agree_on_whole_seasons():
    differences = {}
    for season in SEASONS:
        history = play(season)
        for name in AIMS if season.teams == 2 else ANY_TEAMS:
            rules = evenmatch.rules(*name.split())
            state, limit = spread(rules, season, history), Limit(compiled(), name.replace(" ", "_"), history)
            ours = loop.replay(rules, history, state)
            differences[name, season.form] = difference(ours, limit.replay(state), limit, exact=name == "wager")
    assert differences == dict.fromkeys(differences, "")
