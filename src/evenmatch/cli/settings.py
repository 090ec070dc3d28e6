"""Options for the settings of a ladder, and their values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Title = Annotated[
    str | None, typer.Option("--title", metavar="TEXT", help="Title shown to people instead of the name.")
]
Placement = Annotated[
    int | None,
    typer.Option(
        "--placement", min=0, metavar="N", help="Matches to complete before a player is listed; new ladders: 10."
    ),
]
ActiveDays = Annotated[
    float | None,
    typer.Option(
        "--active-days",
        min=0,
        metavar="N",
        help="List players who completed a match in the last N days; new ladders: 30.",
    ),
]
Divisions = Annotated[
    Path | None, typer.Option("--divisions", metavar="FILE", help="A .csv with columns name, lowest (percentile).")
]
DivisionMargin = Annotated[
    int | None,
    typer.Option(
        "--division-margin",
        min=0,
        metavar="N",
        help="Percentiles a player may fall below their division and keep it; new ladders: 3.",
    ),
]
TeamSize = Annotated[
    int | None,
    typer.Option("--team-size", min=0, metavar="N", help="Players of a full team; 0: any; new ladders: 0."),
]
Reset = Annotated[
    str | None,
    typer.Option("--reset", metavar="R", help="Reset at the start of a season: full, soft or none; new ladders: soft."),
]
Factor = Annotated[
    float | None,
    typer.Option(
        "--factor",
        min=0,
        max=1,
        metavar="F",
        help="Share of the distance to the mean that a soft reset keeps; new ladders: 0.5.",
    ),
]


def settings_of(
    title: str | None,
    placement: int | None,
    active_days: float | None,
    divisions: Path | None,
    division_margin: int | None,
    team_size: int | None,
    reset: str | None,
    factor: float | None,
) -> dict[str, object]:
    """The settings given by options, by name."""
    from evenmatch.cli.divisions import read_divisions

    named = {
        "title": title,
        "placement": placement,
        "active_days": active_days,
        "divisions": None if divisions is None else read_divisions(divisions),
        "division_margin": division_margin,
        "reset": reset,
        "factor": factor,
    }
    chosen: dict[str, object] = {name: value for name, value in named.items() if value is not None}
    if team_size is not None:
        chosen["team_size"] = team_size if team_size > 0 else None
    return chosen
