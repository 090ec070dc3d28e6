"""Simulated seasons: seconds for a thousand players and a hundred thousand matches on one core."""

from __future__ import annotations

from dataclasses import replace

import evenmatch
from benchmarks.figure import Figure, Section, seconds
from evenmatch.lab.seasons.games import GAMES
from evenmatch.lab.seasons.season import SeasonRecord, simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.systems import loop
from evenmatch.systems.system import Rules

LARGE = SeasonSettings(players=1000, matches=100_000, weeks=12)
SMALL = SeasonSettings(players=240, matches=2000)
SYSTEMS = ("elo", "even")


def run() -> Section:
    """Every game with wager, and the team game with two more systems."""
    figures = []
    of_two = [(game, "wager") for game in GAMES if GAMES[game].teams == 2]
    for game, system in [*of_two, ("brawl", "scorefactor"), *(("team", name) for name in SYSTEMS)]:
        figures += season(game, system)
    notes = [
        f"{LARGE.players:,} players and about {LARGE.matches:,} matches on one core: who joins, `propose`, the course "
        "of each match, its result and its rating. The reference is the rating alone: `loop.replay` of the same "
        f"matches at once. A season of an audit has {SMALL.players} players and about {SMALL.matches:,} matches.",
    ]
    return Section("Simulated seasons", figures, notes)


def season(game: str, system: str) -> list[Figure]:
    """A large season and one of an audit."""
    rules = evenmatch.rules(system)
    simulate_season(replace(SMALL, game=game, matches=200), rules)  # loads the kernels
    return [
        measured(f"{game}, {system}: 100,000 matches", replace(LARGE, game=game), rules, 60.0),
        measured(f"{game}, {system}: season of an audit", replace(SMALL, game=game), rules, None),
    ]


def measured(name: str, settings: SeasonSettings, rules: Rules, aim: float | None) -> Figure:
    """One season, and the rating of its matches alone."""
    records: list[SeasonRecord] = []
    took = seconds(lambda: records.append(simulate_season(settings, rules)))
    history = records[0].history
    rated = seconds(lambda: loop.replay(rules, history, rules.newcomers(history.players)))
    return Figure(name, took, "s", aim, False, rated, "rating alone, s")
