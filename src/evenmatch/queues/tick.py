"""One tick of a ladder's matchmaker: decide without a transaction, then write in one. Also fills live matches."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from evenmatch.attributes import MAP
from evenmatch.durations import SECOND
from evenmatch.errors import InputError
from evenmatch.ledger.store import Store
from evenmatch.live.live_sql import LiveMatchRow, MatchSlot
from evenmatch.matchmaking import Filling, Member, Opening, Policy, Proposal, Queue, Ticket, backfill, choose_map
from evenmatch.matchmaking.odds import DIGITS
from evenmatch.matchmaking.tick import REMEMBERED
from evenmatch.queues import endings, queue_sql, stored_queues
from evenmatch.queues.changes import QueueChanges
from evenmatch.queues.parties import JoinProfiles, ticket_of
from evenmatch.queues.playlists import with_locks
from evenmatch.queues.queue_service import GRACE, QueueService
from evenmatch.queues.queue_sql import OfferBody, OfferRow, OfferSlot, Party
from evenmatch.queues.state import QueueState

MADE_UP = 1 << 50  # smallest number of the tickets made up for players who joined a match without one

logger = logging.getLogger(__name__)


class PresentPlayers(NamedTuple):
    """Players in live matches: parties and queueing times by ticket, and players without a stored ticket by id."""

    parties: Mapping[int, Party]
    queued: Mapping[int, int]
    built: Mapping[int, Member]


def read_inside(
    store: Store, ladder: int, matches: list[LiveMatchRow], levels: JoinProfiles, now: int
) -> PresentPlayers:
    """Read the players who are present in these matches."""
    slots = [slot for match in matches for slot in match.slots() if _is_in(slot)]
    numbers = {number for slot in slots if (number := slot.get("ticket")) is not None}
    rows = queue_sql.read_tickets(store, ladder, sorted(numbers))
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
    """Choose tickets for the open slots of a match. None: no ticket fits, or the match does not fit the policy."""
    assert match.openings is not None
    try:
        teams = tuple(tuple(_tickets_of_slots(team, inside, match.started_at, policy)) for team in match.body["teams"])
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
    """Percentiles between the lowest and the highest of the players in the match and those joining."""
    present = [slot["id"] for slot in match.slots() if _is_in(slot)]
    parties = [*inside.parties.values(), *joining]
    percentiles = {member["id"]: member["percentile"] for party in parties for member in party.members}
    percentiles |= {player: member.percentile for player, member in inside.built.items()}
    new = [member["id"] for party in joining for member in party.members]
    values = [percentiles[player] for player in [*present, *new] if player in percentiles]
    return max(values) - min(values) if values else 0.0


def line_up(match: LiveMatchRow, joining: list[list[int]]) -> list[list[int]]:
    """The ids of each team's players, those in the match and those joining."""
    present = [[slot["id"] for slot in team if _is_in(slot)] for team in match.body["teams"]]
    return [[*team, *new] for team, new in zip(present, joining, strict=True)]


def former(match: LiveMatchRow) -> set[int]:
    """The ids of the players who have left a match."""
    return {slot["id"] for slot in match.slots() if not _is_in(slot)}


def _settings(match: LiveMatchRow) -> dict[str, str]:
    """The attributes of a match, and its map."""
    settings = dict(match.body.get("attributes", {}))
    return settings | {MAP: match.body["map"]} if "map" in match.body else settings


def _is_in(slot: MatchSlot) -> bool:
    spells = slot.get("spells")
    return not spells or spells[-1][1] is None


def _tickets_of_slots(team: list[MatchSlot], inside: PresentPlayers, formed: int, policy: Policy) -> list[Ticket]:
    """The tickets of a team's players who are still in the match."""
    present = [slot for slot in team if _is_in(slot)]
    team_tickets: list[Ticket] = []
    by_number: dict[int, set[int]] = {}
    for slot in present:
        number = slot.get("ticket")
        if number is not None and number in inside.parties:
            by_number.setdefault(number, set()).add(slot["id"])
        else:
            team_tickets.append(Ticket(id=MADE_UP + slot["id"], queued=formed, members=(inside.built[slot["id"]],)))
    for number, players in by_number.items():
        party, queued = inside.parties[number], inside.queued[number]
        team_tickets.append(ticket_of(party, number, queued, policy.roles, _no_meetings, frozenset(players)))
    return team_tickets


def _no_meetings(_: int) -> tuple[()]:
    """Earlier meetings do not matter for players who are already in the match."""
    return ()


@dataclass(frozen=True)
class TickCounts:
    """The result of a tick: the numbers of new offers, expired offers and dropped tickets."""

    offers: tuple[int, ...] = ()
    lapsed: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()


class NewOffer(NamedTuple):
    """An offer to make. on_map: where the odds decide about the map, the predicted score of each team by map."""

    queue: str
    body: OfferBody
    on_map: Mapping[str, list[float]]


@dataclass
class TickDecisions:
    """The decisions of a tick.

    lapsed   numbers of expired offers;  dropped  tickets to drop, with the reason
    off      offers to cancel, with the reason for each ticket that ends
    made     new offers;  taken  tickets taken out of all queues until the end of the tick
    """

    lapsed: list[int] = field(default_factory=list)
    off: dict[int, dict[int, str]] = field(default_factory=dict)
    dropped: dict[int, str] = field(default_factory=dict)
    made: list[NewOffer] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of change numbers needed to write the decisions."""
        return len(self.made) + bool(self.lapsed or self.off or self.dropped)


class MatchmakerTick:
    """A tick at one time, on an up-to-date queue state whose lock the caller holds.

    since  when this process became the matchmaker; missing heartbeats count only after that
    """

    def __init__(self, queue_service: QueueService, ladder: str, queue_state: QueueState, now: int, since: int) -> None:
        self._queue_service, self._ladder, self._state = queue_service, ladder, queue_state
        self._now, self._since = now, since
        self._database = queue_service.service.database

    def run(self, levels: JoinProfiles) -> TickCounts:
        """Decide, then write."""
        decisions = TickDecisions()
        try:
            self._decide(decisions, levels)
            if not decisions.count:
                return TickCounts()
            stepped = with_locks({self._state.ladder: decisions.count}, partial(self._write, decisions))
            self._state.catch_up(self._now)
            return stepped
        finally:
            self._state.give_back(decisions.taken, self._now)

    def _decide(self, decisions: TickDecisions, levels: JoinProfiles) -> None:
        queue_state, now = self._state, self._now
        decisions.lapsed = [offer.offer for offer in queue_state.offers.values() if offer.deadline < now]
        decisions.dropped = dict(queue_state.refused)
        if levels.view.settings.archived:
            decisions.dropped |= dict.fromkeys(queue_state.held, endings.ARCHIVED)
        if banned := levels.plan.banned(now):
            self._drop_banned(decisions, banned)
        self._drop_silent(decisions)
        queue_state.take(list(decisions.dropped), decisions.taken)
        self._fill_openings(decisions, levels)
        proposals, expired = queue_state.propose(now, decisions.taken)
        odds = queue_state.odds.expected([proposal.players for _, proposal in proposals])
        for (queue, proposal), expected, on_map in zip(proposals, odds, self._odds_on_maps(proposals), strict=True):
            decisions.made.append(NewOffer(queue, self._body(queue, proposal, expected), on_map))
        for ticket in sorted(expired):
            waited = (now - queue_state.held[ticket].queued_at) // SECOND
            reason = endings.NO_MATCH.format(seconds=waited)
            decisions.dropped.setdefault(ticket, reason)

    def _odds_on_maps(self, proposals: Sequence[tuple[str, Proposal]]) -> list[dict[str, list[float]]]:
        """The predicted scores of each proposal by map; empty if its map is drawn, or the system cannot predict it."""
        on_maps: list[dict[str, list[float]]] = [{} for _ in proposals]
        accepting: defaultdict[str, list[int]] = defaultdict(list)
        for index, (queue, proposal) in enumerate(proposals):
            if self._state.policy(queue, self._now).map_choice == "even":
                for name in proposal.maps:
                    accepting[name].append(index)
        for name, chosen in accepting.items():
            odds = self._state.odds.expected([proposals[index][1].players for index in chosen], {MAP: name})
            for index, expected in zip(chosen, odds, strict=True):
                if expected is not None:
                    on_maps[index][name] = expected
        return on_maps

    def _drop_banned(self, decisions: TickDecisions, banned: Collection[int]) -> None:
        """Drop tickets whose players were banned while they waited, and cancel their offers."""
        for ticket, held in self._state.held.items():
            names = [member["name"] for member in held.party.members if member["id"] in banned]
            if names:
                decisions.dropped[ticket] = endings.banned(names)
        for offer in self._state.offers.values():
            if offer.offer in decisions.lapsed:
                continue
            names_of: defaultdict[int, list[str]] = defaultdict(list)
            for slot in offer.chairs:
                if slot["id"] in banned:
                    names_of[slot["ticket"]].append(slot["player"])
            if names_of:
                decisions.off[offer.offer] = {ticket: endings.banned(names) for ticket, names in names_of.items()}

    def _drop_silent(self, decisions: TickDecisions) -> None:
        """Drop tickets without a recent heartbeat, found in memory and checked in the database."""
        queue_state, now = self._state, self._now
        silent: dict[int, int] = {}
        for ticket, held in queue_state.held.items():
            heartbeats = [
                queue_state.setups[name].rules.heartbeat for name in held.party.queues if name in queue_state.setups
            ]
            known = [seconds for seconds in heartbeats if seconds is not None]
            if not known or len(known) < len(heartbeats):
                continue
            limit = now - round((max(known) + GRACE) * SECOND)
            if max(held.seen_at, self._since) < limit:
                silent[ticket] = limit
        if not silent:
            return
        with self._database.read() as store:
            seen = queue_sql.read_heartbeats(store, queue_state.ladder, sorted(silent))
        for ticket, seen_at in seen.items():
            queue_state.held[ticket].seen_at = seen_at
            if seen_at < silent[ticket]:
                decisions.dropped[ticket] = endings.NO_HEARTBEAT.format(seconds=(now - seen_at) // SECOND)

    def _fill_openings(self, decisions: TickDecisions, levels: JoinProfiles) -> None:
        queue_state = self._state
        offered = {offer.body["match"] for offer in queue_state.offers.values() if offer.offer not in decisions.lapsed}
        matches = [match for match in queue_state.openings.values() if match.match_id not in offered]
        if not matches:
            return
        with self._database.read() as store:
            inside = read_inside(store, queue_state.ladder, matches, levels, self._now)
        for match in sorted(matches, key=lambda match: (match.started_at, match.match_id)):
            assert match.openings is not None
            name = match.openings["queue"]
            if name not in queue_state.queues or queue_state.setups[name].paused is not None:
                continue
            policy = queue_state.policy(name, self._now)
            with queue_state.without(former(match), self._now):  # players who left do not return
                filling = fill(match, inside, queue_state.queues[name], self._now, policy)
            if filling is not None:
                decisions.made.append(NewOffer(name, self._filling_body(name, match, filling, inside), {}))
                queue_state.take([ticket for team in filling.teams for ticket in team], decisions.taken)

    def _body(self, queue: str, proposal: Proposal, expected: list[float] | None) -> OfferBody:
        body = self._joining_body(queue, proposal.teams, proposal.roles)
        experiment = self._state.setups[queue].experiment
        if experiment is not None:
            arm, elapsed = experiment.arm_at(self._now), self._now - experiment.started_at
            body["trial"] = {"experiment": experiment.number, "arm": arm, "elapsed": elapsed}
        body |= {
            "region": proposal.region,
            "ping": proposal.ping,
            "odds": expected,
            "spread": proposal.spread,
            "costs": proposal.costs,
            "attributes": proposal.attributes,
            "maps": list(proposal.maps),
        }
        return body

    def _filling_body(self, queue: str, match: LiveMatchRow, filling: Filling, inside: PresentPlayers) -> OfferBody:
        by_team = [[self._state.held[ticket].party for ticket in team] for team in filling.teams]
        new = [[player for party in team for player in party.players] for team in by_team]
        body = self._joining_body(queue, filling.teams, {})
        body |= {
            "match": match.match_id,
            "region": match.body.get("region"),
            "odds": self._state.odds.expected([line_up(match, new)])[0],
            "spread": spread_of(match, inside, [party for team in by_team for party in team]),
            "attributes": match.body.get("attributes", {}),
            "map": match.body.get("map"),
        }
        return body

    def _joining_body(self, queue: str, teams: Sequence[Sequence[int]], roles: Mapping[int, str | None]) -> OfferBody:
        """The part of an offer's body that describes its tickets. The caller fills in the rest."""
        numbers = [ticket for team in teams for ticket in team]
        held = [self._state.held[ticket] for ticket in numbers]
        percentiles = [member["percentile"] for waiting in held for member in waiting.party.members]
        waits = [max(self._now - waiting.queued_at, 0) / SECOND for waiting in held]
        return {
            "teams": [self._slots(team, roles) for team in teams],
            "match": None,
            "region": None,
            "ping": 0.0,
            "odds": None,
            "spread": 0.0,
            "waited": max(waits),
            "costs": {},
            "waits": waits,
            "estimates": [self._state.estimates.get(ticket, {}).get(queue) for ticket in numbers],
            "percentile": sum(percentiles) / len(percentiles),
            "policy": self._state.setups[queue].change,
            "attributes": {},
            "maps": [],
            "map": None,
            "trial": None,
        }

    def _slots(self, team: Sequence[int], roles: Mapping[int, str | None]) -> list[OfferSlot]:
        return [
            {"player": member["name"], "id": member["id"], "ticket": ticket, "role": roles.get(member["id"])}
            for ticket in team
            for member in self._state.held[ticket].party.members
        ]

    def _write(self, decisions: TickDecisions, counts: Mapping[int, int]) -> TickCounts:
        """Write the decisions that are still valid after changes to tickets, offers and queues.

        counts  see QueueChanges
        """
        queue_state, now = self._state, self._now
        with self._database.write() as store:
            changes = QueueChanges(store, queue_state.ladder, now, counts, queue_state.setups)
            changes.read_offers([*decisions.lapsed, *decisions.off])
            still_open = [offer for offer in changes.offers.values() if offer.state in queue_sql.OFFERS_PENDING]
            # The last player may have accepted in the meantime, which gives the offer a new deadline.
            lapsed = [offer for offer in still_open if offer.offer not in decisions.off and offer.deadline < now]
            for offer in lapsed:
                changes.lapse(offer)
            for offer in still_open:
                if offer.offer in decisions.off:
                    changes.cancel(offer, decisions.off[offer.offer])
            involved = {ticket for made in decisions.made for ticket in _tickets(made.body)} | decisions.dropped.keys()
            waiting = queue_sql.read_waiting_among(store, queue_state.ladder, sorted(involved))
            dropped = sorted(waiting & decisions.dropped.keys())
            for ticket in dropped:
                changes.drop(ticket, queue_state.held[ticket].party.players, decisions.dropped[ticket])
            unchanged = self._unchanged(store)
            valid = [made for made in decisions.made if made.queue in unchanged and _tickets(made.body) <= waiting]
            numbered = list(enumerate(valid, changes.first))
            self._choose_maps(store, numbered)
            new = [self._offer(number, changes.last, made.queue, made.body) for number, made in numbered]
            for offer in new:
                changes.put(offer)
            changes.write()
            touched = self._queue_service.notifier.announce_changed(store, self._ladder, changes.touched)
        self._queue_service.notifier.ring_changed(touched)
        return TickCounts(tuple(offer.offer for offer in new), tuple(offer.offer for offer in lapsed), tuple(dropped))

    def _unchanged(self, store: Store) -> set[str]:
        """The names of the queues whose stored configuration is still the one in memory."""
        stored = {name: setup.change for name, setup in stored_queues.read(store, self._state.ladder).items()}
        return {name for name, setup in self._state.setups.items() if stored.get(name) == setup.change}

    def _choose_maps(self, store: Store, numbered: Sequence[tuple[int, NewOffer]]) -> None:
        """Choose the map of each new match among those that its players accept; see choose_map."""
        played: dict[str, list[str]] = {}
        for number, (queue, body, on_map) in numbered:
            if maps := body["maps"]:
                if queue not in played:
                    played[queue] = queue_sql.read_latest_maps(store, self._state.ladder, queue, REMEMBERED)
                seed = self._state.policy(queue, self._now).map_seed
                favourite = [round(max(on_map[name]), DIGITS) for name in maps] if on_map else None
                body["map"] = chosen = choose_map(maps, played[queue], seed, number, favourite)
                body["odds"] = on_map.get(chosen, body["odds"])
                played[queue].append(chosen)

    def _offer(self, number: int, change: int, queue: str, body: OfferBody) -> OfferRow:
        deadline = self._now + round(self._state.setups[queue].rules.accept_within * SECOND)
        return OfferRow(number, change, queue, queue_sql.OFFERS_OPEN, self._now, deadline, None, body)


def _tickets(body: OfferBody) -> set[int]:
    return {slot["ticket"] for team in body["teams"] for slot in team}
