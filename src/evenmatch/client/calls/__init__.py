"""Every call of the service, a file for each subject. Each is described once, for both clients."""

from __future__ import annotations

from evenmatch.client.calls.access import Access
from evenmatch.client.calls.corrections import Corrections
from evenmatch.client.calls.health import Monitoring
from evenmatch.client.calls.jobs import Jobs
from evenmatch.client.calls.ladders import Ladders
from evenmatch.client.calls.live import Live
from evenmatch.client.calls.matches import Matches
from evenmatch.client.calls.players import Players
from evenmatch.client.calls.queues import Queues
from evenmatch.client.calls.standings import Standings
from evenmatch.client.calls.tickets import Tickets
from evenmatch.client.calls.webhooks import Webhooks


class Calls(
    Matches, Live, Tickets, Queues, Ladders, Standings, Players, Corrections, Jobs, Access, Webhooks, Monitoring
):
    """All of them."""
