"""The rule of a ladder about new names that could be mistaken for another player's."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.errors import InputError
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import player_rows
from evenmatch.ledger.name_skeletons import INVISIBLE, MIXED_SCRIPTS, judged
from evenmatch.ledger.player_rows import OddName as OddName  # noqa: PLC0414 - odd_names returns it
from evenmatch.ledger.store import Head, Store
from evenmatch.operations.transactions import Transacting
from evenmatch.queues import queue_sql

__all__ = ["NameRule", "OddName", "check_names", "odd_names"]

REASONS = {
    INVISIBLE: "has invisible characters; expected a name without control and zero-width characters",
    MIXED_SCRIPTS: "mixes letters of several scripts; expected a name in one script",
}
RULE = " (the ladder has names=refuse)"


class NameRule:
    """Judges the names of one transaction that are new on a ladder. Only names=refuse refuses any.

    A player with a rating, a ticket or a match on the ladder is not new. Names that only other ladders have count as
    new, so the rule reveals nothing about other ladders.

    player  the player who gets the names, which may look like their present ones; None: new players
    """

    def __init__(
        self, store: Store, head: Head, settings: Settings, names: Sequence[str], *, player: int | None = None
    ) -> None:
        self._objections: dict[str, str] = {}
        self._skeletons: dict[str, str] = {}
        self._new: dict[str, str] = {}  # the accepted new name of each skeleton
        if settings.names != "refuse":
            return
        wanted = sorted(set(names))
        known = player_rows.ids_on(store, head, wanted).keys() | _seated(store, head, wanted)
        looks = {name: judged(name) for name in wanted if name not in known}
        self._skeletons = {name: look.skeleton for name, look in looks.items()}
        alike = player_rows.read_names_alike(store, head, sorted(set(self._skeletons.values())))
        for name, skeleton in self._skeletons.items():
            oddities = looks[name].oddities
            others = [other for other, owner in alike.get(skeleton, ()) if owner != player]
            if oddities:
                self._objections[name] = f"player name {name!r} {REASONS[oddities[0]]}"
            elif others:
                self._objections[name] = _alike(name, others[0])

    def objection(self, names: Sequence[str]) -> str | None:
        """Return why one of these names is refused; None: all are accepted, and later names must not look like them."""
        new = dict(self._new)
        for name in names:
            if name in self._objections:
                return f"{self._objections[name]}{RULE}"
            skeleton = self._skeletons.get(name)
            if skeleton is not None and new.setdefault(skeleton, name) != name:
                return f"{_alike(name, new[skeleton])}{RULE}"
        self._new = new
        return None

    def check(self, names: Sequence[str]) -> None:
        """Raise InputError if one of these names is refused, see `objection`."""
        objection = self.objection(names)
        if objection is not None:
            raise InputError(objection)


def odd_names(service: Transacting, ladder: str, after: str, limit: int) -> tuple[list[OddName], str | None]:
    """Return up to `limit` odd names on a ladder after a name, see player_rows.read_odd_names; none with names=any.

    Raises UnknownNameError.
    """
    with service.reading(ladder) as (store, head):
        if Settings.read(head.settings).names == "any":
            return [], None
        return player_rows.read_odd_names(store, head, after, limit)


def check_names(store: Store, head: Head, names: Sequence[str], *, player: int | None = None) -> None:
    """Raise InputError if the ladder's rule refuses one of these names; player: see NameRule."""
    NameRule(store, head, Settings.read(head.settings), names, player=player).check(names)


def _seated(store: Store, head: Head, names: Sequence[str]) -> set[str]:
    """Return the names whose player waits or plays on a ladder."""
    ids = player_rows.ids_of(store, names)
    taken = queue_sql.read_seats(store, sorted(set(ids.values())))
    return {name for name, player in ids.items() if player in taken and taken[player].ladder == head.ladder}


def _alike(name: str, other: str) -> str:
    return f"player name {name!r} looks like {other!r}; expected a name that cannot be mistaken for another player's"
