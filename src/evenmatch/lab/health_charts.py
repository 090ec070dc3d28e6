"""Figures of a ladder's health over time, in the look of `charts`. Needs plotly (the extra `lab`)."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa

from evenmatch.history import Floats
from evenmatch.lab import charts
from evenmatch.lab.charts import COLORS, DASHES, SYMBOLS, Look, line_style, new_figure
from evenmatch.lab.findings import RELIABILITY
from evenmatch.lab.health import Health

HEIGHT = 260
MARKED = 40  # periods up to which each has a mark
SHARES = ("%{y:.1%}", ".0%")
DATES = {"hour": "%Y-%m-%d %H:%M", "6 hours": "%Y-%m-%d %H:%M", "month": "%b %Y", "quarter": "%b %Y", "year": "%Y"}


def levels(found: Health) -> go.Figure:
    """Mean and median rating of those who played in each period."""
    figure = _over_time(found, {"mean": found.mean, "median": found.median}, "%{y:.5~g}", found.players, "players")
    figure.update_yaxes(title_text="rating")
    return figure


def at_floor(found: Health) -> go.Figure | None:
    """The share of those who played who stand at the floor; None where the system has no floor."""
    if found.at_floor is None:
        return None
    figure = _over_time(found, {"at the floor": found.at_floor}, SHARES[0], found.players, "players")
    figure.update_yaxes(title_text="players", **_share_axis(found.at_floor, from_zero=True))
    return figure


def troubles(found: Health) -> go.Figure:
    """The shares of matches that were drawn, and that somebody left early."""
    lines = {"drawn": found.drawn, "left early": found.quit}
    figure = _over_time(found, lines, SHARES[0], found.matches, "matches")
    figure.update_yaxes(title_text="matches", **_share_axis(found.drawn, found.quit, from_zero=True))
    return figure


def odds(found: Health) -> go.Figure:
    """What favourites were given in each period, and what they scored."""
    lines = {"given": found.given, "scored": found.scored}
    figure = _over_time(found, lines, SHARES[0], found.favoured, "matches with a favourite")
    figure.update_yaxes(title_text="favourites", **_share_axis(found.given, found.scored, from_zero=False))
    return figure


def activity(found: Health) -> go.Figure:
    """Matches of each period, and how many played in them."""
    lines = {"matches": found.matches.astype(np.float64), "players": found.players.astype(np.float64)}
    figure = _over_time(found, lines, "%{y:,}", None, "")
    most = max((int(column.max(initial=0)) for column in (found.matches, found.players)), default=0)
    return figure.update_yaxes(rangemode="tozero", **charts.whole_ticks(most))


def reliability(found: Health) -> go.Figure:
    """How often favourites scored, by the odds they were given, over all periods."""
    name = found.rules.system.name
    rows = [{"system": name, "variant": "now", **vars(point)} for point in found.points]
    enough = [one for one in found.points if one.matches >= charts.FEW]
    if not enough:
        return charts.nothing_yet(new_figure(height=HEIGHT), f"No odds have {charts.FEW} matches yet.")
    figure = charts.reliability(pa.Table.from_pylist(rows, schema=RELIABILITY), [(name, "now")])
    figure.update_layout(height=HEIGHT, showlegend=False)
    return figure


def _share_axis(*columns: Floats, from_zero: bool) -> dict[str, object]:
    values = [value for column in columns for value in column.tolist()]
    return {"tickformat": SHARES[1], "range": charts.share_range(values, from_zero=from_zero)}


def _over_time(
    found: Health,
    lines: dict[str, Floats],
    shown: str,
    counts: np.ndarray[tuple[int], np.dtype[np.int64]] | None,
    of: str,
) -> go.Figure:
    figure = new_figure(height=HEIGHT)
    figure.update_layout(hovermode="x unified")
    if not len(found.start):
        return charts.nothing_yet(figure, "No rated match yet.")
    start = np.array(found.start, "datetime64[us]").astype("datetime64[m]").astype(str)
    ends = [int(found.start[at]) // 1000 for at in (0, -1)]
    figure.update_xaxes(range=charts.wide_enough(*ends))
    for at, (name, values) in enumerate(lines.items()):
        style = line_style(name, Look(COLORS[at], DASHES[at], SYMBOLS[at]), True, marked=len(start) <= MARKED)
        told = f", %{{customdata:,}} {of}" if counts is not None else ""
        figure.add_scatter(
            x=start,
            y=[None if np.isnan(value) else float(f"{value:.6g}") for value in values.tolist()],
            customdata=None if counts is None else counts.tolist(),
            hovertemplate=f"{shown}{told}<extra>{name}</extra>",
            **style,
        )
    figure.update_layout(showlegend=len(lines) > 1)
    figure.update_xaxes(type="date", tickangle=0, hoverformat=DATES.get(found.unit, "%Y-%m-%d"))
    return figure
