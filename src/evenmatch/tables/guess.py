"""Guess what the columns and values of a file mean."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from evenmatch.tables.columns import plain
from evenmatch.tables.mapping import (
    CLOCK,
    ROLES,
    SIDES,
    SPACE,
    FileMapping,
    parts_of,
    read_outcome,
    texts_of,
)
from evenmatch.tables.source import PLAIN, Dialect
from evenmatch.times import PLAIN_NUMBER, TIME_FORMATS

SAMPLE = 20_000  # rows from which columns are guessed; dates are decided from all rows
_FITTING = 0.6  # the share of values that must fit a guess

# The names of columns by which each is known, without spaces and signs, the likeliest first.
_KNOWN_AS: Mapping[str, str] = {
    "match_id": "matchid match gameid game spielid spiel spielnr partie partieid matchnr "
    "matchnumber gamenumber gamenum matchnum setid id",
    "played_at": "playedat datetime datumzeit datum date timestamp starttime startedat endedat endtime completedat "
    "finishedat finished ended started played created createdat utcdate when am zeitpunkt zeit time",
    "player": "player spieler playername name user username nick nickname steamnick steamid accountid gamertag "
    "discordid account handle member",
    "winner": "winner sieger winnername winningteam gewinner won",
    "loser": "loser verlierer losername losingteam lost",
    "home": "home white player1 team1 teama playera heim weiss p1 entrant1 radiant blue first",
    "away": "away black player2 team2 teamb playerb gast schwarz p2 entrant2 dire red second",
    "teams": "teams lineup lineups players matchup paarung",
    "team": "team side seite mannschaft faction colour color squad clan party",
    "place": "place rank placement position platz platzierung finish standing",
    "result": "result outcome ergebnis ausgang wl winloss won win score status place",
    "home_score": "homescore whitescore score1 scorea player1score team1score winnerscore entrant1score",
    "away_score": "awayscore blackscore score2 scoreb player2score team2score loserscore entrant2score",
    "draw": "draw drawn tie remis unentschieden",
    "team_score": "teamscore rounds runden roundswon goals tore teampunkte teampoints",
    "score": "score points punkte pts kills frags",
    "seconds": "seconds timeplayed playtime sekunden minutes minuten mins spielzeit",
    "duration": "duration length dauer matchlength gamelength matchduration gameduration seconds minutes minuten mins",
    "quit": "quit left leaver abandoned dnf disconnected",
    "ladder": "ladder queue mode modus gamemode playlist",
}
_ONLY_LONG = {"player", "team", "place", "team_score", "score", "seconds", "quit", "performance", "keep", "entry"}
_ONLY_WIDE = {"winner", "loser", "home", "away", "teams", "home_score", "away_score", "draw"}
_OTHERS = ("map", "server", "event", "tournament", "level")  # what other names are of, such as "Map Name"
_SEPARATORS = (";", "|", "/", " + ", "+", " & ", ",")
_VERSUS = (" vs. ", " vs ", " v ", " gegen ", " against ", " – ", " - ", "|")
_DATE = re.compile(
    r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})"
    r"(?:(,? +|T)(\d{1,2}):(\d{2})(:\d{2})?(\.\d+)?( ?[AaPp][Mm])?( ?(?:Z|[+-]\d{2}:?\d{2}))?)?"
)
_WRITTEN = [
    f"{day}{time}"
    for day in ("%d %b %Y", "%d %B %Y", "%d. %b %Y", "%d. %B %Y", "%b %d, %Y", "%B %d, %Y", "%a %b %d %Y")
    for time in ("", " %H:%M", " %H:%M:%S", ", %H:%M", " %I:%M %p", ", %I:%M %p")
]


class Guess(NamedTuple):
    """A guess at the meaning of a file.

    unread    columns that were not understood
    question  what must be said before the file can be read; empty if nothing
    """

    mapping: FileMapping
    unread: tuple[str, ...] = ()
    question: str = ""


def guess(
    rows: pa.Table,
    dialect: Dialect = PLAIN,
    *,
    columns: Mapping[str, str] | None = None,
    time_format: str | None = None,
    zone: str | None = None,
) -> Guess:
    """Guess the mapping of a file from its rows.

    columns  the columns that are known; of the others only those with our names are read. None: guess all
    Raises UsageError for an unknown column, time format or zone.
    """
    rows = plain(rows)
    sample = rows.slice(0, SAMPLE)
    chosen = _guess_columns(sample) if columns is None else _with_our_names(rows, columns)
    FileMapping(chosen, time_format=time_format or "seconds", zone=zone or "UTC")  # checks what was given
    question = ""
    if time_format is None:
        time_format, question = _time_format(rows, chosen.get("played_at", ""))
    present = {ours: _texts(sample, theirs) for ours, theirs in chosen.items() if _has(sample, theirs)}
    separator, versus = _marks(present)
    units = {ours: _unit(chosen[ours]) for ours in ("seconds", "duration") if ours in chosen}
    used = {
        part for theirs in chosen.values() for part in ([theirs] if theirs in rows.column_names else parts_of(theirs))
    }
    return Guess(
        FileMapping(
            chosen,
            *dialect,
            decimal=_decimal(present),
            time_format=time_format,
            zone=zone or "UTC",
            separator=separator,
            versus=versus,
            units={ours: unit for ours, unit in units.items() if unit != "seconds"},
        ),
        tuple(name for name in rows.column_names if name not in used),
        question,
    )


def _with_our_names(rows: pa.Table, columns: Mapping[str, str]) -> dict[str, str]:
    """The given columns, and those of the file that have our names and no other meaning."""
    taken = {part for theirs in columns.values() for part in (theirs, *parts_of(theirs))}
    ours = {name: name for name in ROLES if name in rows.column_names and name not in taken}
    others = _ONLY_WIDE if "player" in {**ours, **columns} else _ONLY_LONG
    return {**{name: name for name in ours if name not in others}, **columns}


def _has(rows: pa.Table, theirs: str) -> bool:
    return theirs in rows.column_names or all(part in rows.column_names for part in parts_of(theirs))


def _texts(rows: pa.Table, theirs: str) -> list[str]:
    """The cells of a column that are not empty, as text; none of a column of lists or records."""
    parts = [theirs] if theirs in rows.column_names else parts_of(theirs)
    if any(pa.types.is_nested(rows.schema.field(part).type) for part in parts):
        return []
    columns = [texts_of(rows[part]) for part in parts]
    joined = columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, SPACE)
    return joined.drop_null().to_pylist()


def _plain_name(name: str) -> str:
    """A name without case, accents, spaces and signs."""
    folded = unicodedata.normalize("NFKD", name.casefold())
    return re.sub(r"[^a-z0-9]", "", folded)


def _guess_columns(sample: pa.Table) -> dict[str, str]:
    """The file's column of each of ours, by their names and values."""
    names = [name for name in sample.column_names if sample.column_names.count(name) == 1]
    cells = {name: _texts(sample, name) for name in names}
    plain_names = {name: _plain_name(name) for name in names}
    chosen = {ours: ours for ours in ROLES if ours in names and _fits(ours, cells[ours], len(sample))}

    def take(ours: str, *, within: bool = False) -> None:
        for known in [_plain_name(ours), *_KNOWN_AS.get(ours, "").split()]:
            for name in names:
                own = plain_names[name]
                is_named = own == known or (within and len(known) > 3 and known in own and not own.startswith(_OTHERS))
                if is_named and name not in chosen.values() and _fits(ours, cells[name], len(sample)):
                    chosen[ours] = name
                    return

    for within in (False, True):
        if "player" not in chosen and not any(set(pair) <= set(chosen) for pair in SIDES):
            for ours in ("player", *SIDES[1], *SIDES[0], "teams"):
                if ours not in chosen and ("player" not in chosen or ours in SIDES[0]):
                    take(ours, within=within)
    if "player" not in chosen and not any(set(pair) <= set(chosen) for pair in SIDES):
        rest = [name for name in names if _share(cells[name], lambda text: _versus_of([text]) != "") > _FITTING]
        chosen = {"teams": rest[0]} if rest else chosen
    is_long = "player" in chosen
    others = (_ONLY_WIDE if is_long else _ONLY_LONG) - ({"winner"} if {"home", "away"} <= set(chosen) else set())
    chosen = {ours: theirs for ours, theirs in chosen.items() if ours not in others}
    for within in (False, True):
        for ours in ROLES:
            if ours not in chosen and ours not in others and (ours != "match_id" or not within):
                take(ours, within=within)
    if "played_at" not in chosen:
        others_cells = {name: texts for name, texts in cells.items() if name not in chosen.values()}
        dates = [name for name, texts in others_cells.items() if _share(texts, _is_written_time) > _FITTING]
        chosen |= {"played_at": dates[0]} if dates else {}
    _add_clock(chosen, cells)
    _place_numbers(chosen, sample)
    return {ours: chosen[ours] for ours in ROLES if ours in chosen}


def _fits(ours: str, cells: Sequence[str], rows: int) -> bool:
    """Whether most cells can have this meaning."""
    if not cells:
        return False
    if ours == "match_id":
        return True
    tests: dict[str, Callable[[str], bool]] = {
        "played_at": _is_time,
        "teams": lambda text: _versus_of([text]) != "",
        "result": lambda text: read_outcome(text, {}) is not None,
        "place": lambda text: re.fullmatch(r"\s*[1-9]\d*(\.0)?\s*", text) is not None,
        **dict.fromkeys(("seconds", "duration"), lambda text: _is_number(text) or CLOCK.fullmatch(text) is not None),
        **dict.fromkeys(("team_score", "score", "performance", "entry", "home_score", "away_score"), _is_number),
        **dict.fromkeys(("quit", "keep", "draw"), lambda text: text.strip().casefold() in _FLAGS),
    }
    test = tests.get(ours)
    return test is None or _share(cells, test) > _FITTING


_FLAGS = {*["true", "false", "t", "f", "yes", "no", "y", "n", "1", "0", "1.0", "0.0"]}


def _share(cells: Sequence[str], test: Callable[[str], bool]) -> float:
    counted = Counter(cells)
    return sum(count for text, count in counted.items() if test(text)) / max(1, len(cells))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*[-+]?(\d+([.,]\d+)*)([eE][-+]?\d+)?\s*", text) is not None


def _is_time(text: str) -> bool:
    if re.match(PLAIN_NUMBER, text):
        number = float(text)
        return any(
            form.low <= number < form.high for form in TIME_FORMATS.values() if form.unit < 1e9 or number > 20_000
        )
    return _is_iso(text) or _DATE.fullmatch(text.strip()) is not None or _written(text) is not None


def _is_written_time(text: str) -> bool:
    return re.match(PLAIN_NUMBER, text) is None and _is_time(text)


def _is_iso(text: str) -> bool:
    with suppress(ValueError):
        return bool(datetime.fromisoformat(text.strip()))
    return False


def _written(text: str) -> str | None:
    """The pattern of a date with the name of its month."""
    if re.search(r"[A-Za-z]{3}", text) is None:
        return None
    for pattern in _WRITTEN:
        with suppress(ValueError):
            datetime.strptime(text.strip(), pattern)
            return pattern
    return None


def _add_clock(chosen: dict[str, str], cells: Mapping[str, Sequence[str]]) -> None:
    """Join a column of days and a column of times of day."""
    day = chosen.get("played_at", "")
    if not day or _share(cells[day], lambda text: ":" in text) > 0.1 or _share(cells[day], _is_number) > 0.1:
        return
    for name, texts in cells.items():
        is_named = re.search("time|zeit|hour|clock", _plain_name(name)) is not None
        if (
            is_named
            and name not in chosen.values()
            and _share(texts, lambda text: CLOCK.fullmatch(text) is not None) > 0.9
        ):
            chosen["played_at"] = f"{day}+{name}"
            return


def _place_numbers(chosen: dict[str, str], sample: pa.Table) -> None:
    """Decide from the values whether numbers belong to a player, a team or a match."""
    if "player" not in chosen:
        return
    if "match_id" not in chosen:
        return
    match, team = [chosen["match_id"]], [chosen["match_id"], chosen.get("team", "")]
    played = chosen.get("seconds", "seconds")  # our own name stays as it is
    if played != "seconds" and "duration" not in chosen and _is_constant(sample, played, match):
        chosen["duration"] = chosen.pop("seconds")
    needs_score = not {"result", "place", "team_score"} & chosen.keys() and {"score", "team"} <= chosen.keys()
    if needs_score and chosen["score"] != "score" and _is_constant(sample, chosen["score"], team):
        chosen["team_score"] = chosen.pop("score")


def _is_constant(sample: pa.Table, column: str, keys: Sequence[str]) -> bool:
    """Whether the rows of every group have one number."""
    groups: dict[tuple[str | None, ...], str] = {}
    for *key, value in zip(*(texts_of(sample[name]).to_pylist() for name in (*keys, column)), strict=True):
        is_read = value is not None and (_is_number(value) or CLOCK.fullmatch(value) is not None)
        if is_read and groups.setdefault(tuple(key), value) != value:
            return False
    return True


def _unit(theirs: str) -> str:
    name = _plain_name(theirs)
    if name.startswith(("min", "dauermin")) or name.endswith(("min", "mins", "minutes", "minuten")):
        return "minutes"
    if name.endswith(("ms", "millis", "milliseconds")):
        return "milliseconds"
    return "hours" if name in ("hours", "stunden") else "seconds"


def _decimal(present: Mapping[str, Sequence[str]]) -> str:
    """The decimal mark of the numbers."""
    numeric = [
        ours for ours in present if ours.endswith("score") or ours in ("seconds", "duration", "performance", "entry")
    ]
    texts = [text for ours in numeric for text in present[ours]]
    commas = sum(re.fullmatch(r"\s*[-+]?[\d.]*\d,\d+\s*", text) is not None for text in texts)
    points = sum(re.fullmatch(r"\s*[-+]?\d+\.\d+\s*", text) is not None for text in texts)
    return "," if commas > points else "."


def _marks(present: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """What stands between the players of a side in a cell, and between the sides."""
    versus = _versus_of(present.get("teams", ()))
    sides = [text for ours in ("winner", "loser", "home", "away") for text in present.get(ours, ())]
    sides += [
        side for text in present.get("teams", ()) for side in re.split(re.escape(versus), text, flags=re.I) if versus
    ]
    if "player" in present:
        return "", versus
    shares = {mark: sum(mark in text for text in sides) for mark in _SEPARATORS}
    best = max(shares, key=lambda mark: shares[mark])
    return (best if shares[best] > _FITTING * len(sides) else ""), versus


def _versus_of(cells: Sequence[str]) -> str:
    for mark in _VERSUS:
        halves = re.compile(re.escape(mark), re.IGNORECASE)
        if cells and sum(len(halves.split(text)) == 2 for text in cells) > _FITTING * len(cells):
            return mark
    return ""


def _time_format(rows: pa.Table, theirs: str) -> tuple[str, str]:
    """The time format of a column, decided from all its values; and a question if they do not decide it."""
    if not theirs or not _has(rows, theirs):
        return "seconds", ""
    kind = rows.schema.field(theirs).type if theirs in rows.column_names else pa.large_string()
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "seconds", ""
    texts = [text.strip() for text in dict.fromkeys(_texts(rows, theirs))]
    few = texts[:: max(1, len(texts) // SAMPLE)]
    numbers = [float(text) for text in few if re.match(PLAIN_NUMBER, text)]
    if len(numbers) > len(few) / 2:
        counts = {name: sum(form.low <= one < form.high for one in numbers) for name, form in TIME_FORMATS.items()}
        return max(counts, key=lambda name: counts[name]), ""
    if sum(map(_is_iso, few)) > len(few) / 2:
        return "seconds", ""
    dates = [found for text in texts if (found := _DATE.fullmatch(text))]
    if len(dates) > len(texts) / 2:
        return _numeric_pattern(dates)
    patterns = Counter(_written(text) for text in few)
    return next((pattern for pattern, _ in patterns.most_common() if pattern), "seconds"), ""


def _numeric_pattern(dates: Sequence[re.Match[str]]) -> tuple[str, str]:
    """The commonest pattern of dates in figures; the day is the part that exceeds 12."""
    shapes = Counter(_shape(found) for found in dates)
    shape = shapes.most_common(1)[0][0]
    own = [found for found in dates if _shape(found) == shape]
    mark, tail, width = shape
    if width[0] > 2:
        return f"%Y{mark}%m{mark}%d{tail}", ""
    year = "%Y" if width[1] > 2 else "%y"
    day_first, month_first = (f"{one}{mark}{other}{mark}{year}{tail}" for one, other in (("%d", "%m"), ("%m", "%d")))
    firsts, seconds = (sum(12 < int(found[part]) <= 31 for found in own) for part in (1, 3))
    if mark == "." or firsts > 10 * seconds:  # no country puts the month first before a dot
        return day_first, ""
    if seconds > 10 * firsts:
        return month_first, ""
    example = own[0].group()
    said = "some values have a day above 12 first, others second" if firsts else "no value has a part above 12"
    return day_first, (
        f"{example!r} may name the day first or the month first, and {said}; "
        f"say which with --time-format {day_first!r} or --time-format {month_first!r}"
    )


def _shape(found: re.Match[str]) -> tuple[str, str, tuple[int, int]]:
    """The mark of a date, the pattern of its time of day, and the widths of its first and last part."""
    first, mark, _, last, gap, hour, _, seconds, fraction, half, zone = found.groups()
    tail = ""
    if hour is not None:
        tail = f"{gap}{'%I' if half else '%H'}:%M{':%S' if seconds else ''}{'.%f' if fraction else ''}"
        tail += (" %p" if half.startswith(" ") else "%p") if half else ""
        tail += (" %z" if zone.startswith(" ") else "%z") if zone else ""
    return mark, tail, (max(2, len(first)), max(2, len(last)))
