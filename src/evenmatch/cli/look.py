"""evenmatch look: what a file of matches means, what is broken in it, and the command that reads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evenmatch.cli.shared import options
from evenmatch.cli.shared.files import FILES, check_outputs, received
from evenmatch.cli.shared.options import argument, option
from evenmatch.cli.shared.output import note, print_json, print_table, printable, problems_document, working
from evenmatch.cli.shared.reading import NO_READING, Reading, reads_matches
from evenmatch.errors import group_problems, problem_lines

if TYPE_CHECKING:
    from evenmatch.tables import MatchTable
    from evenmatch.tables.look import Look

ALIKE_AT_MOST = 20  # groups of similar names that are printed


@reads_matches
def command(
    file: Annotated[str, argument("FILE", f"Matches in any form: {FILES}.")],
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
    from evenmatch.tables.look import look, write_rejected
    from evenmatch.tables.reading import guessed, read_raw

    check_outputs(others=[] if file == "-" else [Path(file)], written=[rejected, save])
    with received(file) as (path, called):
        with working(f"reading {called or path.name}"):
            raw = read_raw(path, called, reading.saved)
            found = look(raw, guessed(raw, reading.names, reading.saved, reading.time_format, reading.zone))
        written = None if rejected is None else write_rejected(raw, found.guess.mapping, found.problems, rejected)
    if save is not None:
        found.guess.mapping.save(save)
    if json:
        print_json(_document(found, file))
    else:
        _print(found, file)
    for made, what in ((rejected, f"{written or 0:,} rows"), (save, "the mapping")):
        if made is not None:
            note(f"{made}: {what}")


def _commands(found: Look, file: str) -> list[str]:
    """The commands that rate and import the file; `rate` does not read standard input."""
    from evenmatch.tables.look import command as typed

    more = ["--skip-bad"] if found.problems else []
    options = found.options
    rate = [] if file == "-" else [typed("rate", file, options, "--system", "elo", *more)]
    return [*rate, typed("import", file, options, "--ladder", "NAME", *more)]


def _other_sizes(matches: MatchTable | None) -> list[str]:
    """A sentence if fewer than half of the matches have teams of other sizes than the most frequent one."""
    if matches is None:
        return []
    import numpy as np

    columns = matches.history.columns
    sizes, counts = np.unique(np.diff(columns.slot_start), return_counts=True)
    if len(sizes) == 1:
        return []
    from evenmatch.ladders.settings import Settings
    from evenmatch.recording.receipts import other_sizes, summary

    usual = Settings(team_size=int(sizes[counts.argmax()]))
    odd = other_sizes(usual, columns, [True] * len(matches))
    return summary(list(odd.values())) if 2 * len(odd) < len(matches) else []


def _document(found: Look, file: str) -> dict[str, object]:
    mapping = found.guess.mapping
    return {
        "file": file,
        "form": found.form,
        "rows": found.rows,
        "mapping": mapping.to_data(),
        "unread_columns": list(found.guess.unread),
        "question": found.guess.question or None,
        "matches": 0 if found.matches is None else len(found.matches),
        "examples": found.examples,
        **problems_document(found.problems),
        "other_sizes": _other_sizes(found.matches),
        "similar_names": [list(names) for names in found.alike],
        "commands": [] if found.guess.question else _commands(found, file),
    }


def _print(found: Look, file: str) -> None:
    mapping = found.guess.mapping
    matches = 0 if found.matches is None else len(found.matches)
    counted = "1 match" if matches == 1 else f"{matches:,} matches"
    heads = ("column", "read from", "as")
    rows = [[ours, theirs, _how(found, ours)] for ours, theirs in mapping.columns.items()]
    name = "standard input" if file == "-" else file
    print(printable(f"{name}: {found.form}; {found.rows:,} rows, {counted} that can be read"))
    print_table("", heads, rows)
    if found.guess.unread:
        print(printable(f"Not read: {', '.join(found.guess.unread)}"))
    if found.guess.question:
        print(printable(f"To decide: {found.guess.question}"))
        return
    for text in found.examples:
        print(printable(f"  {text}"))
    _print_faults(found)
    if matches:
        print("To add the matches to a ladder:" if file == "-" else "To rate the matches, or to add them to a ladder:")
        for one in _commands(found, file):
            print(printable(f"  {one}"))


def _print_faults(found: Look) -> None:
    """Print what may be wrong: unreadable rows, unusual team sizes, similar names."""
    if found.problems:
        groups = len(group_problems(found.problems))
        kinds = f"{groups} kind{'s' if groups > 1 else ''}"
        print(f"Broken: {len(found.problems):,} problem{'s' if len(found.problems) > 1 else ''} of {kinds}")
        for line in problem_lines(found.problems):
            print(printable(line))
    for text in _other_sizes(found.matches):
        print(f"{text}: a row may be missing")
    if found.alike:
        print("Names that differ only in case, spaces or invisible characters:")
        for names in found.alike[:ALIKE_AT_MOST]:
            print(f"  {', '.join(ascii(name) if not name.isprintable() else repr(name) for name in names)}")
        if len(found.alike) > ALIKE_AT_MOST:
            print(f"  … and {len(found.alike) - ALIKE_AT_MOST:,} more (--json lists all)")


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
