"""The rule of a ladder about new names that may pass as another one."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.errors import InputError
from evenmatch.ledger.name_skeletons import INVISIBLE, MIXED_SCRIPTS, judged
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import name_checks, player_identities
from evenmatch.ledger.tables.name_checks import OddName
from evenmatch.service.settings import Settings
from evenmatch.service.transactions import Transacting

REASONS = {
    INVISIBLE: "has unseen characters; expected a name without control and zero-width characters",
    MIXED_SCRIPTS: "mixes letters of several scripts; expected a name in one script",
}


class NameRule:
    """Judges the new names of one transaction on a ladder. With names=any or warn none is refused."""

    def __init__(self, store: Store, head: Head, settings: Settings, names: Sequence[str]) -> None:
        self._objections: dict[str, str] = {}
        self._skeletons: dict[str, str] = {}
        self._new: dict[str, str] = {}  # the accepted new name of each skeleton
        if settings.names != "refuse":
            return
        known = player_identities.ids_of(store, sorted(set(names)))
        looks = {name: judged(name) for name in set(names) if name not in known}
        self._skeletons = {name: look.skeleton for name, look in looks.items()}
        alike = name_checks.like_on(store, head, sorted(set(self._skeletons.values())))
        for name, skeleton in self._skeletons.items():
            oddities = looks[name].oddities
            if oddities:
                self._objections[name] = f"player name {name!r} {REASONS[oddities[0]]}"
            elif skeleton in alike:
                self._objections[name] = _alike(name, alike[skeleton][0][0])

    def objection(self, names: Sequence[str]) -> str | None:
        """Why one of these names is refused; None: none is, and the new ones among them count from now on."""
        new = dict(self._new)
        for name in names:
            if name in self._objections:
                return self._objections[name]
            skeleton = self._skeletons.get(name)
            if skeleton is not None and new.setdefault(skeleton, name) != name:
                return _alike(name, new[skeleton])
        self._new = new
        return None


def odd_names(service: Transacting, ladder: str, after: str, limit: int) -> tuple[list[OddName], str | None]:
    """Up to `limit` names on a ladder that may pass as another one, after a name; see name_checks.read_odd.

    None with names=any. Raises UnknownNameError.
    """
    with service.reading(ladder) as (store, head):
        if Settings.read(head.settings).names == "any":
            return [], None
        return name_checks.read_odd(store, head, after, limit)


def check_names(store: Store, head: Head, names: Sequence[str]) -> None:
    """Raise InputError if the ladder's rule refuses one of these names."""
    objection = NameRule(store, head, Settings.read(head.settings), names).objection(names)
    if objection is not None:
        raise InputError(objection)


def _alike(name: str, other: str) -> str:
    return f"player name {name!r} looks like {other!r}; expected a name that cannot be mistaken for another player's"
