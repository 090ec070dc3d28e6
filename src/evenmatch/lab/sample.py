"""A synthetic season of a team game, and the picture of its ratings over time.

Players have a true skill, and some leave matches early. Pictures are drawn with matplotlib (extra `plot`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evenmatch.errors import UsageError, needing
from evenmatch.lab.seasons.games import find_game
from evenmatch.lab.seasons.season import Season
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.rating import rules
from evenmatch.tables.table import MatchTable

if TYPE_CHECKING:
    from evenmatch.rating import Ratings


INKS = ("#0b6e99", "#c2410c", "#4d7c0f", "#7c3aed", "#b4236a", "#92700c")


def rating_paths(ratings: Ratings, players: Sequence[str], path: Path) -> None:
    """Draw the shown rating of these players after each of their matches to an .svg or .png file.

    `ratings` must have a journal. Raises MissingExtraError if matplotlib is not installed.
    """
    with needing("plot", "a picture"):
        import matplotlib as mpl
    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "evenmatch"
    from matplotlib import dates, pyplot

    assert ratings.journal is not None
    history, names = ratings.matches.history, ratings.matches.player_names
    time = history.columns.time[history.slot_match].astype("datetime64[us]")
    with pyplot.rc_context({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = pyplot.subplots(figsize=(9, 4.5), layout="constrained")
        ends = []
        for player, color in zip(players, INKS, strict=False):
            slots = np.flatnonzero(history.columns.player == names.index(player))
            after = ratings.journal.after[slots]
            axes.step(time[slots], after, where="post", color=color, linewidth=1.6)
            ends.append((float(after[-1]), player, color))
        low, high = axes.get_ylim()
        label_height = -np.inf
        for height, player, color in sorted(ends):
            label_height = max(height, label_height + 0.05 * (high - low))  # keeps labels apart
            axes.annotate(
                f"{player} {height:.2f}",
                (1.01, label_height),
                xycoords=("axes fraction", "data"),
                color=color,
                va="center",
                annotation_clip=False,
            )
        axes.set_title(f"Rating after each match, {ratings.rules.system.name}", loc="left", fontweight="bold")
        axes.grid(axis="y", color="#d4d4d4", linewidth=0.6)
        axes.tick_params(length=0)
        locator = dates.AutoDateLocator(minticks=4, maxticks=8)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        try:
            metadata = {"Date": None} if path.suffix == ".svg" else {}
            figure.savefig(path, dpi=144, facecolor="white", metadata=metadata)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
        finally:
            pyplot.close(figure)


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
