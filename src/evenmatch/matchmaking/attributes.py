"""Attributes and maps as bits: what each waiting ticket accepts, and what the tickets of a match have in common.

Each attribute has a field in a 64-bit mask, with one bit per value. Tickets can play together if and only if the
intersection of their masks has a bit in every field. An attribute with a worth has one more bit, `waived`. It is set
for tickets that accept every value or have waited as long as agreement is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from evenmatch.attributes import EQUAL, MAP
from evenmatch.errors import InputError
from evenmatch.history import Flags, Floats
from evenmatch.matchmaking.tickets import ChoosingPlayer, Masks, TicketChoice, common_choice
from evenmatch.policy import Policy


class AttributeField(NamedTuple):
    """The bits of one attribute, from bit `first` upwards. worth: None if no match is made without agreement."""

    name: str
    values: tuple[str, ...]
    first: int
    worth: float | None = None

    @property
    def named(self) -> int:
        """The bits of all values."""
        return ((1 << len(self.values)) - 1) << self.first

    @property
    def waived(self) -> int:
        """The bit of tickets that do not insist; 0 if the attribute is never waived."""
        return 0 if self.worth is None else 1 << (self.first + len(self.values))

    @property
    def bits(self) -> int:
        """All bits of the field."""
        return self.named | self.waived

    def common(self, mask: int) -> tuple[str, ...]:
        """The values in a mask, in the order declared."""
        return tuple(value for place, value in enumerate(self.values) if mask >> (self.first + place) & 1)


Fields = tuple[AttributeField, ...]


def fields_of(policy: Policy) -> Fields:
    """The fields of a policy's attributes by name, and of its maps."""
    fields, first = list[AttributeField](), 0
    for name, attribute in policy.attributes.items():
        fields.append(AttributeField(name, attribute.values, first, attribute.worth))
        first += fields[-1].bits.bit_count()
    if policy.maps:
        fields.append(AttributeField(MAP, policy.maps, first))
    return tuple(fields)


@lru_cache(65_536)
def mask_of(choice: TicketChoice, fields: Fields) -> int:
    """The mask of a ticket that has not waited yet. Values that the policy no longer declares have no bit."""
    accepted, mask = dict(choice.accepted), 0
    for field in fields:
        values = set(accepted.get(field.name, field.values))
        if field.name == MAP:
            values -= set(choice.vetoes)
        named = sum(1 << (field.first + place) for place, value in enumerate(field.values) if value in values)
        mask |= named | (field.waived if named == field.named else 0)
    return mask


def waived_bits(fields: Fields, waited: Floats) -> Masks:
    """The `waived` bits of tickets that have waited this many seconds."""
    bits = np.zeros(len(waited), np.uint64)
    for field in fields:
        if field.worth is not None:
            bits |= np.where(waited >= field.worth, np.uint64(field.waived), np.uint64(0))
    return bits


def agree(masks: Masks, fields: Fields) -> Flags:
    """Whether each of these intersections has a bit in every field."""
    good = np.ones(len(masks), np.bool_)
    for field in fields:
        good &= (masks & np.uint64(field.bits)) > 0
    return good


def agreed_values(mask: int, fields: Fields) -> dict[str, str]:
    """The first common value of each attribute. Attributes without a common value are left out."""
    common = {field.name: field.common(mask) for field in fields if field.name != MAP}
    return {name: values[0] for name, values in common.items() if values}


def common_maps(mask: int, fields: Fields) -> tuple[str, ...]:
    """The maps that all accept, in the order declared."""
    return next((field.common(mask) for field in fields if field.name == MAP), ())


def check_choices(members: Mapping[str, ChoosingPlayer], policies: Mapping[str, Policy]) -> None:
    """Raise InputError if a party asks for something that none of these queues declares.

    members   players by the name used in messages;  policies  by queue
    One queue that declares the attribute, value or map is enough. The other queues ignore it.
    """
    for name, member in members.items():
        check_declared(name, member, policies)
    choice = common_choice(members)
    accepted = dict(choice.accepted)
    for queue, policy in policies.items():
        for name, member in members.items():
            _check_vetoes(name, member, queue, policy)
        declared = {name: attribute.values for name, attribute in policy.attributes.items()}
        for attribute, known in (declared | ({MAP: policy.maps} if policy.maps else {})).items():
            own = set(accepted.get(attribute, known)) - (set(choice.vetoes) if attribute == MAP else set())
            if own.isdisjoint(known):
                why = "every map is vetoed" if attribute == MAP else f"no accepted value of {attribute}"
                raise InputError(
                    f"{', '.join(members)}: {why} in queue {queue!r}; expected one or more of {', '.join(known)}"
                )


def check_declared(name: str, member: ChoosingPlayer, policies: Mapping[str, Policy]) -> None:
    """Raise InputError if none of these queues declares an attribute, a value or a map of this player."""
    for attribute, values in member.attributes.items():
        _check_values(name, attribute, values, policies)
    maps = [known for policy in policies.values() for known in policy.maps]
    for veto in member.vetoes:
        if veto not in maps:
            raise InputError(f"{name}: vetoes has {veto!r}; {_expected(maps, 'maps')}")


def declared_values(policies: Mapping[str, Policy], attribute: str) -> list[str]:
    """The values that these queues declare for an attribute, or their maps."""
    return [value for policy in policies.values() for value in _values(policy, attribute)]


def _check_values(name: str, attribute: str, values: Sequence[str], policies: Mapping[str, Policy]) -> None:
    declared = {known for policy in policies.values() for known in policy.attributes}
    known = declared_values(policies, attribute)
    if attribute not in declared and not (attribute == MAP and known):
        raise InputError(
            f"{name}: attribute {attribute!r} is not declared; {_expected(sorted(declared), 'attributes')}"
        )
    for value in values:
        if value not in known:
            raise InputError(f"{name}: {attribute} has {value!r}; {_expected(known, 'values')}")
    is_single = any(
        attribute in policy.attributes and policy.attributes[attribute].kind == EQUAL for policy in policies.values()
    )
    if is_single and len(set(values)) > 1:
        raise InputError(f"{name}: {attribute} has {len(set(values))} values; expected one of {', '.join(known)}")


def _check_vetoes(name: str, member: ChoosingPlayer, queue: str, policy: Policy) -> None:
    accepted = set(member.attributes.get(MAP, ())) or set(policy.maps)
    left_out = [known for known in policy.maps if known in member.vetoes or known not in accepted]
    if len(left_out) > policy.vetoes:
        raise InputError(
            f"{name}: {len(left_out)} maps are vetoed or not accepted in queue {queue!r} ({', '.join(left_out)}); "
            f"expected at most {policy.vetoes} (vetoes)"
        )


def _values(policy: Policy, attribute: str) -> Sequence[str]:
    if attribute == MAP:
        return policy.maps
    return policy.attributes[attribute].values if attribute in policy.attributes else ()


def _expected(known: Sequence[str], what: str) -> str:
    listed = ", ".join(dict.fromkeys(known))
    return f"expected {listed}" if listed else f"no {what} are declared here"
