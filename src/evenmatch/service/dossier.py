"""All that is known of one player: where they stand on every ladder, what they played, and everything else."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

from evenmatch.ledger import people
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Head, Store
from evenmatch.service.boards import View, take
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


def dossier(database: Database, name: str, now: int, *, ladder: str | None = None, matches: int | None = 10) -> Dossier:
    """A player as of now, on one ladder or on all that know them; so many matches on each, None for all.

    Raises UnknownNameError for a name or a ladder that is not there.
    """
    with database.read() as connection:
        store = Store(connection, database.rows)
        player = people.find(store, name)
        known = people.ladders_of(store, player) if ladder is None else [store.head(ladder).name]
        return Dossier(
            people.names_of(store, [player])[player],
            people.aliases(store, player),
            [_appeared(store, one, player, now, matches) for one in known],
        )


def _appeared(store: Store, ladder: str, player: int, now: int, matches: int | None) -> Appeared:
    view: View = take(store, ladder, now)
    head = view.head
    return Appeared(
        describe(store, head),
        view.snapshot.standing(player),
        player in store.plan(head, head.corrected).bans,
        matches_of_player(store, head, player, matches),
    )


def everything(database: Database, name: str, now: int) -> Row:
    """All that a database holds of a player, as JSON knows it: names, standings, matches, past seasons, corrections."""
    told = dossier(database, name, now, matches=None)
    with database.read() as connection:
        store = Store(connection, database.rows)
        player = people.find(store, name)
        return {
            "player": told.name,
            "names": told.names,
            "ladders": [_all_of(store, one, player, {*told.names}) for one in told.ladders],
        }


def _all_of(store: Store, on: Appeared, player: int, names: set[str]) -> Row:
    head = store.head(on.ladder.name)
    return {
        "ladder": on.ladder.name,
        "title": on.ladder.title,
        "system": on.ladder.system,
        "banned": on.banned,
        "standing": plain_standing(on.standing),
        "matches": [plain_match(row) for row in on.matches],
        "seasons": _seasons(store, head, player),
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


def _seasons(store: Store, head: Head, player: int) -> list[Row]:
    """Where a player stood when each season ended."""
    names = ("season", "rank", "rating", "percentile", "division", "matches", "completed")
    sql = f"SELECT {', '.join(names)} FROM final WHERE ladder = ? AND player = ? ORDER BY season"
    return [dict(zip(names, row, strict=True)) for row in store.all(sql, head.ladder, player)]
