"""Who players are: one identity across ladders, reached by every name they were ever reported under."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenmatch.errors import ConflictError, InputError, UnknownNameError
from evenmatch.ledger import schema
from evenmatch.ledger.store import Store


def ids_of(store: Store, names: Sequence[str]) -> dict[str, int]:
    """The ids of those of these names that are known."""
    found: dict[str, int] = dict(
        store.rows.among(store.connection, "SELECT name, player FROM name WHERE name IN ({})", (), names)
    )
    return found


def admit(store: Store, names: Iterable[str]) -> dict[str, int]:
    """The ids of all these names; who is new becomes a player.

    Two writers may admit the same people at once: names go in in the order of their letters, so neither waits for the
    other in a circle, and who comes second finds them there.
    """
    wanted = sorted(set(names))
    forbidden = next((name for name in wanted if "\0" in name), None)
    if forbidden is not None:
        raise InputError(f"player name {forbidden!r} holds the character NUL; accepted is text without it")
    found = ids_of(store, wanted)
    new = [name for name in wanted if name not in found]
    if new:
        store.rows.enrol(store.connection, new)
        found |= ids_of(store, new)
    return found


def find(store: Store, name: str) -> int:
    """The id behind a name. Raises UnknownNameError where nobody has it."""
    found = ids_of(store, [name])
    if name not in found:
        close = [row[0] for row in search(store, name[:3], 200)] if name else []
        raise UnknownNameError("player", name, close)
    return found[name]


def search(store: Store, text: str, limit: int) -> list[tuple[str, int]]:
    """(name, id) of players whose present name holds this text, whatever its case; those that begin with it first."""
    like = text.casefold().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    sql = (
        "SELECT name, player FROM player WHERE merged_into IS NULL AND erased_at IS NULL AND folded LIKE ? ESCAPE '\\' "
        "ORDER BY CASE WHEN folded LIKE ? ESCAPE '\\' THEN 0 ELSE 1 END, LENGTH(name), name LIMIT ?"
    )
    return [(row[0], row[1]) for row in store.all(sql, f"%{like}%", f"{like}%", limit)]


def names_of(store: Store, ids: Sequence[int]) -> dict[int, str]:
    """The present name of each of these players."""
    found: dict[int, str] = dict(
        store.rows.among(store.connection, "SELECT player, name FROM player WHERE player IN ({})", (), ids)
    )
    return found


def aliases(store: Store, player: int) -> list[str]:
    """Every name that leads to a player, the present one among them."""
    return [row[0] for row in store.all("SELECT name FROM name WHERE player = ? ORDER BY name", player)]


def rename(store: Store, player: int, name: str) -> None:
    """Give a player another present name; reports under the former ones still reach them.

    Raises ConflictError where the name is somebody else's.
    """
    taken = ids_of(store, [name]).get(name)
    if taken is not None and taken != player:
        raise ConflictError(f"the name {name!r} is another player's; accepted is a free one, or merge the two players")
    if taken is None:
        store.rows.insert(store.connection, schema.name, ("name", "player"), [(name, player)])
    store.run("UPDATE player SET name = ?, folded = ? WHERE player = ?", name, name.casefold(), player)


def merge(store: Store, player: int, into: int) -> None:
    """Let every name of a player lead to another one."""
    store.run("UPDATE name SET player = ? WHERE player = ?", into, player)
    store.run("UPDATE player SET merged_into = ? WHERE player = ? OR merged_into = ?", into, player, player)


def ladders_of(store: Store, player: int) -> list[str]:
    """The names of the ladders on which a player appeared or has a rating."""
    sql = (
        "SELECT name FROM ladder l "
        "WHERE EXISTS (SELECT 1 FROM appearance a WHERE a.ladder = l.ladder AND a.player = ?) "
        "OR EXISTS (SELECT 1 FROM state s WHERE s.ladder = l.ladder AND s.generation = l.generation AND s.player = ?) "
        "ORDER BY name"
    )
    return [row[0] for row in store.all(sql, player, player)]


def erase(store: Store, player: int, pseudonym: str, now: int) -> None:
    """Replace every name of a player, and of those merged into them, by one that says nothing."""
    store.run("DELETE FROM name WHERE player = ?", player)
    store.rows.insert(store.connection, schema.name, ("name", "player"), [(pseudonym, player)])
    store.run(
        "UPDATE player SET name = ?, folded = ?, erased_at = ? WHERE player = ? OR merged_into = ?",
        *(pseudonym, pseudonym, now, player, player),
    )
