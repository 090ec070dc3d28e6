"""The operator page that imports a file of matches into a ladder, and exports the ladder's tables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from evenmatch.errors import BadRowsError, RowProblem, UsageError
from evenmatch.ladders.export import Files, export
from evenmatch.tables.reading import read_matches
from evenmatch.tables.table import MatchTable
from evenmatch.web.forms import about
from evenmatch.web.page_request import PageRequest, UploadedFile, address
from evenmatch.web.pages.operate_ladder import ladder_and_form

LISTED = 200  # most problems of a file that are listed
TABLES = {  # in the order of Files
    "matches": "Matches",
    "ratings": "Standings and ratings",
    "journal": "Journal: every rating change",
    "corrections": "Corrections",
    "learned": "What the system has learned",
}
FORMATS = ("csv", "jsonl", "parquet")


class CheckedFile(NamedTuple):
    """What an import would do. good: matches that can be added;  late: of these, older than the ladder's newest."""

    file: str
    good: int
    late: int
    problems: tuple[RowProblem, ...]


async def files(visit: PageRequest) -> Response:
    """Show the forms to import and export."""
    return await visit.show("operate_files", lambda: _files(visit, None))


def _files(visit: PageRequest, checked: CheckedFile | None) -> Mapping[str, object]:
    limit = visit.site.options.body_limit
    return {**ladder_and_form(visit), "checked": checked, "tables": TABLES, "listed": LISTED, "limit": limit}


async def import_file(visit: PageRequest) -> Response:
    """Check a file of matches, or add its matches to the ladder."""
    form = await visit.form()
    upload, skip_bad, rated = visit.upload, bool(form.get("skip_bad")), not form.get("unrated")
    with about("file"):
        if upload is None or not upload.content:
            raise UsageError("choose a file")
        if form.get("do") != "import":
            checked = await visit.site.work(_check, visit, upload, rated)
            return await visit.show("operate_files", lambda: _files(visit, checked))
        notice = await visit.site.change(visit.ladder, _import, visit, upload, rated, skip_bad)
    return visit.go(address("ladders", visit.ladder, "operate", "files"), notice)


@contextmanager
def _stored(upload: UploadedFile) -> Iterator[Path]:
    """The path of a file while the block runs. Line numbers of problems are read from it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload"
        path.write_bytes(upload.content)
        yield path


def _matches(path: Path, upload: UploadedFile, ladder: str, *, skip_bad: bool) -> MatchTable:
    """The matches of a file for this ladder: those of its only ladder, or of the ladder with this name."""
    matches = read_matches(path, upload.name, skip_bad=skip_bad)
    names = matches.ladders
    if len(names) > 1 and ladder not in names:
        raise UsageError(f"the file has the ladders {', '.join(sorted(names)[:20])}, but not {ladder!r}")
    return matches.on_ladder(names[0] if len(names) == 1 else ladder)


def _check(visit: PageRequest, upload: UploadedFile, rated: bool) -> CheckedFile:
    service = visit.site.service
    with _stored(upload) as path:
        try:
            matches = _matches(path, upload, visit.ladder, skip_bad=True)
            matches = service.check_import(visit.ladder, matches, rated=rated, skip_bad=True)
        except BadRowsError as error:  # no match is good
            return CheckedFile(upload.name, 0, 0, error.problems)
    late = service.late_matches(visit.ladder, matches)
    return CheckedFile(upload.name, len(matches), int(late.mask.sum()), matches.skipped)


def _import(visit: PageRequest, upload: UploadedFile, rated: bool, skip_bad: bool) -> str:
    with _stored(upload) as path:
        matches = _matches(path, upload, visit.ladder, skip_bad=skip_bad)
        body = {"file": upload.name, "matches": len(matches), "rated": rated}
        service = visit.site.service.noting(visit.audit_entry("matches.imported", visit.ladder, upload.name, body))
        done = service.import_matches(visit.ladder, matches, rated=rated, skip_bad=skip_bad)
    added = f"{done.added:,} {'match was' if done.added == 1 else 'matches were'} added"
    return f"{added}; {done.known:,} {'was' if done.known == 1 else 'were'} on the ladder already."


async def export_file(visit: PageRequest) -> Response:
    """Send a table of the ladder as a file."""
    what, form = visit.asked("what", "matches"), visit.asked("form", "csv")
    if what not in TABLES or form not in FORMATS:
        raise UsageError(f"{what[:20]!r} as {form[:20]!r}: expected {', '.join(TABLES)} as {', '.join(FORMATS)}")
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / f"{what}.{form}"
    wanted = Files(*(path if table == what else None for table in TABLES))  # type: ignore[arg-type] # in order
    service = visit.site.service
    await visit.site.work(export, service.database, visit.ladder, wanted, service.clock())
    return FileResponse(path, filename=path.name, background=BackgroundTask(folder.cleanup))
