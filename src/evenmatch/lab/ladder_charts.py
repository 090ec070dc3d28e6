"""Figures of a ladder's players: one rating over time, match by match, and how all ratings are spread.

They look like those of `charts`. Needs plotly (the extra `lab`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from evenmatch.history import Floats
from evenmatch.lab.charts import COLORS, FAINT, GREY, faded, label, new_figure

BLUE, RED, _, OCHRE, _, _ = COLORS
ROOM = 0.3  # of a path's own height: divisions that begin so far above or below it are shown
LEAST_ROOM = 20  # so many parts of a rating are the height of a path that never moved
# what a match was, its colour, its symbol, and in words
MARKS = (
    ("won", BLUE, "triangle-up", "won"),
    ("lost", RED, "triangle-down", "lost"),
    ("drew", OCHRE, "diamond", "drew"),
    ("none", GREY, "x", "not rated"),
)
KNOWN = {word for word, *_ in MARKS}


class PathPoint(NamedTuple):
    """What a match did to a player's shown rating.

    played_at  microseconds since the epoch;  word: won, lost or drew; anything else is a match that was not rated
    """

    match_id: str
    played_at: int
    before: float
    after: float
    word: str


Cuts = Sequence[tuple[str, float]]  # divisions with the rating from which each is reached, the lowest first


def player_path(points: Sequence[PathPoint], cuts: Cuts = ()) -> go.Figure:
    """A player's rating after each of these matches, in the order they were rated in, and where divisions begin."""
    figure = new_figure(height=400)
    figure.update_layout(hovermode="closest")
    figure.update_xaxes(type="date", tickangle=0)
    figure.update_yaxes(title_text="rating")
    if not points:
        return figure
    when, after = _milliseconds(points), [_short(one.after) for one in points]
    figure.add_scatter(
        x=[when[0], *when],
        y=[_short(points[0].before), *after],
        mode="lines",
        line={"color": GREY, "width": 1.5, "shape": "hv"},
        hoverinfo="skip",
        showlegend=False,
    )
    for word, color, symbol, said in MARKS:
        at = [n for n, one in enumerate(points) if one.word == word or (word == "none" and one.word not in KNOWN)]
        if at:
            figure.add_scatter(
                x=[when[n] for n in at],
                y=[after[n] for n in at],
                customdata=[_told(points[n]) for n in at],
                mode="markers",
                marker={"color": color, "symbol": symbol, "size": 9 if len(points) <= 120 else 6},
                name=said,
                hovertemplate="%{customdata[0]}<br>%{customdata[1]}<br>%{customdata[2]}<extra>" + said + "</extra>",
            )
    figure.update_layout(showlegend=True)
    low, high = (choose(y for one in points for y in (one.before, one.after)) for choose in (min, max))
    room = ROOM * (high - low) or abs(high) / LEAST_ROOM or 1.0
    for name, rating in cuts:
        if low - room <= rating <= high + room:
            figure.add_hline(
                y=rating,
                line={"color": faded(BLUE, 0.45), "width": 1, "dash": "dot"},
                annotation={"text": label(name, 20), "font": {"size": 11, "color": GREY}},
                annotation_position="top left",
            )
    return figure


def spread(edges: Sequence[float] | Floats, counts: Sequence[int] | Floats, cuts: Cuts, you: float | None) -> go.Figure:
    """How many players have which rating, with where divisions begin, and the place of one who looks.

    edges, counts  a histogram: N + 1 rising edges of N bins; the outermost may be far wider than the others, and are
                   drawn as wide as those
    """
    figure = new_figure(height=400)
    bounds, count = np.asarray(edges, np.float64), np.asarray(counts)
    drawn = _even(bounds)
    mine = None if you is None else int(np.clip(bounds.searchsorted(you, side="right") - 1, 0, len(count) - 1))
    colors = [OCHRE if at == mine else BLUE for at in range(len(count))]
    figure.add_bar(
        x=((drawn[1:] + drawn[:-1]) / 2).tolist(),
        y=count.tolist(),
        width=np.diff(drawn).tolist(),
        customdata=[[f"{low:,.5g}", f"{high:,.5g}"] for low, high in pairwise(bounds.tolist())],
        marker={"color": colors, "line": {"width": 0}},
        hovertemplate="%{y:,} with %{customdata[0]} to %{customdata[1]}<extra></extra>",
    )
    for name, rating in cuts:
        if drawn[0] < rating < drawn[-1]:
            figure.add_vline(
                x=rating,
                line={"color": GREY, "width": 1, "dash": "dot"},
                annotation={"text": label(name, 20), "textangle": -90, "font": {"size": 11, "color": GREY}},
                annotation_position="top right",
            )
    if you is not None:
        at = float(np.clip(you, drawn[0], drawn[-1]))
        figure.add_vline(
            x=at,
            line={"color": RED, "width": 2},
            annotation={"text": "you are here", "font": {"size": 13, "color": RED}, "yshift": 18},
            annotation_position="top right" if at < (drawn[0] + drawn[-1]) / 2 else "top left",
        )
    figure.update_layout(bargap=0.04, showlegend=False, margin={"t": 30})
    figure.update_xaxes(title_text="rating", tickangle=0, gridcolor=FAINT)
    figure.update_yaxes(title_text="players", rangemode="tozero")
    return figure


def _milliseconds(points: Sequence[PathPoint]) -> list[int]:
    return [one.played_at // 1000 for one in points]  # plotly counts so


def _told(point: PathPoint) -> list[str]:
    """The match, its time, and what it did, as the figure tells them."""
    when = datetime.fromtimestamp(point.played_at // 1_000_000, UTC)
    moved = point.after - point.before
    change = f"{moved:+.2f}" if abs(moved) < 10 else f"{moved:+.1f}"
    told = f"{_short(point.before):,} → {_short(point.after):,} ({change.replace('-', '−')})"
    return [label(point.match_id, 40), f"{when:%Y-%m-%d %H:%M}", told]


def _short(rating: float) -> float:
    """A rating with so many digits as tell ratings of any scale apart."""
    return float(f"{rating:.6g}")


def _even(bounds: Floats) -> Floats:
    """The same edges, the outermost bins no wider than the widest of the others."""
    if len(bounds) < 4:
        return bounds
    width = float(np.diff(bounds[1:-1]).max())
    even = bounds.copy()
    even[0], even[-1] = max(even[0], even[1] - width), min(even[-1], even[-2] + width)
    return even
