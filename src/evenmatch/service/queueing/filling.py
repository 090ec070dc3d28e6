"""Open seats of running matches, as the matchmaker sees them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.errors import InputError
from evenmatch.ledger.store import Store
from evenmatch.matchmaking import Filling, Member, Opening, Policy, Queue, Ticket, backfill
from evenmatch.service.playing.live import Live, Slot
from evenmatch.service.queueing import tickets
from evenmatch.service.queueing.levels import Levels
from evenmatch.service.queueing.parties import Party

BUILT = 1 << 50  # the first number of tickets that are built for players who came without one

logger = logging.getLogger(__name__)


class Inside(NamedTuple):
    """Those who are in running matches: their parties by ticket, and where the others stand."""

    parties: Mapping[int, Party]
    queued: Mapping[int, int]
    built: Mapping[int, Member]


def read_inside(store: Store, ladder: int, matches: list[Live], levels: Levels) -> Inside:
    """What openings of these matches are made from."""
    slots = [slot for match in matches for slot in match.slots() if _is_in(slot)]
    numbers = {number for slot in slots if (number := slot.get("ticket")) is not None}
    rows = tickets.read(store, ladder, sorted(numbers))
    others = sorted({slot["id"] for slot in slots if slot.get("ticket") not in rows})
    built = {
        player: Member(player=player, percentile=one.percentile, rating=one.rating, within=100.0, loose=False)
        for player, one in levels.of(others).items()
    }
    return Inside(
        {number: row.party for number, row in rows.items()},
        {number: row.queued_at for number, row in rows.items()},
        built,
    )


def fill(match: Live, inside: Inside, queue: Queue, now: int, policy: Policy) -> Filling | None:
    """Who takes open seats of a match; None: nobody does, or it is no match of this policy."""
    assert match.openings is not None
    try:
        teams = tuple(tuple(_tickets(team, inside, match.started_at, policy)) for team in match.body["teams"])
        seats = tuple(match.openings["seats"])
        region = match.body.get("region")
        opening = Opening(match=0, formed=match.started_at, teams=teams, seats=seats, region=region)
        found = backfill([opening], queue, now, policy)
    except InputError as error:
        logger.warning("match %r cannot be filled: %s", match.match_id, error)
        return None
    return found[0] if found else None


def spread_of(match: Live, inside: Inside, joining: list[Party]) -> float:
    """Percentiles between the lowest and the highest, of those inside and those who come."""
    there = [slot["id"] for slot in match.slots() if _is_in(slot)]
    known = {one["id"]: one["percentile"] for party in [*inside.parties.values(), *joining] for one in party.members}
    known |= {player: member.percentile for player, member in inside.built.items()}
    coming = [one["id"] for party in joining for one in party.members]
    points = [known[player] for player in [*there, *coming] if player in known]
    return max(points) - min(points) if points else 0.0


def former(match: Live) -> set[int]:
    """Those who were in a match and left it."""
    return {slot["id"] for slot in match.slots() if not _is_in(slot)}


def _is_in(slot: Slot) -> bool:
    spells = slot.get("spells")
    return not spells or spells[-1][1] is None


def _tickets(team: list[Slot], inside: Inside, formed: int, policy: Policy) -> list[Ticket]:
    """Those of a team who are still in the match, by the tickets they came with."""
    there = [slot for slot in team if _is_in(slot)]
    found: list[Ticket] = []
    by_number: dict[int, set[int]] = {}
    for slot in there:
        number = slot.get("ticket")
        if number is not None and number in inside.parties:
            by_number.setdefault(number, set()).add(slot["id"])
        else:
            found.append(Ticket(id=BUILT + slot["id"], queued=formed, members=(inside.built[slot["id"]],)))
    for number, players in by_number.items():
        party, queued = inside.parties[number], inside.queued[number]
        found.append(party.ticket(number, queued, policy.roles, _nobody, frozenset(players)))
    return found


def _nobody(_: int) -> tuple[()]:
    """Whom those inside met before says nothing against who comes."""
    return ()
