"""Rows of the tables `player`, `name` and `name_check`: one player id for all names that a player ever had.

A change of names also advances the row `names` of table `counter`. `name_check` says how each name looks, as
judged when it was stored:

skeleton  equal for names that look alike, see ledger.name_skeletons
oddities  why the name is suspicious, separated by commas; NULL: it is not
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from evenmatch.errors import ConflictError, DamageError, UnknownNameError, similar_names
from evenmatch.ledger import schema
from evenmatch.ledger.codec import ID, name_digest
from evenmatch.ledger.events import Kind
from evenmatch.ledger.name_skeletons import LOOK_ALIKE, judged
from evenmatch.ledger.store import NAMES, Head, Store
from evenmatch.ledger.text import check_texts, fold

_ON_LADDER = "JOIN name n ON n.name = c.name JOIN state s ON s.ladder = ? AND s.generation = ? AND s.player = n.player"


Oddity = Literal["look-alike", "invisible", "mixed-scripts"]


class OddName(NamedTuple):
    """A name on a ladder that may be mistaken for another.

    player    the player's current name
    oddities  look-alike: it looks like the names in `like`; invisible: it has control, zero-width or other unseen
              characters; mixed-scripts: it mixes letters of scripts that are not written together
    like      names of other players on the ladder that look the same
    """

    name: str
    player: str
    oddities: tuple[Oddity, ...]
    like: tuple[str, ...]


def insert_name_checks(store: Store, names: Sequence[str]) -> None:
    """Judge new names and insert a row for each, except where another writer has just inserted one."""
    looks = {name: judged(name) for name in names}
    sql = "SELECT skeleton, name FROM name_check WHERE skeleton IN ({})"
    seen = {row[0]: row[1] for row in store.among(sql, (), sorted({look.skeleton for look in looks.values()}))}
    rows = []
    for name, (skeleton, own) in looks.items():
        oddities = list(own)
        if seen.setdefault(skeleton, name) != name:
            oddities.insert(0, LOOK_ALIKE)
        rows.append((name, skeleton, ",".join(oddities) or None))
    store.upsert(schema.name_check, ("name", "skeleton", "oddities"), rows, same=True)


def delete_name_checks(store: Store, player: int) -> None:
    """Delete the rows of all names of a player."""
    store.run("DELETE FROM name_check WHERE name IN (SELECT name FROM name WHERE player = ?)", player)


def read_names_alike(store: Store, head: Head, skeletons: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
    """Return the names on a ladder with these skeletons as (name, player id), by skeleton."""
    sql = f"SELECT c.skeleton, c.name, n.player FROM name_check c {_ON_LADDER} WHERE c.skeleton IN ({{}})"
    by_skeleton: dict[str, list[tuple[str, int]]] = {}
    for skeleton, name, player in sorted(store.among(sql, (head.ladder, head.generation), skeletons)):
        by_skeleton.setdefault(skeleton, []).append((name, player))
    return by_skeleton


def read_odd_names(store: Store, head: Head, after: str, limit: int) -> tuple[list[OddName], str | None]:
    """Up to `limit` odd names on a ladder after a name, and the name to continue after; None: there are no more.

    Names are compared only with names on the same ladder, so a page may have fewer than `limit`.
    """
    sql = (
        f"SELECT c.name, n.player, p.name, c.skeleton, c.oddities FROM name_check c {_ON_LADDER} "
        "JOIN player p ON p.player = n.player "
        "WHERE c.oddities IS NOT NULL AND c.name > ? ORDER BY c.name LIMIT ?"
    )
    rows = store.all(sql, head.ladder, head.generation, after, limit + 1)
    alike = read_names_alike(store, head, sorted({row[3] for row in rows}))
    odd = []
    for name, player, present, skeleton, oddities in rows[:limit]:
        like = tuple(other for other, owner in alike.get(skeleton, []) if owner != player)
        left = tuple(oddity for oddity in oddities.split(",") if oddity != LOOK_ALIKE or like)
        if left:
            odd.append(OddName(name, present, left, like))
    return odd, rows[limit - 1][0] if len(rows) > limit else None


PSEUDONYM = re.compile("erased-[0-9a-f]{12}")  # the name of an erased player, also in reasons
LAST = "\U0010ffff"  # sorts after every other character
BEGINNING, SIMILAR = 3, 3  # shortest common prefix of similar names, and number of suggestions
NEAR = 200  # names compared with an unknown one, for each length of the prefix
ON_LADDER = "state s JOIN ladder l ON l.ladder = s.ladder AND l.generation = s.generation"


class Identity(NamedTuple):
    """A player as stored. merged_into: the player it was merged into;  erased_at: microseconds; None: neither."""

    name: str
    folded: str
    merged_into: int | None
    erased_at: int | None


def ids_of(store: Store, names: Sequence[str]) -> dict[str, int]:
    """The ids of these names, omitting unknown names."""
    ids: dict[str, int] = dict(store.among("SELECT name, player FROM name WHERE name IN ({})", (), names))
    return ids


def ids_on(store: Store, head: Head, names: Sequence[str]) -> dict[str, int]:
    """The ids of these names, omitting players without a rating on a ladder. A rating of a merged player counts."""
    known = ids_of(store, names)
    ids = sorted(set(known.values()))
    on = (head.ladder, head.generation)
    rated = {
        row[0]
        for row in store.among(
            "SELECT player FROM state WHERE ladder = ? AND generation = ? AND player IN ({})", on, ids
        )
    }
    merged = (
        "SELECT p.merged_into FROM player p WHERE EXISTS "
        "(SELECT 1 FROM state s WHERE s.ladder = ? AND s.generation = ? AND s.player = p.player) "
        "AND p.merged_into IN ({})"
    )
    rest = [player for player in ids if player not in rated]
    rated |= {row[0] for row in store.among(merged, on, rest)}
    return {name: player for name, player in known.items() if player in rated}


def hold_names(store: Store) -> None:
    """Block recording, renaming and merging by others; must be called before any ladder is locked."""
    store.hold(NAMES)


def admit(store: Store, names: Iterable[str], *, present: bool = False) -> tuple[dict[str, int], dict[int, str]]:
    """Get or create the player of each name: (id by name, displayed name by id).

    present  True: the displayed names are the current names; False: the given ones, which is faster
    Raises InputError for an invalid name.
    """
    wanted = sorted(set(names))
    if not wanted:
        return {}, {}
    check_texts("player name", wanted)
    by_name, by_id = find_known(store, wanted) if present else _ids(store, wanted)
    new_by_name, new_by_id = create(store, [name for name in wanted if name not in by_name], present=present)
    return by_name | new_by_name, by_id | new_by_id


def create(store: Store, names: Iterable[str], *, present: bool = False) -> tuple[dict[str, int], dict[int, str]]:
    """Create the players of valid names that had none when this transaction looked; return the same as `admit`.

    Two writers may create the same players at once: names are inserted in sorted order, so there is no deadlock, and
    the second writer finds the players of the first.
    """
    new = sorted(set(names))
    if not new:
        return {}, {}
    created = store.create_players(new)
    insert_name_checks(store, new)
    rest = [name for name in new if name not in created]
    by_name, by_id = find_known(store, rest) if present else _ids(store, rest)
    return by_name | created, by_id | {player: name for name, player in created.items()}


def find_known(store: Store, names: Sequence[str]) -> tuple[dict[str, int], dict[int, str]]:
    """The players of these names, omitting unknown names, and the displayed names of these players by id."""
    sql = "SELECT n.name, p.player, p.name FROM name n JOIN player p ON p.player = n.player WHERE n.name IN ({})"
    rows = store.among(sql, (), names)
    return {row[0]: row[1] for row in rows}, {row[1]: row[2] for row in rows}


def _ids(store: Store, names: Sequence[str]) -> tuple[dict[str, int], dict[int, str]]:
    ids = ids_of(store, names)
    return ids, {player: name for name, player in ids.items()}


def find(store: Store, name: str) -> int:
    """The player id of a name. Raises UnknownNameError if no player has it."""
    ids = ids_of(store, [name])
    if name not in ids:
        raise UnknownNameError("player", name, similar(store, name))
    return ids[name]


def similar(store: Store, name: str, ladder: int | None = None) -> list[str]:
    """Known names similar to an unknown one, most similar first; ladder: only players of that ladder."""
    for length in (len(name) - 1, len(name) // 2 + 1, BEGINNING):
        beginning = name[: max(0, length)]
        if suggestions := similar_names(name, _beginning_with(store, beginning, ladder) if beginning else [], SIMILAR):
            return suggestions
    return []


def _beginning_with(store: Store, text: str, ladder: int | None) -> list[str]:
    """Names of the ladder among the first NEAR that begin with this text, which limits the cost of a miss."""
    begins = fold(text)
    near = (
        "SELECT player, name FROM player WHERE merged_into IS NULL AND erased_at IS NULL "
        f"AND folded >= ? AND folded < ? ORDER BY folded LIMIT {NEAR}"
    )
    sql, values = f"SELECT p.name FROM ({near}) p", (begins, begins + LAST)
    if ladder is None:
        return [row[0] for row in store.all(sql, *values)]
    rated = f"EXISTS (SELECT 1 FROM {ON_LADDER} WHERE l.ladder = ? AND s.player = p.player)"
    return [row[0] for row in store.all(f"{sql} WHERE {rated}", *values, ladder)]


def search(
    store: Store, text: str, limit: int, ladder: int | None = None, *, few: bool = False, inside: bool = True
) -> list[tuple[str, int]]:
    """(name, id) of players whose current name contains this text, ignoring case and diacritics.

    Names that begin with it come first.
    ladder  only players with a rating on the ladder with this id;  few: it has few players, so scan all of them
    inside  False: only names that begin with the text, which an index finds quickly
    If there are more than `limit`, the names that begin with the text come first in alphabetical order; of the others,
    any may be returned. Shorter names come first.
    """
    begins = fold(text)
    bounds = (begins, begins + LAST)
    prefixed = _search(store, "p.folded >= ? AND p.folded < ?", bounds, limit, ladder, few, "ORDER BY p.folded")
    if inside and len(prefixed) < limit:
        like = begins.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        contains = "p.folded LIKE ? ESCAPE '\\' AND NOT (p.folded >= ? AND p.folded < ?)"
        more = _search(store, contains, (f"%{like}%", *bounds), limit - len(prefixed), ladder, few)
        return sorted(prefixed, key=_short_first) + sorted(more, key=_short_first)
    return sorted(prefixed, key=_short_first)


def _search(
    store: Store, where: str, values: tuple[str, ...], limit: int, ladder: int | None, few: bool, order: str = ""
) -> list[tuple[str, int]]:
    """At most `limit` players, without merged and erased ones; if `few`, scan the ladder's players instead of names."""
    visible = "p.merged_into IS NULL AND p.erased_at IS NULL"
    if ladder is None:
        sql = f"SELECT p.name, p.player FROM player p WHERE {visible} AND {where}"
    elif few:
        named = where.replace("p.folded", "p.folded || ''")  # prevents the use of the index on names
        rows = f"{ON_LADDER} JOIN player p ON p.player = s.player"
        sql = f"SELECT p.name, p.player FROM {rows} WHERE l.ladder = ? AND {named} AND {visible}"
    else:
        rated = f"EXISTS (SELECT 1 FROM {ON_LADDER} WHERE l.ladder = ? AND s.player = p.player)"
        sql = f"SELECT p.name, p.player FROM player p WHERE {visible} AND {rated} AND {where}"
    first = () if ladder is None else (ladder,)
    return [(row[0], row[1]) for row in store.all(f"{sql} {order} LIMIT ?", *first, *values, limit)]


def _short_first(player: tuple[str, int]) -> tuple[int, str]:
    return len(player[0]), player[0]


def names_of(store: Store, ids: Sequence[int]) -> dict[int, str]:
    """The current name of each of these players; "#" and the id for a player who is not in the table."""
    present: dict[int, str] = dict(store.among("SELECT player, name FROM player WHERE player IN ({})", (), ids))
    return {player: present.get(player, f"#{player}") for player in ids}


def names_to_write(store: Store, ids: Sequence[int]) -> dict[int, str]:
    """The current name of each of these players. Raises DamageError if one is not in the table."""
    known = read_identities(store, ids)
    for player in ids:
        if player not in known:
            raise DamageError(
                f"player #{player} is not in the table of players; `evenmatch verify` shows what is damaged; restore a "
                "backup"
            )
    return {player: identity.name for player, identity in known.items()}


def aliases(store: Store, player: int) -> list[str]:
    """All names of a player, including the current one."""
    return [row[0] for row in store.all("SELECT name FROM name WHERE player = ? ORDER BY name", player)]


def read_aliases(store: Store, players: Sequence[int]) -> dict[int, dict[str, tuple[int, bool]]]:
    """All names of each of these players, with the player again, and whether the checksum of the name is right."""
    names: dict[int, dict[str, tuple[int, bool]]] = {}
    sql = "SELECT player, name, checksum FROM name WHERE player IN ({})"
    for player, name, checksum in store.among(sql, (), players):
        names.setdefault(player, {})[name] = player, checksum == name_digest(name) + player
    return names


def read_identities(store: Store, players: Sequence[int]) -> dict[int, Identity]:
    """The stored identities of these players by id, omitting players without one."""
    sql = "SELECT player, name, folded, merged_into, erased_at FROM player WHERE player IN ({})"
    return {row[0]: Identity(*row[1:]) for row in store.among(sql, (), players)}


def _note_change(store: Store) -> None:
    """Invalidate cached names in all processes."""
    store.run(
        "INSERT INTO counter (name, value) VALUES ('names', 1) "
        "ON CONFLICT (name) DO UPDATE SET value = counter.value + 1"
    )


def rename(store: Store, player: int, name: str) -> None:
    """Change the current name of a player; former names still work in reports. Requires the exclusive lock on names.

    Raises ConflictError if another player has the name.
    """
    taken = ids_of(store, [name]).get(name)
    if taken is not None and taken != player:
        raise ConflictError(f"the name {name!r} belongs to another player; choose a free name or merge the players")
    if taken is None:
        _insert_name(store, name, player)
        insert_name_checks(store, [name])
    store.run("UPDATE player SET name = ?, folded = ? WHERE player = ?", name, fold(name), player)
    _note_change(store)


def _insert_name(store: Store, name: str, player: int) -> None:
    store.insert(schema.name, ("name", "player", "checksum"), [(name, player, name_digest(name) + player)])


def merge(store: Store, player: int, into: int) -> None:
    """Assign all names of a player to another player."""
    sql = "UPDATE name SET player = ?, checksum = checksum - player + ? WHERE player = ?"
    store.run(sql, into, into, player)
    store.run("UPDATE player SET merged_into = ? WHERE player = ? OR merged_into = ?", into, player, player)
    _note_change(store)


def identities(store: Store, player: int) -> list[int]:
    """The player id and the ids of all players merged into it."""
    return [player, *(row[0] for row in store.all("SELECT player FROM player WHERE merged_into = ?", player))]


def is_erased(store: Store, player: int) -> bool:
    """True if the player was erased and has only a pseudonym."""
    return bool(store.all("SELECT 1 FROM player WHERE player = ? AND erased_at IS NOT NULL", player))


def read_erased(store: Store) -> list[int]:
    """The ids of all erased players, in no particular order."""
    return [row[0] for row in store.all("SELECT player FROM player WHERE erased_at IS NOT NULL")]


def erased_among(store: Store, ids: Sequence[int]) -> set[int]:
    """The erased players among these."""
    sql = "SELECT player FROM player WHERE erased_at IS NOT NULL AND player IN ({})"
    return {row[0] for row in store.among(sql, (), ids)}


def ladders_of(store: Store, player: int) -> list[str]:
    """The names of the ladders with a match, a rating or a ban of the player, or of players merged into it."""
    sql = (
        "SELECT name FROM ladder l "
        "WHERE EXISTS (SELECT 1 FROM appearance a WHERE a.ladder = l.ladder AND a.player = ?) "
        "OR EXISTS (SELECT 1 FROM state s WHERE s.ladder = l.ladder AND s.generation = l.generation AND s.player = ?)"
    )
    ids = identities(store, player)
    ladders = {row[0] for identity in ids for row in store.all(sql, identity, identity)}
    by_correction = (
        "SELECT l.name, e.body, e.players FROM correction c JOIN ladder l ON l.ladder = c.ladder "
        "JOIN event e ON e.ladder = c.ladder AND e.position = c.position WHERE e.kind IN (?, ?)"
    )
    for name, body, players in store.all(by_correction, Kind.BANNED.value, Kind.STARTED.value):
        started = [] if players is None else np.frombuffer(players, ID).tolist()
        if not {json.loads(body).get("player"), *started}.isdisjoint(ids):
            ladders.add(name)
    return sorted(ladders)


def erase(store: Store, player: int, pseudonym: str, now: int) -> None:
    """Replace all names of a player, and of players merged into it, by a pseudonym."""
    delete_name_checks(store, player)
    store.run("DELETE FROM name WHERE player = ?", player)
    _insert_name(store, pseudonym, player)
    store.run(
        "UPDATE player SET name = ?, folded = ?, erased_at = ? WHERE player = ? OR merged_into = ?",
        *(pseudonym, pseudonym, now, player, player),
    )
    _note_change(store)
