"""Names that waiting players avoid and that no player had when they joined: their players may join later."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from evenmatch.ledger.tables.tickets import Party


class AvoidedNames:
    """The unknown names that the players of waiting tickets avoid."""

    def __init__(self) -> None:
        self._avoiders: defaultdict[str, dict[int, set[int]]] = defaultdict(dict)  # player ids by ticket, by name
        self._names: dict[int, list[str]] = {}  # by ticket

    def add(self, ticket: int, party: Party) -> None:
        """Note what the members of a ticket avoid, instead of what was noted of it before."""
        self.remove(ticket)
        for member in party.members:
            for name in member.get("avoid_unknown", ()):
                self._avoiders[name].setdefault(ticket, set()).add(member["id"])
                self._names.setdefault(ticket, []).append(name)

    def remove(self, ticket: int) -> None:
        """Forget a ticket that no longer waits."""
        for name in self._names.pop(ticket, ()):
            self._avoiders[name].pop(ticket, None)
            if not self._avoiders[name]:
                del self._avoiders[name]

    def applied(self, party: Party) -> Party:
        """The party, whose members avoid those who avoid them by name: it is enough if one of two avoids the other."""
        if self._avoiders.keys().isdisjoint(party.names):
            return party
        members = []
        for member in party.members:
            changed = member.copy()
            avoiders = self._avoiders.get(member["name"], {}).values()
            changed["avoid"] = sorted({*member["avoid"], *(player for listed in avoiders for player in listed)})
            members.append(changed)
        return replace(party, members=tuple(members))
