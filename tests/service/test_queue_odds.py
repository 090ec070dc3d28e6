"""The matchmaker's odds are those of the ladder's own system."""

import numpy as np
import pytest

from evenmatch import rules
from evenmatch.service.queues.join_profiles import LevelBook
from evenmatch.service.queues.odds import odds_function
from ledger.sample_matches import duel

GAPS = np.array([0.0, 10.0, 40.0, 100.0, 200.0, 400.0])


def curve(service, system, size=3, **parameters):
    name = f"{system} {size}"
    service.create_ladder(name, system, rules(system, **parameters))
    service.start_ratings(
        name, {"low": 1200.0, "high": 1900.0} if system != "trueskill" else {"low": 15.0, "high": 35.0}
    )
    for number in range(2):
        service.record(duel(number, "high", "low", name))
    service.view(name)
    return odds_function(LevelBook(service).of(name), size, service.clock())


def test_elos_curve_is_elos(service):
    """1 / (1 + 10^(-gap/400)) over the teams' means."""
    found = curve(service, "elo")(1500 + GAPS, np.full(len(GAPS), 1500.0))
    assert found == pytest.approx(1 / (1 + 10 ** (-GAPS / 400)), abs=0.005)


@pytest.mark.parametrize("system", ["elo", "glicko2", "trueskill", "wenglin", "prav", "wager"])
def test_a_curve_rises_and_is_the_same_for_both_teams(service, system):
    found = curve(service, system, 2)
    if found is None:
        pytest.fail(f"{system} foretells nothing")
    gaps = np.linspace(0, 5000, 301)
    ahead = found(gaps, np.zeros(301))
    assert np.isfinite(ahead).all()
    assert ahead[0] == 0.5
    assert (np.diff(ahead) >= 0).all()
    assert ahead[-1] > 0.75
    assert (ahead <= 1).all()
    assert ahead + found(np.zeros(301), gaps) == pytest.approx(np.ones(301))


def test_a_ladder_without_players_has_a_curve_too(service):
    service.create_ladder("new", "glicko2", rules("glicko2"))
    found = odds_function(LevelBook(service).of("new"), 5, service.clock())
    assert found(np.array([1600.0]), np.array([1500.0]))[0] > 0.55
