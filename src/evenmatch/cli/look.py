"""evenmatch look: what a file of matches means, what is broken in it, and the command that reads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evenmatch.cli.shared import options
from evenmatch.cli.shared.options import argument, option
from evenmatch.cli.shared.output import note, print_json, print_table, printable, problems_document, working
from evenmatch.cli.shared.reading import NO_READING, Reading, reads_matches
from evenmatch.errors import group_problems, problem_lines

if TYPE_CHECKING:
    from evenmatch.tables.look import Look

ALIKE_AT_MOST = 20  # groups of similar names that are printed


@reads_matches
def command(
    file: Annotated[Path, argument("FILE", "Matches in any form: .csv, .parquet, .jsonl or .ndjson.")],
    rejected: Annotated[
        Path | None,
        option("--rejected FILE", "Write the rows of matches that cannot be read as CSV, with reasons."),
    ] = None,
    save: Annotated[Path | None, option("--save FILE", "Write the mapping as JSON, for --mapping.")] = None,
    reading: Reading = NO_READING,
    json: options.Json = False,
) -> None:
    """Guess what a file of matches means, and print the command that reads it.

    The columns may have any names. A row is a player of a match, or a match with a winner and a loser, or a match with
    both sides in one cell. Options correct the guess. Nothing is rated or imported.

    Examples:
    evenmatch look matches.csv
    evenmatch look matches.csv --columns player=SteamNick --zone Europe/Berlin
    evenmatch look matches.csv --rejected rejected.csv --save league.json
    """
    from evenmatch.cli.shared.files import check_outputs
    from evenmatch.tables.look import look, write_rejected
    from evenmatch.tables.reading import guessed, read_raw

    check_outputs(others=[file], written=[rejected, save])
    with working(f"reading {file.name}"):
        raw = read_raw(file, mapping=reading.saved)
        found = look(raw, guessed(raw, reading.names, reading.saved, reading.time_format, reading.zone))
    if save is not None:
        found.guess.mapping.save(save)
    written = None if rejected is None else write_rejected(raw, found.guess.mapping, found.problems, rejected)
    if json:
        print_json(_document(found, file))
    else:
        _print(found, file)
    for path, what in ((rejected, f"{written or 0:,} rows"), (save, "the mapping")):
        if path is not None:
            note(f"{path}: {what}")


def _commands(found: Look, file: Path) -> list[str]:
    """The commands that rate and import the file."""
    from evenmatch.tables.look import command as typed

    more = ["--skip-bad"] if found.problems else []
    options = found.options
    return [
        typed("rate", str(file), options, "--system", "elo", *more),
        typed("import", str(file), options, "--ladder", "NAME", *more),
    ]


def _document(found: Look, file: Path) -> dict[str, object]:
    mapping = found.guess.mapping
    return {
        "file": str(file),
        "form": found.form,
        "rows": found.rows,
        "mapping": mapping.to_data(),
        "unread_columns": list(found.guess.unread),
        "question": found.guess.question or None,
        "matches": 0 if found.matches is None else len(found.matches),
        "examples": found.examples,
        **problems_document(found.problems),
        "similar_names": [list(names) for names in found.alike],
        "commands": [] if found.guess.question else _commands(found, file),
    }


def _print(found: Look, file: Path) -> None:
    mapping = found.guess.mapping
    matches = 0 if found.matches is None else len(found.matches)
    counted = "1 match" if matches == 1 else f"{matches:,} matches"
    heads = ("column", "read from", "as")
    rows = [[ours, theirs, _how(found, ours)] for ours, theirs in mapping.columns.items()]
    print(printable(f"{file}: {found.form}; {found.rows:,} rows, {counted} that can be read"))
    print_table("", heads, rows)
    if found.guess.unread:
        print(printable(f"Not read: {', '.join(found.guess.unread)}"))
    if found.guess.question:
        print(printable(f"To decide: {found.guess.question}"))
        return
    for text in found.examples:
        print(printable(f"  {text}"))
    if found.problems:
        groups = len(group_problems(found.problems))
        kinds = f"{groups} kind{'s' if groups > 1 else ''}"
        print(f"Broken: {len(found.problems):,} problem{'s' if len(found.problems) > 1 else ''} of {kinds}")
        for line in problem_lines(found.problems):
            print(printable(line))
    if found.alike:
        print("Names that differ only in case, spaces or invisible characters:")
        for names in found.alike[:ALIKE_AT_MOST]:
            print(f"  {', '.join(ascii(name) if not name.isprintable() else repr(name) for name in names)}")
        if len(found.alike) > ALIKE_AT_MOST:
            print(f"  … and {len(found.alike) - ALIKE_AT_MOST:,} more (--json lists all)")
    if matches:
        print("To rate the matches, or to add them to a ladder:")
        for one in _commands(found, file):
            print(printable(f"  {one}"))


def _how(found: Look, ours: str) -> str:
    """What is particular about a column."""
    mapping = found.guess.mapping
    if ours == "played_at":
        form = "ISO 8601" if mapping.time_format == "seconds" else mapping.time_format
        return f"{form}, {mapping.zone} if it names no zone"
    if ours in ("seconds", "duration"):
        return mapping.units.get(ours, "seconds")
    between = f"players separated by {mapping.separator!r}" if mapping.separator else ""
    if ours == "teams":
        return f"sides separated by {mapping.versus!r}, {between}".rstrip(", ")
    return between if ours in (mapping.sides or ()) else ""
