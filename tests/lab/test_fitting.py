"""Games fitted to recorded matches: known numbers are found again, and the stored ones are what the data tell."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenmatch import rules
from evenmatch.history import History
from evenmatch.lab.seasons.fitting import RECORDINGS, fit, fits, fitted
from evenmatch.lab.seasons.games import GAMES
from evenmatch.lab.seasons.season import SeasonSettings, simulate_season
from evenmatch.lab.seasons.skill_gaps import heats
from evenmatch.tables import MatchTable
from evenmatch.tables.source import Source

DATA = Path(__file__).parents[3] / "shared" / "data"
recorded_matches = pytest.mark.skipif(not DATA.is_dir(), reason="the recorded matches in ../shared/data are not here")


def table(history: History) -> MatchTable:
    matches, teams, players = len(history), len(history.columns.place), history.players
    return MatchTable(
        history=history,
        match_id=pa.array([str(match) for match in range(matches)]),
        ladder=np.zeros(matches, np.int32),
        ladders=("default",),
        team=pa.array(["team"] * teams).dictionary_encode(),
        player=pa.array([str(player) for player in range(players)]),
        player_ladder=np.zeros(players, np.int32),
        row=np.arange(matches),
        source=Source("a season"),
    )


def season(monkeypatch, game, seed, **settings):
    monkeypatch.setitem(GAMES, game.name, game)
    chosen = SeasonSettings(game=game.name, seed=seed, policy="quick", **{"players": 300, "matches": 10000, **settings})
    return simulate_season(chosen, rules("elo"))


TRUE = [  # game, its true numbers
    (
        "duel",
        {"steepness": 0.6, "home": 0.4, "draw_width": 0.35, "margin_scale": 3.0, "margin_power": 1.0, "level": 1.5},
    ),
    (
        "duel",
        {"steepness": 1.4, "home": -0.2, "draw_width": 0.1, "margin_scale": 9.0, "margin_power": 1.4, "level": 4.0},
    ),
    ("brawl", {"steepness": 1.2, "quit": 0.05}),
]
TEAMS = [
    {"steepness": 1.5, "home": 0.3, "draw_width": 0.2, "quit": 0.06, "quit_behind": 0.9, "quit_time": 1.5},
    {"steepness": 0.9, "home": 0.0, "draw_width": 0.05, "quit": 0.1, "quit_behind": 0.6, "quit_time": 0.6},
]
TOLERANCE = {  # largest relative error
    "steepness": 0.15,
    "draw_width": 0.12,
    "margin_scale": 0.15,
    "margin_power": 0.15,
    "level": 0.05,
    "score_slope": 0.15,
    "score_noise": 0.1,
    "duration": 0.02,
    "duration_spread": 0.05,
    "quit": 0.1,
    "quit_behind": 0.15,
    "quit_time": 0.25,
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("name", "numbers"), TRUE)
def test_the_numbers_of_a_simulated_game_are_found_again(name, numbers, seed, monkeypatch):
    numbers = numbers | {"duration": 420.0, "duration_spread": 0.3}
    if name == "duel":
        numbers |= {"target": None, "timed": False, "quit": 0.0}
    assert errors_of_fit(name, numbers, seed, monkeypatch) == {}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("numbers", TEAMS)
def test_the_numbers_of_a_simulated_team_game_are_found_again(numbers, seed, monkeypatch):
    numbers = numbers | {"duration": 420.0, "duration_spread": 0.3, "score_slope": 0.2, "score_noise": 0.35}
    assert errors_of_fit("team", numbers, seed, monkeypatch) == {}


def errors_of_fit(name, numbers, seed, monkeypatch):
    """The relative errors beyond TOLERANCE of a fit to a season of a game with these numbers."""
    true = replace(GAMES[name], **numbers)
    record = season(monkeypatch, true, seed)
    wrong = replace(true, steepness=5.0, home=0.0, draw_width=0.7, quit=0.3, quit_behind=0.5, quit_time=1.0)
    found = fit(table(record.history), wrong)
    spread = record.state.skill[: record.settings.players].std()
    errors = {}
    for key, tolerance in TOLERANCE.items():
        if numbers.get(key):
            real = numbers[key] * (spread if key in ("steepness", "score_slope") else 1.0)
            error = getattr(found, key) / real - 1.0
            if abs(error) > tolerance:
                errors[key] = error
    if abs(found.home - numbers.get("home", 0.0)) > 0.05:
        errors["home"] = found.home
    if (found.target, found.timed) != (true.target, true.timed):
        errors["target"] = found.target, found.timed
    return errors


DISTANCE = {  # largest distance of any row of a topic, as a share of the matches
    "result of favourites": 0.07,
    "draws": 0.05,
    "margin": 0.08,
    "winner's score": 0.15,
    "loser's score": 0.12,
    "player's score": 0.09,
    "duration": 0.1,
    "quits": 0.02,
    "quits after": 0.26,
}


@pytest.mark.slow
@recorded_matches
@pytest.mark.parametrize("name", RECORDINGS)
def test_the_numbers_of_a_game_are_those_that_the_recorded_matches_tell(name):
    assert {*RECORDINGS, "squad", "arena"} == set(GAMES)  # those two are larger shapes of fitted games
    assert fitted(DATA, GAMES[name]) == GAMES[name]


@pytest.mark.slow
@pytest.mark.timeout(900)
@recorded_matches
def test_a_simulated_season_looks_like_the_recorded_matches():
    found = fits(DATA)
    far = {
        (name, row.topic, row.at): (row.recorded, row.simulated)
        for name, game_fit in found.items()
        for row in game_fit.comparison
        if not row.distance <= DISTANCE[row.topic]
    }
    assert far == {}
    assert {row.topic for game_fit in found.values() for row in game_fit.comparison} == set(DISTANCE)


def test_a_large_contest_is_split_into_heats_of_the_game(monkeypatch):
    history = season(monkeypatch, replace(GAMES["race"], quit=0.0), 1, matches=200).history
    split = heats(history, 8)
    assert set(np.diff(split.columns.team_start)) == {8}
    assert len(split) == 2 * len(history)
    assert heats(history, 20) is history
    for match in range(0, len(split), 2):  # the heats keep the order of the contest, and nobody is in two of them
        players = split.columns.player[8 * match : 8 * match + 16]
        assert len(set(players)) == 16
