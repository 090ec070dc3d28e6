"""FileMapping: what a file in another form means, and its rows as rows of the tidy long form."""

from __future__ import annotations

import csv
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenmatch.errors import InputError, MissingColumnsError, UnknownNameError, UsageError
from evenmatch.tables.columns import Faults, RowFault, plain
from evenmatch.tables.source import PLAIN, Dialect
from evenmatch.tables.table import COLUMNS
from evenmatch.times import format_named
from evenmatch.whole_file import whole_file

WINNER_FIRST = "winner", "loser"
SIDES = WINNER_FIRST, ("home", "away")
ROLES: Mapping[str, str] = {
    **dict.fromkeys(COLUMNS, ""),
    "result": "W, L or D of a row's player, of `home` or of the first side, or a score such as 2-1",
    "winner": "the player or players who won; beside `home` and `away`, which of them",
    "loser": "the player or players who lost",
    "home": "the first side",
    "away": "the second side",
    "teams": "both sides in one cell, such as ann;bob vs cid;dan",
    "home_score": "the score of `home` or `winner`",
    "away_score": "the score of `away` or `loser`",
    "draw": "true: nobody won",
}
NUMBERS = ("team_score", "score", "performance", "entry", "home_score", "away_score")
TIMED = ("seconds", "duration")
UNITS = {"milliseconds": 0.001, "seconds": 1.0, "minutes": 60.0, "hours": 3600.0}
LONGEST_ID = 100  # characters of an id made of the time and the players; a hash of a longer one takes its place

SPACE = pa.scalar(" ", pa.large_string())

_WIN = "w win wins won winner victory s sieg gewonnen true yes 1 1.0 1,0 +"
_LOSS = "l loss losses lost lose loses loser defeat n niederlage verloren false no 0 0.0 0,0"
_DRAW = "d draw drawn t tie tied u unentschieden remis 0.5 0,5 .5 ½ 1/2 ="
OUTCOMES: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(_WIN.split(), (1, 2)),
    **dict.fromkeys(_LOSS.split(), (2, 1)),
    **dict.fromkeys(_DRAW.split(), (1, 1)),
}
_FIRST = frozenset(["home", "white", "first", "1", "a", "team1", "player1", "p1", "weiß"])
_SECOND = frozenset(["away", "black", "second", "2", "b", "team2", "player2", "p2", "schwarz"])
MEANINGS = {"win": (1, 2), "loss": (2, 1), "draw": (1, 1)}
_SCORE = re.compile(r"\s*(\d+(?:[.,]\d+)?|½|1/2)\s*[-–:]\s*(\d+(?:[.,]\d+)?|½|1/2)\s*")
CLOCK = re.compile(r"\s*(?:(\d+):)?(\d{1,3}):([0-5]?\d(?:[.,]\d+)?)\s*")
_SHAPES = "winner and loser, home and away, or teams"
_ACCEPTED_RESULTS = "W, L, D, won, lost, draw, 1-0, 0-1, ½-½ or a score such as 2-1"


class Outcome(NamedTuple):
    """Places of the first and second side, and their scores, NaN if the result names none."""

    first: int
    second: int
    score: float = np.nan
    other_score: float = np.nan


_UNKNOWN = Outcome(0, 0)


@dataclass(frozen=True)
class FileMapping:
    """What the columns and values of a file mean.

    columns      the file's column of each of our columns and ROLES; "Date+Time" joins two with a space
    delimiter, encoding  of a CSV file;  decimal  the decimal mark
    time_format, zone    as `tables.read` takes them
    separator    between the players of one side in a cell; empty: one player
    versus       between the two sides in a cell
    units        the unit of a column of durations without a colon, see UNITS
    words        further words of results: win, loss or draw
    """

    columns: Mapping[str, str]
    delimiter: str = PLAIN.delimiter
    encoding: str = PLAIN.encoding
    decimal: str = "."
    time_format: str = "seconds"
    zone: str = "UTC"
    separator: str = ""
    versus: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise UsageError for an unknown column, time format, zone, unit or meaning of a word."""
        for name in self.columns:
            if name not in ROLES:
                raise UnknownNameError("column", name, ROLES)
        format_named(self.time_format, self.zone)
        for given, known in ((self.units, UNITS), (self.words, MEANINGS)):
            for value in given.values():
                if value not in known:
                    raise UsageError(f"{value!r} in a mapping: expected one of {', '.join(known)}")
        if self.decimal not in (".", ","):
            raise UsageError(f"decimal {self.decimal!r} in a mapping: expected . or ,")

    @property
    def dialect(self) -> Dialect:
        """The dialect of a CSV file."""
        return Dialect(self.delimiter, self.encoding)

    @property
    def sides(self) -> tuple[str, str] | None:
        """The columns of the two sides if a row is a match, else None."""
        if "teams" in self.columns:
            return "teams", "teams"
        return (
            None if "player" in self.columns else next((pair for pair in SIDES if set(pair) <= set(self.columns)), None)
        )

    @property
    def read(self) -> dict[str, str]:
        """Our name of each column of the file that is read."""
        return {part: ours for ours, theirs in self.columns.items() for part in parts_of(theirs)}

    def to_data(self) -> dict[str, object]:
        """The mapping as JSON data."""
        return asdict(self)

    def save(self, path: Path) -> None:
        """Write the mapping as JSON, atomically."""
        with whole_file(path) as draft:
            draft.write_text(json.dumps(self.to_data(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> FileMapping:
        """Read a mapping that `save` wrote. Raises UsageError if it cannot be read or has an unknown entry."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise UsageError(
                f"{path} is not JSON ({error}); expected a mapping from `evenmatch look --save`"
            ) from error
        known = {one.name: one for one in fields(cls)}
        for name, value in data.items() if isinstance(data, dict) else [("", data)]:
            kind = dict if name in ("columns", "units", "words") else str
            texts = value.values() if isinstance(value, dict) else [value]
            if name not in known or not isinstance(value, kind) or not all(isinstance(text, str) for text in texts):
                raise UsageError(f"{path}: {name or type(data).__name__!r} is {str(value)[:40]!r}; expected {_ENTRIES}")
        if "columns" not in data:
            raise UsageError(f"{path} has no columns; expected {_ENTRIES}")
        return cls(**data)


_ENTRIES = f"texts named {', '.join(one.name for one in fields(FileMapping))}"


def parts_of(theirs: str) -> list[str]:
    """The columns that are joined: "Date+Time" has two."""
    return theirs.split("+") if re.fullmatch(r"[^+]+(\+[^+]+)+", theirs) else [theirs]


def parse_columns(text: str) -> dict[str, str]:
    """Read "player=Nick,team=Side"; a name with a comma stands in double quotes. Raises UsageError."""
    columns: dict[str, str] = {}
    for entry in next(csv.reader([text], skipinitialspace=True), []):
        ours, equals, theirs = entry.partition("=")
        if not equals or not theirs:
            raise UsageError(f"--columns {entry}: expected OURS=THEIRS, for example player=Nick")
        if ours.strip() in columns:
            raise UsageError(f"--columns names {ours.strip()} twice; expected once")
        columns[ours.strip()] = theirs
    return columns


def format_columns(columns: Mapping[str, str]) -> str:
    """The text that `parse_columns` reads."""
    entries = [f"{ours}={theirs}" for ours, theirs in columns.items()]
    return ",".join('"' + one.replace('"', '""') + '"' if re.search(r'[,"]', one) else one for one in entries)


class LongRows(NamedTuple):
    """Rows in the tidy long form. records: the file's record of each row, None if each record is one row."""

    rows: pa.Table
    faults: Faults
    records: NDArray[np.int64] | None


def long_rows(rows: pa.Table, mapping: FileMapping, name: str) -> LongRows:
    """Translate the rows of a file. Cells that cannot be read become empty and are listed as faults.

    name  of the file, for messages
    Raises InputError if a column of the mapping is absent.
    """
    cells = plain(pa.table({ours: file_column(rows, theirs, name) for ours, theirs in mapping.columns.items()}))
    columns, faults = dict(zip(cells.column_names, cells.columns, strict=True)), Faults()
    for ours in tuple(columns):
        if ours in TIMED:
            unit = UNITS[mapping.units.get(ours, "seconds")]
            columns[ours] = _durations(columns[ours], ours, unit, mapping.decimal, faults)
        elif ours in NUMBERS and mapping.decimal == ",":
            columns[ours] = _with_point(columns[ours])
    needed = ("player", "match_id", "played_at") if mapping.sides is None else ("played_at",)
    missing = next((ours for ours in needed if ours not in columns), None)
    if missing is not None:
        listed = ", ".join(map(repr, rows.column_names[:20]))
        told = f"player, {_SHAPES}" if missing == "player" else missing
        raise MissingColumnsError(
            f"{name}: none of the columns {listed} was understood as {told}; name it with --columns, "
            f"for example {missing}=NAME"
        )
    if mapping.sides is None:
        return LongRows(_players(columns, mapping, faults), faults, None)
    return _matches(columns, mapping, faults)


def file_column(rows: pa.Table, theirs: str, name: str) -> pa.ChunkedArray:
    """The cells of a column, or of two joined ones. name: of the file. Raises InputError for an absent column."""
    names = rows.column_names
    parts = [theirs] if theirs in names else parts_of(theirs)
    for part in parts:
        if names.count(part) != 1:
            listed = ", ".join(map(repr, names[:20]))
            if part in names:
                raise InputError(f"{name} has the column {part!r} more than once; expected once")
            raise InputError(f"{name} has no column {part!r}; it has {listed or 'none'}")
    if len(parts) == 1:
        return rows[theirs]
    return pc.binary_join_element_wise(*(texts_of(rows[part]) for part in parts), SPACE)


def texts_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The cells as text. Raises InputError for lists and records."""
    try:
        return column.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"a column contains {column.type}; expected text or numbers") from error


def _each(column: pa.ChunkedArray, read: Callable[[str], object], empty: object) -> list[Any]:
    """The meaning of each cell; `read` sees each distinct text once."""
    encoded = texts_of(column).combine_chunks().dictionary_encode()
    meanings = [*map(read, encoded.dictionary.to_pylist()), empty]
    return [meanings[code] for code in encoded.indices.fill_null(-1).to_pylist()]


def read_outcome(text: str, words: Mapping[str, str]) -> Outcome | None:
    """The meaning of a result, None if it has none."""
    for own, meaning in words.items():
        if own.strip().casefold() == text.strip().casefold():
            return Outcome(*MEANINGS[meaning])
    places = OUTCOMES.get(text.strip().casefold())
    if places is not None:
        return Outcome(*places)
    score = _SCORE.fullmatch(text)
    if score is None:
        return None
    first, second = (0.5 if part in ("½", "1/2") else float(part.replace(",", ".")) for part in score.groups())
    places = (1 + (first < second), 1 + (second < first))
    is_result = first + second == 1 and {first, second} <= {0, 0.5, 1}  # as in chess, not goals
    return Outcome(*places) if is_result else Outcome(*places, first, second)


def read_duration(text: str, unit: float, decimal: str) -> float | None:
    """Seconds of a clock such as 31:20 or 1:02:03, or of a number of units; None if it is neither."""
    clock = CLOCK.fullmatch(text)
    if clock is not None:
        hours, minutes, seconds = clock.groups()
        return int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))
    try:
        number = float(_pointed(text)) if decimal == "," else float(text)
    except ValueError:
        return None
    seconds = number * unit
    return seconds if 0 <= seconds < np.inf else None


def _durations(column: pa.ChunkedArray, ours: str, unit: float, decimal: str, faults: Faults) -> pa.ChunkedArray:
    if pa.types.is_duration(column.type):
        return pc.divide(column.cast(pa.duration("us")).cast(pa.int64()).cast(pa.float64()), 1e6)
    seconds = _each(column, lambda text: read_duration(text, unit, decimal), np.nan)
    texts = column.to_pylist() if None in seconds else []
    for row, value in enumerate(seconds):
        if value is None:
            reason = f"{ours} is {texts[row]!r}; expected a duration such as 31:20 or a number from 0"
            faults.found.append(RowFault(row, reason, "match" if ours == "duration" else "row"))
    return pa.chunked_array([pa.array(seconds, pa.float64(), from_pandas=True)])


def _pointed(text: str) -> str:
    """A number with a decimal comma and points between thousands, with a decimal point; other texts as they are."""
    if re.fullmatch(r"\s*[-+]?(\d{1,3}(\.\d{3})+|\d*)(,\d+)?\s*", text):
        return text.replace(".", "").replace(",", ".")
    return text


def _with_point(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_large_string(column.type):
        return column
    return pa.chunked_array([pa.array(_each(column, _pointed, None), pa.large_string())])


def _outcomes(column: pa.ChunkedArray, words: Mapping[str, str], faults: Faults) -> list[Outcome | None]:
    """The meaning of each result; None for an empty cell and, with a fault, for an unknown word."""
    found = _each(column, lambda text: read_outcome(text, words) or text, None)
    for row, meaning in enumerate(found):
        if isinstance(meaning, str):
            faults.found.append(RowFault(row, f"result is {meaning!r}; expected {_ACCEPTED_RESULTS}"))
    return [meaning if isinstance(meaning, Outcome) else None for meaning in found]


def _numbers(values: Iterable[float]) -> pa.Array:
    return pa.array(list(values), pa.float64(), from_pandas=True)


def _players(columns: dict[str, pa.ChunkedArray], mapping: FileMapping, faults: Faults) -> pa.Table:
    """Rows with a player each; without a column `team`, everyone plays alone."""
    columns.setdefault("team", columns["player"])
    result = columns.pop("result", None)
    if result is not None and "place" not in columns:
        outcomes = _outcomes(result, mapping.words, faults)
        if "team_score" not in columns:
            _note_empty(outcomes, faults)
        places = np.array([outcome.first if outcome else 0 for outcome in outcomes], np.int64)
        columns["place"] = pa.chunked_array([pa.array(places, pa.int32(), mask=places == 0)])
        scores = _numbers(outcome.score if outcome else np.nan for outcome in outcomes)
        if scores.null_count < len(scores):
            columns.setdefault("team_score", pa.chunked_array([scores]))
        _check_results(columns, outcomes, faults)
    return pa.table({ours: column for ours, column in columns.items() if ours in COLUMNS})


def _note_empty(outcomes: list[Outcome | None], faults: Faults) -> None:
    known = {fault.row for fault in faults.found}
    empty = [row for row, outcome in enumerate(outcomes) if outcome is None and row not in known]
    faults.found += [RowFault(row, f"result is empty; expected {_ACCEPTED_RESULTS}") for row in empty]


def _check_results(columns: dict[str, pa.ChunkedArray], outcomes: list[Outcome | None], faults: Faults) -> None:
    """Note matches of two or more teams whose results contradict each other: all won, all lost, or some drew."""
    match, team = (
        texts_of(columns[name]).combine_chunks().dictionary_encode().indices for name in ("match_id", "team")
    )
    code = match.fill_null(-1).to_numpy(zero_copy_only=False) + 1
    pairs = np.unique(np.stack([code, team.fill_null(-1).to_numpy(zero_copy_only=False)]), axis=1)[0]
    size = int(code.max(initial=0)) + 1
    kind = np.array([0 if outcome is None else outcome.first + 2 * outcome.second for outcome in outcomes])
    none, drawn, lost, won = (np.bincount(code, kind == one, size) > 0 for one in (0, 3, 4, 5))
    is_whole = (np.bincount(pairs, minlength=size) > 1) & ~none & (np.arange(size) > 0)
    first = np.full(size, -1)
    first[code[::-1]] = np.arange(len(code))[::-1]
    for wrong, said in (
        (won & ~lost & ~drawn, "every result of the match is a win"),
        (lost & ~won & ~drawn, "every result of the match is a loss"),
        (drawn & (won | lost), "the match has a draw beside a win or a loss"),
    ):
        reason = f"{said}; expected a winner and a loser, or draws"
        faults.found += [RowFault(row, reason, "match") for row in first[wrong & is_whole].tolist()]


def _matches(columns: dict[str, pa.ChunkedArray], mapping: FileMapping, faults: Faults) -> LongRows:
    """Rows with a match each: a row for each player of both sides."""
    first, second = _sides(columns, mapping, faults)
    count = len(first)
    outcomes = _match_outcomes(columns, mapping, count, faults)
    if "match_id" not in columns:
        columns["match_id"] = pa.chunked_array([_ids(columns.get("played_at"), first, second)])
    if mapping.sides == WINNER_FIRST:
        _shuffle(texts_of(columns["match_id"]).to_pylist(), first, second, outcomes)
    listed = [
        (record, team, player)
        for record, cells in enumerate(zip(first, second, strict=True))
        for team, cell in enumerate(cells)
        for player in _split(cell, mapping.separator)
    ]
    record = np.array([one[0] for one in listed], np.int64)
    team = np.array([one[1] for one in listed], np.int64)
    values = np.array([outcome or _UNKNOWN for outcome in outcomes], np.float64).reshape(count, 4)
    place, score = values[record, team], values[record, 2 + team]
    at = pa.array(record)
    whole = [name for name in ("match_id", "played_at", "ladder", "duration") if name in columns]
    starts = np.searchsorted(record, np.arange(count))
    faults.found[:] = [fault._replace(row=int(starts[fault.row]), per="match") for fault in faults.found]
    rows: dict[str, pa.Array] = {
        **{name: columns[name].take(at) for name in whole},
        "team": pa.array(np.where(team == 0, "1", "2").tolist(), pa.large_string()),
        "player": pa.array([one[2] for one in listed], pa.large_string()),
        "place": pa.array(place.astype(np.int32), mask=place == 0),
    }
    if not np.isnan(score).all():
        rows["team_score"] = _numbers(score)
    return LongRows(pa.table(rows), faults, record)


def _shuffle(
    ids: Sequence[str | None], first: list[str | None], second: list[str | None], outcomes: list[Outcome | None]
) -> None:
    """Exchange the sides of about half of the matches, in place, by a hash of their ids.

    The first-listed side counts as the one at home. If that were always the winner, a system would learn that playing
    at home wins.
    """
    for row, match_id in enumerate(ids):
        if zlib.crc32((match_id or "").encode()) & 1:
            first[row], second[row] = second[row], first[row]
            if (told := outcomes[row]) is not None:
                outcomes[row] = Outcome(told.second, told.first, told.other_score, told.score)


def _split(cell: str | None, separator: str) -> list[str | None]:
    if cell is None or not separator:
        return [cell.strip() if cell else cell]
    return [part.strip() for part in cell.strip(separator + " ").split(separator)]


def _sides(
    columns: dict[str, pa.ChunkedArray], mapping: FileMapping, faults: Faults
) -> tuple[list[str | None], list[str | None]]:
    """The cells of both sides."""
    assert mapping.sides is not None
    one, other = mapping.sides
    if one != other:
        return texts_of(columns[one]).to_pylist(), texts_of(columns[other]).to_pylist()
    first: list[str | None] = []
    second: list[str | None] = []
    versus = re.compile(re.escape(mapping.versus), re.IGNORECASE)
    for row, cell in enumerate(texts_of(columns["teams"]).to_pylist()):
        sides = versus.split(cell) if cell and mapping.versus else []
        if len(sides) != 2:
            reason = f"teams is {cell!r}; expected two sides separated by {mapping.versus or ' vs '!r}"
            faults.found.append(RowFault(row, reason))
            sides = ["? 1", "? 2"]
        first.append(sides[0])
        second.append(sides[1])
    return first, second


def _match_outcomes(
    columns: dict[str, pa.ChunkedArray],
    mapping: FileMapping,
    count: int,
    faults: Faults,
) -> list[Outcome | None]:
    """The outcome of each match, None if the row has none."""
    is_won = mapping.sides == WINNER_FIRST
    outcomes: list[Outcome | None] = [Outcome(1, 2) if is_won else None] * count
    if "winner" in columns and not is_won:
        outcomes = _winners(columns, mapping, faults)
    if "result" in columns:
        read = _outcomes(columns["result"], mapping.words, faults)
        outcomes = [_merged(told, outcome, is_won) for told, outcome in zip(read, outcomes, strict=True)]
    if {"home_score", "away_score"} <= columns.keys():
        found = (_numbers_of(columns[name], name, faults) for name in ("home_score", "away_score"))
        outcomes = [_scored(outcome, *scores) for outcome, *scores in zip(outcomes, *found, strict=True)]
    if "draw" in columns:
        flags = _outcomes(columns["draw"], mapping.words, faults)  # true and yes are wins, draw is a draw
        for row, flag in enumerate(flags):
            if flag is not None and flag.first == 1:
                outcomes[row] = Outcome(1, 1, *(outcomes[row] or _UNKNOWN)[2:])
    if not {"home_score", "draw"} & columns.keys():
        _note_empty(outcomes, faults)
    return outcomes


def _winners(columns: dict[str, pa.ChunkedArray], mapping: FileMapping, faults: Faults) -> list[Outcome | None]:
    """The outcomes by cells that name the winner: a side as written, its column, or a word such as home, 1 or draw."""
    cells = [texts_of(columns[ours]).to_pylist() for ours in ("winner", "home", "away")]
    heads = [mapping.columns[ours].casefold() for ours in ("home", "away")]
    outcomes: list[Outcome | None] = []
    for row, (winner, first, second) in enumerate(zip(*cells, strict=True)):
        told = (winner or "").strip().casefold()
        outcome = None
        if told in ((first or "").strip().casefold(), heads[0]) or told.replace(" ", "") in _FIRST:
            outcome = Outcome(1, 2)
        elif told in ((second or "").strip().casefold(), heads[1]) or told.replace(" ", "") in _SECOND:
            outcome = Outcome(2, 1)
        elif OUTCOMES.get(told) == (1, 1):
            outcome = Outcome(1, 1)
        elif told:
            reason = f"winner is {winner!r}; expected one of the two sides, {heads[0]}, {heads[1]} or draw"
            faults.found.append(RowFault(row, reason))
        outcomes.append(outcome)
    return outcomes


def _merged(told: Outcome | None, outcome: Outcome | None, is_won: bool) -> Outcome | None:
    """The outcome of a result; beside `winner` and `loser`, the higher score is the winner's."""
    if told is None or outcome is None:
        return told or outcome
    if told.first == told.second:
        return told
    scores = sorted(told[2:], reverse=True) if is_won else told[2:]
    return Outcome(outcome.first, outcome.second, *scores)


def _scored(outcome: Outcome | None, score: float, other: float) -> Outcome | None:
    if np.isnan(score) or np.isnan(other):
        return outcome
    places = (outcome.first, outcome.second) if outcome else (1 + (score < other), 1 + (other < score))
    return Outcome(*places, score, other)


def _numbers_of(column: pa.ChunkedArray, name: str, faults: Faults) -> list[float]:
    found = _each(column, lambda text: float(text) if re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", text) else text, np.nan)
    for row, value in enumerate(found):
        if isinstance(value, str):
            faults.found.append(
                RowFault(row, f"{name} is {value!r}; expected a number, or an empty cell if not recorded")
            )
    return [value if isinstance(value, float) else np.nan for value in found]


# What data frames add to days, minutes and seconds.
_ZEROS = re.compile(r"[T ]00:00(:00(\.0+)?)?\Z|(?<=\d\d:\d\d):00(\.0+)?\Z|(?<=\d\d:\d\d:\d\d)\.0+\Z")


def _ids(times: pa.ChunkedArray | None, first: list[str | None], second: list[str | None]) -> pa.Array:
    """Ids made of the time and the players, the same in every file; a repetition gets a number."""
    texts = [None] * len(first) if times is None else texts_of(times).to_pylist()
    moments = [_ZEROS.sub("", text or "") for text in texts]
    seen: dict[str, int] = {}
    ids = []
    for moment, one, other in zip(moments, first, second, strict=True):
        text = f"{moment} {(one or '').strip()} - {(other or '').strip()}".strip()
        if len(text) > LONGEST_ID:
            text = f"{moment} {sha256(text.encode()).hexdigest()[:16]}".strip()
        seen[text] = seen.get(text, 0) + 1
        ids.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return pa.array(ids, pa.large_string())
