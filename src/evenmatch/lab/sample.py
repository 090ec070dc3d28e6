"""A synthetic season of a team game, and the picture of its ratings over time.

Players have a true skill, and some leave matches early. Pictures are drawn with matplotlib (extra `plot`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import UsageError, needing
from evenmatch.match import Appearance, Match, Team

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


START = datetime(2026, 1, 5, 18, tzinfo=UTC)
ONSETS = ("B", "D", "F", "K", "L", "M", "N", "R", "S", "T", "V", "Z")
RHYMES = ("ara", "eno", "ivi", "olu", "una", "aris", "ekko", "immy", "orin", "udo")


@dataclass(frozen=True)
class SimulatedSeason:
    """Matches in order of time, and each player's hidden true skill (standard normal)."""

    matches: list[Match]
    skill: dict[str, float]


@dataclass(frozen=True)
class Habits:
    """Shares of appearances (`draw`: of matches) with an irregular course.

    quit        leaves at a random time, which weakens the team
    leave_late  leaves in the last seconds, when the match is decided
    join_late   joins after the start and stays; not a quitter
    draw        match ends in a draw
    """

    quit: float = 0.015
    leave_late: float = 0.01
    join_late: float = 0.02
    draw: float = 0.01


def season(
    seed: int, *, players: int = 240, matches: int = 4000, team_size: int = 6, habits: Habits | None = None
) -> SimulatedSeason:
    """Generate a season of matches between two teams; deterministic for a seed.

    Some players play ten times as often as others. Line-ups are random, independent of skill. The chance to win is
    logistic in the difference of the teams' mean skill, weighted by time in the match.
    """
    rng = np.random.default_rng(seed)
    habits = habits or Habits()
    names = player_names(players)
    skill = rng.normal(size=players)
    eagerness = rng.lognormal(sigma=0.8, size=players)
    eagerness /= eagerness.sum()
    gaps = rng.exponential(timedelta(days=90).total_seconds() / matches, matches)
    ends = np.cumsum(gaps)
    listed = []
    for number in range(matches):
        chosen = rng.choice(players, 2 * team_size, replace=False, p=eagerness)
        length = float(rng.integers(600, 901))
        seconds, quits = _times(rng, 2 * team_size, length, habits)
        sides = slice(0, team_size), slice(team_size, None)
        strength = [float((skill[chosen[side]] * seconds[side]).sum() / (length * team_size)) for side in sides]
        presence = [float(seconds[side].sum() / (length * team_size)) for side in sides]
        lead = 4.0 * (strength[0] - strength[1]) + 6.0 * (presence[0] - presence[1])
        first_wins = rng.random() < 1 / (1 + np.exp(-lead))
        drawn = rng.random() < habits.draw
        places = (1, 1) if drawn else (1, 2) if first_wins else (2, 1)
        rounds = int(rng.integers(0, 8))
        scores = (7, 7) if drawn else (8, rounds) if first_wins else (rounds, 8)
        teams = [
            Team(
                tuple(
                    Appearance(names[player], seconds=float(time), quit=bool(left))
                    for player, time, left in zip(chosen[side], seconds[side], quits[side], strict=True)
                ),
                place,
                float(score),
            )
            for side, place, score in zip(sides, places, scores, strict=True)
        ]
        played_at = START + timedelta(seconds=round(float(ends[number])))
        listed.append(Match(f"m{number + 1}", played_at, tuple(teams), ladder="6v6"))
    return SimulatedSeason(listed, dict(zip(names, skill.tolist(), strict=True)))


def player_names(count: int) -> list[str]:
    """Generate `count` different names, the same on every call."""
    short = [onset + rhyme for rhyme in RHYMES for onset in ONSETS]
    return [
        short[index % len(short)] + (str(index // len(short) + 1) if index >= len(short) else "")
        for index in range(count)
    ]


def _times(
    rng: np.random.Generator, players: int, length: float, habits: Habits
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Seconds in the match and quit flags; at least one player stays to the end."""
    chance = rng.random(players)
    seconds = np.full(players, length)
    quitter = chance < habits.quit
    seconds[quitter] = np.floor(rng.uniform(30, length - 30, quitter.sum()))
    late = ~quitter & (chance < habits.quit + habits.leave_late)
    seconds[late] = length - rng.integers(3, 20, late.sum())
    joined = chance > 1 - habits.join_late
    seconds[joined] = length - rng.integers(20, 200, joined.sum())
    if (seconds < length).all():
        seconds[0], quitter[0], late[0] = length, False, False
    return seconds, quitter | late
