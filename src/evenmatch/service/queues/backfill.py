"""Backfill: open slots of live matches in the form that the matchmaker needs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.attributes import MAP
from evenmatch.errors import InputError
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import tickets
from evenmatch.ledger.tables.live_matches import LiveMatchRow, MatchSlot
from evenmatch.ledger.tables.tickets import Party
from evenmatch.matchmaking import Filling, Member, Opening, Policy, Queue, Ticket, backfill
from evenmatch.service.queues.join_profiles import JoinProfiles
from evenmatch.service.queues.parties import ticket_of

BUILT = 1 << 50  # smallest number of tickets that are made up for players who came without a ticket

logger = logging.getLogger(__name__)


class PresentPlayers(NamedTuple):
    """Players in live matches: parties and queueing times by ticket; members without a stored ticket by player id."""

    parties: Mapping[int, Party]
    queued: Mapping[int, int]
    built: Mapping[int, Member]


def read_inside(
    store: Store, ladder: int, matches: list[LiveMatchRow], levels: JoinProfiles, now: int
) -> PresentPlayers:
    """Read the players who are present in these matches."""
    slots = [slot for match in matches for slot in match.slots() if _is_in(slot)]
    numbers = {number for slot in slots if (number := slot.get("ticket")) is not None}
    rows = tickets.read(store, ladder, sorted(numbers))
    others = sorted({slot["id"] for slot in slots if slot.get("ticket") not in rows})
    built = {
        player: Member(player=player, percentile=level.percentile, rating=level.rating, within=100.0, loose=False)
        for player, level in levels.of(store, others, now).items()
    }
    return PresentPlayers(
        {number: row.party for number, row in rows.items()},
        {number: row.queued_at for number, row in rows.items()},
        built,
    )


def fill(match: LiveMatchRow, inside: PresentPlayers, queue: Queue, now: int, policy: Policy) -> Filling | None:
    """Choose tickets for the open slots of a match; None: no ticket fits, or the match does not fit the policy."""
    assert match.openings is not None
    try:
        teams = tuple(tuple(_tickets(team, inside, match.started_at, policy)) for team in match.body["teams"])
        seats = tuple(match.openings["seats"])
        opening = Opening(
            match=0,
            formed=match.started_at,
            teams=teams,
            seats=seats,
            region=match.body.get("region"),
            attributes=_settings(match),
        )
        fillings = backfill([opening], queue, now, policy)
    except InputError as error:
        logger.warning("match %r cannot be filled: %s", match.match_id, error)
        return None
    return fillings[0] if fillings else None


def spread_of(match: LiveMatchRow, inside: PresentPlayers, joining: list[Party]) -> float:
    """Percentiles between the lowest and the highest player, of those in the match and those joining."""
    present = [slot["id"] for slot in match.slots() if _is_in(slot)]
    parties = [*inside.parties.values(), *joining]
    percentiles = {member["id"]: member["percentile"] for party in parties for member in party.members}
    percentiles |= {player: member.percentile for player, member in inside.built.items()}
    new = [member["id"] for party in joining for member in party.members]
    values = [percentiles[player] for player in [*present, *new] if player in percentiles]
    return max(values) - min(values) if values else 0.0


def line_up(match: LiveMatchRow, joining: list[list[int]]) -> list[list[int]]:
    """The ids of the players of each team, of those in the match and those joining."""
    present = [[slot["id"] for slot in team if _is_in(slot)] for team in match.body["teams"]]
    return [[*team, *new] for team, new in zip(present, joining, strict=True)]


def former(match: LiveMatchRow) -> set[int]:
    """The ids of the players who have left a match."""
    return {slot["id"] for slot in match.slots() if not _is_in(slot)}


def _settings(match: LiveMatchRow) -> dict[str, str]:
    """The attributes with which a match is played, and its map."""
    settings = dict(match.body.get("attributes", {}))
    return settings | {MAP: match.body["map"]} if "map" in match.body else settings


def _is_in(slot: MatchSlot) -> bool:
    spells = slot.get("spells")
    return not spells or spells[-1][1] is None


def _tickets(team: list[MatchSlot], inside: PresentPlayers, formed: int, policy: Policy) -> list[Ticket]:
    """The tickets of a team's players who are still in the match."""
    present = [slot for slot in team if _is_in(slot)]
    team_tickets: list[Ticket] = []
    by_number: dict[int, set[int]] = {}
    for slot in present:
        number = slot.get("ticket")
        if number is not None and number in inside.parties:
            by_number.setdefault(number, set()).add(slot["id"])
        else:
            team_tickets.append(Ticket(id=BUILT + slot["id"], queued=formed, members=(inside.built[slot["id"]],)))
    for number, players in by_number.items():
        party, queued = inside.parties[number], inside.queued[number]
        team_tickets.append(ticket_of(party, number, queued, policy.roles, _no_meetings, frozenset(players)))
    return team_tickets


def _no_meetings(_: int) -> tuple[()]:
    """Earlier meetings of players who are already in the match do not matter."""
    return ()
