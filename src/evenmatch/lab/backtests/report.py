"""Report of a backtest: one self-contained HTML file in which all names are escaped."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata, resources
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import pyarrow.compute as pc

from evenmatch.errors import RatingRangeError, UnknownNameError, UsageError, needing
from evenmatch.history import Floats
from evenmatch.lab.backtests.backtest import Backtest
from evenmatch.lab.backtests.scoring import Variant
from evenmatch.lab.backtests.verdict import verdict
from evenmatch.lab.display_names import plain
from evenmatch.options import options_of, shown
from evenmatch.rating import rate
from evenmatch.systems.system import Rules
from evenmatch.tables import MatchTable
from evenmatch.whole_file import whole_file

with needing("lab", "a report"):
    import jinja2
    from plotly.offline import get_plotlyjs

    from evenmatch.lab import charts

SUFFIXES = (".html", ".htm")
PLAYERS = 5  # number of rating paths if no players are named
CANDIDATES = 40  # they are chosen from this many players with the most matches
TOGETHER = 0.9  # team-mates in more than this share of their matches count as one player
SETTLED = 10  # fewest matches of a player in the distributions of ratings
WIDEST = 20  # most ladders in the table of ladders
PACKAGES = ("evenmatch", "numpy", "numba", "pyarrow")


class IntervalBar(NamedTuple):
    """An interval on the common scale of all rows, in percent of the width; `beyond`: it exceeds the scale."""

    low: float
    high: float
    value: float
    coin: float
    beyond: bool


class Row(NamedTuple):
    """A variant in the ranking: its row of `scores`, its difference to the best, its interval as a bar."""

    rank: int
    scores: Mapping[str, float]
    apart: Mapping[str, float]
    bar: IntervalBar
    look: charts.LineStyle


class LossBySegment(NamedTuple):
    """Log loss of each system on parts of the matches; cells further than `wide` from the best have no color."""

    rows: list[tuple[str, int, list[float]]]
    wide: float
    thin: list[str]
    more: int


class RatedVariant(NamedTuple):
    """Ratings by a chosen variant: of all players with enough matches, and over time for selected players."""

    system: str
    ratings: Floats
    paths: list[charts.Path]
    note: str


class TunedVariant(NamedTuple):
    """Effect of tuning: (parameter, default, tuned, meaning) of each change, and log loss before and after."""

    system: str
    changed: list[tuple[str, str, str, str]]
    before: float
    after: float
    trials: int


def write_report(backtest: Backtest, path: Path | str, *, players: Sequence[str] = (), command: str = "") -> None:
    """Write the results of a backtest as one self-contained HTML file, completely or not at all.

    players  players whose rating paths are drawn; empty: those with the most matches
    command  command line shown as the way to reproduce the report
    Raises UsageError if the file cannot be written or the extra `lab` is not installed, UnknownNameError for an
    unknown player.
    """
    chosen = choose(_table(backtest), players)
    with whole(Path(path)) as file:
        file.write(render(backtest, chosen, command).encode())


def _table(backtest: Backtest) -> MatchTable:
    if isinstance(backtest.matches, MatchTable):
        return backtest.matches
    raise UsageError(
        "a report shows players and their paths, for which all matches must be in memory; expected one file"
    )


def render(backtest: Backtest, players: Sequence[int], command: str) -> str:
    """Render the report with the rating paths of these players (by number)."""
    rated = [_rated(_table(backtest), variant, players) for variant in backtest.chosen]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"plain": plain, "shown": _short}
    template = resources.files("evenmatch.lab").joinpath("report.html.jinja").read_text("utf-8")
    page = environment.from_string(template)
    figures, known_by = embed(_figures(backtest, rated)), fingerprint(_table(backtest))
    return page.render(
        b=backtest,
        title=plain(Path(_table(backtest).source.name).name, 120),
        facts=_facts(backtest),
        verdict=[plain(sentence) for sentence in verdict(backtest)],
        ranking=_ranking(backtest, only_chosen=True),
        variants=_ranking(backtest, only_chosen=False),
        systems=[variant.system for variant in backtest.chosen],
        experience=_parts(backtest, "experience"),
        ladders=_parts(backtest, "ladder"),
        periods=_parts(backtest, "period"),
        band=charts.has_band(backtest.segments, backtest.chosen[0][:2]),
        rated=rated,
        tuned=_tuned(backtest),
        parameters=_parameters(backtest),
        versions={name: metadata.version(name) for name in PACKAGES} | {"Python": platform.python_version()},
        fingerprint=known_by,
        command=plain(command),
        figures=figures,
        plotly=get_plotlyjs(),
        nonce=hashlib.sha256((known_by + figures).encode()).hexdigest()[
            :32
        ],  # a name cannot contain a digest of itself
        coin=charts.COIN,
        thin=charts.THIN,
        thin_period=charts.THIN_PERIOD,
        few=charts.FEW,
        settled=SETTLED if (_matches_of(_table(backtest)) >= SETTLED).any() else 0,
        shown_at_first=charts.SHOWN,
        most_paths=charts.PATHS,
    )


def choose(matches: MatchTable, names: Sequence[str]) -> list[int]:
    """Return the players (by number) with these names on all ladders; without names, those with the most matches.

    Of team-mates who nearly always play together only one is chosen, since their paths would overlap.
    Raises UnknownNameError for an unknown name.
    """
    chosen: list[int] = []
    if not names:
        history, teams = matches.history, list[set[int]]()
        by_matches = np.argsort(-_matches_of(matches), kind="stable").tolist()
        for player in by_matches[:CANDIDATES]:
            own = set(history.slot_team[history.columns.player == player].tolist())
            if all(len(own & others) <= TOGETHER * len(own) for others in teams):
                chosen.append(player)
                teams.append(own)
        return (chosen + [player for player in by_matches if player not in chosen])[:PLAYERS]
    for name in dict.fromkeys(names):
        numbers = np.flatnonzero(pc.equal(matches.player, name).to_numpy(zero_copy_only=False))
        if not len(numbers):
            raise UnknownNameError("player", name, dict.fromkeys(matches.player_names))
        chosen += numbers.tolist()
    return chosen


def fingerprint(matches: MatchTable) -> str:
    """Digest of matches and player names, independent of the source they were read from."""
    digest = hashlib.sha256(json.dumps([matches.ladders, matches.player_names]).encode())
    for column in (*matches.history.columns, matches.ladder, matches.player_ladder):
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()[:16]


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path` that replaces it on success, so that permission errors occur at once."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path}: suffix {path.suffix!r}; expected {' or '.join(SUFFIXES)}")
    if path.is_dir():
        raise UsageError(f"{path}: cannot be written: it is a folder")
    with whole_file(path) as draft, draft.open("wb") as file:
        yield file


def _facts(backtest: Backtest) -> list[tuple[str, str]]:
    matches = _table(backtest)
    judged = len(matches) - backtest.warm_up
    first, last = (
        str(time.astype("datetime64[us]").astype("datetime64[D]")) for time in matches.history.columns.time[[0, -1]]
    )
    return [
        ("matches", f"{len(matches):,}"),
        ("players", f"{pc.count_distinct(matches.player).as_py():,}"),
        ("ladders", f"{len(matches.ladders):,}"),
        ("period", first if first == last else f"{first} to {last}"),
        ("warm-up", f"{backtest.warm_up:,} matches"),
        ("judged", f"{judged:,} matches"),
        *([("skipped", f"{matches.skipped_matches:,} matches")] if matches.skipped_matches else []),
    ]


def _ranking(backtest: Backtest, *, only_chosen: bool) -> list[Row]:
    differences = {(row["system"], row["variant"]): row for row in backtest.against_best.to_pylist()}
    look = charts.line_styles([variant.system for variant in (*backtest.chosen, *backtest.variants)])
    chosen = {variant[:2] for variant in backtest.chosen}
    rows = [row for row in backtest.scores.to_pylist() if not only_chosen or (row["system"], row["variant"]) in chosen]
    bars = _bars(rows)
    return [
        Row(rank, row, differences[row["system"], row["variant"]], bar, look[row["system"]])
        for rank, (row, bar) in enumerate(zip(rows, bars, strict=True), 1)
    ]


def _bars(rows: Sequence[Mapping[str, float]]) -> list[IntervalBar]:
    """Intervals on a scale that includes a coin flip; values far worse than that exceed the scale."""
    ends = [
        [_known(row[name], row["log_loss"]) for name in ("log_loss_low", "log_loss", "log_loss_high")] for row in rows
    ]
    least = min(charts.COIN, *(end[0] for end in ends))
    room = max(charts.COIN - least, 0.02)
    most = max(charts.COIN, min(max(end[2] for end in ends), charts.COIN + 0.7 * room))
    if least == charts.COIN:
        most = max(end[2] for end in ends)
    low, wide = least - 0.03 * (most - least), 1.06 * (most - least) or 1.0

    def percent(value: float) -> float:
        return round(min(100.0, 100 * (value - low) / wide), 2)

    return [
        IntervalBar(percent(down), percent(up), percent(middle), percent(charts.COIN), up > low + wide)
        for down, middle, up in ends
    ]


def _parts(backtest: Backtest, by: str) -> LossBySegment:
    """Parts in table order, but ladders by number of matches."""
    chosen = [variant[:2] for variant in backtest.chosen]
    table = backtest.segments.filter(pc.equal(backtest.segments["by"], by))
    loss: dict[tuple[str, str, str], float] = {}
    size: dict[str, int] = {}
    for row in table.select(["system", "variant", "group", "matches", "log_loss"]).to_pylist():
        loss[row["system"], row["variant"], row["group"]] = row["log_loss"]
        size[row["group"]] = row["matches"]
    least = charts.THIN_PERIOD if by == "period" else charts.THIN
    thick = [group for group, matches in size.items() if matches >= least]
    thin = [group for group, matches in size.items() if matches < least]
    more = 0
    if by == "ladder":
        more = max(0, len(thick) - WIDEST)
        thick = sorted(thick, key=lambda group: -size[group])[:WIDEST]
    listed = [(group, size[group], [loss[(*name, group)] for name in chosen]) for group in thick]
    spread = max((max(losses) - min(losses) for _, _, losses in listed), default=0.0)
    return LossBySegment(listed, float(np.clip(0.6 * spread, 0.015, 0.06)), thin, more)


def _rated(matches: MatchTable, variant: Variant, players: Sequence[int]) -> RatedVariant:
    names = [(matches.ladders[matches.player_ladder[player]], matches.player_names[player]) for player in players]
    try:
        ratings = rate(matches, variant.rules, journal=True, skip_bad=True)
    except RatingRangeError as error:
        return RatedVariant(variant.system, np.zeros(0), [], str(error))
    assert ratings.journal is not None
    table, history = ratings.matches, ratings.matches.history
    number = {
        (table.ladders[ladder], name): index
        for index, (ladder, name) in enumerate(zip(table.player_ladder.tolist(), table.player_names, strict=True))
    }
    time = history.columns.time[history.slot_match]
    paths = []
    for ladder, name in names:
        if (ladder, name) in number:
            slots = np.flatnonzero(history.columns.player == number[ladder, name])
            title = plain(name, 24)
            if len(matches.ladders) > 1:
                title += f" ({plain(ladder, 16)})"
            paths.append(charts.Path(title, time[slots], ratings.journal.after[slots]))
    settled = _matches_of(table) >= SETTLED
    rating = ratings.state["rating"]
    return RatedVariant(variant.system, rating[settled] if settled.any() else rating, paths, "")


def _tuned(backtest: Backtest) -> list[TunedVariant]:
    loss = {(row["system"], row["variant"]): row["log_loss"] for row in backtest.scores.to_pylist()}
    trials = {row["values"]: row["counts"] for row in pc.value_counts(backtest.trials["system"]).to_pylist()}
    listed = []
    for system, variant, rules in backtest.chosen:
        before = loss.get((system, "default"))
        if variant == "tuned" and before is not None:
            default, meant = Rules.of(rules.system).values(), options_of(rules.system.parameters)
            changed = [
                (name, _short(default[name]), _short(value), meant[name].meaning)
                for name, value in rules.values().items()
                if value != default[name]
            ]
            listed.append(TunedVariant(system, changed, before, loss[system, variant], trials.get(system, 0)))
    return listed


def _parameters(backtest: Backtest) -> list[tuple[Variant, list[tuple[str, str, str]]]]:
    return [
        (
            variant,
            [
                (name, shown(value), options_of(variant.rules.system.parameters)[name].meaning)
                for name, value in variant.rules.values().items()
            ],
        )
        for variant in backtest.chosen
    ]


def _figures(backtest: Backtest, rated: Sequence[RatedVariant]) -> dict[str, object]:
    names = [variant[:2] for variant in backtest.chosen]
    look = charts.line_styles([system for system, _ in names])
    figures = {
        "reliability": charts.reliability(backtest.reliability, names),
        "time": charts.over_time(backtest.segments, names),
    }
    for index, result in enumerate(rated):
        if len(result.ratings):
            figures[f"ratings-{index}"] = charts.rating_distribution(result.ratings, look[result.system])
            figures[f"paths-{index}"] = charts.rating_paths(result.paths)
    return {name: json.loads(figure.to_json()) for name, figure in figures.items()}


def embed(value: object) -> str:
    """JSON for a script element, with <, > and & escaped."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _matches_of(matches: MatchTable) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.bincount(matches.history.columns.player, minlength=len(matches.player))


def _short(value: object) -> str:
    """A parameter's value as text, with five significant digits."""
    if isinstance(value, tuple | list):
        return ", ".join(_short(item) for item in value)
    return f"{value:.5g}" if isinstance(value, float) else shown(value)


def _known(value: float | None, otherwise: float) -> float:
    return otherwise if value is None or np.isnan(value) else value
