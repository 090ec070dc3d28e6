"""Reports: tables for the screen and for docs/benchmarks.md, and the machine they were measured on."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa

from benchmarks.figure import ROOT, Figure, Section

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
HEADS = ("figure", "measured", "aim", "reference", "ratio")


def cells(figure: Figure) -> tuple[str, ...]:
    """One line of a table, as texts."""
    aims = [] if figure.aim is None else [f"{'≥' if figure.more else '≤'} {figure.aim:g}"]
    if figure.within is not None and figure.ratio is not None:
        aims.append(f"ratio ≤ {figure.within:g}")
    aim = ", ".join(aims) + (" (missed)" if figure.reached is False else "")
    reference = "" if figure.reference is None else f"{number(figure.reference)} {figure.by}"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    return figure.name, f"{number(figure.value)} {figure.unit}", aim, reference, ratio


def number(value: float) -> str:
    """Three digits, and whole numbers from a hundred on."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def markdown(section: Section) -> str:
    """A section of the page."""
    lines = [f"### {section.title}", "", f"{machine()}.", "", *(line for note in section.notes for line in (note, ""))]
    lines += [f"| {' | '.join(HEADS)} |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [f"| {' | '.join(cells(figure))} |" for figure in section.figures]
    return "\n".join([*lines, ""])


def plain(section: Section) -> str:
    """A section for the screen."""
    rows = [HEADS, *(cells(figure) for figure in section.figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    return "\n".join(["", section.title, *section.notes, "", *(line.rstrip() for line in lines)])


def machine() -> str:
    """What it was measured on and with, and when."""
    compiler = "no gcc"
    if gcc := shutil.which("gcc"):
        compiler = (
            "gcc "
            + subprocess.run([gcc, "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
        )
    versions = f"Python {platform.python_version()}, numpy {np.__version__}, numba {numba.__version__}"
    versions += f", pyarrow {pa.__version__}, {compiler}"
    return f"{processor()}, {os.cpu_count()} cores, {platform.system()}; {versions}; {datetime.now(UTC):%Y-%m-%d}"


def processor() -> str:
    """The processor's name, and its family and model where the name says little."""
    told = Path("/proc/cpuinfo")
    if not told.exists():
        return platform.processor() or platform.machine()
    facts = dict(
        line.split(":", 1) for line in told.read_text().split("\n\n", maxsplit=1)[0].splitlines() if ":" in line
    )
    known = {name.strip(): value.strip() for name, value in facts.items()}
    name = known.get("model name", platform.machine())
    return f"{name} (family {known['cpu family']}, model {known['model']})" if "cpu family" in known else name


def write(sections: Sequence[Section]) -> None:
    """Put the results between the markers of the page: each in the place of the earlier ones of its title, or last."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    results, _, after = rest.partition(END)
    _, *written = results.split("\n### ")
    kept = {text.partition("\n")[0]: f"### {text.strip()}\n" for text in written}
    kept |= {section.title: markdown(section) for section in sections}
    results = "\n".join(kept.values())
    PAGE.write_text(f"{before}{BEGIN}\n\n{results}\n{END}{after}", encoding="utf-8")
