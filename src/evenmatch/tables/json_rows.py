"""Rows of a JSON Lines file as they stand, and the lines that are no rows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.json as pa_json

from evenmatch.errors import Problem
from evenmatch.tables.source import Source, not_utf8

_SHOWN = 40  # letters of a line


def read_json(path: Path, name: str) -> tuple[pa.Table, Source]:
    """The rows of a JSON Lines file, quickly; where that fails, as `read_lines` gives them."""
    texts = pa.schema([(name, pa.large_string()) for name in ("match_id", "ladder", "player", "team")])
    try:
        options = pa_json.ParseOptions(explicit_schema=texts, newlines_in_values=False)
        rows = pa_json.read_json(path, parse_options=options)
        rows.validate(full=True)
    except pa.ArrowInvalid:
        return read_lines(path, name)  # numbers for names, or broken lines: find which
    absent = [name for name in texts.names if rows[name].null_count == len(rows)]
    return rows.drop_columns(absent), Source(name, "line", path, form="jsonl")


def read_lines(path: Path, name: str) -> tuple[pa.Table, Source]:
    """The rows of a JSON Lines file one by one, each with its line; slow, and told of every broken line."""
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
                broken.append(Problem(number, _readable(match_id) if isinstance(match_id, str) else None, reason))
    names = dict.fromkeys(name for cells in listed for name in cells)
    rows = pa.table({name: pa.array([_text(cells.get(name)) for cells in listed], pa.large_string()) for name in names})
    return rows, Source(name, "line", path, numbers, tuple(broken))


def _cells(text: str) -> tuple[dict[str, object], str | None]:
    """The cells of a line, and why it is no row; None: it is one."""
    raw = not_utf8(text)
    shown = repr(text[:_SHOWN] if raw is None else raw[:_SHOWN])
    told = ""
    try:
        cells = json.loads(text)
        if isinstance(cells, dict):
            json.dumps(cells, ensure_ascii=False).encode()  # refuses half a surrogate pair
            return cells, None
    except UnicodeEncodeError:
        if raw is not None:
            return cells, f"{shown} is not UTF-8; accepted is a file in UTF-8"
        return cells, f"{shown} has a letter that is half of a surrogate pair; accepted are whole letters"
    except json.JSONDecodeError as error:
        told = f" ({error.msg.removesuffix(' at')} at column {error.colno})"
    except (ValueError, RecursionError) as error:  # too many digits, too deep
        told = f" ({error})"
    return {}, f"{shown} is not a JSON object{told}; accepted is one per line"


def _readable(text: str) -> str:
    return text.encode(errors="surrogatepass").decode(errors="replace")


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
