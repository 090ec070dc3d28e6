"""The check of attributes and vetoes against what queues declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenmatch.attributes import EQUAL, MAP
from evenmatch.errors import InputError
from evenmatch.matchmaking.ticket_choice import ChoosingPlayer, common_choice
from evenmatch.policy import Policy


def check_choices(members: Mapping[str, ChoosingPlayer], policies: Mapping[str, Policy]) -> None:
    """Raise InputError unless a party that joins these queues asks only for what they declare.

    members  by the name for messages;  policies  by queue
    An attribute, a value and a map must be declared in one of the queues; a queue that does not declare it ignores it.
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
    """Raise InputError for an attribute, a value or a map that none of these queues declares."""
    for attribute, values in member.attributes.items():
        _check_values(name, attribute, values, policies)
    maps = [known for policy in policies.values() for known in policy.maps]
    for veto in member.vetoes:
        if veto not in maps:
            raise InputError(f"{name}: vetoes has {veto!r}; {_expected(maps, 'maps')}")


def declared_values(policies: Mapping[str, Policy], attribute: str) -> list[str]:
    """The values of an attribute, or the maps, that these queues declare."""
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
