"""Simulated seasons: seconds of one core for a thousand players and a hundred thousand matches, matchmaking included."""

from __future__ import annotations

from dataclasses import replace

import evenmatch
from benchmarks.figure import Figure, Section, seconds
from evenmatch.lab.seasons.games import GAMES
from evenmatch.lab.seasons.season import SeasonSettings, simulate_season
from evenmatch.systems import loop

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
        "of each match, its result and its rating. The reference is the rating alone: `loop.replay` of the same matches "
        f"at once. A season of an audit has {SMALL.players} players and about {SMALL.matches:,} matches.",
    ]
    return Section("Simulated seasons", figures, notes)


def season(game: str, system: str) -> list[Figure]:
    """A large season and one of an audit."""
    rules = evenmatch.rules(system)
    simulate_season(replace(SMALL, game=game, matches=200), rules)  # loads the kernels
    figures = []
    for name, settings, aim in (("100,000 matches", LARGE, 60.0), ("season of an audit", SMALL, None)):
        records = []
        took = seconds(lambda: records.append(simulate_season(replace(settings, game=game), rules)))
        history = records[0].history
        rated = seconds(lambda: loop.replay(rules, history, rules.newcomers(history.players)))
        figures.append(Figure(f"{game}, {system}: {name}", took, "s", aim, False, rated, "rating alone, s"))
    return figures
