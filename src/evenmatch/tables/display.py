"""Display of tables in notebooks: a summary line and the first rows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import pyarrow as pa

from evenmatch.history import Times

ROWS = 8  # shown of a table in a notebook


def counted(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun: 1 match, 25,557 matches."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def period(time: Times) -> str:
    """The first and last day of ascending times: 2004-07-09 to 2004-08-31."""
    first, last = (str(np.datetime64(int(micros), "us"))[:10] for micros in (time[0], time[-1]))
    return first if first == last else f"{first} to {last}"


def as_html(caption: str, rows: pa.Table) -> str:
    """The first rows of a table under a caption, as HTML; all text is escaped."""
    shown = rows.slice(0, ROWS)
    heads = "".join(f"<th>{escape(name)}</th>" for name in shown.column_names)
    body = "".join(_row(row) for row in zip(*(column.to_pylist() for column in shown.columns), strict=True))
    more = f"<p>… and {rows.num_rows - ROWS:,} more rows</p>" if rows.num_rows > ROWS else ""
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p>{escape(caption)}</p>{table}{more}</div>"


def _row(values: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<td>{escape(_text(value))}</td>' for value in values)}</tr>"


def _text(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
