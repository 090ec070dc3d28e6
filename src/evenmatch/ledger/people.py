"""Who players are: one identity across ladders, reached by every name they were ever reported under."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np

from evenmatch.errors import ConflictError, UnknownNameError, similar_names
from evenmatch.ledger import schema
from evenmatch.ledger.codec import ID
from evenmatch.ledger.events import Kind
from evenmatch.ledger.store import Store
from evenmatch.ledger.text import check_texts

LAST = "\U0010ffff"  # no name has a letter after it
BEGINNING, SIMILAR = 3, 3  # letters that similar names share at least, and how many names are told


def ids_of(store: Store, names: Sequence[str]) -> dict[str, int]:
    """The ids of those of these names that are known."""
    found: dict[str, int] = dict(
        store.rows.among(store.connection, "SELECT name, player FROM name WHERE name IN ({})", (), names)
    )
    return found


def admit(store: Store, names: Iterable[str], *, present: bool = False) -> tuple[dict[str, int], dict[int, str]]:
    """The id behind each of these names, who is new becoming a player; and what they are called, by id.

    present  by their present names, which may be others; otherwise by the given ones, which costs less
    Two writers may admit the same people at once: names go in in the order of their letters, so neither waits for the
    other in a circle, and who comes second finds them there. Raises InputError for a name that cannot be kept.
    """
    wanted = sorted(set(names))
    if not wanted:
        return {}, {}
    check_texts("player name", wanted)
    found = _known(store, wanted, present)
    new = [name for name in wanted if name not in found[0]]
    if new:
        store.rows.enrol(store.connection, new)
        more = _known(store, new, present)
        found = (found[0] | more[0], found[1] | more[1])
    return found


def _known(store: Store, names: Sequence[str], present: bool) -> tuple[dict[str, int], dict[int, str]]:
    if not present:
        known = ids_of(store, names)
        return known, {player: name for name, player in known.items()}
    sql = "SELECT n.name, p.player, p.name FROM name n JOIN player p ON p.player = n.player WHERE n.name IN ({})"
    rows = store.rows.among(store.connection, sql, (), names)
    return {row[0]: row[1] for row in rows}, {row[1]: row[2] for row in rows}


def find(store: Store, name: str) -> int:
    """The id behind a name. Raises UnknownNameError where nobody has it."""
    found = ids_of(store, [name])
    if name not in found:
        raise UnknownNameError("player", name, similar(store, name))
    return found[name]


def similar(store: Store, name: str, ladder: int | None = None) -> list[str]:
    """Names that were perhaps meant by one that nobody has, the most similar first; ladder: its players alone."""
    for length in (len(name) // 2 + 1, BEGINNING):
        beginning = name[:length]
        known = [one for one, _ in search(store, beginning, 200, ladder, inside=False)] if beginning else []
        if found := similar_names(name, known, SIMILAR):
            return found
    return []


def search(
    store: Store, text: str, limit: int, ladder: int | None = None, *, few: bool = False, inside: bool = True
) -> list[tuple[str, int]]:
    """(name, id) of players whose present name holds this text, whatever its case; those that begin with it first.

    ladder  the id of one: only who has a rating there;  few: it has so few players that all of them may be looked at
    inside  False: names that begin with the text alone, which an index finds among any number
    Where there are too many: of those that begin with it the first of the alphabet, of the others some; the shortest
    of each come first.
    """
    begins = text.casefold()
    bounds = (begins, begins + LAST)
    found = _search(store, "p.folded >= ? AND p.folded < ?", bounds, limit, ladder, few, "ORDER BY p.folded")
    if inside and len(found) < limit:
        like = begins.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        held = "p.folded LIKE ? ESCAPE '\\' AND NOT (p.folded >= ? AND p.folded < ?)"
        more = _search(store, held, (f"%{like}%", *bounds), limit - len(found), ladder, few)
        return sorted(found, key=_short_first) + sorted(more, key=_short_first)
    return sorted(found, key=_short_first)


def _search(
    store: Store, where: str, values: tuple[str, ...], limit: int, ladder: int | None, few: bool, order: str = ""
) -> list[tuple[str, int]]:
    """Players who are there, so many at most; of a ladder of few, its players are looked at, else all that fit."""
    there = "p.merged_into IS NULL AND p.erased_at IS NULL"
    on = "state s JOIN ladder l ON l.ladder = s.ladder AND l.generation = s.generation"
    if ladder is None:
        sql = f"SELECT p.name, p.player FROM player p WHERE {there} AND {where}"
    elif few:
        named = where.replace("p.folded", "p.folded || ''")  # so that no index on names is asked, but those of states
        sql = f"SELECT p.name, p.player FROM {on} JOIN player p ON p.player = s.player WHERE l.ladder = ? AND {named}"
        sql = f"{sql} AND {there}"
    else:
        rated = f"EXISTS (SELECT 1 FROM {on} WHERE l.ladder = ? AND s.player = p.player)"
        sql = f"SELECT p.name, p.player FROM player p WHERE {there} AND {rated} AND {where}"
    first = () if ladder is None else (ladder,)
    return [(row[0], row[1]) for row in store.all(f"{sql} {order} LIMIT ?", *first, *values, limit)]


def _short_first(found: tuple[str, int]) -> tuple[int, str]:
    return len(found[0]), found[0]


def names_of(store: Store, ids: Sequence[int]) -> dict[int, str]:
    """The present name of each of these players."""
    found: dict[int, str] = dict(
        store.rows.among(store.connection, "SELECT player, name FROM player WHERE player IN ({})", (), ids)
    )
    return found


def aliases(store: Store, player: int) -> list[str]:
    """Every name that leads to a player, the present one among them."""
    return [row[0] for row in store.all("SELECT name FROM name WHERE player = ? ORDER BY name", player)]


def _note_change(store: Store) -> None:
    """Let those who remember names read them anew."""
    store.run(
        "INSERT INTO counter (name, value) VALUES ('names', 1) "
        "ON CONFLICT (name) DO UPDATE SET value = counter.value + 1"
    )


def rename(store: Store, player: int, name: str) -> None:
    """Give a player another present name; reports under the former ones still reach them. Names are held alone.

    Raises ConflictError where the name is somebody else's.
    """
    taken = ids_of(store, [name]).get(name)
    if taken is not None and taken != player:
        raise ConflictError(f"the name {name!r} is another player's; accepted is a free one, or merge the two players")
    if taken is None:
        store.rows.insert(store.connection, schema.name, ("name", "player"), [(name, player)])
    store.run("UPDATE player SET name = ?, folded = ? WHERE player = ?", name, name.casefold(), player)
    _note_change(store)


def merge(store: Store, player: int, into: int) -> None:
    """Let every name of a player lead to another one."""
    store.run("UPDATE name SET player = ? WHERE player = ?", into, player)
    store.run("UPDATE player SET merged_into = ? WHERE player = ? OR merged_into = ?", into, player, player)
    _note_change(store)


def identities(store: Store, player: int) -> list[int]:
    """A player's id, and those of everybody who was merged into them."""
    return [player, *(row[0] for row in store.all("SELECT player FROM player WHERE merged_into = ?", player))]


def is_erased(store: Store, player: int) -> bool:
    """Whether all that is left of them is a pseudonym."""
    return bool(store.all("SELECT 1 FROM player WHERE player = ? AND erased_at IS NOT NULL", player))


def ladders_of(store: Store, player: int) -> list[str]:
    """The names of the ladders that know a player, or anybody merged into them: by a match, a rating or a ban."""
    sql = (
        "SELECT name FROM ladder l "
        "WHERE EXISTS (SELECT 1 FROM appearance a WHERE a.ladder = l.ladder AND a.player = ?) "
        "OR EXISTS (SELECT 1 FROM state s WHERE s.ladder = l.ladder AND s.generation = l.generation AND s.player = ?)"
    )
    ids = identities(store, player)
    found = {row[0] for one in ids for row in store.all(sql, one, one)}
    told = (
        "SELECT l.name, e.body, e.players FROM correction c JOIN ladder l ON l.ladder = c.ladder "
        "JOIN event e ON e.ladder = c.ladder AND e.position = c.position WHERE e.kind IN (?, ?)"
    )
    for name, body, players in store.all(told, Kind.BANNED.value, Kind.STARTED.value):
        started = [] if players is None else np.frombuffer(players, ID).tolist()
        if not {json.loads(body).get("player"), *started}.isdisjoint(ids):
            found.add(name)
    return sorted(found)


def erase(store: Store, player: int, pseudonym: str, now: int) -> None:
    """Replace every name of a player, and of those merged into them, by one that says nothing."""
    store.run("DELETE FROM name WHERE player = ?", player)
    store.rows.insert(store.connection, schema.name, ("name", "player"), [(pseudonym, player)])
    store.run(
        "UPDATE player SET name = ?, folded = ?, erased_at = ? WHERE player = ? OR merged_into = ?",
        *(pseudonym, pseudonym, now, player, player),
    )
    _note_change(store)
