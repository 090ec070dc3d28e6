"""All data about one player: standings, matches, past seasons and corrections, on every ladder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from evenmatch.accounts import account_sql
from evenmatch.accounts.access import OPERATOR, Caller
from evenmatch.ladders.export import matches_of_player, plain_corrections
from evenmatch.ladders.ladders import Ladder, describe
from evenmatch.ladders.seasons import StandingRow
from evenmatch.ladders.standings import take
from evenmatch.ladders.visibility import Visibility
from evenmatch.ledger import event_rows, ladder_rows, player_rows
from evenmatch.ledger.database import Database
from evenmatch.ledger.events import PlayerBanned
from evenmatch.ledger.store import Head, Store
from evenmatch.standings.board import Standing
from evenmatch.standings.rules import StandingsRules
from evenmatch.times import iso_time

Row = dict[str, object]


@dataclass(frozen=True)
class PlayerOnLadder:
    """A player on one ladder.

    standing  None: no rating (every match is void or unrated)
    ban       the ban in force: they are not listed in the standings; None: there is none
    matches   latest first; see export.matches_of_player
    """

    ladder: Ladder
    standing: Standing | None
    ban: PlayerBanned | None
    matches: list[Row]


@dataclass(frozen=True)
class PlayerAcrossLadders:
    """A player on all their ladders. name: the current name; names: the current name and all aliases."""

    name: str
    names: list[str]
    ladders: list[PlayerOnLadder]


def dossier(
    database: Database,
    name: str,
    now: int,
    *,
    ladder: str | None = None,
    matches: int | None = 10,
) -> PlayerAcrossLadders:
    """A player as of now, on one ladder or (None) on all of them, with up to `matches` matches on each (None: all).

    Raises UnknownNameError for an unknown player or ladder.
    """
    with database.read() as store:
        return _read(store, name, now, ladder, matches, OPERATOR)


def _read(
    store: Store, name: str, now: int, ladder: str | None, matches: int | None, caller: Caller
) -> PlayerAcrossLadders:
    player = player_rows.find(store, name)
    ladders = player_rows.ladders_of(store, player) if ladder is None else [ladder]
    return PlayerAcrossLadders(
        player_rows.names_of(store, [player])[player],
        player_rows.aliases(store, player),
        [_on_ladder(store, store.head(known), player, now, matches, caller) for known in ladders],
    )


def _on_ladder(store: Store, head: Head, player: int, now: int, matches: int | None, caller: Caller) -> PlayerOnLadder:
    return PlayerOnLadder(
        describe(store, head),
        take(store, head.name, now).seen_by(caller).snapshot.standing(player),
        event_rows.read_plan(store, head, head.corrected).banned(now).get(player),
        matches_of_player(store, head, player, matches),
    )


def everything(database: Database, name: str, now: int, *, caller: Caller = OPERATOR) -> Row:
    """The data of a player as JSON values: names, accounts, standings, matches, past seasons, corrections.

    caller  the data contain what this caller may see of each ladder
    """
    with database.read() as store:
        player = _read(store, name, now, None, None, caller)
        ids = player_rows.identities(store, player_rows.find(store, name))
        accounts = account_sql.read_accounts_of(store, player.names)
        return {
            "player": player.name,
            "names": player.names,
            "accounts": [{"issuer": account.issuer, "subject": account.subject} for account in accounts],
            "ladders": [_all_of(store, appeared, ids, {*player.names}, caller) for appeared in player.ladders],
        }


def _all_of(store: Store, on: PlayerOnLadder, ids: Sequence[int], names: set[str], caller: Caller) -> Row:
    head = store.head(on.ladder.name)
    seen, rules = Visibility.of(on.ladder.settings, caller, head.name), on.ladder.settings.standings
    placed = on.standing is not None and on.standing.placed
    return {
        "ladder": on.ladder.name,
        "title": on.ladder.title,
        "system": on.ladder.system,
        **plain_ban(on.ban),
        "standing": plain_standing(on.standing),
        "matches": [plain_match(seen.journal_row(row, placed=placed)) for row in on.matches],
        "seasons": _seasons(store, head, ids, seen, rules),
        "corrections": [row for row in plain_corrections(store, head) if names & {row["player"], row["into"]}],
    }


def plain_ban(ban: PlayerBanned | None) -> Row:
    """Whether a player is banned, and until when (None: for good, or not banned), as JSON values."""
    until = None if ban is None or ban.until is None else iso_time(ban.until)
    return {"banned": ban is not None, "banned_until": until}


def plain_standing(standing: Standing | None) -> Row | None:
    """A standing as JSON values, without the player's internal id."""
    return None if standing is None else {k: v for k, v in standing._asdict().items() if k != "player"}


def plain_match(row: Row) -> Row:
    """A row of matches_of_player as JSON values."""
    factors, played_at = row.get("factors", {}), row["played_at"]
    assert isinstance(factors, dict)
    assert isinstance(played_at, int)
    known = {name: None if isinstance(value, float) and isnan(value) else value for name, value in factors.items()}
    return {**row, "played_at": iso_time(played_at)} | ({"factors": known} if factors else {})


def _seasons(store: Store, head: Head, ids: Sequence[int], seen: Visibility, rules: StandingsRules) -> list[Row]:
    """A player's final standings by season; identities merged since have their own, under their own names."""
    name_of = player_rows.names_of(store, ids)
    rows = ladder_rows.read_final_standings_of(store, head.ladder, ids)
    finals = [(season, StandingRow(name_of[row.player], *row[1:])) for season, row in rows]
    return [{"season": season, **seen.final(final, rules)._asdict()} for season, final in finals]
