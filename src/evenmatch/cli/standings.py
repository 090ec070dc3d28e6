"""evenmatch standings: the standings of a ladder."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import (
    DATABASE,
    Db,
    OnLadder,
    counted,
    ladder_of,
    minutes_text,
    opened,
    typed,
)
from evenmatch.cli.shared.options import argument, option
from evenmatch.cli.shared.output import beyond, note, print_json, print_table, printable, working
from evenmatch.errors import UsageError, needing
from evenmatch.standings.rules import AUTO

if TYPE_CHECKING:
    from evenmatch.ladders.standings import View
    from evenmatch.operations.service import Service
    from evenmatch.standings.board import Standing
    from evenmatch.standings.rules import StandingsRules
    from evenmatch.systems.system import Rules

HEADS = ("rank", "player", "rating", "matches", "percentile", "division", "")
BARS = 40  # characters of the longest bar
NEARLY = 1e-6  # tolerance for rounding errors of bin edges, as a share of a bin's width


def command(
    matches: Annotated[
        Path | None, argument("[MATCHES]", "With --html and --system: a file of matches instead of a database.")
    ] = None,
    ladder: OnLadder = None,
    page: Annotated[int | None, option("--page N", "Page number, from 1.", low=1)] = None,
    size: Annotated[int, option("--size N", "Players per page.", low=1, high=10_000)] = 20,
    around: Annotated[str | None, option("--around PLAYER", "A player and those ranked above and below.")] = None,
    search: Annotated[
        str | None, option("--search TEXT", "Players whose name contains TEXT, ignoring case and accents.")
    ] = None,
    friends: Annotated[str | None, option("--friends A,B,C", "Only these players, with their ranks.")] = None,
    distribution: Annotated[bool, option("--distribution", "Number of active players by rating.")] = False,
    as_of: Annotated[str | None, option("--as-of TIME", "last (the time of the last match) or a later time.")] = None,
    html: Annotated[
        Path | None, option("--html FOLDER", "Write pages of standings, players and matches that need no server.")
    ] = None,
    limit: Annotated[
        int, option("--limit N", "With --html: most players, and most matches, with a page.", low=1, high=100_000)
    ] = 1000,
    system: Annotated[str | None, option("--system, -s NAME", "The rating system for MATCHES.")] = None,
    preset: options.Preset = None,
    param: options.Param = None,
    skip_bad: options.SkipBad = False,
    time_format: options.TimeFormat = "seconds",
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Show the current standings, or write them as web pages.

    Players are listed once they have completed their placement matches, if they played within the active days.

    With --html, the ladder's pages become files, which any web server can serve and any browser can open from a disk.
    They show what the ladder shows to players, and work without scripts. A second run replaces them. With MATCHES, the
    matches are rated first, and the standings are as of the last of them.

    Examples:
    evenmatch standings --ladder duel
    evenmatch standings --ladder duel --around ann --size 11
    evenmatch standings --ladder duel --friends "ann,bob" --as-of last
    evenmatch standings --ladder duel --html public
    evenmatch standings season.csv --system elo --html public
    """
    views = {"--page": page, "--around": around, "--search": search, "--friends": friends}
    named = [name for name, value in views.items() if value is not None] + ["--distribution"] * distribution
    _check_together(named, html, matches, system)
    when = None if as_of in (None, "last") else options.moment(as_of)
    rated = None
    if matches is not None and system is not None:
        rated = _rated(matches, ladder, options.rules_of(system, preset, param), system, skip_bad, time_format)
        as_of = as_of or "last"
    with rated or opened(db) as service:
        name = ladder_of(service, None if rated else ladder)
        with working("standings"):
            view = _view(service, name, when, as_of == "last", db)
        if html is not None:
            _write_pages(service, view, html, limit, json)
            return
        if not view.snapshot.population:
            _note_why_empty(view, as_of, db)
        if distribution:
            _print_distribution(view, json)
            return
        if around is not None:
            shown = _around(service, view, around, size // 2)
        elif search is not None:
            shown = _matching_names(service, view, search, size)
        elif friends is not None:
            shown = _friends(service, view, friends)
        else:
            shown = _page(view, page or 1, size)
        rows = service.named(shown)
    if json:
        document = {**_about(view), "page": page or 1, "size": size} if not named or page else _about(view)
        print_json({**document, "standings": [plain(player, standing) for player, standing in rows]})
    else:
        _print(view, rows, page or 1, size, db, paged=not named or page is not None)


def _check_together(named: Sequence[str], html: Path | None, matches: Path | None, system: str | None) -> None:
    """Raise UsageError for options that cannot be combined. named: those that choose what is printed."""
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} cannot be combined; use only one of them")
    if html is None and (matches or system):
        raise UsageError("MATCHES and --system need --html FOLDER; `evenmatch rate` prints the standings of a file")
    if html is not None and named:
        raise UsageError(f"--html writes all standings; leave out {named[0]}")
    if (matches is None) != (system is None):
        raise UsageError("MATCHES and --system go together; leave out both for a ladder in a database")


@contextmanager
def _rated(
    file: Path, ladder: str | None, rules: Rules, system: str, skip_bad: bool, time_format: str
) -> Iterator[Service]:
    """A temporary database with the matches of a file on a ladder that is named after the file, or by it."""
    from evenmatch.operations.service import Service

    matches = options.matches_of(file, ladder, False, skip_bad, time_format)
    options.check_one_ladder(matches)
    name = file.stem if matches.ladders[0] == "default" else matches.ladders[0]
    with tempfile.TemporaryDirectory() as folder, Service.open(str(Path(folder) / "rated.db")) as service:
        service.create_ladder(name, system, rules)
        with working(f"rating with {rules.system.name}", len(matches)) as progress:
            service.import_matches(name, matches, skip_bad=skip_bad, progress=progress)
        yield service


def _write_pages(service: Service, view: View, folder: Path, limit: int, json: bool) -> None:
    with needing("serve", "the pages"):
        from evenmatch.web.page_files import write_pages

    name = view.head.name
    with working(f"writing the pages of {name}") as progress:
        count = write_pages(service, name, folder, view.snapshot.as_of, limit, progress)
    first = folder / "index.html"
    if json:
        print_json({"ladder": name, "folder": str(folder), "files": count, "as_of": view.snapshot.as_of})
    else:
        print(printable(f"{folder}: {counted(count, 'file')}; open {first}"))


def _view(service: Service, ladder: str, when: int | None, last: bool, db: str) -> View:
    """The standings as of a time, the last match, or now; the error for an earlier time says how to get those."""
    try:
        return service.view(ladder, as_of="last" if last else when)
    except UsageError as error:
        raise UsageError(
            f"{error}. For an earlier time: {typed(db, 'export --counted --matches FILE', '--ladder', ladder)}, then "
            "evenmatch rate FILE --system S --as-of TIME, with the ladder's system and parameters"
        ) from None


def _active(view: View) -> list[Standing]:
    """All active players, best first, for a ladder on which no player has completed the placement matches."""
    rules = view.settings.standings
    placement = counted(rules.fewest_matches, "placement match", "placement matches")
    why = "no percentile has steadied yet" if rules.placement == AUTO else f"no player has completed {placement} yet"
    note(f"{why}: all active players are shown")
    return view.snapshot.among(view.snapshot.board.player[view.snapshot.active])


def _page(view: View, page: int, size: int) -> list[Standing]:
    """A page of the listed players, or of all active ones if no player is listed yet."""
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
    """A player with those ranked above and below; if not listed, a note and the players around their rating."""
    player, snapshot = service.player(name), view.snapshot
    if not _shown_players(service, view, {player: name}) or not snapshot.population:
        return []
    (own,) = snapshot.among([player])
    if own.rank is not None:
        return snapshot.around(player, each_side)
    if not len(snapshot) and own.active:
        rows = _active(view)
        index = rows.index(own)
        return rows[max(0, index - each_side) : index + each_side + 1]
    why = why_not(own, view.settings.standings)
    note(f"{name} is not listed ({why}); showing the players closest to their rating of {own.rating:.2f}")
    return snapshot.around(player, each_side)


def _shown_players(service: Service, view: View, names: dict[int, str]) -> list[int]:
    """The given players that standings show; prints a note with the reason for each of the others."""
    board = view.snapshot.board
    rows = dict(zip(names, board.find(list(names)).tolist(), strict=True))
    shown = [player for player, row in rows.items() if row >= 0 and not board.hidden[row]]
    banned = _banned(service, view.head.name) if len(shown) < len(names) else set()
    for player in (hidden for hidden in names if hidden not in shown):
        why = "is banned from" if player in banned else "has no rating on" if rows[player] < 0 else "was erased from"
        note(f"{names[player]} {why} ladder {view.head.name}")
    return shown


def _banned(service: Service, ladder: str) -> set[int]:
    """The players who are banned from a ladder, whether or not they have a rating."""
    from evenmatch.ladders import correction_log

    with service.reading(ladder) as (store, head):
        found = correction_log.bans(store, head, service.clock())
    return {service.player(one.player) for one in found if one.player is not None}


def _matching_names(service: Service, view: View, text: str, limit: int) -> list[Standing]:
    """The players of the ladder whose name contains a text."""
    from evenmatch.players.players import search_ladder

    matching = search_ladder(service.database, view, text, limit)
    if not matching:
        note(f"no player in the standings of ladder {view.head.name} has a name that contains {text!r}")
    return view.snapshot.among(matching)


def _note_why_empty(view: View, as_of: str | None, db: str) -> None:
    days, last = view.settings.standings.active_days, view.head.time
    if last is None:
        note(f"no match has been rated on ladder {view.head.name} yet")
    elif as_of is None:
        note(
            f"no player completed a match in the last {days:g} days; the last match was on {minutes_text(last)} UTC. "
            f"The standings then: {typed(db, 'standings --as-of last', '--ladder', view.head.name)}"
        )
    else:
        note(f"no player completed a match in the {days:g} days before {minutes_text(view.snapshot.as_of)} UTC")


def _friends(service: Service, view: View, listed: str) -> list[Standing]:
    """The players of a comma-separated list. Raises UnknownNameError; prints a note for those not shown."""
    names = [name.strip() for name in next(csv.reader([listed], skipinitialspace=True), []) if name.strip()]
    if not names:
        raise UsageError(f"--friends {listed}: expected names separated by commas")
    ids = {service.player(name): name for name in names}
    return view.snapshot.among(_shown_players(service, view, ids))


def _about(view: View) -> dict[str, object]:
    """Return the ladder, time, counts and rules of standings as JSON data."""
    from evenmatch.times import iso_time

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
    """A standing as JSON data."""
    return {"player": player, **{name: value for name, value in standing._asdict().items() if name != "player"}}


def why_not(standing: Standing, rules: StandingsRules) -> str:
    """Return why a player is not listed; empty for a listed player."""
    if standing.rank is not None:
        return ""
    if not standing.placed:
        if rules.placement != AUTO:
            return f"placement {standing.completed} of {rules.placement}"
        if standing.expected_move is None:
            return f"placement {standing.completed} of {rules.fewest_matches} or more"
        return f"placement: moves by {standing.expected_move:.1f}, bound {rules.placement_bound:g}"
    return "not active"


def _print(view: View, rows: Sequence[tuple[str, Standing]], page: int, size: int, db: str, *, paged: bool) -> None:
    snapshot, rules = view.snapshot, view.settings.standings
    pages = snapshot.pages(size)
    shown_page = f", page {page} of {pages}" if paged and (pages > 1 or page > pages > 0) else ""
    title = (
        f"{view.settings.title or view.head.name}: {len(snapshot):,} listed, {snapshot.population:,} active of "
        f"{len(snapshot.board):,} players, {len(rules.divisions)} divisions, "
        f"as of {minutes_text(snapshot.as_of)} UTC{shown_page}"
    )
    if view.head.due is not None:
        note(f"a correction waits for a rebuild; type: {typed(db, 'rebuild', '--ladder', view.head.name)}")
    cells = [
        [row.rank, player, row.rating, row.matches, row.percentile, row.division, why_not(row, rules)]
        for player, row in rows
    ]
    if not any(row[-1] for row in cells):
        cells = [row[:-1] for row in cells]
    heads = HEADS[: len(cells[0]) if cells else -1]
    if cells:
        print_table(title, heads, cells, right=("rank", "rating", "matches", "percentile"))
    else:
        print(printable(title))


def _print_distribution(view: View, json: bool) -> None:
    distribution = view.snapshot.distribution(20)
    assert distribution is not None  # the command line sees everything
    edges, counts = distribution.edges.tolist(), distribution.counts.tolist()
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
    """The lower and upper edge of each bin as text; a wider first or last bin is open at its end."""
    widths = [high - low for low, high in pairwise(edges)]
    width = min(widths)
    first, last = (end_width > width * (1 + NEARLY) for end_width in (widths[0], widths[-1]))
    inner = edges[first : len(edges) - last]
    digits = next(
        (count for count in range(13) if all(abs(round(edge, count) - edge) <= width * NEARLY for edge in inner)), 13
    )
    labels = [(f"{low:.{digits}f}", f"{high:.{digits}f}") for low, high in pairwise(edges)]
    if first:
        labels[0] = ("", f"< {labels[0][1]}")
    if last:
        labels[-1] = (f"≥ {labels[-1][0]}", "")
    return labels
