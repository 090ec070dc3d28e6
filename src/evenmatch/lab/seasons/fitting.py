"""Fit a game to recorded matches, and put a simulated season beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evenmatch.history import Floats, History
from evenmatch.lab.seasons.comparison import Row, compare, scored
from evenmatch.lab.seasons.games import GAMES, STAGES, Game
from evenmatch.lab.seasons.season import simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.lab.seasons.skill_gaps import SEED, Skills, heats, learn
from evenmatch.rating import rules_of
from evenmatch.tables import MatchTable, read

TIMED = 0.9  # a match has a time limit if fewer winners reach the target
QUANTILES = np.linspace(0.0025, 0.9975, 200)


@dataclass(frozen=True)
class Fit:
    """A fitted game, and the recorded matches beside a season that was simulated with it."""

    game: Game
    comparison: tuple[Row, ...]

    def to_data(self) -> dict[str, object]:
        """Numbers and comparison, for JSON."""
        return {"game": asdict(self.game), "comparison": [row._asdict() for row in self.comparison]}


def fit(matches: MatchTable, game: Game) -> Game:
    """The game with every number that these matches tell; the others stay as they are.

    Steepness and absence grow with the square root of a team's size, because the luck of its players averages out.
    """
    history = heats(matches.history, game.teams)
    c, skills, growth = history.columns, learn(history), game.team_size**0.5
    numbers = {"steepness": skills.steepness * growth, "home": skills.home, "draw_width": skills.width}
    if skills.absence:
        numbers["absence"] = skills.absence * growth
    if np.diff(c.team_start).max() == 2 and not np.isnan(c.team_score).all():
        numbers |= _margins(history, skills)
    if game.teams > 2:  # points are whole numbers, so their size decides how often two teams draw
        numbers["score_mean"] = 0.5 / (game.score_noise * max(skills.width, 1e-4))
    elif game.team_size > 1:
        numbers |= _scores(history, skills)
    if not np.isnan(c.duration).all():
        low, median, high = np.nanquantile(np.log(c.duration), (0.16, 0.5, 0.84))
        numbers |= {"duration": np.exp(median), "duration_spread": (high - low) / 2.0}
    numbers |= _quits(history, game, skills)
    found: dict[str, Any] = {name: float(f"{value:.3g}") + 0.0 for name, value in numbers.items()}
    target, timed = found.pop("target", game.target), found.pop("timed", game.timed)
    return replace(game, **found, target=None if target is None else int(target), timed=bool(timed))


def _margins(history: History, skills: Skills) -> dict[str, float]:
    """How team scores follow from the gap at the end of a match that nobody left."""
    score, rng = history.columns.team_score, np.random.default_rng(SEED)
    best, other = np.fmax(*score.reshape(-1, 2).T), np.fmin(*score.reshape(-1, 2).T)
    drawn = history.columns.place[::2] == history.columns.place[1::2]
    target, reached = _target(best[~drawn & ~np.isnan(best)])
    whole = np.bincount(history.slot_match, history.columns.quit) == 0
    gap = np.abs(skills.performance[:, ::2] - skills.performance[:, 1::2])[:, whole]
    beyond = np.quantile(gap[:, ~drawn[whole]] - skills.width, QUANTILES)
    decided = (best - other)[whole & ~drawn]
    margins = np.quantile(decided[decided > 0], QUANTILES)
    costs = []
    for power in np.arange(0.5, 3.01, 0.05):
        scale = 1.0
        for _ in range(30):
            simulated = np.clip(np.rint(scale * beyond**power), 1.0, target)
            scale *= margins.mean() / simulated.mean()
        costs.append((float(np.abs(simulated - margins).mean()), float(scale), float(power)))
    _, scale, power = min(costs)
    level = mean = float(np.nanmean(np.maximum(other, 0.0)))
    beyond = np.maximum(gap.ravel() - skills.width, 0.0)
    margin = np.clip(np.rint(scale * beyond**power), beyond > 0.0, target)
    for _ in range(20 if reached < TIMED else 0):  # whoever reaches the target ends the match early
        level += mean - float(np.clip(rng.poisson(level, len(margin)), 0.0, target - margin).mean())
    numbers = {"margin_scale": scale, "margin_power": power, "level": level}
    return numbers | ({"target": target, "timed": float(reached < TIMED)} if np.isfinite(target) else {})


def _target(best: Floats) -> tuple[float, float]:
    """The score of winners that ends a match, and the share of winners who reach it; infinite if there is none."""
    values, counts = np.unique(best, return_counts=True)
    above = 1.0 - np.cumsum(counts) / counts.sum()
    ends = np.flatnonzero((counts > 0.15 * counts.sum()) & (above < 0.1))
    return (float(values[ends[0]]), float(counts[ends[0] :].sum() / counts.sum())) if len(ends) else (np.inf, 0.0)


def _scores(history: History, skills: Skills) -> dict[str, float]:
    """How a player's own score follows from skill, compared with the others of the match."""
    c = history.columns
    if not scored(history):
        return {}
    seen = (c.score > 0.0) & ~c.quit
    match = history.slot_match[seen]
    count = np.bincount(match, minlength=len(history))

    def around(values: Floats) -> Floats:
        """Each value minus the mean of its match."""
        return np.asarray(values - (np.bincount(match, values, len(history)) / np.maximum(count, 1))[match])

    freedom = len(match) - (count > 0).sum()
    log, expected = np.log(c.score[seen]), around(skills.skill.mean(0)[seen])
    slope = float(around(log) @ expected / (expected @ expected))
    skill = float(np.mean([(around(draw[seen]) ** 2).sum() for draw in skills.skill]))
    noise = float(np.sqrt(max((around(log) ** 2).sum() - slope**2 * skill, 1e-6) / freedom))
    return {"score_mean": float(np.exp(log.mean())), "score_slope": slope, "score_noise": noise}


def _quits(history: History, game: Game, skills: Skills) -> dict[str, float]:
    """How often players leave, and how many of them when behind; slots missing from smaller teams count as quits."""
    c, sizes = history.columns, np.diff(history.columns.slot_start)
    if not c.quit.any():
        largest = np.maximum.reduceat(sizes, c.team_start[:-1])
        missing = 1.0 - sizes.sum() / (largest * np.diff(c.team_start)).sum()
        return {"quit": float(missing)} if game.team_size > 1 and missing > 0.0 else {}
    rng, teams = np.random.default_rng(SEED), len(sizes)
    match = np.repeat(np.arange(len(history)), np.diff(c.team_start))
    behind = np.zeros(teams)
    for draw in skills.skill:
        strength = skills.steepness * np.bincount(history.slot_team, draw, teams) / sizes**0.5
        for stage in np.arange(1, STAGES) / STAGES:
            gain = strength * stage + (0.5 * stage) ** 0.5 * rng.standard_normal(teams)
            behind += gain < np.maximum.reduceat(gain, c.team_start[:-1])[match]
    behind /= (STAGES - 1) * len(skills.skill)
    slope, ahead = np.polyfit(behind[history.slot_team], c.quit.astype(np.float64), 1)
    if_behind, if_ahead, equal = max(ahead + slope, 0.0), max(ahead, 0.0), (game.teams - 1) / game.teams
    share = if_behind * equal + if_ahead * (1.0 - equal)
    after = (c.seconds / c.duration[history.slot_match])[c.quit]
    power = np.log(np.clip(np.nanmedian(after), 0.01, 0.99)) / np.log(0.5)
    return {"quit": float(share), "quit_behind": float(if_behind * equal / share), "quit_time": float(power)}


class Recording(NamedTuple):
    """Recorded matches that tell some numbers of a game: file, ladders that contain `ladder`, and the numbers."""

    file: str
    ladder: str
    numbers: tuple[str, ...]


RESULTS = ("steepness", "home", "draw_width")
SCORES = ("margin_scale", "margin_power", "target", "timed", "level")
OWN_SCORES = ("score_mean", "score_slope", "score_noise")
LENGTH = ("duration", "duration_spread")
QUITS = ("quit", "quit_behind", "quit_time")
RECORDINGS = {
    "duel": (Recording("halo2_h2h", "", (*RESULTS, *SCORES)),),
    "football": (Recording("intl_football", "-home", (*RESULTS, *SCORES)),),
    "team": (
        Recording("halo2_smallteam", "", ("steepness", "absence", "quit")),
        Recording("cod_cwl", "Hardpoint", ("draw_width", *SCORES, *OWN_SCORES, *LENGTH)),
    ),
    "sixes": (
        Recording("halo2_smallteam", "Slayer", OWN_SCORES),
        Recording("halo2_smallteam", "CaptureTheFlag", (*RESULTS, *SCORES, "absence", "quit")),
    ),
    "brawl": (Recording("codeforces", "", ("steepness", "score_mean")),),
    "race": (Recording("f1", "race", ("steepness", "score_mean", *LENGTH, *QUITS)),),
}


def recorded(folder: Path, recording: Recording) -> MatchTable:
    """The matches of a recording, of all its ladders together."""
    table = read(folder / f"{recording.file}.parquet")
    kept = [code for code, name in enumerate(table.ladders) if recording.ladder in name]
    return table.take(np.isin(table.ladder, kept)).pooled()


def fitted(folder: Path, game: Game) -> Game:
    """The game with the numbers that its recordings tell."""
    for recording in RECORDINGS[game.name]:
        found = fit(recorded(folder, recording), game)
        game = replace(game, **{name: getattr(found, name) for name in recording.numbers})
    return game


def fits(folder: Path, progress: Callable[[str], None] | None = None) -> dict[str, Fit]:
    """Each game fitted anew to the recorded matches in this folder, and a season of it beside the last recording.

    The season has as many matches for each player as the recording, so that ratings are equally certain in both, but
    4,000 at least and 16,000 at most.

    progress  called with the name of each game that begins
    """
    found = {}
    for name, game in ((name, GAMES[name]) for name in RECORDINGS):
        if progress is not None:
            progress(name)
        matches = recorded(folder, RECORDINGS[name][-1])
        shown, players = matches.history, 400
        present = min(0.5, 2.0 * game.players / players)  # few at a time: matches of all gaps
        count = round(players * len(shown.columns.player) / shown.players / game.players)
        settings = SeasonSettings(
            game=name,
            players=players,
            matches=min(max(count, 4000), 16_000),
            present=present,
            policy="quick",
            seed=SEED,
        )
        record = simulate_season(settings, rules_of("even"))
        found[name] = Fit(fitted(folder, game), compare(matches, record))
    return found
