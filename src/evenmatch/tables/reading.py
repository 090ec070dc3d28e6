"""Read a file into a MatchTable."""

from __future__ import annotations

from pathlib import Path

from evenmatch.errors import BadRowsError
from evenmatch.tables.build import assemble
from evenmatch.tables.files import read_lines, read_rows
from evenmatch.tables.table import MatchTable
from evenmatch.times import format_named


def read_matches(
    path: Path, name: str | None = None, *, skip_bad: bool = False, time_format: str = "seconds"
) -> MatchTable:
    """Read the matches of a file, like `tables.read`; for `name` see files.read_rows."""
    form = format_named(time_format)
    rows, source = read_rows(path, name)
    rows_only = [rows]
    del rows  # assemble then has the only reference, and frees each column after reading it
    try:
        return assemble(rows_only.pop(), source, skip_bad=skip_bad and source.form != "jsonl", form=form)
    except BadRowsError:
        if source.form != "jsonl":
            raise
    rows, source = read_lines(path, source.name)  # again line by line, for the line numbers in the messages
    return assemble(rows, source, skip_bad=skip_bad, form=form)
