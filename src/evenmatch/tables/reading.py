"""A file -> MatchTable."""

from __future__ import annotations

from pathlib import Path

from evenmatch.errors import BadRowsError
from evenmatch.tables.assemble import assemble
from evenmatch.tables.files import read_rows
from evenmatch.tables.json_rows import read_lines
from evenmatch.tables.table import MatchTable


def read_matches(path: Path, name: str | None = None, *, skip_bad: bool = False) -> MatchTable:
    """The matches of a file, as `tables.read`; for `name` see files.read_rows."""
    rows, source = read_rows(path, name)
    held = [rows]
    del rows  # so that assemble alone holds the rows, and lets go of each column when it is read
    try:
        return assemble(held.pop(), source, skip_bad=skip_bad and source.form != "jsonl")
    except BadRowsError:
        if source.form != "jsonl":
            raise
    rows, source = read_lines(path, source.name)  # now line by line, since lines are to be told
    return assemble(rows, source, skip_bad=skip_bad)
