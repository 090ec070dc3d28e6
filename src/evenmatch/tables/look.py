"""Explain a file of matches: what was understood, some matches in words, what is broken, and which names look alike."""

from __future__ import annotations

import csv
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa

from evenmatch.errors import BadRowsError, RowProblem, matches_of
from evenmatch.tables.guess import Guess
from evenmatch.tables.mapping import FileMapping, format_columns, parts_of, texts_of
from evenmatch.tables.reading import NO_COLUMNS, RawFile, mapped
from evenmatch.tables.source import PLAIN, csv_records
from evenmatch.tables.table import COLUMNS, MatchTable
from evenmatch.times import EPOCH
from evenmatch.whole_file import whole_file

EXAMPLES = 3  # matches told in words
_MARKS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_ENCODINGS = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252"}


@dataclass(frozen=True)
class Look:
    """What `look` found in a file.

    matches   those that can be read; None if there are none or a question is open
    problems  of the others
    alike     names of players that differ only in case, spaces or invisible characters
    """

    guess: Guess
    form: str
    rows: int
    matches: MatchTable | None
    problems: tuple[RowProblem, ...]
    alike: tuple[tuple[str, ...], ...]

    @property
    def examples(self) -> list[str]:
        """The first, the middle and the last match in words."""
        if self.matches is None:
            return []
        last = len(self.matches) - 1
        chosen = sorted({last * part // (EXAMPLES - 1) for part in range(EXAMPLES)})
        return [told(self.matches, number, self.guess.mapping.zone) for number in chosen]

    @property
    def options(self) -> list[str]:
        """The options of a command that reads the file like this."""
        return reading_options(self.guess.mapping)


def look(raw: RawFile, found: Guess, context: Mapping[str, str] = NO_COLUMNS) -> Look:
    """Read a file with the guessed mapping.

    context  the file's column of each context column
    Raises InputError if a needed column is missing.
    """
    mapping = found.mapping
    matches: MatchTable | None = None
    problems: tuple[RowProblem, ...] = ()
    if not found.question:
        try:
            matches = mapped(raw, mapping, context, skip_bad=True)
            problems = matches.skipped
        except BadRowsError as error:
            problems = error.problems
    rows = raw.rows.num_rows + sum(problem.match_id is None for problem in raw.source.broken)
    alike = () if matches is None else tuple(similar(dict.fromkeys(matches.player_names)))
    return Look(found, _form(raw, mapping), rows, matches, problems, alike)


def likely_columns(raw: RawFile, context: Mapping[str, str]) -> dict[str, str]:
    """The file's column of each context column that it has; upper and lower case may differ."""
    names = raw.rows.column_names
    alike = {name.casefold(): name for name in reversed(names)}
    likely = {
        ours: theirs if set(parts_of(theirs)) <= set(names) else alike.get(theirs.casefold(), "")
        for ours, theirs in context.items()
    }
    return {ours: theirs for ours, theirs in likely.items() if theirs}


def _form(raw: RawFile, mapping: FileMapping) -> str:
    """The form of the file in words."""
    shape = "a row for each player of a match" if mapping.sides is None else "a row for each match"
    if mapping.sides == ("teams", "teams"):
        shape = "a row for each match, both sides in one cell"
    if raw.source.path is None or raw.source.form == "jsonl":
        return f"{'JSON Lines' if raw.source.form else 'Parquet'}, {shape}"
    encoding = _ENCODINGS.get(mapping.encoding, mapping.encoding)
    comma = ", decimal comma" if mapping.decimal == "," else ""
    return f"CSV separated by {_MARKS.get(mapping.delimiter, mapping.delimiter)}, {encoding}{comma}, {shape}"


def told(matches: MatchTable, number: int, zone: str) -> str:
    """A match in words: id, time in this zone, and the sides in the order of their places."""
    c, names = matches.history.columns, matches.player_names
    moment = (EPOCH + timedelta(microseconds=int(c.time[number]))).astimezone(ZoneInfo(zone))
    sides = sorted(range(c.team_start[number], c.team_start[number + 1]), key=lambda team: c.place[team])
    text = ""
    for before, team in zip([None, *sides], sides, strict=False):
        listed = ", ".join(names[player] for player in c.player[c.slot_start[team] : c.slot_start[team + 1]])
        score = c.team_score[team]
        listed += f" ({score:g})" if score == score else ""  # noqa: PLR0124 - NaN stands for no score
        text += "" if before is None else (" drew with " if c.place[before] == c.place[team] else " beat ")
        text += listed
    duration = c.duration[number]
    lasted = f", {timedelta(seconds=round(duration))}" if duration == duration else ""  # noqa: PLR0124
    return f"{matches.match_id[number]}, {moment:%A} {moment.day} {moment:%B %Y, %H:%M}{lasted}: {text}"


def similar(names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Names that differ only in case, spaces, invisible characters or their Unicode form."""
    groups: dict[str, list[str]] = {}
    for name in names:
        visible = (sign for sign in unicodedata.normalize("NFKC", name) if unicodedata.category(sign)[0] not in "ZC")
        groups.setdefault("".join(visible).casefold(), []).append(name)
    return (tuple(group) for group in groups.values() if len(group) > 1)


def reading_options(mapping: FileMapping) -> list[str]:
    """The options that lead to this mapping; none for a file with our columns."""
    is_ours = mapping.dialect == PLAIN and set(mapping.columns.items()) <= set(zip(COLUMNS, COLUMNS, strict=True))
    is_ours &= mapping.decimal == "." and not mapping.units
    options = [] if is_ours else ["--columns", format_columns(mapping.columns)]
    options += ["--time-format", mapping.time_format] if mapping.time_format != "seconds" else []
    return options + (["--zone", mapping.zone] if mapping.zone != "UTC" else [])


def command(verb: str, path: str, options: Sequence[str], *more: str) -> str:
    """A command as typed into a shell."""
    return shlex.join(["evenmatch", verb, path, *options, *more])


def write_rejected(raw: RawFile, mapping: FileMapping, problems: Sequence[RowProblem], path: Path) -> int:
    """Write all rows of the rejected matches as CSV in UTF-8, with `line` and `problem`; returns their number."""
    reasons: dict[int | None, list[str]] = {}
    for problem in problems:
        reasons.setdefault(problem.line, []).append(problem.reason)
    bad = set(matches_of(problems))
    header, records = _records(raw)
    theirs = mapping.columns.get("match_id", "")
    columns = [header.index(part) for part in ([theirs] if theirs in header else parts_of(theirs)) if part in header]
    count = 0
    with whole_file(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=mapping.delimiter)
        writer.writerow([*header, "line", "problem"])
        for line, cells in records:
            match_id = " ".join(cells[column] for column in columns if column < len(cells))
            if line in reasons or match_id in bad:
                missing = [""] * (len(header) - len(cells))
                writer.writerow([*cells, *missing, line, "; ".join(reasons.get(line, []))])
                count += 1
    return count


def _records(raw: RawFile) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The columns of a file, and the line and cells of each record."""
    source = raw.source
    if source.path is not None and source.form != "jsonl":
        records = csv_records(source.path, "replace", source.dialect)
        return raw.rows.column_names, ((line, cells) for line, cells, _ in records)
    names = [name for name in raw.rows.column_names if not pa.types.is_nested(raw.rows.schema.field(name).type)]
    lines = source.lines(range(raw.rows.num_rows))
    columns = [texts_of(raw.rows[name]).to_pylist() for name in names]
    cells = zip(*columns, strict=True)
    return names, ((lines[row], [cell or "" for cell in own]) for row, own in enumerate(cells))
