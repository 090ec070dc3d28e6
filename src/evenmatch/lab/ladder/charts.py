"""Charts of a ladder's health, waits and players, in the style of `lab.charts`. Requires plotly (extra `lab`)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa

from evenmatch.calibration import Point
from evenmatch.history import Floats
from evenmatch.lab import charts
from evenmatch.lab.backtests.scoring import RELIABILITY
from evenmatch.lab.charts import (
    COLORS,
    DASHES,
    FAINT,
    GREY,
    SYMBOLS,
    LineStyle,
    faded,
    label,
    line_style,
    new_figure,
    nothing_yet,
    whole_ticks,
    wide_enough,
)
from evenmatch.lab.ladder.health import LadderHealth

HEIGHT = 260
MARKED = 40  # up to this many periods, each point has a marker
SHARES = ("%{y:.1%}", ".0%")
DATES = {"hour": "%Y-%m-%d %H:%M", "6 hours": "%Y-%m-%d %H:%M", "month": "%b %Y", "quarter": "%b %Y", "year": "%Y"}


def levels(found: LadderHealth) -> go.Figure:
    """Mean and median rating of the players active in each period."""
    figure = _over_time(found, {"mean": found.mean, "median": found.median}, "%{y:.5~g}", found.players, "players")
    figure.update_yaxes(title_text="rating")
    return figure


def at_floor(found: LadderHealth) -> go.Figure | None:
    """Share of the active players at the floor, by period; None if the system has no floor."""
    if found.at_floor is None:
        return None
    figure = _over_time(found, {"at the floor": found.at_floor}, SHARES[0], found.players, "players")
    figure.update_yaxes(title_text="players", **_share_axis(found.at_floor, from_zero=True))
    return figure


def troubles(found: LadderHealth) -> go.Figure:
    """Shares of matches that were drawn and that a player left early, by period."""
    lines = {"drawn": found.drawn, "left early": found.quit}
    figure = _over_time(found, lines, SHARES[0], found.matches, "matches")
    figure.update_yaxes(title_text="matches", **_share_axis(found.drawn, found.quit, from_zero=True))
    return figure


def odds(found: LadderHealth) -> go.Figure:
    """Expected and actual score of favourites, by period."""
    lines = {"given": found.given, "scored": found.scored}
    figure = _over_time(found, lines, SHARES[0], found.favoured, "matches with a favourite")
    figure.update_yaxes(title_text="favourites", **_share_axis(found.given, found.scored, from_zero=False))
    return figure


def activity(found: LadderHealth) -> go.Figure:
    """Number of matches and of players, by period."""
    lines = {"matches": found.matches.astype(np.float64), "players": found.players.astype(np.float64)}
    figure = _over_time(found, lines, "%{y:,}", None, "")
    most = max((int(column.max(initial=0)) for column in (found.matches, found.players)), default=0)
    return figure.update_yaxes(rangemode="tozero", **charts.whole_ticks(most))


def reliability(found: LadderHealth) -> go.Figure:
    """Actual score of favourites by their predicted odds, over all periods."""
    return calibration(found.rules.system.name, found.points)


def calibration(name: str, points: Sequence[Point]) -> go.Figure:
    """Actual score of favourites by their predicted odds; name: of what predicted them."""
    rows = [{"system": name, "variant": "now", **vars(point)} for point in points]
    enough = [group for group in points if group.matches >= charts.FEW]
    if not enough:
        return charts.nothing_yet(new_figure(height=HEIGHT), f"No odds have {charts.FEW} matches yet.")
    figure = charts.reliability(pa.Table.from_pylist(rows, schema=RELIABILITY), [(name, "now")])
    figure.update_layout(height=HEIGHT, showlegend=False)
    return figure


def _share_axis(*columns: Floats, from_zero: bool) -> dict[str, object]:
    values = [value for column in columns for value in column.tolist()]
    return {"tickformat": SHARES[1], "range": charts.share_range(values, from_zero=from_zero)}


def _over_time(
    found: LadderHealth,
    lines: dict[str, Floats],
    template: str,
    counts: np.ndarray[tuple[int], np.dtype[np.int64]] | None,
    unit: str,
) -> go.Figure:
    figure = new_figure(height=HEIGHT)
    figure.update_layout(hovermode="x unified")
    if not len(found.start):
        return charts.nothing_yet(figure, "No rated match yet.")
    start = np.array(found.start, "datetime64[us]").astype("datetime64[m]").astype(str)
    ends = [int(found.start[index]) // 1000 for index in (0, -1)]
    figure.update_xaxes(range=charts.wide_enough(*ends))
    for index, (name, values) in enumerate(lines.items()):
        style = line_style(
            name, LineStyle(COLORS[index], DASHES[index], SYMBOLS[index]), True, marked=len(start) <= MARKED
        )
        count_text = f", %{{customdata:,}} {unit}" if counts is not None else ""
        figure.add_scatter(
            x=start,
            y=[None if np.isnan(value) else float(f"{value:.6g}") for value in values.tolist()],
            customdata=None if counts is None else counts.tolist(),
            hovertemplate=f"{template}{count_text}<extra>{name}</extra>",
            **style,
        )
    figure.update_layout(showlegend=len(lines) > 1)
    figure.update_xaxes(type="date", tickangle=0, hoverformat=DATES.get(found.unit, "%Y-%m-%d"))
    return figure


LEVELS = ((0, 20), (20, 50), (50, 80), (80, 101))  # percentile ranges, each with its own color
WINDOW = 30  # number of consecutive waits in the running median


class PartyWait(NamedTuple):
    """A party that was offered a match: time of the offer (microseconds), wait (seconds), percentile."""

    made_at: int
    seconds: float
    percentile: float


def waits_over_time(waits: Sequence[PartyWait]) -> go.Figure:
    """Chart of every wait, colored by level, with the running median."""
    figure = new_figure(height=320)
    figure.update_layout(hovermode="closest", showlegend=True)
    if not waits:
        return nothing_yet(figure, "No match was offered yet.")
    ordered = sorted(waits)
    for index, (low, high) in enumerate(LEVELS):
        at_level = [wait for wait in ordered if low <= wait.percentile < high]
        if at_level:
            figure.add_scatter(
                x=[wait.made_at // 1000 for wait in at_level],
                y=[round(wait.seconds, 1) for wait in at_level],
                customdata=[round(wait.percentile, 1) for wait in at_level],
                mode="markers",
                marker={"color": COLORS[index], "symbol": SYMBOLS[index], "size": 5},
                name=f"percentile {low}–{min(high, 100)}",
                hovertemplate="%{y:.0f} s at percentile %{customdata}<br>%{x|%Y-%m-%d %H:%M}<extra></extra>",
            )
    if len(ordered) >= WINDOW:
        seconds = np.array([wait.seconds for wait in ordered])
        windows = np.lib.stride_tricks.sliding_window_view(seconds, WINDOW)
        times = [wait.made_at // 1000 for wait in ordered][WINDOW // 2 :][: len(windows)]
        figure.add_scatter(
            x=times,
            y=np.median(windows, axis=1).round(1).tolist(),
            mode="lines",
            line={"color": GREY, "width": 2},
            name=f"median of {WINDOW}",
            hovertemplate="half wait %{y:.0f} s or less<extra></extra>",
        )
    ends = wide_enough(ordered[0].made_at // 1000, ordered[-1].made_at // 1000)
    figure.update_xaxes(type="date", tickangle=0, range=ends)
    figure.update_yaxes(title_text="wait, seconds", rangemode="tozero")
    return figure


BLUE, RED, _, OCHRE, _, _ = COLORS
ROOM = 0.3  # share of a path's height: division bounds up to this far above or below it are shown
LEAST_ROOM = 20  # a path that never moved is given a height of rating / LEAST_ROOM
NOT_PLAYING = "not playing"
LABEL = 0.03  # share of a figure's width that a vertical label takes
# result of a match, color, symbol, text in the legend
MARKS = (
    ("won", BLUE, "triangle-up", "won"),
    ("lost", RED, "triangle-down", "lost"),
    ("drew", OCHRE, "diamond", "drew"),
    ("none", GREY, "x", "not rated"),
    ("fell", GREY, "square", NOT_PLAYING),
)
KNOWN = {word for word, *_ in MARKS}


class ChartPoint(NamedTuple):
    """Effect of a match on a player's shown rating.

    played_at  microseconds since the epoch
    word       won, lost or drew; fell: by inactivity, without a match; any other value: the match was not rated
    """

    match_id: str
    played_at: int
    before: float
    after: float
    word: str


class LevelPoint(NamedTuple):
    """A player's standing after a match.

    level  the percentile 1..100, or the number of the division from 0;  text  the standing in words
    For the others see ChartPoint.
    """

    match_id: str
    played_at: int
    level: float
    text: str
    word: str


Cuts = Sequence[tuple[str, float]]  # divisions and the lowest rating of each, the lowest division first
Openings = Sequence[tuple[str, int]]  # seasons and when each opened, microseconds since the epoch


def player_path(
    points: Sequence[ChartPoint], cuts: Cuts = (), openings: Openings = (), whole: int | None = None
) -> go.Figure:
    """Chart of a player's rating after each match, in rating order, with the bounds of nearby divisions.

    openings  seasons that opened in between: the path continues at the rating after the reset
    whole     number of all matches if `points` are only some of them
    """
    figure = new_figure(height=400)
    figure.update_layout(hovermode="closest")
    figure.update_xaxes(type="date", tickangle=0)
    figure.update_yaxes(title_text="rating")
    if not points:
        return nothing_yet(figure, "No rated match yet.")
    times, after = _milliseconds(points), [_rounded(point.after) for point in points]
    path = [(times[0], _rounded(points[0].before)), *zip(times, after, strict=True)]
    for _, opened in openings:
        reset = next((point.before for point in points if point.played_at >= opened), None)
        if reset is not None:
            path.append((opened // 1000, _rounded(reset)))
    path.sort(key=lambda point: point[0])
    figure.update_xaxes(range=wide_enough(times[0], times[-1]))
    figure.add_scatter(
        x=[time for time, _ in path],
        y=[rating for _, rating in path],
        mode="lines",
        line={"color": GREY, "width": 1.5, "shape": "hv"},
        hoverinfo="skip",
        showlegend=False,
    )
    _mark_results(figure, points, after, [_hover_lines(point) for point in points], whole)
    low, high = (extreme(y for point in points for y in (point.before, point.after)) for extreme in (min, max))
    room = ROOM * (high - low) or abs(high) / LEAST_ROOM or 1.0
    near = [(name, rating) for name, rating in cuts if low - room <= rating <= high + room]
    season_starts = [(title, opened // 1000) for title, opened in openings]
    figure.update_layout(
        shapes=[
            *(_line_at("y", rating, faded(BLUE, 0.45), 1) for _, rating in near),
            *(_line_at("x", opened, GREY, 1) for _, opened in season_starts),
        ],
        annotations=[
            *(
                {**_label_at("y", rating, name), "x": 0, "xanchor": "left", "yanchor": "bottom"}
                for name, rating in near
            ),
            *(
                {**_label_at("x", opened, title), "y": 1, "xanchor": "left", "yanchor": "top"}
                for title, opened in season_starts
            ),
        ],
    )
    return figure


def level_path(
    points: Sequence[LevelPoint],
    title: str,
    marks: Sequence[tuple[str, float]],
    openings: Openings = (),
    whole: int | None = None,
) -> go.Figure:
    """Chart of a player's percentile or division after each match.

    title  of the vertical axis: percentile or division
    marks  names and levels of the divisions: their lowest percentiles, or their numbers from 0
    For openings and whole see `player_path`.
    """
    figure = new_figure(height=300)
    figure.update_layout(hovermode="closest")
    figure.update_xaxes(type="date", tickangle=0)
    figure.update_yaxes(title_text=title)
    if not points:
        return nothing_yet(figure, f"No {title} was shown yet.")
    times, levels = _milliseconds(points), [point.level for point in points]
    figure.update_xaxes(range=wide_enough(times[0], times[-1]))
    figure.add_scatter(
        **{"x": times, "y": levels, "mode": "lines", "line": {"color": GREY, "width": 1.5, "shape": "hv"}},
        hoverinfo="skip",
        showlegend=False,
    )
    _mark_results(figure, points, levels, [_level_lines(point) for point in points], whole)
    shapes = [_line_at("x", opened // 1000, GREY, 1) for _, opened in openings]
    notes = [
        {**_label_at("x", opened // 1000, name), "y": 1, "xanchor": "left", "yanchor": "top"}
        for name, opened in openings
    ]
    if title == "division":
        names = [label(name, 20) for name, _ in marks]
        figure.update_yaxes(tickvals=[level for _, level in marks], ticktext=names, range=[-0.5, len(marks) - 0.5])
    else:
        figure.update_yaxes(range=[0, 102])
        shapes += [_line_at("y", level, faded(BLUE, 0.45), 1) for _, level in marks]
        notes += [
            {**_label_at("y", level, name), "x": 0, "xanchor": "left", "yanchor": "bottom"} for name, level in marks
        ]
    figure.update_layout(shapes=shapes, annotations=notes)
    return figure


def _mark_results(
    figure: go.Figure,
    points: Sequence[ChartPoint | LevelPoint],
    heights: Sequence[float],
    hovers: Sequence[Sequence[str]],
    whole: int | None,
) -> None:
    """Add a marker for each match by its result, and a title if not all matches are drawn."""
    times = _milliseconds(points)
    for word, color, symbol, legend in MARKS:
        indices = [
            n for n, point in enumerate(points) if point.word == word or (word == "none" and point.word not in KNOWN)
        ]
        if indices:
            figure.add_scatter(
                x=[times[n] for n in indices],
                y=[heights[n] for n in indices],
                customdata=[hovers[n] for n in indices],
                mode="markers",
                marker={"color": color, "symbol": symbol, "size": 9 if len(points) <= 120 else 6},
                name=legend,
                hovertemplate="%{customdata[0]}<br>%{customdata[1]}<br>%{customdata[2]}<extra>" + legend + "</extra>",
            )
    figure.update_layout(showlegend=True)
    matches = sum(point.word != "fell" for point in points)
    if whole is not None and whole > matches:
        shown = f"{matches:,} of {whole:,} matches: every peak and every low."
        figure.update_layout(
            meta={"more": True}, title={"text": shown, "font": {"size": 12}, "x": 0, "xanchor": "left"}
        )


def spread(edges: Sequence[float] | Floats, counts: Sequence[int] | Floats, cuts: Cuts, you: float | None) -> go.Figure:
    """Histogram of ratings with the bounds of divisions and, if given, the rating of the viewer.

    edges, counts  N + 1 ascending edges of N bins; outermost bins that are wider than all others are drawn as wide
                   as the widest of these
    you            rating of the viewer
    """
    figure = new_figure(height=400)
    bounds, count = np.asarray(edges, np.float64), np.asarray(counts)
    if not count.any():
        return nothing_yet(figure, "Nobody is active.")
    drawn = _evened(bounds)
    own_bin = None if you is None else int(np.clip(bounds.searchsorted(you, side="right") - 1, 0, len(count) - 1))
    colors = [OCHRE if index == own_bin else BLUE for index in range(len(count))]
    figure.add_bar(
        x=((drawn[1:] + drawn[:-1]) / 2).tolist(),
        y=count.tolist(),
        width=np.diff(drawn).tolist(),
        customdata=[[f"{low:,.5g}", f"{high:,.5g}"] for low, high in pairwise(bounds.tolist())],
        marker={"color": colors, "line": {"width": 0}},
        hovertemplate="%{y:,} with %{customdata[0]} to %{customdata[1]}<extra></extra>",
    )
    inside = _not_overlapping([(name, rating) for name, rating in cuts if drawn[0] < rating < drawn[-1]], drawn)
    lines = [_line_at("x", rating, GREY, 1) for _, rating in inside]
    notes = [
        {**_label_at("x", rating, name), "y": 1, "textangle": -90, "xanchor": "left", "yanchor": "top"}
        for name, rating in inside
    ]
    if you is not None:
        position = float(np.clip(you, drawn[0], drawn[-1]))
        side = "left" if position < (drawn[0] + drawn[-1]) / 2 else "right"
        style = {"text": "you are here", "font": {"size": 13, "color": RED}, "yshift": 18, "xanchor": side}
        lines.append(_line_at("x", position, RED, 2, "solid"))
        notes.append({**_label_at("x", position, ""), "y": 1, "yanchor": "top", **style})
    figure.update_layout(shapes=lines, annotations=notes)
    figure.update_layout(bargap=0.04, showlegend=False, margin={"t": 30})
    figure.update_xaxes(title_text="rating", tickangle=0, gridcolor=FAINT)
    figure.update_yaxes(title_text="players", rangemode="tozero", **whole_ticks(int(count.max())))
    return figure


def _not_overlapping(cuts: Sequence[tuple[str, float]], drawn: Floats) -> list[tuple[str, float]]:
    """Divisions whose labels do not overlap; of overlapping ones the highest."""
    min_distance = LABEL * float(drawn[-1] - drawn[0])
    labelled: list[tuple[str, float]] = []
    for name, rating in reversed(cuts):
        if not labelled or labelled[-1][1] - rating >= min_distance:
            labelled.append((name, rating))
    return labelled[::-1]


def _line_at(axis: str, value: float, color: str, width: int, dash: str = "dot") -> dict[str, object]:
    """Shape of a line across the figure; setting all shapes in one update is much faster than add_vline."""
    other = "y" if axis == "x" else "x"
    ends = {f"{axis}0": value, f"{axis}1": value, f"{axis}ref": axis, f"{other}0": 0, f"{other}1": 1}
    line = {"color": color, "width": width, "dash": dash}
    return {"type": "line", **ends, f"{other}ref": f"{other} domain", "line": line}


def _label_at(axis: str, value: float, name: str) -> dict[str, object]:
    other = "y" if axis == "x" else "x"
    position = {axis: value, f"{axis}ref": axis, f"{other}ref": f"{other} domain", "showarrow": False}
    return {"text": label(name, 20), "font": {"size": 11, "color": GREY}, **position}


def _milliseconds(points: Sequence[ChartPoint | LevelPoint]) -> list[int]:
    return [point.played_at // 1000 for point in points]  # plotly's unit


def _level_lines(point: LevelPoint) -> list[str]:
    """Lines of the hover text: match, time, standing."""
    return [label(point.match_id, 40), _when(point), label(point.text, 60)]


def _when(point: ChartPoint | LevelPoint) -> str:
    return f"{datetime.fromtimestamp(point.played_at // 1_000_000, UTC):%Y-%m-%d %H:%M}"


def _hover_lines(point: ChartPoint) -> list[str]:
    """Lines of the hover text: match, time, rating change."""
    difference = point.after - point.before
    change = f"{difference:+.2f}" if abs(difference) < 10 else f"{difference:+.1f}"
    ratings = f"{_rounded(point.before):,} → {_rounded(point.after):,} ({change.replace('-', '−')})"
    return [label(point.match_id, 40), _when(point), ratings]


def _rounded(rating: float) -> float:
    """The rating with six significant digits, enough on any scale."""
    return float(f"{rating:.6g}")


def _evened(bounds: Floats) -> Floats:
    """Edges whose outermost bins are no wider than the widest of the others."""
    if len(bounds) < 4:
        return bounds
    width = float(np.diff(bounds[1:-1]).max())
    even = bounds.copy()
    even[0], even[-1] = max(even[0], even[1] - width), min(even[-1], even[-2] + width)
    return even
