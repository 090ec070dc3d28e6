"""Write the results in docs/choosing-a-system.md: every system on every recorded set, default and tuned.

`make choosing` reads the Parquet files in ../shared/data (ARGS="--data FOLDER" another folder), pools the ladders of
each, tunes on the first half and judges on the second. With --cluster each
replay is a task of a Ray cluster. Trials are kept in build/trials: an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import evenmatch
from evenmatch import Backtest, systems
from evenmatch.cli.shared.options import workers_of
from evenmatch.lab.backtests.scoring import Variant
from evenmatch.options import shown
from evenmatch.tables import MatchTable, write_arrow

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "choosing-a-system.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
DATA = ROOT.parent / "shared" / "data"
TRIALS = ROOT / "build" / "trials"

Row = Mapping[str, Any]


def main() -> None:
    """Backtest every file and put the tables between the markers of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of Parquet files")
    parser.add_argument("--seconds", type=float, default=240, help="of tuning for each file, all systems together")
    parser.add_argument("--only", default="", help="files, by name without ending, separated by commas; prints only")
    parser.add_argument("--cluster", help="HOST:PORT of a Ray cluster's head node, or local; default: threads")
    given = parser.parse_args()
    files = sorted(given.data.glob("*.parquet"))
    if given.only:
        files = [file for file in files if file.stem in given.only.split(",")]
    if not files:
        parser.error(f"no Parquet file in {given.data}")
    found: dict[str, Backtest] = {}
    with workers_of(given.cluster, systems.names()) as workers:
        for file in files:
            begun = time.monotonic()
            matches = evenmatch.read(file).pooled()
            found[file.stem] = evenmatch.backtest(matches, tune=given.seconds, trials=TRIALS, workers=workers)
            print(f"{file.stem}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    results = "\n".join(
        [*_head(given.seconds), *_summary(found), *(line for one in found.items() for line in _set(*one))]
    )
    if given.only:
        print(results)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{results}\n{END}{after}", encoding="utf-8")
    for name, one in found.items():
        write_arrow(one.scores.drop_columns(["seconds"]), ROOT / "build" / f"choosing-{name}.csv")


def _head(seconds: float) -> list[str]:
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, evenmatch {evenmatch.__version__}"
    return [f"{seconds:g} s of tuning for each set, all systems together; {machine}.", ""]


def _summary(found: Mapping[str, Backtest]) -> list[str]:
    """One line per set: plain Elo, the best default, how far it is ahead of every other system as tuned."""
    lines = [
        "| set | judged | plain Elo | best default | best other system, tuned | it is behind by | best tuned "
        "| level with it |",
        "| --- | ---: | ---: | --- | --- | --- | --- | --- |",
    ]
    for name, b in found.items():
        scores = _by_variant(b)
        elo, best = scores["elo", "default"], scores[b.chosen[0][:2]]
        default = min((row for (_, variant), row in scores.items() if variant == "default"), key=_loss)
        rival = scores[next(one for one in b.chosen if one.system != default["system"])[:2]]
        gap = _rows(b.against_best_default)[rival["system"], rival["variant"]]
        apart = _rows(b.against_best)
        level = [one.system for one in b.chosen[1:] if apart[one[:2]]["low"] <= 0.0]
        lines.append(
            f"| [{name}](#{name}) | {best['matches']:,} | {elo['log_loss']:.4f} | {default['system']} "
            f"{default['log_loss']:.4f} | {rival['system']} {rival['log_loss']:.4f} | {_gap(gap)} | "
            f"{best['system']} {best['log_loss']:.4f} | {', '.join(level) or 'none'} |"
        )
    return [*lines, ""]


def _set(name: str, b: Backtest) -> list[str]:
    """The table of one set, and what tuning chose."""
    scores = _by_variant(b)
    apart = _rows(b.against_best)
    lines = [
        f"### {name}",
        "",
        "| system | log loss | accuracy | tuned: log loss | 95 % interval | accuracy | calibration | behind the best |",
        "| --- | ---: | ---: | ---: | --- | ---: | ---: | --- |",
    ]
    for one in b.chosen:
        default, tuned, gap = scores.get((one.system, "default")), scores[one[:2]], apart[one[:2]]
        worse = _gap(gap) if one != b.chosen[0] else "–"
        told = ("–", "–") if default is None else (f"{default['log_loss']:.4f}", _percent(default["accuracy"]))
        lines.append(
            f"| {one.system} | {told[0]} | {told[1]} | {tuned['log_loss']:.4f} | {tuned['log_loss_low']:.4f} to "
            f"{tuned['log_loss_high']:.4f} | {_percent(tuned['accuracy'])} | {_plain(tuned['calibration_slope'])} | "
            f"{worse} |"
        )
    lines += [
        "",
        *(f"- {who} was left out: {why}." for who, why in b.left_out),
        *(f"- {note}" for note in b.notes if "took up" not in note),
    ]
    lines += [*_presets(b), *_by_scores(b, scores), "", "<details><summary>Parameters found</summary>", ""]
    for one in b.chosen:
        changed = _changed(one)
        lines.append(f"- `{one.system}`: {changed}")
    return [*lines, "", "</details>", ""]


def _presets(b: Backtest) -> list[str]:
    """Log loss of every preset."""
    own = ("default", "tuned")
    rows = [row for row in b.scores.to_pylist() if row["variant"] not in own]
    named = (f"{row['system']} {row['variant']} {row['log_loss']:.4f}" for row in rows)
    return [f"- Presets: {', '.join(named)}."] if rows else []


def _by_scores(b: Backtest, scores: Mapping[tuple[str, str], Row]) -> list[str]:
    """The best system that looks at scores beside the best that looks at results alone."""
    aware = [one for one in b.chosen if _uses_scores(b, one)]
    others = [one for one in b.chosen if one not in aware]
    if not aware or not others:
        return []
    mine, theirs = scores[aware[0][:2]], scores[others[0][:2]]
    return [
        f"- Best with scores: {aware[0].system} {mine['log_loss']:.4f}; best by results alone: {others[0].system} "
        f"{theirs['log_loss']:.4f}."
    ]


def _uses_scores(b: Backtest, one: Variant) -> bool:
    """Whether the variant, with its parameters, looks at the scores or performances that these matches have."""
    assert isinstance(b.matches, MatchTable), "the games are read whole"
    c = b.matches.history.columns
    if one.system == "even":
        values = one.rules.values()
        return bool(values["performance"]) or bool(values["margin"] and not np.isnan(c.team_score).all())
    if one.system == "scorefactor":
        return not bool(np.isnan(c.score).all())
    if one.system == "prav":
        by_share = one.rules.values()["outcome"] == "share" and not np.isnan(c.team_score).all()
        return bool(by_share or not np.isnan(c.performance).all())
    return False


def _changed(one: Variant) -> str:
    """The parameters that tuning moved, with four digits."""
    defaults = evenmatch.rules(one.system).values()
    moved = {name: value for name, value in one.rules.values().items() if value != defaults[name]}
    return ", ".join(f"{name} {shown(_rounded(value))}" for name, value in moved.items()) or "the defaults"


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    return [_rounded(one) for one in value] if isinstance(value, tuple) else value


def _by_variant(b: Backtest) -> dict[tuple[str, str], Row]:
    return _rows(b.scores)


def _rows(table: pa.Table) -> dict[tuple[str, str], Row]:
    return {(row["system"], row["variant"]): row for row in table.to_pylist()}


def _gap(row: Row) -> str:
    return f"{row['difference']:.4f} ({row['low']:.4f} to {row['high']:.4f})"


def _loss(row: Row) -> float:
    return float(row["log_loss"])


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
