"""One tick of a ladder's matchmaker: what is thought of outside of any transaction, and then written in one."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenmatch.ledger.store import Store
from evenmatch.matchmaking import Filling, Proposal
from evenmatch.service.playing.live import Live
from evenmatch.service.queueing import filling, offers, queue_rules, tickets
from evenmatch.service.queueing.desk import Desk
from evenmatch.service.queueing.levels import Levels
from evenmatch.service.queueing.mirror import Mirror
from evenmatch.service.queueing.offers import Chair, OfferBody, OfferRow
from evenmatch.service.queueing.turns import Turn

SECOND = 1_000_000


@dataclass(frozen=True)
class Stepped:
    """What a tick did: numbers of new offers, of those that lapsed, and of tickets that were dropped."""

    offers: tuple[int, ...] = ()
    lapsed: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()


@dataclass
class Thought:
    """What a tick wants to write.

    dropped  tickets to be given up, and why;  made  offers, by queue;  taken  tickets that stand in no queue meanwhile
    """

    lapsed: list[int] = field(default_factory=list)
    dropped: dict[int, str] = field(default_factory=dict)
    made: list[tuple[str, OfferBody]] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Numbers for changes that writing it takes."""
        return len(self.made) + bool(self.lapsed or self.dropped)


class Tick:
    """A tick at one moment, on a mirror that has caught up and is held by the caller.

    since  nobody is dropped for want of a sign of life from before
    """

    def __init__(self, desk: Desk, ladder: str, mirror: Mirror, now: int, since: int) -> None:
        self._desk, self._ladder, self._mirror = desk, ladder, mirror
        self._now, self._since = now, since
        self._database = desk.service.database

    def run(self, levels: Levels) -> Stepped:
        """Think, then write."""
        thought = Thought()
        try:
            self._think(thought, levels)
            if not thought.count:
                return Stepped()
            stepped = self._write(thought)
            self._mirror.catch_up(self._now)
            return stepped
        finally:
            self._mirror.give_back(thought.taken, self._now)

    def _think(self, thought: Thought, levels: Levels) -> None:
        mirror, now = self._mirror, self._now
        thought.lapsed = [one.offer for one in mirror.offers.values() if one.deadline < now]
        thought.dropped = dict(mirror.refused)
        if levels.view.settings.archived:
            thought.dropped |= dict.fromkeys(mirror.held, "the ladder was archived")
        self._think_of_unseen(thought)
        mirror.take(list(thought.dropped), thought.taken)
        self._think_of_openings(thought, levels)
        proposals, expired = mirror.propose(now, thought.taken)
        thought.made += [(queue, self._body(proposal)) for queue, proposal in proposals]
        for ticket in sorted(expired):
            waited = (now - mirror.held[ticket].queued_at) // SECOND
            thought.dropped.setdefault(ticket, f"nobody fit in {waited} s, which is as long as its queue lets wait")

    def _think_of_unseen(self, thought: Thought) -> None:
        """Whose client has disappeared: first by what is known here, then by what others have noted since."""
        mirror, now = self._mirror, self._now
        silent: dict[int, int] = {}
        for ticket, held in mirror.held.items():
            beats = [mirror.setups[name].rules.heartbeat for name in held.party.queues if name in mirror.setups]
            known = [one for one in beats if one is not None]
            if not known or len(known) < len(beats):
                continue
            limit = now - round(max(known) * SECOND)
            if max(held.seen_at, self._since) < limit:
                silent[ticket] = limit
        if not silent:
            return
        with self._database.read() as connection:
            seen = tickets.seen_since(Store(connection, self._database.rows), mirror.ladder, sorted(silent))
        for ticket, seen_at in seen.items():
            mirror.held[ticket].seen_at = seen_at
            if seen_at < silent[ticket]:
                thought.dropped[ticket] = f"no sign of life for {(now - seen_at) // SECOND} s"

    def _think_of_openings(self, thought: Thought, levels: Levels) -> None:
        mirror = self._mirror
        asked = {one.body["match"] for one in mirror.offers.values() if one.offer not in thought.lapsed}
        matches = [one for one in mirror.openings.values() if one.match_id not in asked]
        if not matches:
            return
        with self._database.read() as connection:
            store = Store(connection, self._database.rows)
            inside = filling.read_inside(store, mirror.ladder, matches, levels)
        for match in sorted(matches, key=lambda one: (one.started_at, one.match_id)):
            assert match.openings is not None
            name = match.openings["queue"]
            if name not in mirror.queues:
                continue
            with mirror.without(filling.former(match), self._now):  # they left it: it is no match for them
                found = filling.fill(match, inside, mirror.queues[name], self._now, mirror.policy(name))
            if found is not None:
                thought.made.append((name, self._filling_body(match, found, inside)))
                mirror.take([ticket for team in found.teams for ticket in team], thought.taken)

    def _body(self, proposal: Proposal) -> OfferBody:
        return {
            "teams": [self._chairs(team, proposal.roles) for team in proposal.teams],
            "match": None,
            "region": proposal.region,
            "ping": proposal.ping,
            "odds": proposal.odds,
            "spread": proposal.spread,
            "waited": proposal.waited,
            "costs": proposal.costs,
        }

    def _filling_body(self, match: Live, found: Filling, inside: filling.Inside) -> OfferBody:
        coming = [self._mirror.held[ticket] for team in found.teams for ticket in team]
        return {
            "teams": [self._chairs(team, {}) for team in found.teams],
            "match": match.match_id,
            "region": match.body.get("region"),
            "ping": 0.0,
            "odds": found.odds,
            "spread": filling.spread_of(match, inside, [one.party for one in coming]),
            "waited": max(self._now - min(one.queued_at for one in coming), 0) / SECOND,
            "costs": {},
        }

    def _chairs(self, team: tuple[int, ...], roles: dict[int, str | None]) -> list[Chair]:
        return [
            {"player": one["name"], "id": one["id"], "ticket": ticket, "role": roles.get(one["id"])}
            for ticket in team
            for one in self._mirror.held[ticket].party.members
        ]

    def _write(self, thought: Thought) -> Stepped:
        """Write what still holds: others may have changed what was read."""
        mirror, now = self._mirror, self._now
        with self._database.write() as connection:
            store = Store(connection, self._database.rows)
            turn = Turn.take(store, mirror.ladder, mirror.setups, now, thought.count)
            turn.read_offers(thought.lapsed)
            lapsed = [one for one in turn.offers.values() if one.state == offers.OPEN]
            for offer in lapsed:
                turn.lapse(offer)
            involved = {ticket for _, body in thought.made for ticket in _tickets(body)} | thought.dropped.keys()
            waiting = tickets.still_waiting(store, mirror.ladder, sorted(involved))
            dropped = sorted(waiting & thought.dropped.keys())
            for ticket in dropped:
                turn.drop(ticket, mirror.held[ticket].party.players, thought.dropped[ticket])
            unchanged = self._unchanged(store)
            made = [(queue, body) for queue, body in thought.made if queue in unchanged and _tickets(body) <= waiting]
            new = [self._offer(turn.first + at, turn.last, *one) for at, one in enumerate(made)]
            for offer in new:
                turn.put(offer)
            turn.keep()
            touched = sorted(turn.touched)
            self._desk.bell.announce(store, self._ladder, touched)
        self._desk.bell.ring(self._ladder, touched)
        return Stepped(tuple(one.offer for one in new), tuple(one.offer for one in lapsed), tuple(dropped))

    def _unchanged(self, store: Store) -> set[str]:
        """The queues that are as the mirror has them."""
        found = queue_rules.changes(store, self._mirror.ladder)
        return {name for name, setup in self._mirror.setups.items() if found.get(name) == setup.change}

    def _offer(self, number: int, change: int, queue: str, body: OfferBody) -> OfferRow:
        deadline = self._now + round(self._mirror.setups[queue].rules.accept_within * SECOND)
        return OfferRow(number, change, queue, offers.OPEN, self._now, deadline, None, body)


def _tickets(body: OfferBody) -> set[int]:
    return {chair["ticket"] for team in body["teams"] for chair in team}
