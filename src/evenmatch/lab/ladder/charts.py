"""Charts of a ladder's health and waits, in the style of `lab.charts`. Requires plotly (extra `lab`)."""

from __future__ import annotations

from collections.abc import Sequence
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
    GREY,
    SYMBOLS,
    LineStyle,
    line_style,
    new_figure,
    nothing_yet,
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
