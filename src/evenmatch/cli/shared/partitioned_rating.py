"""`evenmatch rate` on partitioned Parquet: a folder, a pattern or the URL of an object store."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evenmatch.cli.shared.options import connected
from evenmatch.cli.shared.output import compile_ahead, note, note_skipped, print_json, problems_document, working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.partitioned import RatedLadders, StandingsOptions
    from evenmatch.partitioned.stream import Selection
    from evenmatch.systems.system import Rules


def rate_address(
    address: str,
    by: Rules,
    out: str | None,
    journal: str | None,
    selection: Selection,
    standings: StandingsOptions,
    *,
    as_json: bool,
    cluster: tuple[str, str] | None = None,
) -> RatedLadders:
    """Rate the partitions at an address, write the results and print them as `evenmatch rate` does.

    cluster  its address and the system of the rules, as `systems.find` takes it; None: in this process
    """
    from evenmatch.cluster.ladders import rate_ladders
    from evenmatch.partitioned import rate_partitions
    from evenmatch.tables.partitions import find_partitions

    check_places(address, {"--out": out, "--journal": journal})
    partitions = find_partitions(address)
    ladders = len({partition.ladder for partition in partitions})
    if by.system.ladder is not None and ladders > 1 and selection.ladder is None:
        note(f"{by.system.name}: ladders in folders of their own are rated each alone and learn nothing from others")
    compile_ahead([by.system.name], by.system.name)
    begin, total = time.monotonic(), sum(partition.size for partition in partitions)
    with ExitStack() as stack:
        rate = rate_partitions
        if cluster is not None:
            address_of, system = cluster
            rate = partial(rate_ladders, stack.enter_context(connected(address_of, [system])))
        progress = stack.enter_context(working(f"rating with {by.system.name}", 100))

        def report(read: int, matches: int) -> None:
            speed = matches / max(1e-9, time.monotonic() - begin)
            progress(
                100 * read // max(1, total),
                f"rating with {by.system.name}: {matches:,} matches, {speed:,.0f} a second, percent",
            )

        rated = rate(
            partitions, by, out=out, journal=journal, progress=report, selection=selection, standings=standings
        )
    if rated.later:
        note("matches later than --as-of are left out")
    note_skipped(rated.skipped, rated.skipped_matches)
    if as_json:
        print_json(_document(rated, by))
    for place, files in ((out, rated.ratings), (journal, rated.journal)):
        if place is not None:
            rows = sum(int(str(entry["rows"])) for entry in files)
            counted = f"{len(files):,} file{'' if len(files) == 1 else 's'}"
            (print if out is not None and not as_json else note)(f"{place}: {counted}, {rows:,} rows")
    return rated


def check_places(address: str, places: dict[str, str | None]) -> None:
    """Raise UsageError before the long run if results cannot be written to these folders."""
    from evenmatch.partitioned import Results
    from evenmatch.tables.files import FORMS

    given = {option: place.rstrip("/") for option, place in places.items() if place is not None}
    for option, place in given.items():
        if Path(place).suffix.lower() in FORMS:
            raise UsageError(f"{option} {place}: is a file; expected a folder or URL, as MATCHES is one")
        Results(place).check_new()
    named = [*given.values(), address.rstrip("/")]
    if len(set(named)) < len(named):
        raise UsageError(f"{', '.join(given)} and MATCHES name the same folder; expected different ones")


def _document(rated: RatedLadders, by: Rules) -> dict[str, object]:
    """Return the result as JSON data, with the best players of each ladder; --out writes all players."""
    ladders = [
        {
            "ladder": ladder.name,
            "matches": ladder.matches,
            "players": ladder.players,
            "placed": ladder.placed,
            "top": [{**row, "last_played": str(row["last_played"])} for row in ladder.top],
        }
        for ladder in rated.ladders
    ]
    return {
        "system": by.system.name,
        "preset": by.preset,
        "parameters": by.values(),
        "matches": rated.matches,
        "players": rated.players,
        "skipped_matches": rated.skipped_matches,
        **problems_document(rated.skipped),
        "ladders": ladders,
        "ratings": list(rated.ratings),
        "journal": list(rated.journal),
    }
