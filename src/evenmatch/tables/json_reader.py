"""The raw rows of a JSON Lines file, and its lines that are not valid rows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.json as pa_json

from evenmatch.errors import RowProblem
from evenmatch.tables.source import Source, not_utf8

_SHOWN = 40  # characters of a line shown in a message


def read_json(path: Path, name: str) -> tuple[pa.Table, Source]:
    """Read the rows of a JSON Lines file with Arrow; if that fails, with the slower `read_lines`."""
    texts = pa.schema([(name, pa.large_string()) for name in ("match_id", "ladder", "player", "team")])
    try:
        options = pa_json.ParseOptions(explicit_schema=texts, newlines_in_values=False)
        rows = pa_json.read_json(path, parse_options=options)
        rows.validate(full=True)
    except pa.ArrowInvalid:
        return read_lines(path, name)  # numbers as names, or invalid lines: find them
    absent = [name for name in texts.names if rows[name].null_count == len(rows)]
    return rows.drop_columns(absent), Source(name, "line", path, form="jsonl")


def read_lines(path: Path, name: str) -> tuple[pa.Table, Source]:
    """Read a JSON Lines file line by line, with line numbers and every invalid line; slow."""
    broken, listed, numbers = [], [], []
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            cells, reason = _cells(text.strip())
            if reason is None:
                listed.append(cells)
                numbers.append(number)
            else:
                match_id = cells.get("match_id")
                broken.append(RowProblem(number, _readable(match_id) if isinstance(match_id, str) else None, reason))
    names = dict.fromkeys(name for cells in listed for name in cells)
    rows = pa.table({name: pa.array([_text(cells.get(name)) for cells in listed], pa.large_string()) for name in names})
    return rows, Source(name, "line", path, numbers, tuple(broken))


def _cells(text: str) -> tuple[dict[str, object], str | None]:
    """The cells of a line, and the reason if it is not a valid row, else None."""
    raw = not_utf8(text)
    shown = repr(text[:_SHOWN] if raw is None else raw[:_SHOWN])
    detail = ""
    try:
        cells = json.loads(text)
        if isinstance(cells, dict):
            json.dumps(cells, ensure_ascii=False).encode()  # rejects a lone surrogate
            return cells, None
    except UnicodeEncodeError:
        if raw is not None:
            return cells, f"{shown} is not UTF-8; expected a file in UTF-8"
        return cells, f"{shown} contains half of a surrogate pair; expected valid Unicode"
    except json.JSONDecodeError as error:
        detail = f" ({error.msg.removesuffix(' at')} at column {error.colno})"
    except (ValueError, RecursionError) as error:  # too many digits, too deep
        detail = f" ({error})"
    return {}, f"{shown} is not a JSON object{detail}; expected one per line"


def _readable(text: str) -> str:
    return text.encode(errors="surrogatepass").decode(errors="replace")


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
