"""Reports: tables for the screen and for docs/benchmarks.md, and what has become slower."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figure import ROOT, Figure, Section
from benchmarks.results import WORSE, Decline, Result

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
HEADS = ("figure", "median", "least to most", "aim", "reference", "ratio")


def cells(figure: Figure) -> tuple[str, ...]:
    """One line of a table, as texts."""
    aims = [] if figure.aim is None else [f"{'≥' if figure.more else '≤'} {figure.aim:g}"]
    if figure.within is not None and figure.ratio is not None:
        aims.append(f"ratio ≤ {figure.within:g}")
    aim = ", ".join(aims) + (" (missed)" if figure.reached is False else "")
    runs = figure.runs
    spread = "" if len(runs) == 1 else f"{number(runs.min())} to {number(runs.max())}, {len(runs)} runs"
    reference = figure._replace(measured=figure.reference_runs)
    by = f"{number(reference.value)} {figure.by}" if len(figure.reference_runs) else ""
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    return figure.name, f"{number(figure.value)} {figure.unit}", spread, aim, by, ratio


def number(value: float) -> str:
    """Three digits, and whole numbers from a hundred on."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def markdown(result: Result, picture: str | None) -> str:
    """A section of the page."""
    section = result.section
    lines = [f"### {section.title}", "", f"`make bench ARGS={result.name}`: {result.machine}; {result.measured}.", ""]
    lines += [line for note in section.notes for line in (note, "")]
    if picture is not None:
        lines += [f"![{section.title}: medians, spreads, references and aims]({picture})", ""]
    lines += [f"| {' | '.join(HEADS)} |", f"| ---{' | ---:' * (len(HEADS) - 1)} |"]
    lines += [f"| {' | '.join(cells(figure))} |" for figure in section.figures]
    return "\n".join([*lines, ""])


def plain(section: Section) -> str:
    """A section for the screen."""
    return "\n".join(["", section.title, *section.notes, "", *_aligned([HEADS, *map(cells, section.figures)])])


def plain_declines(declines: Sequence[Decline], since: str) -> str:
    """What has become slower, for the screen; a report and no failure, since machines differ from hour to hour."""
    heads = ("worse than the committed result", "before", "now", "times", "its reference, times")
    rows = [
        (
            decline.name,
            f"{number(decline.before)} {decline.unit}",
            f"{number(decline.now)} {decline.unit}",
            f"{decline.times:.2f}",
            "" if decline.reference is None else f"{decline.reference:.2f}",
        )
        for decline in declines
    ]
    limit = f"more than {100 * WORSE - 100:.0f} %"
    return "\n".join(["", f"Worse by {limit} than on {since}:", *_aligned([heads, *rows])])


def write(result: Result, picture: str | None) -> None:
    """Put a result between the markers of the page: in the place of the earlier one of its title, or last."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    results, _, after = rest.partition(END)
    _, *written = results.split("\n### ")
    sections = {text.partition("\n")[0]: f"### {text.strip()}\n" for text in written}
    sections[result.section.title] = markdown(result, picture)
    results = "\n".join(sections.values())
    PAGE.write_text(f"{before}{BEGIN}\n\n{results}\n{END}{after}", encoding="utf-8")


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines, the first column to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        for row in rows
    )
    return ["  ".join(line).rstrip() for line in lines]
