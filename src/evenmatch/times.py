"""Times in microseconds since the Unix epoch: formatting, range checks, and guesses at values that are not times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from evenmatch.durations import DAY, SECOND
from evenmatch.errors import UnknownNameError, UsageError, similar_names

MICROSECONDS = "microseconds since the Unix epoch, UTC"
Time = Annotated[int, MICROSECONDS]  # shown as ISO 8601

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_TIME = -5_364_662_400 * SECOND  # 1800-01-01
FIRST_YEAR = -62_135_596_800 * SECOND  # 0001-01-01
END_TIME = 4_102_444_800 * SECOND  # 2100-01-01
YEARS = "the years 1800 to 2099"
FIRST_SECOND = 100_000_000  # March 1973; smaller numbers are more likely days, years or dates such as 20261121
MISREAD_END = END_TIME // 1000  # 17 February 1970: epoch seconds that were taken for milliseconds end here
UNIX_DAY = 25_569  # the day of a spreadsheet that is 1970-01-01
PLAIN_NUMBER = r"^\s*[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?\s*$"
_DATE = re.compile(r"\s*([0-9]{1,4})([./-])([0-9]{1,2})\2([0-9]{1,4})(?![0-9])")


class TimeFormat(NamedTuple):
    """The meaning of the numbers and texts in a column of times.

    name      what messages call such a number
    accepted  the accepted numbers in words
    unit      microseconds per unit;  zero  the number that stands for 1970-01-01
    low       the lowest accepted number;  high  the lowest number above the accepted ones
    zone      the IANA zone of times that name none
    pattern   the strptime pattern of every text; empty for ISO 8601 and numbers
    """

    name: str
    accepted: str
    unit: float
    zero: int
    low: int
    high: int
    zone: str = "UTC"
    pattern: str = ""


def _since_1970(units: str, per_second: int) -> TimeFormat:
    bounds = FIRST_SECOND * per_second, END_TIME // SECOND * per_second
    return TimeFormat(f"epoch {units}", f"epoch {units} from March 1973 on", SECOND / per_second, 0, *bounds)


TIME_FORMATS: Mapping[str, TimeFormat] = {
    "seconds": _since_1970("seconds", 1),
    "milliseconds": _since_1970("milliseconds", 1000),
    "microseconds": _since_1970("microseconds", 1_000_000),
    "nanoseconds": _since_1970("nanoseconds", 1_000_000_000),
    "spreadsheet": TimeFormat(
        name="a spreadsheet date",
        accepted="spreadsheet dates, in days, from March 1900 on",
        unit=DAY,
        zero=UNIX_DAY,
        low=61,
        high=UNIX_DAY + END_TIME // DAY,
    ),
}
SECONDS = TIME_FORMATS["seconds"]


EXAMPLE = datetime(2026, 11, 21, 18, 30)  # the time in messages about patterns


def format_named(name: str, zone: str = "UTC") -> TimeFormat:
    """The time format of this name or strptime pattern such as %d/%m/%Y %H:%M, with the zone of times that name none.

    Raises UnknownNameError for an unknown name, UsageError for a pattern without a date or an unknown zone.
    """
    zone_named(zone)
    if "%" in name:
        _check_pattern(name)
        accepted = f"a time such as {EXAMPLE.strftime(name)!r}, as --time-format {name!r} says"
        return TimeFormat("a time", accepted, SECOND, 0, 0, 0, zone, name)
    if name not in TIME_FORMATS:
        raise UnknownNameError("time format", name, [*TIME_FORMATS, "a pattern such as %d/%m/%Y %H:%M"])
    return TIME_FORMATS[name]._replace(zone=zone)


def zone_named(name: str) -> ZoneInfo:
    """The time zone of this name. Raises UsageError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        close = similar_names(name, available_timezones())
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise UsageError(f"unknown zone {name!r}{hint}; expected a name such as Europe/Berlin or UTC") from None


def _check_pattern(pattern: str) -> None:
    """Raise UsageError unless texts of this strptime pattern name a day."""
    try:
        is_complete = datetime.strptime(EXAMPLE.strftime(pattern), pattern).date() == EXAMPLE.date()
    except (ValueError, re.error):
        is_complete = False
    if not is_complete:
        raise UsageError(
            f"time format {pattern!r}: expected a pattern with year, month and day, such as %d/%m/%Y %H:%M"
        )


def as_datetime(micros: int) -> datetime:
    """Microseconds since the epoch as a datetime in UTC."""
    return EPOCH + timedelta(microseconds=micros)


def iso_time(micros: int) -> str:
    """Microseconds since the epoch as ISO 8601 in UTC: 2026-11-21T18:30:00Z."""
    return f"{as_datetime(micros).replace(tzinfo=None).isoformat()}Z"


def is_plausible(micros: int) -> bool:
    """Whether a time is in YEARS and not an odd time early in 1970, which usually means that units were mixed up.

    Real times of 1970 are known to the minute at best, so whole minutes count as plausible.
    """
    return FIRST_TIME <= micros < END_TIME and not (0 < micros < MISREAD_END and micros % (60 * SECOND))


def implausible(what: str, micros: int) -> str | None:
    """The reason to refuse an implausible time; None for a plausible one. what: how the message names the time."""
    if is_plausible(micros):
        return None
    return f"{what} is {iso_time(micros)}{misread(micros)}; expected a time in {YEARS}"


def misread(micros: int) -> str:
    """A clause for messages about an implausible time: ", which looks like …"; empty if the cause is unknown."""
    if FIRST_YEAR <= micros < FIRST_YEAR + 99 * 365 * DAY:
        return ", which looks like a year of two digits"
    for factor in (1000, 10**6, 10**9):
        if FIRST_SECOND * SECOND <= micros * factor < END_TIME:
            day = iso_time(micros * factor)[:10]
            return f", which looks like a time read in the wrong unit ({day} is {factor:,} times as long after 1970)"
    sheet = TIME_FORMATS["spreadsheet"]
    if sheet.low <= micros / SECOND < sheet.high:
        return f", which looks like {sheet.name} read as seconds ({_time_in(sheet, micros / SECOND)})"
    return ", which looks like a clock that was not set" if 0 < micros < MISREAD_END else ""


class Likeness(NamedTuple):
    """A guess at the meaning of a value that was given as a time.

    what         a noun; empty if there is no guess
    time_format  the name of the format that accepts it; None: none does
    """

    what: str = ""
    time_format: str | None = None

    @property
    def clause(self) -> str:
        """The guess as the end of a sentence: ", which looks like …"; empty if there is none."""
        return f", which looks like {self.what}" if self.what else ""


def likeness(value: object) -> Likeness:
    """Guess the meaning of a number or text that was given as a time."""
    if isinstance(value, str) and not re.match(PLAIN_NUMBER, value):
        return Likeness(_date_like(value))
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return Likeness()
    try:
        number = float(value)
    except OverflowError:
        return Likeness()
    if number.is_integer() and (compact := _digits_like(f"{number:.0f}")):
        return Likeness(compact)
    for name, form in TIME_FORMATS.items():
        if form.low <= number < form.high:
            return Likeness(f"{form.name} ({_time_in(form, number)})", name)
    return Likeness()


def _time_in(form: TimeFormat, number: float) -> str:
    """The time, to the second, of a number in this format."""
    return iso_time(round((number - form.zero) * form.unit / SECOND) * SECOND)


def _digits_like(text: str) -> str:
    """Describe digits as a year or as a date and time without separators; empty if they are neither."""
    if not 1800 <= int(text[:4]) < 2100 or len(text) not in (4, 8, 12, 14):
        return ""
    if len(text) == 4:
        return f"the year {text}"
    try:
        return f"the time {datetime.fromisoformat(f'{text[:8]}T{text[8:] or 0:0>2}').isoformat()} without separators"
    except ValueError:
        return ""


def _day(year: int, month: int, day: int) -> str:
    """A date in ISO 8601; empty if there is no such day."""
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return ""


def _date_like(text: str) -> str:
    """Describe a date that is not in ISO 8601; empty if the text is not a date."""
    parts = _DATE.match(text)
    if parts is None:
        return ""
    first, mark, second, third = parts.groups()
    if len(first) == 4:
        day = _day(int(first), int(second), int(third))
        return f"the date {day}" if day and (mark != "-" or len(second + third) < 4) else ""
    if len(third) != 4:
        return "a date whose year has two digits" if len(first) <= 2 and len(third) <= 2 else ""
    days = _day(int(third), int(second), int(first)), _day(int(third), int(first), int(second))
    if all(days) and days[0] != days[1]:
        return f"{days[0]} with the day first, or {days[1]} with the month first"
    return f"the date {days[0] or days[1]}" if any(days) else ""
