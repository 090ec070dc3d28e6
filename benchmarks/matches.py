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
    """So many matches of two teams of `team` players each, all drawn from so many players."""

    matches: int
    players: int
    team: int

    @property
    def form(self) -> str:
        """Such as 5v5."""
        return f"{self.team}v{self.team}"


DUELS = Season(1_000_000, 50_000, 1)
TEAMS = Season(200_000, 20_000, 5)


def hidden_skill(players: int) -> NDArray[np.float64]:
    """The skill that decides who wins: standard normal, in units of the odds' logarithm."""
    return np.random.default_rng(SEED).standard_normal(players)


def play(season: Season) -> History:
    """The season as a history: scores and seconds of every player, team scores, draws and quitters."""
    rng = np.random.default_rng((SEED, *season))
    matches, slots = season.matches, 2 * season.team
    skill = hidden_skill(season.players)
    player = line_ups(rng, season)
    strength = skill[player].reshape(matches, 2, season.team).mean(2)
    lead = np.diff(strength[:, ::-1], axis=1)[:, 0]
    wins = rng.random(matches) < 1 / (1 + np.exp(-lead))
    draws = rng.random(matches) < DRAWS
    place = np.where(draws[:, None], 1, np.stack((2 - wins, 1 + wins), axis=1))
    rounds = rng.binomial(ROUNDS - 1, 1 / (1 + np.exp(np.abs(lead))))
    duration = rng.integers(300, 900, matches).astype(np.float64)
    quit_ = rng.random((matches, slots)) < QUITTERS
    left = np.floor(duration[:, None] * rng.uniform(0.1, 0.95, (matches, slots)))
    seconds = np.where(quit_, left, duration[:, None])
    score = rng.poisson(seconds / 60 * np.exp(0.3 * skill[player])).astype(np.float64)
    return History(
        Columns(
            time=START + np.cumsum(rng.integers(1_000, 10_000_000, matches)),
            team_start=np.arange(matches + 1, dtype=np.int32) * 2,
            place=place.ravel().astype(np.int32),
            team_score=np.where((place == 1) & ~draws[:, None], ROUNDS, rounds[:, None]).ravel().astype(np.float64),
            slot_start=np.arange(2 * matches + 1, dtype=np.int32) * season.team,
            player=player.ravel(),
            score=score.ravel(),
            seconds=seconds.ravel(),
            performance=np.full(matches * slots, np.nan),
            quit=quit_.ravel(),
            duration=duration,
            keep=np.ones(matches * slots, bool),
        )
    )


def line_ups(rng: np.random.Generator, season: Season) -> NDArray[np.int32]:
    """Players of each match, int32 (matches, 2 * team), nobody twice in one."""
    drawn = rng.integers(season.players, size=(season.matches, 2 * season.team), dtype=np.int32)
    while True:
        ordered = np.sort(drawn, axis=1)
        again = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(1))
        if not len(again):
            return drawn
        drawn[again] = rng.integers(season.players, size=(len(again), 2 * season.team), dtype=np.int32)


def as_table(history: History, match_id: pa.Array, player: pa.Array) -> MatchTable:
    """The history with these names, as evenmatch.rate takes it."""
    matches = len(history)
    sides = pa.array(np.tile(np.array([0, 1], np.int32), matches))
    return MatchTable(
        history=history,
        match_id=match_id,
        ladder=np.zeros(matches, np.int32),
        ladders=("default",),
        team=pa.DictionaryArray.from_arrays(sides, pa.array(["home", "away"], pa.large_string())),
        player=player,
        player_ladder=np.zeros(len(player), np.int32),
        row=np.arange(matches),
        source=Source("the benchmark"),
    )
