"""All API methods, one module per subject, written once for both clients."""

from __future__ import annotations

from evenmatch.client.calls.access import Access
from evenmatch.client.calls.corrections import Corrections
from evenmatch.client.calls.health import Monitoring
from evenmatch.client.calls.jobs import JobCalls
from evenmatch.client.calls.ladders import Ladders
from evenmatch.client.calls.live import LiveMatchCalls
from evenmatch.client.calls.matches import MatchCalls
from evenmatch.client.calls.players import Players
from evenmatch.client.calls.queues import QueueCalls
from evenmatch.client.calls.standings import Standings
from evenmatch.client.calls.tickets import TicketCalls
from evenmatch.client.calls.webhooks import WebhookCalls


class Calls(
    MatchCalls,
    LiveMatchCalls,
    TicketCalls,
    QueueCalls,
    Ladders,
    Standings,
    Players,
    Corrections,
    JobCalls,
    Access,
    WebhookCalls,
    Monitoring,
):
    """All API methods of both clients."""
