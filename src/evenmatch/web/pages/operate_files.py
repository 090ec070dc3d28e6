"""The operator page that imports a file of matches into a ladder, and exports the ladder's tables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from evenmatch.errors import (
    LISTED_SINGLY,
    BadRowsError,
    MissingColumnsError,
    ProblemGroup,
    RowProblem,
    UsageError,
    group_problems,
)
from evenmatch.ladders.export import Files, export
from evenmatch.players.placement import why_nobody
from evenmatch.tables.look import Look, likely_columns, look
from evenmatch.tables.mapping import format_columns, parse_columns
from evenmatch.tables.reading import SplitColumns, guessed, mapped, read_matches, read_raw, split_columns
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


class FileFields(NamedTuple):
    """What the form says about the file, as typed; see the options of `evenmatch import`."""

    columns: str = ""
    time_format: str = ""
    zone: str = ""
    context: str = ""

    @property
    def context_columns(self) -> list[str]:
        """The names of the context columns."""
        return [name for name in map(str.strip, self.context.split(",")) if name]

    @property
    def split(self) -> SplitColumns:
        """What the form says about context columns and about others."""
        with about("columns"):
            return split_columns(parse_columns(self.columns) if self.columns.strip() else {}, self.context_columns)

    def read(self, path: Path, name: str, *, skip_bad: bool) -> MatchTable:
        """Read the matches of a file."""
        time_format, zone, context = self.time_format.strip() or None, self.zone.strip() or None, self.context_columns
        if not self.columns.strip():
            return read_matches(path, name, skip_bad=skip_bad, time_format=time_format, zone=zone, context=context)
        raw, split = read_raw(path, name), self.split
        with about("columns"):
            found = guessed(raw, split.others, None, time_format, zone, split.context)
            if found.question:
                raise UsageError(found.question)
        return mapped(raw, found.mapping, split.context, skip_bad=skip_bad)


class CheckedFile(NamedTuple):
    """What an import would do.

    good    matches that can be added;  late  of these, older than the ladder's newest
    fields  what the form says, or what was guessed;  look  what was guessed about a file in another form
    absent  context columns that were not found in such a file
    """

    file: str
    good: int
    late: int
    problems: tuple[RowProblem, ...]
    fields: FileFields
    look: Look | None = None
    absent: tuple[str, ...] = ()

    @property
    def kinds(self) -> list[ProblemGroup]:
        """The problems by kind if there are too many to read one by one."""
        return group_problems(self.problems) if len(self.problems) > LISTED_SINGLY else []


async def files(visit: PageRequest) -> Response:
    """Show the forms to import and export."""
    return await visit.show("operate_files", lambda: _files(visit, None))


def _files(visit: PageRequest, checked: CheckedFile | None) -> Mapping[str, object]:
    limit, declared = visit.site.options.body_limit, visit.site.service.ladder(visit.ladder).settings.context
    shown = {"checked": checked, "tables": TABLES, "listed": LISTED, "limit": limit, "declared": declared}
    return ladder_and_form(visit) | shown


async def import_file(visit: PageRequest) -> Response:
    """Check a file of matches, or add its matches to the ladder."""
    form = await visit.form()
    upload, skip_bad, rated = visit.upload, bool(form.get("skip_bad")), not form.get("unrated")
    fields = FileFields(*(form.get(name, "") for name in FileFields._fields))
    with about("file"):
        if upload is None or not upload.content:
            raise UsageError("choose a file")
        if form.get("do") != "import":
            checked = await visit.site.work(_check, visit, upload, fields, rated)
            return await visit.show("operate_files", lambda: _files(visit, checked))
        notice = await visit.site.change(visit.ladder, _import, visit, upload, fields, rated, skip_bad)
    return visit.go(address("ladders", visit.ladder, "operate", "files"), notice)


@contextmanager
def _stored(upload: UploadedFile) -> Iterator[Path]:
    """The path of a file while the block runs. Line numbers of problems are read from it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload"
        path.write_bytes(upload.content)
        yield path


def _of_ladder(matches: MatchTable, ladder: str) -> MatchTable:
    """The matches of a file for this ladder: those of its only ladder, or of the ladder with this name."""
    names = matches.ladders
    if len(names) > 1 and ladder not in names:
        raise UsageError(f"the file has the ladders {', '.join(sorted(names)[:20])}, but not {ladder!r}")
    return matches.on_ladder(names[0] if len(names) == 1 else ladder)


def _check(visit: PageRequest, upload: UploadedFile, fields: FileFields, rated: bool) -> CheckedFile:
    """Check a file with our columns or what the form says; guess the meaning of any other file."""
    service, found = visit.site.service, None
    absent: tuple[str, ...] = ()
    with _stored(upload) as path:
        try:
            try:
                matches = fields.read(path, upload.name, skip_bad=True)
            except MissingColumnsError:
                raw = read_raw(path, upload.name)
                zone, time_format = fields.zone.strip() or None, fields.time_format.strip() or None
                context = likely_columns(raw, fields.split.context)
                absent = tuple(name for name in fields.context_columns if name not in context)
                found = look(raw, guessed(raw, None, None, time_format, zone, context), context)
                mapping = found.guess.mapping
                told = "" if found.guess.question else mapping.time_format
                renamed = {ours: theirs for ours, theirs in context.items() if ours != theirs}
                columns = format_columns({**mapping.columns, **renamed})
                fields = FileFields(columns, told, mapping.zone, fields.context)
                if found.matches is None:
                    return CheckedFile(upload.name, 0, 0, found.problems, fields, found, absent)
                matches = found.matches
            matches = _of_ladder(matches, visit.ladder)
            matches = service.check_import(visit.ladder, matches, rated=rated, skip_bad=True)
        except BadRowsError as error:  # no match is good
            return CheckedFile(upload.name, 0, 0, error.problems, fields, found, absent)
        late = int(service.late_matches(visit.ladder, matches).mask.sum())
        return CheckedFile(upload.name, len(matches), late, matches.skipped, fields, found, absent)


def _import(visit: PageRequest, upload: UploadedFile, fields: FileFields, rated: bool, skip_bad: bool) -> str:
    with _stored(upload) as path:
        try:
            matches = _of_ladder(fields.read(path, upload.name, skip_bad=skip_bad), visit.ladder)
        except MissingColumnsError as error:
            raise UsageError(f"{error}; “Check the file” guesses what its columns mean") from None
        body = {"file": upload.name, "matches": len(matches), "rated": rated}
        service = visit.site.service.noting(visit.audit_entry("matches.imported", visit.ladder, upload.name, body))
        done = service.import_matches(visit.ladder, matches, rated=rated, skip_bad=skip_bad)
    added = visit.texts.plural("%(n)s match was added.", "%(n)s matches were added.", done.added)
    known = visit.texts.plural("%(n)s was known already.", "%(n)s were known already.", done.known)
    view = service.view(visit.ladder)
    nobody = None if view.snapshot.population else why_nobody(view)
    return f"{added} {known}" if nobody is None else f"{added} {known} {visit.texts.said(nobody)}"


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
