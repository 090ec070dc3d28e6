"""All that is known of one player: where they stand on every ladder, what they played, and everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from evenmatch.ledger import people
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Head, Store
from evenmatch.service.boards import Boards, View, take
from evenmatch.service.exporting import matches_of_player
from evenmatch.service.exports import plain_corrections
from evenmatch.service.ladders import Ladder, describe
from evenmatch.service.times import iso_time
from evenmatch.standings.board import Standing

Row = dict[str, object]


@dataclass(frozen=True)
class Appeared:
    """A player on one ladder.

    standing  None: no rating (every match is void or unrated)
    banned    they are not shown in standings
    matches   the latest first, see exporting.matches_of_player
    """

    ladder: Ladder
    standing: Standing | None
    banned: bool
    matches: list[Row]


@dataclass(frozen=True)
class Dossier:
    """name: the present one; names: every name that leads to them."""

    name: str
    names: list[str]
    ladders: list[Appeared]


def dossier(
    database: Database,
    name: str,
    now: int,
    *,
    ladder: str | None = None,
    matches: int | None = 10,
    boards: Boards | None = None,
) -> Dossier:
    """A player as of now, on one ladder or on all that know them; so many matches on each, None for all.

    boards  views that are kept: without, every player of each of the ladders is read
    Raises UnknownNameError for a name or a ladder that is not there.
    """
    kept = _kept(database, name, now, ladder, boards)
    with database.read() as connection:
        return _tell(Store(connection, database.rows), name, now, ladder, matches, kept)


def _kept(database: Database, name: str, now: int, ladder: str | None, boards: Boards | None) -> Mapping[str, View]:
    """The views that are kept of a player's ladders, which may be some seconds old.

    They come before the transaction that tells: a board brings its view up to date in a transaction of its own, and
    who waits for a second connection while holding one may wait for ever.
    """
    if boards is None:
        return {}
    with database.read() as connection:
        store = Store(connection, database.rows)
        known = _ladders(store, people.find(store, name), ladder)
    return {one: boards.view(one, now, fresh=False) for one in known}


def _ladders(store: Store, player: int, ladder: str | None) -> list[str]:
    """The ladders to tell of."""
    return people.ladders_of(store, player) if ladder is None else [store.head(ladder).name]


def _tell(
    store: Store, name: str, now: int, ladder: str | None, matches: int | None, kept: Mapping[str, View]
) -> Dossier:
    player = people.find(store, name)
    return Dossier(
        people.names_of(store, [player])[player],
        people.aliases(store, player),
        [_appeared(store, one, player, now, matches, kept.get(one)) for one in _ladders(store, player, ladder)],
    )


def _appeared(store: Store, ladder: str, player: int, now: int, matches: int | None, kept: View | None) -> Appeared:
    head = store.head(ladder)
    # a standing of before the last match would belie the matches beside it
    view = kept if kept is not None and kept.head == head else take(store, ladder, now, kept)
    return Appeared(
        describe(store, head),
        view.snapshot.standing(player),
        player in store.plan(head, head.corrected).bans,
        matches_of_player(store, head, player, matches),
    )


def everything(database: Database, name: str, now: int, *, boards: Boards | None = None) -> Row:
    """All that a database holds of a player, as JSON knows it: names, standings, matches, past seasons, corrections."""
    kept = _kept(database, name, now, None, boards)
    with database.read() as connection:
        store = Store(connection, database.rows)
        told = _tell(store, name, now, None, None, kept)
        ids = people.identities(store, people.find(store, name))
        return {
            "player": told.name,
            "names": told.names,
            "ladders": [_all_of(store, one, ids, {*told.names}) for one in told.ladders],
        }


def _all_of(store: Store, on: Appeared, ids: Sequence[int], names: set[str]) -> Row:
    head = store.head(on.ladder.name)
    return {
        "ladder": on.ladder.name,
        "title": on.ladder.title,
        "system": on.ladder.system,
        "banned": on.banned,
        "standing": plain_standing(on.standing),
        "matches": [plain_match(row) for row in on.matches],
        "seasons": _seasons(store, head, ids),
        "corrections": [row for row in plain_corrections(store, head) if names & {row["player"], row["into"]}],
    }


def plain_standing(standing: Standing | None) -> Row | None:
    """A standing as JSON knows it; the player's id is nobody's business."""
    return None if standing is None else {k: v for k, v in standing._asdict().items() if k != "player"}


def plain_match(row: Row) -> Row:
    """A row of matches_of_player as JSON knows it."""
    factors, played_at = row.get("factors", {}), row["played_at"]
    assert isinstance(factors, dict)
    assert isinstance(played_at, int)
    known = {name: None if isinstance(value, float) and isnan(value) else value for name, value in factors.items()}
    return {**row, "played_at": iso_time(played_at)} | ({"factors": known} if factors else {})


def _seasons(store: Store, head: Head, ids: Sequence[int]) -> list[Row]:
    """Where a player stood when each season ended; accounts that were two then have one each, under their own names."""
    names = ("season", "player", "rank", "rating", "percentile", "division", "matches", "completed")
    sql = f"SELECT {', '.join(names)} FROM final WHERE ladder = ? AND player IN ({{}}) ORDER BY season, player"
    called = people.names_of(store, ids)
    found = store.rows.among(store.connection, sql, (head.ladder,), ids)
    return [dict(zip(names, row, strict=True)) | {"player": called[row[1]]} for row in found]
