"""A synthetic season of a team game: players have a true skill, and some leave matches early."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evenmatch.lab.seasons.games import find_game
from evenmatch.lab.seasons.season import Season
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.rating import rules
from evenmatch.tables.table import MatchTable

ONSETS = ("B", "D", "F", "K", "L", "M", "N", "R", "S", "T", "V", "Z")
RHYMES = ("ara", "eno", "ivi", "olu", "una", "aris", "ekko", "immy", "orin", "udo")


@dataclass(frozen=True)
class SampleSeason:
    """Matches in order of time, and each player's hidden true skill (standard normal)."""

    matches: MatchTable
    skill: dict[str, float]


def season(seed: int, *, players: int = 240, matches: int = 4000, team_size: int = 6) -> SampleSeason:
    """Simulate a season of a team game, matched by the ratings of wager; some players quit, and skill does not change.

    Skill decides more than in the recorded game "sixes", and draws are rarer.
    """
    game = replace(find_game("sixes"), steepness=2.0, draw_width=0.02).resized(team_size)
    settings = SeasonSettings(
        players=players,
        matches=round(1.6 * matches),  # more than enough
        weeks=20.0,
        seed=seed,
        policy="quick",
        present=0.8,
        days_off=0.0,
        newcomers=0.0,
        learning=0.0,
        drift=0.0,
        parties=0.0,
    )
    played = Season(settings, rules("wager"), game=game).run()
    names = player_names(len(played.person))
    skill = dict(zip(names, played.state.skill[:players].tolist(), strict=False))
    return SampleSeason(MatchTable.of(played.history, "6v6", names).take(slice(0, matches)), skill)


def player_names(count: int) -> list[str]:
    """Generate `count` different names, the same on every call."""
    short = [onset + rhyme for rhyme in RHYMES for onset in ONSETS]
    return [
        short[index % len(short)] + (str(index // len(short) + 1) if index >= len(short) else "")
        for index in range(count)
    ]
