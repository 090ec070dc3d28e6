"""`python -m benchmarks [NAME ...] [--write]`: measure and print; --write puts the results into docs/benchmarks.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks import (
    contests,
    corrections,
    fronts,
    lab,
    ledger,
    load,
    matchmaking,
    online,
    pages,
    peers,
    processes,
    rate,
    report,
    serve,
    standings,
    start,
)
from benchmarks.figure import Section

BENCHMARKS: dict[str, Callable[[], Section]] = {
    "rate": rate.run,
    "contests": contests.run,
    "peers": peers.run,
    "lab": lab.run,
    "online": online.run,
    "standings": standings.run,
    "ledger": ledger.run,
    "corrections": corrections.run,
    "matchmaking": matchmaking.run,
    "fronts": fronts.run,
    "serve": serve.run,
    "processes": processes.run,
    "pages": pages.run,
    "start": start.run,
    "load": load.run,
}


def main() -> None:
    """Run the benchmarks that were named, or all."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Measure what the speed claims rest on.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--write", action="store_true", help="put the results into docs/benchmarks.md")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in BENCHMARKS]:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    names = given.names or list(BENCHMARKS)
    print(report.machine(), flush=True)
    sections = []
    for name in names:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        sections.append(BENCHMARKS[name]())
        print(report.plain(sections[-1]), flush=True)
    if given.write:
        report.write(sections)
    missed = [figure.name for section in sections for figure in section.figures if figure.reached is False]
    print(f"\naims missed: {', '.join(missed) or 'none'}")


if __name__ == "__main__":
    main()
