"""evenmatch season: open seasons, and look at those that ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.acting import acting
from evenmatch.cli.correcting import ONLY_SEEN, as_document, print_preview
from evenmatch.cli.database import DATABASE, Db, Id, OnLadder, Preview, counted, ladder_of, minutes_text, opened, typed
from evenmatch.cli.output import beyond, note, print_json, print_table, printable, working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.service.seasons import Season

MANY = 1_000_000_000  # more players than any season has

app = typer.Typer(help="Open seasons, and look at those that ended.", no_args_is_help=True)


@app.command(name="open")
def open_(
    ladder: OnLadder = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Of the new season; otherwise Season and its number.")
    ] = None,
    reset: Annotated[
        str | None, typer.Option("--reset", metavar="R", help="full, soft or none; otherwise as the ladder says.")
    ] = None,
    factor: Annotated[
        float | None,
        typer.Option("--factor", min=0, max=1, metavar="F", help="What a soft reset leaves of a lead, 0 to 1."),
    ] = None,
    preview: Preview = False,
    event_id: Id = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """End the present season, keep its standings for ever, and begin the next.

    Reset full: everybody begins anew. Soft: everybody moves towards the mean, and keeps FACTOR of their distance from
    it. None: ratings go on. After a full or a soft reset, placement matches are to be completed anew.

    [bold]Examples[/bold]

    evenmatch season open --ladder duel

    evenmatch season open --ladder duel --title "Winter 2026" --reset soft --factor 0.7

    evenmatch season open --ladder duel --preview
    """
    if factor is not None and reset not in (None, "soft"):
        raise UsageError(f"--factor is what a soft reset leaves; with --reset {reset} it says nothing")
    with opened(db) as service:
        name = ladder_of(service, ladder)
        if preview:
            seen = service.preview_season(name, title=title, reset=reset, factor=factor)
            if json:
                print_json({"ladder": name, "preview": True, **as_document(seen)})
            else:
                print_preview(seen, preview=True)
                note(ONLY_SEEN)
            return
        before = service.ladder(name).season
        with working("opening a season"):
            told = {"title": title, "reset": reset, "factor": factor, "id": event_id}
            noting = acting(
                service, "season.opened", name, body={one: value for one, value in told.items() if value is not None}
            )
            made = noting.open_season(name, title=title, reset=reset, factor=factor, event_id=event_id)
    if json:
        print_json({"ladder": name, "there_already": made.number <= before, **plain_season(made)})
        return
    which = "" if made.title == f"Season {made.number}" else f", its season {made.number}"
    if made.number <= before:
        print(printable(f"ladder {name}: {made.title} was opened already{which}; nothing is changed"))
        return
    print(printable(f"ladder {name}: {made.title} is open{which}"))
    note(f"the standings of the one before: {typed(db, 'season show', made.number - 1, '--ladder', name)}")


@app.command(name="list")
def list_(ladder: OnLadder = None, db: Db = DATABASE, json: options.Json = False) -> None:
    """List the seasons of a ladder.

    [bold]Example[/bold]

    evenmatch season list --ladder duel
    """
    with opened(db) as service:
        name = ladder_of(service, ladder)
        seasons = service.seasons(name)
    if json:
        print_json({"ladder": name, "seasons": [plain_season(one) for one in seasons]})
        return
    rows = [
        [
            one.number,
            one.title,
            minutes_text(one.opened_at),
            "present" if one.closed_at is None else minutes_text(one.closed_at),
        ]
        for one in seasons
    ]
    print_table(
        f"{name}: {counted(len(rows), 'season')}", ("season", "title", "opened (UTC)", "ended"), rows, right=("season",)
    )


@app.command()
def show(
    number: Annotated[int, typer.Argument(metavar="N", min=1, help="The number of a season that ended.")],
    ladder: OnLadder = None,
    page: Annotated[int, typer.Option("--page", min=1, metavar="N", help="Which page, counted from 1.")] = 1,
    size: Annotated[int, typer.Option("--size", min=1, metavar="N", help="Players on a page.")] = 20,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Show the standings with which a season ended.

    [bold]Example[/bold]

    evenmatch season show 1 --ladder duel --page 2
    """
    with opened(db) as service:
        name = ladder_of(service, ladder)
        season = next((one for one in service.seasons(name) if one.number == number), None)
        if season is not None and season.closed_at is None:
            now = typed(db, "standings", "--ladder", name)
            raise UsageError(f"season {number} has not ended; its standings now: {now}")
        rows = service.finals(name, number, page, size)
        if not rows:
            note(beyond(page, len(service.finals(name, number, 1, MANY)), size))
        shown = service.ladder(name).title
    assert season is not None
    if json:
        document = {"ladder": name, **plain_season(season), "page": page, "size": size}
        print_json({**document, "standings": [one._asdict() for one in rows]})
        return
    heads = ("rank", "player", "rating", "matches", "percentile", "division")
    cells = [[one.rank, one.player, one.rating, one.matches, one.percentile, one.division] for one in rows]
    told = f", page {page}" if page > 1 or len(rows) == size else ""
    title = f"{shown}: {season.title}, as it ended on {minutes_text(season.closed_at or 0)} UTC{told}"
    print_table(title, heads, cells, right=("rank", "rating", "matches", "percentile"))


def plain_season(season: Season) -> dict[str, object]:
    """A season as data."""
    from evenmatch.service.times import iso_time

    ended = None if season.closed_at is None else iso_time(season.closed_at)
    return {**season._asdict(), "opened_at": iso_time(season.opened_at), "closed_at": ended}
