"""evenmatch season: open seasons, list them, and show final standings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.corrections import as_document, print_effect
from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import (
    DATABASE,
    Db,
    Id,
    OnLadder,
    Preview,
    acting,
    counted,
    ladder_of,
    minutes_text,
    opened,
    typed,
)
from evenmatch.cli.shared.options import argument, option
from evenmatch.cli.shared.output import as_data, beyond, note, print_json, print_table, printable, working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    pass

MANY = 1_000_000_000  # more players than any season has

app = typer.Typer(help="Open seasons, list them, and show final standings.", no_args_is_help=True)


@app.command(name="open")
def open_(
    ladder: OnLadder = None,
    title: Annotated[str | None, option("--title TEXT", "Title of the new season.")] = None,
    reset: Annotated[str | None, option("--reset R", "full, soft or none; default: the ladder's setting.")] = None,
    factor: Annotated[
        float | None, option("--factor F", "Share of the distance to the mean to keep.", low=0, high=1)
    ] = None,
    preview: Preview = False,
    event_id: Id = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """End the current season, store its final standings, and open the next.

    A full reset starts all players again. A soft reset moves players towards the mean: they keep the share F of their
    distance from it. With none, ratings stay. After a full or soft reset, players repeat their placement matches.

    Examples:
    evenmatch season open --ladder duel
    evenmatch season open --ladder duel --title "Winter 2026" --reset soft --factor 0.7
    evenmatch season open --ladder duel --preview
    """
    if factor is not None and reset not in (None, "soft"):
        raise UsageError(f"--factor is only for a soft reset, not for --reset {reset}")
    with opened(db) as service:
        name = ladder_of(service, ladder)
        if preview:
            seen = service.preview_season(name, title=title, reset=reset, factor=factor)
            if json:
                print_json({"ladder": name, "preview": True, **as_document(seen)})
            else:
                print_effect(seen, preview=True)
            return
        before = service.ladder(name).season
        with working("opening a season"):
            values = {"title": title, "reset": reset, "factor": factor, "id": event_id}
            noting = acting(
                service,
                "season.opened",
                name,
                body={key: value for key, value in values.items() if value is not None},
            )
            opened_season = noting.open_season(name, title=title, reset=reset, factor=factor, event_id=event_id)
    if json:
        print_json({"ladder": name, "there_already": opened_season.number <= before, **as_data(opened_season)})
        return
    which = "" if opened_season.title == f"Season {opened_season.number}" else f", its season {opened_season.number}"
    if opened_season.number <= before:
        print(printable(f"ladder {name}: {opened_season.title} was already opened{which}; nothing changed"))
        return
    print(printable(f"ladder {name}: {opened_season.title} is open{which}"))
    show_previous = typed(db, "season show", opened_season.number - 1, "--ladder", name)
    note(f"the final standings of the season before: {show_previous}")


@app.command(name="list")
def list_(ladder: OnLadder = None, db: Db = DATABASE, json: options.Json = False) -> None:
    """List the seasons of a ladder.

    Example:
    evenmatch season list --ladder duel
    """
    with opened(db) as service:
        name = ladder_of(service, ladder)
        seasons = service.seasons(name)
    if json:
        print_json({"ladder": name, "seasons": seasons})
        return
    rows = [
        [
            season.number,
            season.title,
            minutes_text(season.opened_at),
            "current" if season.closed_at is None else minutes_text(season.closed_at),
        ]
        for season in seasons
    ]
    print_table(
        f"{name}: {counted(len(rows), 'season')}", ("season", "title", "opened (UTC)", "ended"), rows, right=("season",)
    )


@app.command()
def show(
    number: Annotated[int, argument("N", "The number of an ended season.", low=1)],
    ladder: OnLadder = None,
    page: Annotated[int, option("--page N", "Page number, from 1.", low=1)] = 1,
    size: Annotated[int, option("--size N", "Players per page.", low=1)] = 20,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Show the final standings of a season.

    Example:
    evenmatch season show 1 --ladder duel --page 2
    """
    with opened(db) as service:
        name = ladder_of(service, ladder)
        season = next((listed for listed in service.seasons(name) if listed.number == number), None)
        if season is not None and season.closed_at is None:
            now = typed(db, "standings", "--ladder", name)
            raise UsageError(f"season {number} has not ended; its standings now: {now}")
        rows = service.finals(name, number, page, size)
        if not rows:
            note(beyond(page, len(service.finals(name, number, 1, MANY)), size))
        shown = service.ladder(name).title
    assert season is not None
    if json:
        document = {"ladder": name, **as_data(season), "page": page, "size": size}
        print_json({**document, "standings": rows})
        return
    heads = ("rank", "player", "rating", "matches", "percentile", "division")
    cells = [[row.rank, row.player, row.rating, row.matches, row.percentile, row.division] for row in rows]
    shown_page = f", page {page}" if page > 1 or len(rows) == size else ""
    title = f"{shown}: {season.title}, as it ended on {minutes_text(season.closed_at or 0)} UTC{shown_page}"
    print_table(title, heads, cells, right=("rank", "rating", "matches", "percentile"))
