"""Charts as SVG: a level over time, and a histogram. They need neither a script nor a library.

The plot is stretched over its box, in units of WIDTH × HEIGHT. Texts stand at percentages of the box and keep their
size, so they are legible on a phone. The box has a fixed height, so nothing moves while the page loads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, takewhile
from typing import NamedTuple

import numpy as np

from evenmatch.durations import DAY, HOUR, SECOND
from evenmatch.history import Floats
from evenmatch.lab.display_names import plain
from evenmatch.players.rating_path import thinned
from evenmatch.times import Time
from evenmatch.web.texts import Texts, number

WIDTH, HEIGHT = 2000, 1000  # of the plot
DRAWN = 240  # points of a chart at most, as far as seasons allow
TICKS = 6  # of an axis at most
ROOM = 0.08  # share of the range above and below the data
NEAR = 0.3  # share of the range: divisions this far from the data are marked
LEAST_RANGE = 20  # a level that never moves gets a range of level / LEAST_RANGE
APART = 0.06  # share of an axis between two labels
LONGEST_LABEL = 20  # characters
MINUTE, WEEK = 60 * SECOND, 7 * DAY
MONDAY = 4 * DAY  # the first one after the epoch
STEPS = (
    *(size * unit for unit in (SECOND, MINUTE) for size in (1, 2, 5, 10, 15, 30)),
    *(HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, WEEK, 2 * WEEK),
)
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600)
MONTH = 30 * DAY

Marks = Sequence[tuple[str, float]]  # names, and where they stand on an axis


class Point(NamedTuple):
    """A player's level after a match or a fall.

    before  the level before it; None if that is not shown
    kind    won, lost, drew, or fell: without a match
    told    returns what the reader is told when pointing at it; called for points that are drawn
    """

    at: Time
    before: float | None
    after: float
    kind: str
    told: Callable[[], str]


class Label(NamedTuple):
    """A text of an axis. at: percent of the axis;  minor: left out on a narrow screen."""

    at: str
    text: str
    minor: bool = False


class Chart(NamedTuple):
    """A chart for the macro `chart`.

    summary        what the chart shows, in a sentence or two
    rows, columns  labels of the axes;  bounds, starts: lines across the plot with their names
    shapes         kinds and SVG paths;  kinds: those of points
    points         what is told of each point: lines of x, y and words, in units of the plot
    you            where the visitor stands, on the horizontal axis
    """

    title: str
    summary: str
    rows: Sequence[Label]
    columns: Sequence[Label]
    bounds: Sequence[Label] = ()
    starts: Sequence[Label] = ()
    shapes: Sequence[tuple[str, str]] = ()
    kinds: Sequence[str] = ()
    points: str = ""
    you: Label | None = None


class Scale(NamedTuple):
    """Maps low..high to 0..length."""

    low: float
    high: float
    length: int

    def place(self, value: float) -> int:
        """Return the place of a value in units of the plot."""
        return round(self.length * (value - self.low) / (self.high - self.low))

    def upward(self, value: float) -> int:
        """Return the place of a value on an axis that points up."""
        return self.length - self.place(value)

    def percent(self, value: float, *, up: bool = False) -> str:
        """Return the place of a value in percent."""
        share = (value - self.low) / (self.high - self.low)
        return f"{100 * (1 - share if up else share):.4g}%"


def path_chart(
    texts: Texts,
    title: str,
    points: Sequence[Point],
    *,
    bounds: Marks = (),
    openings: Sequence[tuple[str, Time]] = (),
    span: tuple[float, float] | None = None,
    named: bool = False,
) -> Chart | None:
    """Chart of a level that moves with each match; None if there are no points.

    bounds    divisions and their levels, the lowest first: those near the path are marked
    openings  seasons and when they opened: the path goes on at the level after the reset
    span      range of the vertical axis; None: that of the data
    named     the names of the divisions take the place of numbers
    """
    if not points:
        return None
    kept = _thinned(points, [at for _, at in openings])
    rows, near = (Scale(*span, HEIGHT), bounds) if span else _range_of(_levels(points), bounds)
    columns = _time_scale(points[0].at, points[-1].at)
    line = [(columns.place(at), rows.upward(level)) for at, level in _corners(kept, openings)]
    dots = [(columns.place(point.at), rows.upward(point.after), point) for point in kept]
    kinds = [kind for kind in ("won", "lost", "drew", "fell") if any(point.kind == kind for point in kept)]
    return Chart(
        title,
        _path_summary(texts, points, len(kept), named=named),
        [] if named else [Label(rows.percent(value, up=True), text) for value, text in number_ticks(rows)],
        _every_other_minor([(columns.percent(at), text) for at, text in time_ticks(texts, columns)]),
        _labels(rows, near, up=True),
        _labels(columns, [(name, at) for name, at in openings if columns.low <= at <= columns.high]),
        [
            ("line", stepped(line)),
            *((kind, "".join(f"M{x} {y}h0" for x, y, point in dots if point.kind == kind)) for kind in kinds),
        ],
        kinds,
        "\n".join(f"{x} {y} {point.told()}" for x, y, point in dots),
    )


def _thinned(points: Sequence[Point], openings: Sequence[Time]) -> list[Point]:
    """The points to draw: every peak and every low, and the first of each season."""
    firsts = {next((n for n, point in enumerate(points) if point.at >= opened), 0) for opened in openings}
    return [points[n] for n in thinned([point.after for point in points], DRAWN, firsts)]


def _levels(points: Sequence[Point]) -> list[float]:
    return [level for point in points for level in (point.before, point.after) if level is not None]


def _corners(points: Sequence[Point], openings: Sequence[tuple[str, Time]]) -> list[tuple[Time, float]]:
    """Where the line of a path turns: at each point, and at the level after each reset."""
    places = [(point.at, point.after) for point in points]
    if points[0].before is not None:
        places.insert(0, (points[0].at, points[0].before))
    for _, opened in openings:
        reset = next((point.before for point in points if point.at >= opened), None)
        if reset is not None and opened >= points[0].at:
            places.append((opened, reset))
    return sorted(places, key=lambda place: place[0])


def _range_of(levels: Sequence[float], bounds: Marks) -> tuple[Scale, Marks]:
    """The range of a path with some room, and the bounds near it."""
    low, high = min(levels), max(levels)
    room = (high - low) or abs(high) / LEAST_RANGE or 1.0
    near = [(name, level) for name, level in bounds if low - NEAR * room <= level <= high + NEAR * room]
    ends = [low, high, *(level for _, level in near)]
    return Scale(min(ends) - ROOM * room, max(ends) + ROOM * room, HEIGHT), near


def stepped(places: Sequence[tuple[int, int]]) -> str:
    """Return the SVG path of a line that stays level until the next place."""
    (x, y), *others = places
    drawn = [f"M{x} {y}"]
    for next_x, next_y in others:
        drawn += [f"h{next_x - x}"] if next_x != x else []
        drawn += [f"v{next_y - y}"] if next_y != y else []
        x, y = next_x, next_y
    return "".join(drawn)


def _path_summary(texts: Texts, points: Sequence[Point], drawn: int, *, named: bool) -> str:
    """What a path shows, in sentences."""
    first, last = points[0], points[-1]
    begin, end = (datetime.fromtimestamp(point.at / SECOND, UTC) for point in (first, last))
    is_same_day = begin.date() == end.date()
    values = {"first": number(first.after if first.before is None else first.before), "last": number(last.after)}
    if named:
        values = {"first": first.told().rpartition(": ")[2], "last": last.told().rpartition(": ")[2]}
    if is_same_day:
        told = texts.text(
            "From %(first)s at %(begin)s to %(last)s at %(end)s UTC on %(day)s.",
            **values,
            begin=begin.strftime("%H:%M"),
            end=end.strftime("%H:%M"),
            day=texts.day(end, year=True),
        )
    else:
        since, until = texts.day(begin, year=begin.year != end.year), texts.day(end, year=True)
        told = texts.text("From %(first)s on %(since)s to %(last)s on %(until)s.", **values, since=since, until=until)
    if not named:
        levels = _levels(points)
        extremes = {"highest": number(max(levels)), "lowest": number(min(levels))}
        told += " " + texts.text("Highest %(highest)s, lowest %(lowest)s.", **extremes)
    if drawn < len(points):
        counts = {"drawn": texts.count(drawn), "points": texts.count(len(points))}
        told += " " + texts.text("Shows %(drawn)s of %(points)s points: every peak and every low.", **counts)
    return told


def histogram(
    texts: Texts, title: str, edges: Floats, counts: Sequence[int], cuts: Marks = (), you: float | None = None
) -> Chart | None:
    """Histogram of ratings with the bounds of divisions; None if there are no players.

    edges  N + 1 ascending edges of N bins; outermost bins that are wider than all others are drawn as wide
           as the widest of these
    you    rating of the visitor, whose bin stands out
    """
    if not any(counts):
        return None
    drawn = _evened(edges)
    columns, rows = Scale(drawn[0], drawn[-1], WIDTH), Scale(0, max(counts) * (1 + ROOM), HEIGHT)
    own = None if you is None else min(max(int(edges.searchsorted(you, side="right")) - 1, 0), len(counts) - 1)
    bars, told = ["", ""], []
    for n, players in enumerate(counts):
        left, right, top = columns.place(drawn[n]), columns.place(drawn[n + 1]), rows.upward(players)
        bars[n == own] += f"M{left} {HEIGHT}V{top}H{right}V{HEIGHT}z" if players else ""
        told.append(f"{(left + right) // 2} {top} {_bin(texts, players, edges[n], edges[n + 1])}")
    fullest = int(np.argmax(counts))
    values = {"players": texts.count(sum(counts), "player"), "most": texts.count(counts[fullest])}
    span = {"low": number(edges[fullest]), "high": number(edges[fullest + 1])}
    summary = texts.text("%(players)s: the most, %(most)s, from %(low)s to %(high)s.", **values, **span)
    if you is not None:
        summary += " " + texts.text("You are at %(rating)s.", rating=number(you))
    place = None if you is None else min(max(you, drawn[0]), drawn[-1])
    return Chart(
        title,
        summary,
        [Label(rows.percent(value, up=True), text) for value, text in number_ticks(rows, least=1.0)],
        _every_other_minor([(columns.percent(value), text) for value, text in number_ticks(columns)]),
        (),
        _labels(columns, [(name, rating) for name, rating in cuts if drawn[0] < rating < drawn[-1]]),
        [("bars", bars[0]), ("own", bars[1])],
        (),
        "\n".join(told),
        None
        if place is None
        else Label(columns.percent(place), texts.text("you are here"), place > (drawn[0] + drawn[-1]) / 2),
    )


def _bin(texts: Texts, players: int, low: float, high: float) -> str:
    values = {"players": texts.count(players, "player"), "low": number(low), "high": number(high)}
    return texts.text("%(players)s from %(low)s to %(high)s", **values)


def _evened(bounds: Floats) -> Floats:
    """Edges whose outermost bins are no wider than the widest of the others."""
    if len(bounds) < 4:
        return bounds
    width = float(np.diff(bounds[1:-1]).max())
    even = bounds.copy()
    even[0], even[-1] = max(even[0], even[1] - width), min(even[-1], even[-2] + width)
    return even


def _labels(scale: Scale, marks: Marks, *, up: bool = False) -> list[Label]:
    """Lines and their names. Of names that would overlap, the highest is shown."""
    labelled: list[Label] = []
    last = math.inf
    for name, value in reversed(marks):
        has_room = last - value >= APART * (scale.high - scale.low)
        labelled.append(Label(scale.percent(value, up=up), plain(name, LONGEST_LABEL) if has_room else ""))
        last = value if has_room else last
    return labelled[::-1]


def _every_other_minor(ticks: Sequence[tuple[str, str]]) -> list[Label]:
    return [Label(at, text, len(ticks) > TICKS // 2 and n % 2 == 1) for n, (at, text) in enumerate(ticks)]


def number_ticks(scale: Scale, least: float = 0.0) -> list[tuple[float, str]]:
    """Return the round numbers on an axis: multiples of 1, 2 or 5 times a power of ten; least: smallest step."""
    span = scale.high - scale.low
    power = 10.0 ** math.floor(math.log10(span / TICKS))
    step = max(next(power * size for size in (1, 2, 5, 10) if span / (power * size) <= TICKS), least)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    first = math.ceil(scale.low / step - 1e-9)
    values = takewhile(lambda value: value <= scale.high + 1e-9 * span, (n * step for n in count(first)))
    return [(value, f"{value:,.{digits}f}".replace("-", "−")) for value in values]


def _time_scale(first: Time, last: Time) -> Scale:
    """The time axis: from the first to the last point. A single point stands in the middle of two minutes."""
    return Scale(first, last, WIDTH) if last > first else Scale(first - MINUTE, first + MINUTE, WIDTH)


def time_ticks(texts: Texts, scale: Scale) -> list[tuple[Time, str]]:
    """Return the round times on an axis, with their texts, in UTC."""
    span = scale.high - scale.low
    step = next((step for step in STEPS if span / step <= TICKS), None)
    if step is None:
        return list(_month_ticks(texts, scale))
    shift = MONDAY if step >= WEEK else 0
    first = math.ceil((scale.low - shift) / step) * step + shift
    return [(at, _time_text(texts, at, step)) for at in range(int(first), int(scale.high) + 1, step)]


def _time_text(texts: Texts, at: Time, step: int) -> str:
    moment = datetime.fromtimestamp(at / SECOND, UTC)
    if at % DAY == 0:
        return texts.day(moment)
    return f"{moment:%H:%M}" if step >= MINUTE else f"{moment:%H:%M:%S}"


def _month_ticks(texts: Texts, scale: Scale) -> Iterator[tuple[Time, str]]:
    step = next((step for step in MONTHS if (scale.high - scale.low) / (step * MONTH) <= TICKS), MONTHS[-1])
    begin = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=scale.low)
    for month in count(-(-(begin.year * 12 + begin.month - 1) // step) * step, step):
        moment = datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)
        at = int(moment.timestamp()) * SECOND
        if at > scale.high:
            return
        if at >= scale.low:
            yield at, f"{moment:%Y}" if month % 12 == 0 else texts.month(moment)


def sparkline(levels: Sequence[float]) -> str:
    """The corners of a line over these levels for a `polyline` in a box of 100 × 24; empty for fewer than two."""
    if len(levels) < 2:
        return ""
    low, high = min(levels), max(levels)
    places = [22 - 20 * (level - low) / (high - low) if high > low else 12 for level in levels]
    return " ".join(f"{100 * n / (len(levels) - 1):.1f},{place:.1f}" for n, place in enumerate(places))
