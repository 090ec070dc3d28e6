"""The settings of a simulated season."""

from __future__ import annotations

from dataclasses import dataclass

from evenmatch.options import Checked, choice, flag, number, text, whole
from evenmatch.policy import presets


@dataclass(frozen=True, kw_only=True)
class SeasonSettings(Checked):
    """A season to simulate. Skill is measured in standard deviations of the population."""

    game: str = text("team", "The game that is played.")
    players: int = whole(240, 20, 1_000_000, "Number of players.")
    matches: int = whole(2000, 1, 100_000_000, "Number of matches, approximately.")
    weeks: float = number(8.0, 0.1, 520, "Length of the season in weeks.")
    seed: int = whole(1, 0, 2**32 - 1, "Seed of all random numbers.")
    policy: str = choice("balanced", tuple(presets()), "Policy of the matchmaker.")
    present: float = number(0.5, 0.01, 1, "Share of the players who queue in a round, on average.")
    eagerness: float = number(0.5, 0, 2, "Spread of how often players play: standard deviation of its logarithm.")
    days_off: float = number(0.3, 0, 0.99, "Share of the days on which a player does not play at all.")
    newcomers: float = number(0.2, 0, 1, "Share of the players who begin after the start, at any time of the season.")
    learning: float = number(0.4, 0, 10, "Skill that a newcomer lacks and gains with practice.")
    practice: float = number(40.0, 1, 1e6, "Matches after which two thirds of it are gained.")
    drift: float = number(0.1, 0, 5, "Standard deviation of the random change of a player's skill in a week.")
    parties: float = number(0.25, 0, 1, "Share of the players who belong to a party of two or three friends.")
    leaving: float = number(
        0.0, 0, 100, "How often annoyed players leave the game for good; 1: as published effects suggest, 0: never."
    )
    culprits: float = number(0.05, 0, 1, "Share of the players whose conduct a behaviour decides.")
    solo_queue: bool = flag(False, "Parties cannot queue: everybody queues alone.")
    busy_hours: bool = flag(False, "The queue is open only at hours when everybody plays.")
    longest_team: bool = flag(False, "Players count in the team in which they spent most of the match.")
    full_time: bool = flag(False, "Players who leave are reported as if they had stayed to the end.")
    placement: int = whole(10, 1, 10_000, "Matches before a player's second account is listed.")
