"""`python -m benchmarks [NAME ...]`: measure, print, keep the results as JSON, and write docs/benchmarks.md from them.

`--print` only prints. A figure that is more than a fifth worse than the last committed one of the same kind of machine
is listed at the end; that is a report, and not a failure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from benchmarks import (
    cluster,
    contests,
    context,
    corrections,
    day,
    fronts,
    lab,
    ledger,
    load,
    matchmaking,
    online,
    pages,
    partitions,
    peers,
    processes,
    rate,
    report,
    results,
    seasons,
    serve,
    standings,
    start,
)
from benchmarks.figure import Section
from benchmarks.machine import versions
from benchmarks.pictures import draw

BENCHMARKS: dict[str, Callable[[], Section]] = {
    "rate": rate.run,
    "partitions": partitions.run,
    "contests": contests.run,
    "context": context.run,
    "cluster": cluster.run,
    "peers": peers.run,
    "lab": lab.run,
    "seasons": seasons.run,
    "online": online.run,
    "standings": standings.run,
    "ledger": ledger.run,
    "corrections": corrections.run,
    "matchmaking": matchmaking.run,
    "fronts": fronts.run,
    "serve": serve.run,
    "processes": processes.run,
    "day": day.run,
    "pages": pages.run,
    "start": start.run,
    "load": load.run,
}


def main() -> None:
    """Run the benchmarks that were named, or all."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Measure what the speed claims rest on.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--print", action="store_true", help="only print: keep no result, leave docs/benchmarks.md")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in BENCHMARKS]:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    print(f"{results.this_machine()}; {versions()}", flush=True)
    measured = []
    for name in given.names or list(BENCHMARKS):
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        measured.append(results.result_of(name, BENCHMARKS[name]()))
        print(report.plain(measured[-1].section), flush=True)
        if not given.print:
            keep(measured[-1])
    missed = [figure.name for result in measured for figure in result.section.figures if figure.reached is False]
    print(f"\naims missed: {', '.join(missed) or 'none'}")
    compare(measured)


def keep(result: results.Result) -> None:
    """Keep a result, and write its section of the page and its picture."""
    results.keep(result)
    picture = f"benchmarks-{result.name}.svg"
    is_drawn = draw(result.section, report.PAGE.parent / picture)
    report.write(result, picture if is_drawn else None)


def compare(measured: Sequence[results.Result]) -> None:
    """Print what is worse than the committed results of this kind of machine."""
    compared = False
    for result in measured:
        before = results.committed(result.name)
        if before is None:
            continue
        compared = True
        if declines := results.declines(before.section, result.section):
            print(report.plain_declines(declines, f"{before.measured.partition(';')[0]} ({result.name})"))
    if not compared:
        print(f"no committed result of this kind of machine to compare with: {results.this_machine()}")


if __name__ == "__main__":
    main()
