"""Rows of table `name_check`: the appearance of each name, judged when it came into being.

skeleton  equal for names that look alike, see ledger.name_skeletons
oddities  reasons to look at it, separated by commas; NULL: none
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenmatch.ledger import schema
from evenmatch.ledger.name_skeletons import LOOK_ALIKE, judged
from evenmatch.ledger.store import Head, Store

_ON_LADDER = "JOIN name n ON n.name = c.name JOIN state s ON s.ladder = ? AND s.generation = ? AND s.player = n.player"


class OddName(NamedTuple):
    """A name on a ladder that may pass as another one.

    player    the present name of its player
    oddities  LOOK_ALIKE, INVISIBLE, MIXED_SCRIPTS
    like      names of other players on the ladder that look the same
    """

    name: str
    player: str
    oddities: tuple[str, ...]
    like: tuple[str, ...]


def insert(store: Store, names: Sequence[str]) -> None:
    """Judge new names and insert a row for each; a name that another writer has just inserted keeps its row."""
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


def delete_of(store: Store, player: int) -> None:
    """Delete the rows of all names of a player."""
    store.run("DELETE FROM name_check WHERE name IN (SELECT name FROM name WHERE player = ?)", player)


def like_on(store: Store, head: Head, skeletons: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
    """(name, player id) of the names on a ladder with these skeletons, by skeleton."""
    sql = f"SELECT c.skeleton, c.name, n.player FROM name_check c {_ON_LADDER} WHERE c.skeleton IN ({{}})"
    by_skeleton: dict[str, list[tuple[str, int]]] = {}
    for skeleton, name, player in sorted(store.among(sql, (head.ladder, head.generation), skeletons)):
        by_skeleton.setdefault(skeleton, []).append((name, player))
    return by_skeleton


def read_odd(store: Store, head: Head, after: str, limit: int) -> tuple[list[OddName], str | None]:
    """Up to `limit` odd names on a ladder after a name, by name, and the name to go on after; None: these are all.

    A name is only compared with those on the ladder, so fewer than `limit` may be left.
    """
    sql = (
        f"SELECT c.name, n.player, p.name, c.skeleton, c.oddities FROM name_check c {_ON_LADDER} "
        "JOIN player p ON p.player = n.player "
        "WHERE c.oddities IS NOT NULL AND c.name > ? ORDER BY c.name LIMIT ?"
    )
    rows = store.all(sql, head.ladder, head.generation, after, limit + 1)
    alike = like_on(store, head, sorted({row[3] for row in rows}))
    odd = []
    for name, player, present, skeleton, oddities in rows[:limit]:
        like = tuple(other for other, owner in alike.get(skeleton, []) if owner != player)
        left = tuple(oddity for oddity in oddities.split(",") if oddity != LOOK_ALIKE or like)
        if left:
            odd.append(OddName(name, present, left, like))
    return odd, rows[limit - 1][0] if len(rows) > limit else None
