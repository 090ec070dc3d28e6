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
from evenmatch.lab.charts import COLORS, FAINT, GREY, faded, label, new_figure, nothing_yet, whole_ticks, wide_enough

BLUE, RED, _, OCHRE, _, _ = COLORS
ROOM = 0.3  # of a path's own height: divisions that begin so far above or below it are shown
LEAST_ROOM = 20  # so many parts of a rating are the height of a path that never moved
LABEL = 0.03  # of a figure's width: what words along a line take
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
Openings = Sequence[tuple[str, int]]  # seasons with the microseconds since the epoch at which each opened


def player_path(
    points: Sequence[PathPoint], cuts: Cuts = (), openings: Openings = (), whole: int | None = None
) -> go.Figure:
    """A player's rating after each of these matches, in the order they were rated in, and where divisions begin.

    openings  seasons that opened on the way: the rating goes on from where the reset left it
    whole     how many matches there are, where `points` are some of them
    """
    figure = new_figure(height=400)
    figure.update_layout(hovermode="closest")
    figure.update_xaxes(type="date", tickangle=0)
    figure.update_yaxes(title_text="rating")
    if not points:
        return nothing_yet(figure, "No rated match yet.")
    when, after = _milliseconds(points), [_short(one.after) for one in points]
    path = [(when[0], _short(points[0].before)), *zip(when, after, strict=True)]
    for _, opened in openings:
        reset = next((one.before for one in points if one.played_at >= opened), None)
        if reset is not None:
            path.append((opened // 1000, _short(reset)))
    path.sort(key=lambda one: one[0])
    figure.update_xaxes(range=wide_enough(when[0], when[-1]))
    figure.add_scatter(
        x=[time for time, _ in path],
        y=[rating for _, rating in path],
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
    if whole is not None and whole > len(points):
        told = f"{len(points):,} of {whole:,} matches: every peak and every low."
        figure.update_layout(meta={"more": True}, title={"text": told, "font": {"size": 12}, "x": 0, "xanchor": "left"})
    low, high = (choose(y for one in points for y in (one.before, one.after)) for choose in (min, max))
    room = ROOM * (high - low) or abs(high) / LEAST_ROOM or 1.0
    near = [(name, rating) for name, rating in cuts if low - room <= rating <= high + room]
    turns = [(title, opened // 1000) for title, opened in openings]
    figure.update_layout(
        shapes=[
            *(_line("y", rating, faded(BLUE, 0.45), 1) for _, rating in near),
            *(_line("x", opened, GREY, 1) for _, opened in turns),
        ],
        annotations=[
            *({**_beside("y", rating, name), "x": 0, "xanchor": "left", "yanchor": "bottom"} for name, rating in near),
            *({**_beside("x", opened, title), "y": 1, "xanchor": "left", "yanchor": "top"} for title, opened in turns),
        ],
    )
    return figure


def spread(edges: Sequence[float] | Floats, counts: Sequence[int] | Floats, cuts: Cuts, you: float | None) -> go.Figure:
    """How many players have which rating, with where divisions begin, and the place of one who looks.

    edges, counts  a histogram: N + 1 rising edges of N bins; the outermost may be far wider than the others, and are
                   drawn as wide as those
    """
    figure = new_figure(height=400)
    bounds, count = np.asarray(edges, np.float64), np.asarray(counts)
    if not count.any():
        return nothing_yet(figure, "Nobody is active.")
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
    inside = _apart([(name, rating) for name, rating in cuts if drawn[0] < rating < drawn[-1]], drawn)
    lines = [_line("x", rating, GREY, 1) for _, rating in inside]
    notes = [
        {**_beside("x", rating, name), "y": 1, "textangle": -90, "xanchor": "left", "yanchor": "top"}
        for name, rating in inside
    ]
    if you is not None:
        at = float(np.clip(you, drawn[0], drawn[-1]))
        side = "left" if at < (drawn[0] + drawn[-1]) / 2 else "right"
        here = {"text": "you are here", "font": {"size": 13, "color": RED}, "yshift": 18, "xanchor": side}
        lines.append(_line("x", at, RED, 2, "solid"))
        notes.append({**_beside("x", at, ""), "y": 1, "yanchor": "top", **here})
    figure.update_layout(shapes=lines, annotations=notes)
    figure.update_layout(bargap=0.04, showlegend=False, margin={"t": 30})
    figure.update_xaxes(title_text="rating", tickangle=0, gridcolor=FAINT)
    figure.update_yaxes(title_text="players", rangemode="tozero", **whole_ticks(int(count.max())))
    return figure


def _apart(cuts: Sequence[tuple[str, float]], drawn: Floats) -> list[tuple[str, float]]:
    """Those of these divisions whose words do not lie on top of one another, the highest first of those that would."""
    least = LABEL * float(drawn[-1] - drawn[0])
    kept: list[tuple[str, float]] = []
    for name, rating in reversed(cuts):
        if not kept or kept[-1][1] - rating >= least:
            kept.append((name, rating))
    return kept[::-1]


def _line(axis: str, at: float, color: str, width: int, dash: str = "dot") -> dict[str, object]:
    """A line across the whole figure at a value of an axis: all at once, since plotly adds them slowly one by one."""
    other = "y" if axis == "x" else "x"
    ends = {f"{axis}0": at, f"{axis}1": at, f"{axis}ref": axis, f"{other}0": 0, f"{other}1": 1}
    line = {"color": color, "width": width, "dash": dash}
    return {"type": "line", **ends, f"{other}ref": f"{other} domain", "line": line}


def _beside(axis: str, at: float, name: str) -> dict[str, object]:
    """Words beside such a line."""
    other = "y" if axis == "x" else "x"
    places = {axis: at, f"{axis}ref": axis, f"{other}ref": f"{other} domain", "showarrow": False}
    return {"text": label(name, 20), "font": {"size": 11, "color": GREY}, **places}


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
