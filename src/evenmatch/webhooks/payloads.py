"""Webhook payloads: the events of a ladder's ledger and the changes of its queues, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from evenmatch.ledger import event_rows, ladder_rows
from evenmatch.ledger.events import Kind, RatingsDecayed
from evenmatch.ledger.store import Head, Row, Store
from evenmatch.players.explanations import ShownRatingChange, shown_number
from evenmatch.queues import queue_sql
from evenmatch.queues.queue_sql import OfferRow
from evenmatch.recording.receipts import MatchReceipt, PlayerReceipt, first_receipts
from evenmatch.times import iso_time
from evenmatch.webhooks.webhook_sql import Cursor

BATCH = 2_000  # ledger events of a ladder read at once

Body = dict[str, object]


class NewEvents(NamedTuple):
    """New events in order, as (event, JSON), and the cursor after them."""

    upto: Cursor
    events: list[tuple[str, str]]


def news(store: Store, head: Head, after: Cursor, change: int, wanted: frozenset[str]) -> NewEvents:
    """The wanted events of a ladder after a cursor, those of the ledger first.

    head, change  as read in this transaction; change is the last one
    """
    is_behind = after.position < head.position
    rows = event_rows.read_events_after(store, head.ladder, after.position, BATCH) if is_behind else []
    bodies = [*_of_ledger(store, head, rows, wanted), *_of_queues(store, head, after, change, wanted)]
    upto = Cursor(rows[-1][0] if rows else after.position, change)
    return NewEvents(upto, [(event, write({"event": event, "ladder": head.name, **body})) for event, body in bodies])


def write(body: Body) -> str:
    """Compact JSON, exactly as it is sent."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _of_ledger(store: Store, head: Head, rows: list[Row], wanted: frozenset[str]) -> Iterator[tuple[str, Body]]:
    matches = [row[1] for row in rows if row[2] == Kind.MATCH] if "match.rated" in wanted else []
    receipts = first_receipts(store, head, matches) if matches else {}
    opened = {row[0] for row in rows if row[2] == Kind.SEASON}
    all_seasons = ladder_rows.read_seasons(store, head.ladder) if opened else []
    index_by_position = {season.position: index for index, season in enumerate(all_seasons)}
    for position, match_id, kind, played_at in rows:
        if kind == Kind.MATCH and match_id in receipts and receipts[match_id].rated:
            yield "match.rated", _rated(receipts[match_id], played_at)
        elif kind == Kind.SEASON and position in index_by_position:
            index = index_by_position[position]
            if "season.closed" in wanted and index:
                yield "season.closed", _season(all_seasons[index - 1])
            if "season.opened" in wanted:
                yield "season.opened", _season(all_seasons[index])
        elif kind == Kind.DECAYED and "ratings.decayed" in wanted:
            yield "ratings.decayed", _decay(store, head, position)


def _rated(receipt: MatchReceipt, played_at: int) -> Body:
    teams = [[_line(line) for line in team] for team in receipt.teams]
    head: Body = {"match_id": receipt.match_id, "position": receipt.position}
    return {**head, "played_at": iso_time(played_at), "teams": teams}


def _line(line: PlayerReceipt) -> Body:
    change = line.change
    return {
        "player": change.player,
        **ShownRatingChange.of(change.before, change.after)._asdict(),
        "percentile": line.percentile,
        "division": line.division,
        "expected": shown_number(change.expected),
    }


def _season(season: ladder_rows.Season) -> Body:
    return {
        "season": season.number,
        "title": season.title,
        "position": season.position,
        "opened_at": iso_time(season.opened_at),
        "closed_at": None if season.closed_at is None else iso_time(season.closed_at),
    }


def _decay(store: Store, head: Head, position: int) -> Body:
    decay = event_rows.read_corrections(store, head, position, after=position - 1)[0].change
    assert isinstance(decay, RatingsDecayed)
    shown = {"grace_days": decay.grace_days, "rate": decay.rate, "floor": decay.floor, "stop": decay.stop}
    return {"position": position, "until": iso_time(decay.until), "players": decay.count, **shown}


def _of_queues(
    store: Store, head: Head, after: Cursor, change: int, wanted: frozenset[str]
) -> Iterator[tuple[str, Body]]:
    """In order of changes: an offer's number is the change that created it; state `made` is final."""
    if after.change == change or not {"proposal.made", "match.made"} & wanted:
        return
    changes: list[tuple[int, str, Body]] = []
    for offer in queue_sql.read_changed_offers(store, head.ladder, after.change):
        if offer.offer > after.change and "proposal.made" in wanted:
            changes.append((offer.offer, "proposal.made", _proposal(offer)))
        if offer.state == queue_sql.MADE and "match.made" in wanted:
            changes.append((offer.change, "match.made", _made(offer)))
    for _, event, body in sorted(changes, key=lambda entry: entry[0]):
        yield event, body


def _proposal(offer: OfferRow) -> Body:
    times = {"made_at": iso_time(offer.made_at), "deadline": iso_time(offer.deadline)}
    return {"offer": offer.offer, "queue": offer.queue, **times, "backfill": offer.body["match"], **_line_up(offer)}


def _made(offer: OfferRow) -> Body:
    backfill = offer.body["match"] is not None
    head: Body = {"offer": offer.offer, "queue": offer.queue, "match_id": offer.match_id}
    return {**head, "backfill": backfill, **_line_up(offer)}


def server_wanted(ladder: str, offer: OfferRow) -> str:
    """The request for the game server of an offered match, as JSON."""
    head: Body = {"event": "server.wanted", "ladder": ladder, "offer": offer.offer, "queue": offer.queue}
    return write({**head, "deadline": iso_time(offer.deadline), **_line_up(offer)})


def _line_up(offer: OfferRow) -> Body:
    """The players of the offered match; of a backfill, only the new ones."""
    body = offer.body
    fields = ("player", "ticket", "role")
    teams = [[{name: slot[name] for name in fields} for slot in team] for team in body["teams"]]  # type: ignore[literal-required]
    played: Body = {"region": body["region"], "attributes": body["attributes"], "map": body["map"]}
    return {"teams": teams, **played, "odds": body["odds"], "spread": body["spread"]}
