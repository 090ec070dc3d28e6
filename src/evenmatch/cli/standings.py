"""evenmatch standings: who stands where on a ladder."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.database import DATABASE, Db, OnLadder, counted, ladder_of, minutes_text, opened, typed
from evenmatch.cli.output import beyond, note, print_json, print_table, printable, working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.service.boards import View
    from evenmatch.service.service import Service
    from evenmatch.standings.board import Standing

HEADS = ("rank", "player", "rating", "matches", "percentile", "division", "")
BARS = 40  # letters of the longest bar
NEARLY = 1e-6  # of a bin's width: what the last digits of its edges are off


def command(
    ladder: OnLadder = None,
    page: Annotated[int | None, typer.Option("--page", min=1, metavar="N", help="Which page, counted from 1.")] = None,
    size: Annotated[int, typer.Option("--size", min=1, max=10_000, metavar="N", help="Players on a page.")] = 20,
    around: Annotated[
        str | None, typer.Option("--around", metavar="PLAYER", help="A player between those above and below.")
    ] = None,
    search: Annotated[
        str | None, typer.Option("--search", metavar="TEXT", help="Players whose name holds this, in any case.")
    ] = None,
    friends: Annotated[
        str | None, typer.Option("--friends", metavar="A,B,C", help="These players alone, with the ladder's ranks.")
    ] = None,
    distribution: Annotated[
        bool, typer.Option("--distribution", help="How many active players have which rating.")
    ] = False,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help="last: as of the ladder's last match. Or a time from then on: who is active then if nobody plays.",
        ),
    ] = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Show who stands where, as of now.

    Listed are the players who completed their placement matches, and a match within the ladder's active days.

    [bold]Examples[/bold]

    evenmatch standings --ladder duel

    evenmatch standings --ladder duel --around ann --size 11

    evenmatch standings --ladder duel --friends "ann,bob" --as-of last
    """
    asked = {"--page": page, "--around": around, "--search": search, "--friends": friends}
    named = [name for name, value in asked.items() if value is not None] + ["--distribution"] * distribution
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} are two questions; accepted is one of them")
    when = None if as_of in (None, "last") else options.moment(as_of)
    with opened(db) as service:
        name = ladder_of(service, ladder)
        with working("standings"):
            view = _view(service, name, when, as_of == "last", db)
        if not view.snapshot.population:
            _tell_why_empty(view, as_of, db)
        if distribution:
            _print_distribution(view, json)
            return
        if around is not None:
            shown = _around(service, view, around, size // 2)
        elif search is not None:
            shown = _found(service, view, search, size)
        elif friends is not None:
            shown = _friends(service, view, friends)
        else:
            shown = _page(view, page or 1, size)
        rows = service.named(shown)
    if json:
        document = {**_about(view), "page": page or 1, "size": size} if not named or page else _about(view)
        print_json({**document, "standings": [plain(player, one) for player, one in rows]})
    else:
        _print(view, rows, page or 1, size, db, paged=not named or page is not None)


def _view(service: Service, ladder: str, when: int | None, last: bool, db: str) -> View:
    """The standings as of a time, of the last match, or of now; who asks for the past is told where to find it."""
    try:
        return service.view(ladder, as_of="last" if last else when)
    except UsageError as error:
        raise UsageError(
            f"{error}. For the past: {typed(db, 'export --counted --matches FILE', '--ladder', ladder)}, then "
            "evenmatch rate FILE --system S --as-of TIME, with the ladder's system and parameters"
        ) from None


def _active(view: View) -> list[Standing]:
    """All who are active, best first; what is shown while nobody has completed the placement matches."""
    note(
        f"nobody completed {counted(view.settings.standings.placement, 'placement match', 'placement matches')} yet: "
        "all who are active are shown"
    )
    return view.snapshot.among(view.snapshot.board.player[view.snapshot.active])


def _page(view: View, page: int, size: int) -> list[Standing]:
    """A page of the listed; of all who are active, where nobody has completed the placement matches yet."""
    snapshot = view.snapshot
    if not snapshot.population:
        return []
    if len(snapshot):
        rows, count = snapshot.page(page, size), len(snapshot)
    else:
        rows, count = _active(view)[(page - 1) * size : page * size], snapshot.population
    if not rows:
        note(beyond(page, count, size))
    return rows


def _around(service: Service, view: View, name: str, each_side: int) -> list[Standing]:
    """A player between those above and below; who is not listed is told so, and shown among those who are."""
    player, snapshot = service.player(name), view.snapshot
    if not _who_are_shown(service, view, {player: name}) or not snapshot.population:
        return []
    (own,) = snapshot.among([player])
    if own.rank is not None:
        return snapshot.around(player, each_side)
    if not len(snapshot) and own.active:
        rows = _active(view)
        at = rows.index(own)
        return rows[max(0, at - each_side) : at + each_side + 1]
    why = why_not(own, view.settings.standings.placement)
    note(f"{name} is not listed ({why}); shown are those around the place of their rating, {own.rating:.2f}")
    return snapshot.around(player, each_side)


def _who_are_shown(service: Service, view: View, names: dict[int, str]) -> list[int]:
    """Those of these players whom standings show; of each of the others a note why not."""
    board = view.snapshot.board
    rows = dict(zip(names, board.find(list(names)).tolist(), strict=True))
    shown = [player for player, row in rows.items() if row >= 0 and not board.hidden[row]]
    banned = _banned(service, view.head.name) if len(shown) < len(names) else set()
    for player in (one for one in names if one not in shown):
        why = "is banned from" if player in banned else "has no rating on" if rows[player] < 0 else "was erased from"
        note(f"{names[player]} {why} ladder {view.head.name}")
    return shown


def _banned(service: Service, ladder: str) -> set[int]:
    """The players who are banned from a ladder, whether or not they have a rating."""
    from evenmatch.service.exports import corrections_of

    names: dict[str, bool] = {}
    for row in corrections_of(service.database, ladder):
        if row["kind"] in ("player-banned", "player-reinstated"):
            names[str(row["player"])] = row["kind"] == "player-banned"
    return {service.player(name) for name, banned in names.items() if banned}


def _found(service: Service, view: View, text: str, limit: int) -> list[Standing]:
    """The players of the ladder whose name holds a text."""
    from evenmatch.service.finding import search_ladder

    found = search_ladder(service.database, view, text, limit)
    if not found:
        note(f"nobody in the standings of ladder {view.head.name} has a name with {text!r} in it")
    return view.snapshot.among(found)


def _tell_why_empty(view: View, as_of: str | None, db: str) -> None:
    days, last = view.settings.standings.active_days, view.head.time
    if last is None:
        note(f"no match was rated on ladder {view.head.name} yet")
    elif as_of is None:
        note(
            f"nobody completed a match in the last {days:g} days; the last match was on {minutes_text(last)} UTC. "
            f"Who stood where then: {typed(db, 'standings --as-of last', '--ladder', view.head.name)}"
        )
    else:
        note(f"nobody completed a match in the {days:g} days before {minutes_text(view.snapshot.as_of)} UTC")


def _friends(service: Service, view: View, told: str) -> list[Standing]:
    """The players of a list by commas. Raises UnknownNameError; notes those whom standings do not show."""
    names = [name.strip() for name in next(csv.reader([told], skipinitialspace=True), []) if name.strip()]
    if not names:
        raise UsageError(f"--friends {told}: accepted are names by commas")
    ids = {service.player(name): name for name in names}
    return view.snapshot.among(_who_are_shown(service, view, ids))


def _about(view: View) -> dict[str, object]:
    """What a document of standings begins with."""
    from evenmatch.service.times import iso_time

    rules = view.settings.standings
    return {
        "ladder": view.head.name,
        "title": view.settings.title or view.head.name,
        "as_of": iso_time(view.snapshot.as_of),
        "listed": len(view.snapshot),
        "active": view.snapshot.population,
        "players": len(view.snapshot.board),
        "placement": rules.placement,
        "active_days": rules.active_days,
        "rebuild_due": view.head.due is not None,
        "divisions": [
            {"name": cut.division.name, "lowest": cut.division.lowest, "rating": cut.rating}
            for cut in view.snapshot.cuts()
        ],
    }


def plain(player: str, standing: Standing) -> dict[str, object]:
    """A standing as data."""
    return {"player": player, **{name: value for name, value in standing._asdict().items() if name != "player"}}


def why_not(standing: Standing, view_placement: int) -> str:
    """Why a player is not listed; nothing for one who is."""
    if standing.rank is not None:
        return ""
    if not standing.placed:
        return f"placement {standing.completed} of {view_placement}"
    return "not active"


def _print(view: View, rows: Sequence[tuple[str, Standing]], page: int, size: int, db: str, *, paged: bool) -> None:
    snapshot, rules = view.snapshot, view.settings.standings
    pages = snapshot.pages(size)
    told = f", page {page} of {pages}" if paged and (pages > 1 or page > pages > 0) else ""
    title = (
        f"{view.settings.title or view.head.name}: {len(snapshot):,} listed, {snapshot.population:,} active of "
        f"{len(snapshot.board):,} players, {len(rules.divisions)} divisions, "
        f"as of {minutes_text(snapshot.as_of)} UTC{told}"
    )
    if view.head.due is not None:
        note(f"a correction waits for a rebuild; type: {typed(db, 'rebuild', '--ladder', view.head.name)}")
    cells = [
        [one.rank, player, one.rating, one.matches, one.percentile, one.division, why_not(one, rules.placement)]
        for player, one in rows
    ]
    if not any(row[-1] for row in cells):
        cells = [row[:-1] for row in cells]
    heads = HEADS[: len(cells[0]) if cells else -1]
    if cells:
        print_table(title, heads, cells, right=("rank", "rating", "matches", "percentile"))
    else:
        print(printable(title))


def _print_distribution(view: View, json: bool) -> None:
    found = view.snapshot.distribution(20)
    edges, counts = found.edges.tolist(), found.counts.tolist()
    if json:
        print_json({**_about(view), "edges": edges, "counts": counts})
        return
    most = max(counts)
    rows = [
        [low, high, f"{count:,}", "█" * round(BARS * count / most) if most else ""]
        for (low, high), count in zip(_edges(edges), counts, strict=True)
    ]
    title = f"{view.settings.title or view.head.name}: ratings of {view.snapshot.population:,} active players"
    print_table(title, ("from", "to", "players", ""), rows[::-1], right=("from", "to", "players"))
    cuts = [[cut.division.name, cut.division.lowest, cut.rating] for cut in reversed(view.snapshot.cuts())]
    print_table(
        "Divisions", ("division", "from percentile", "from rating"), cuts, right=("from percentile", "from rating")
    )


def _edges(edges: list[float]) -> list[tuple[str, str]]:
    """From where to where each bin goes; the first or last one has no end where it reaches farther."""
    widths = [high - low for low, high in pairwise(edges)]
    width = min(widths)
    first, last = (end > width * (1 + NEARLY) for end in (widths[0], widths[-1]))
    inner = edges[first : len(edges) - last]
    digits = next((one for one in range(13) if all(abs(round(at, one) - at) <= width * NEARLY for at in inner)), 13)
    told = [(f"{low:.{digits}f}", f"{high:.{digits}f}") for low, high in pairwise(edges)]
    if first:
        told[0] = ("", f"< {told[0][1]}")
    if last:
        told[-1] = (f"≥ {told[-1][0]}", "")
    return told
