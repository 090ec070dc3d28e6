"""The four games of the demo: how their results come about, their ladders and their queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from evenmatch.history import Columns, Floats
from evenmatch.lab.seasons.games import STAGES, Game, Play, Whole

# The crowd is large enough for even matches within half a minute; later the filters widen.
STEPS = [[0, 5], [8, 10], [16, 25], [30, 40], [60, 100]]
WAITS = {"even_spread": 6, "overdue_after": 90, "newcomer_wait": 2, "rematch_wait": 4, "rematch_fade": 300}
POLICY: Mapping[str, object] = {"steps": STEPS, **WAITS}


@dataclass(frozen=True, kw_only=True)
class DemoGame(Game):
    """A game with its ladder, which has the game's name, and its queue.

    share    of all people who play it;  crowd  players who are active at the same time
    matches  in its history;  parties  size of the largest party
    """

    system: str
    share: float
    crowd: int
    matches: int
    parameters: Mapping[str, object] = field(default_factory=dict)
    parties: int = 1
    regions: bool = False
    policy: Mapping[str, object] = field(default_factory=dict)


def play(game: Game, rng: np.random.Generator, players: Whole, skill: Floats, presence: Floats) -> Columns:
    """Play matches at once, all at time 0; the arrays have one entry per slot, in order of match and team.

    presence  share of the match after which the player leaves, 0..1; 1: stays
    """
    slots, noise = np.arange(len(players)), rng.standard_normal((len(players), STAGES))
    even, whim = np.full(len(players), 0.5), np.zeros(len(players))
    playing = Play(game, slots, slots // game.players, slots // game.team_size, skill, even, whim, noise)
    for stage in range(STAGES):
        playing.leave(presence <= playing.done)
        playing.advance(stage)
    return playing.columns(0, rng, players)


GAMES = (
    DemoGame(
        name="arena",
        title="Arena 4v4",
        system="wager",
        team_size=4,
        steepness=2.35,
        draw_width=0.025,
        margin_scale=3.0,
        target=8,
        level=6.0,
        duration=32.0,
        quit=0.015,
        share=0.65,
        crowd=210,
        matches=2800,
        parties=2,
        policy={**POLICY, "max_odds": 0.6},
    ),
    DemoGame(
        name="brawl",
        title="Brawl, free-for-all",
        system="scorefactor",
        team_size=1,
        teams=6,
        steepness=1.5,
        draw_width=0.0,
        margin_scale=1.0,
        score_mean=18.0,
        duration=24.0,
        quit=0.02,
        share=0.5,
        crowd=110,
        matches=2200,
        parameters={"full_time": 20.0, "min_time": 8.0},
        policy={**POLICY, "max_odds": None},
    ),
    DemoGame(
        name="squads",
        title="Squads 3v3",
        system="prav",
        team_size=3,
        steepness=1.75,
        draw_width=0.0,
        margin_scale=3.0,
        target=10,
        duration=27.0,
        quit=0.02,
        share=0.55,
        crowd=140,
        matches=2400,
        parties=2,
        policy={**POLICY, "max_odds": 0.6},
    ),
    DemoGame(
        name="duel",
        title="Duels",
        system="battlepoints",
        team_size=1,
        steepness=1.6,
        draw_width=0.0,
        margin_scale=2.0,
        target=5,
        duration=16.0,
        quit=0.03,
        share=0.45,
        crowd=50,
        matches=2600,
        regions=True,
        policy={**POLICY, "max_odds": 0.65, "max_ping": 120},
    ),
)
LADDERS = {game.name: game for game in GAMES}
