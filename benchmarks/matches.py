"""Synthetic seasons: who plays whom is chance, who wins follows from a hidden skill. Equal in every run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenmatch.history import Columns, History
from evenmatch.tables import MatchTable
from evenmatch.tables.source import Source

DRAWS = 0.02  # share of matches
QUITTERS = 0.01  # share of appearances
ROUNDS = 5  # that the winner needs
START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
SEED = 20260101


class Season(NamedTuple):
    """So many matches of `teams` teams of `team` players each, all drawn from so many players."""

    matches: int
    players: int
    team: int
    teams: int = 2

    @property
    def form(self) -> str:
        """Such as 5v5."""
        return f"{self.team}v{self.team}" if self.teams == 2 else f"free-for-all of {self.teams}"


DUELS = Season(1_000_000, 50_000, 1)
TEAMS = Season(200_000, 20_000, 5)
FREE = Season(100_000, 20_000, 1, 8)


def hidden_skill(players: int) -> NDArray[np.float64]:
    """The skill that decides who wins: standard normal, in units of the odds' logarithm."""
    return np.random.default_rng(SEED).standard_normal(players)


def play(season: Season) -> History:
    """The season as a history: scores and seconds of every player, team scores, draws and quitters."""
    rng = np.random.default_rng((SEED, season.matches, season.players, season.team))
    matches, slots = season.matches, season.teams * season.team
    skill = hidden_skill(season.players)
    player = line_ups(rng, season)
    strength = skill[player].reshape(matches, season.teams, season.team).mean(2)
    place, team_score = (contest if season.teams == 2 else race)(rng, strength)
    duration = rng.integers(300, 900, matches).astype(np.float64)
    quit_ = rng.random((matches, slots)) < QUITTERS
    left = np.floor(duration[:, None] * rng.uniform(0.1, 0.95, (matches, slots)))
    seconds = np.where(quit_, left, duration[:, None])
    score = rng.poisson(seconds / 60 * np.exp(0.3 * skill[player])).astype(np.float64)
    return History(
        Columns(
            time=START + np.cumsum(rng.integers(1_000, 10_000_000, matches)),
            team_start=np.arange(matches + 1, dtype=np.int32) * season.teams,
            place=place.ravel().astype(np.int32),
            team_score=team_score.ravel().astype(np.float64),
            slot_start=np.arange(season.teams * matches + 1, dtype=np.int32) * season.team,
            player=player.ravel(),
            score=score.ravel(),
            seconds=seconds.ravel(),
            performance=np.full(matches * slots, np.nan),
            quit=quit_.ravel(),
            duration=duration,
            keep=np.ones(matches * slots, bool),
        )
    )


def contest(rng: np.random.Generator, strength: NDArray[np.float64]) -> tuple[NDArray[np.integer], NDArray[np.number]]:
    """Places and rounds won of two teams, each (matches, 2)."""
    lead = strength[:, 0] - strength[:, 1]
    wins = rng.random(len(lead)) < 1 / (1 + np.exp(-lead))
    draws = rng.random(len(lead)) < DRAWS
    place = np.where(draws[:, None], 1, np.stack((2 - wins, 1 + wins), axis=1))
    rounds = rng.binomial(ROUNDS - 1, 1 / (1 + np.exp(np.abs(lead))))
    return place, np.where((place == 1) & ~draws[:, None], ROUNDS, rounds[:, None])


def race(rng: np.random.Generator, strength: NDArray[np.float64]) -> tuple[NDArray[np.integer], NDArray[np.number]]:
    """Places of more than two teams, each ahead of another with the same odds as in a contest; no scores."""
    shown = strength + rng.gumbel(size=strength.shape)
    place = 1 + np.argsort(np.argsort(-shown, axis=1), axis=1)
    draws = rng.random(len(place)) < DRAWS
    return np.where(draws[:, None] & (place == 2), 1, place), np.full(place.shape, np.nan)


def line_ups(rng: np.random.Generator, season: Season) -> NDArray[np.int32]:
    """Players of each match, int32 (matches, teams * team), nobody twice in one."""
    slots = season.teams * season.team
    if slots**2 > season.players:  # nearly every draw has somebody twice
        return np.argsort(rng.random((season.matches, season.players)), axis=1)[:, :slots].astype(np.int32)
    drawn = rng.integers(season.players, size=(season.matches, slots), dtype=np.int32)
    while True:
        ordered = np.sort(drawn, axis=1)
        again = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(1))
        if not len(again):
            return drawn
        drawn[again] = rng.integers(season.players, size=(len(again), drawn.shape[1]), dtype=np.int32)


def as_table(history: History, match_id: pa.Array, player: pa.Array) -> MatchTable:
    """The history with these names, as evenmatch.rate takes it."""
    matches = len(history)
    teams = len(history.columns.place) // matches
    sides = pa.array(np.tile(np.arange(teams, dtype=np.int32), matches))
    labels = ["home", "away"] if teams == 2 else [str(team + 1) for team in range(teams)]
    return MatchTable(
        history=history,
        match_id=match_id,
        ladder=np.zeros(matches, np.int32),
        ladders=("default",),
        team=pa.DictionaryArray.from_arrays(sides, pa.array(labels, pa.large_string())),
        player=player,
        player_ladder=np.zeros(len(player), np.int32),
        row=np.arange(matches),
        source=Source("the benchmark"),
    )
