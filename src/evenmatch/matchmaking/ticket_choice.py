"""The values of attributes and the maps that the members of a ticket together accept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from evenmatch.attributes import MAP
from evenmatch.errors import InputError


class TicketChoice(NamedTuple):
    """The values and maps that all members of a ticket accept; equal for equal choices.

    accepted  pairs of an attribute and the values that all members accept, both sorted; not named: all values
    vetoes    the maps that any member vetoes, sorted
    """

    accepted: tuple[tuple[str, tuple[str, ...]], ...] = ()
    vetoes: tuple[str, ...] = ()


class ChoosingPlayer(Protocol):
    """A player with values of attributes and vetoes of maps."""

    @property
    def attributes(self) -> Mapping[str, Sequence[str]]:
        """The accepted values, by attribute; none: all."""

    @property
    def vetoes(self) -> Sequence[str]:
        """The vetoed maps."""


def common_choice(members: Mapping[str, ChoosingPlayer]) -> TicketChoice:
    """The choice of a party; `members` by the name for messages.

    Raises InputError, naming two of them, if their values of an attribute have nothing in common.
    """
    common: dict[str, set[str]] = {}
    for name, member in members.items():
        for attribute, values in member.attributes.items():
            if not values:
                continue
            common[attribute] = common.get(attribute, set(values)) & set(values)
            if not common[attribute]:
                raise InputError(_disagreement(attribute, name, members))
    vetoes = {veto for member in members.values() for veto in member.vetoes}
    if MAP in common and common[MAP] <= vetoes:
        raise InputError(f"{_names(members)}: every accepted map is vetoed ({', '.join(sorted(common[MAP]))})")
    accepted = tuple((attribute, tuple(sorted(values))) for attribute, values in sorted(common.items()))
    return TicketChoice(accepted, tuple(sorted(vetoes)))


def _disagreement(attribute: str, name: str, members: Mapping[str, ChoosingPlayer]) -> str:
    own = members[name].attributes[attribute]
    for other, member in members.items():
        values = member.attributes.get(attribute, ())
        if values and not set(own) & set(values):
            return (
                f"{other} and {name} are in one party and do not agree on {attribute}: {', '.join(values)} and "
                f"{', '.join(own)}; expected a value in common"
            )
    return f"{_names(members)}: no value of {attribute} is accepted by all of them; expected one in common"


def _names(members: Mapping[str, ChoosingPlayer]) -> str:
    return ", ".join(members)
