"""Rows of the tidy long form, written and put together by plain Python, so that the package has a twin."""

import csv
import io
import json
import math
from datetime import UTC, datetime, timedelta

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from evenmatch import from_frame, read

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FILES = ("csv", "jsonl", "parquet")
FRAMES = ("table", "reader", "pandas", "polars", "duckdb")
FIRST = {"csv": 2, "jsonl": 1}  # the line of the first row; frames and Parquet count rows from 1

# Three matches of two teams of two, one after the other: rows 0-3, 4-7 and 8-11.
WHOLE = {
    "match_id": ["m1"] * 4 + ["m2"] * 4 + ["m3"] * 4,
    "played_at": ["2026-01-01T10:00:00Z"] * 4 + ["2026-01-02T10:00:00Z"] * 4 + ["2026-01-03T10:00:00Z"] * 4,
    "team": ["a", "a", "b", "b"] * 3,
    "player": ["ann", "bob", "cat", "dan"] * 3,
    "place": [1, 1, 2, 2] * 3,
    "team_score": [13.0, 13.0, 7.0, 7.0] * 3,
    "score": [5.0, 8.0, 3.0, 4.0] * 3,
    "seconds": [600.0, 599.5, 600.0, 60.0] * 3,
    "quit": [False, False, False, True] * 3,
    "performance": [0.5, -0.25, 0.0, -1.0] * 3,
}


def changed(columns, cells):
    """The columns with some cells replaced, {(row, column): value}; a column that gets text becomes text."""
    size = len(columns["match_id"])
    out = {name: list(values) for name, values in columns.items()}
    for (row, name), value in cells.items():
        out.setdefault(name, [None] * size)[row] = value
    for name in {name for _, name in cells}:
        if any(isinstance(value, str) for value in out[name]):
            out[name] = [None if value is None else str(value) for value in out[name]]
    return out


def row_dicts(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def csv_text(columns):
    text = io.StringIO()
    writer = csv.writer(text)  # a line end inside a cell is quoted, whichever it is
    writer.writerow(columns)
    writer.writerows(["" if cell is None else cell for cell in row] for row in zip(*columns.values(), strict=True))
    return text.getvalue()


def jsonl_text(columns):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in row_dicts(columns))


def write_file(columns, path):
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        text = csv_text(columns) if path.suffix == ".csv" else jsonl_text(columns)
        path.write_text(text, encoding="utf-8", newline="")
    return path


def frame_of(columns, kind):
    table = pa.table(columns)
    if kind == "reader":
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=3))
    if kind == "pandas":
        return pd.DataFrame(columns)
    if kind == "polars":
        return pl.from_arrow(table)
    if kind == "duckdb":
        return duckdb.connect().from_arrow(table)
    return table


def taken_in(columns, form, folder, **options):
    """The matches in these columns, by way of a file or a frame."""
    if form in FILES:
        return read(write_file(columns, folder / f"matches.{form}"), **options)
    return from_frame(frame_of(columns, form), **options)


def table_values(table):
    """A MatchTable as plain Python, independent of how players, teams and ladders are numbered."""
    c = table.history.columns
    listed = []
    for match, match_id in enumerate(table.match_id.to_pylist()):
        ladder = table.ladders[table.ladder[match]]
        teams = []
        for team in range(c.team_start[match], c.team_start[match + 1]):
            slots = range(c.slot_start[team], c.slot_start[team + 1])
            assert all(table.ladders[table.player_ladder[c.player[slot]]] == ladder for slot in slots)
            players = [
                (
                    table.player_names[c.player[slot]],
                    *(_known(getattr(c, name)[slot]) for name in ("score", "seconds", "performance")),
                    _known(c.entry[slot]) if len(c.entry) else None,
                    bool(c.quit[slot]),
                    bool(c.keep[slot]),
                )
                for slot in slots
            ]
            teams.append((table.team[team].as_py(), int(c.place[team]), _known(c.team_score[team]), players))
        listed.append((match_id, int(c.time[match]), ladder, _known(c.duration[match]), teams))
    return listed


def put_together(rows):
    """What `table_values` should give for these valid rows: the slow, obvious twin. Times are microseconds."""
    matches = {}
    for row in rows:
        matches.setdefault(row["match_id"], []).append(row)
    listed = []
    for match_id, members in sorted(matches.items(), key=lambda item: item[1][0]["played_at"]):  # stable: ties stay
        teams = {}
        for row in members:
            teams.setdefault(row["team"], []).append(row)
        places = {team: _first(own, "place") for team, own in teams.items()}
        scores = {team: _first(own, "team_score") for team, own in teams.items()}
        if None in places.values():
            places = {team: 1 + sum(other > score for other in scores.values()) for team, score in scores.items()}
        seconds = [row["seconds"] for row in members if row.get("seconds") is not None]
        duration = _first(members, "duration")
        listed.append(
            (
                match_id,
                members[0]["played_at"],
                "default" if members[0].get("ladder") is None else members[0]["ladder"],
                max(seconds, default=None) if duration is None else duration,
                [(team, places[team], scores[team], [_player(row) for row in own]) for team, own in teams.items()],
            )
        )
    return listed


def iso(micros):
    return (EPOCH + timedelta(microseconds=micros)).isoformat()


def _player(row):
    quit_early, keep = row.get("quit"), row.get("keep")
    numbers = (row.get(name) for name in ("score", "seconds", "performance", "entry"))
    return (row["player"], *numbers, bool(quit_early), keep is None or keep)


def _first(rows, name):
    return next((row[name] for row in rows if row.get(name) is not None), None)


def _known(value):
    return None if math.isnan(value) else float(value)
