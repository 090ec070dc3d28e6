"""The matchmaker: pure functions of (queue, now, policy) without clock, randomness or I/O."""

from evenmatch.attributes import Attribute
from evenmatch.matchmaking.attributes import check_choices
from evenmatch.matchmaking.backfill import Filling, Opening, backfill
from evenmatch.matchmaking.odds import LineUps, Logistic, OddsFunction
from evenmatch.matchmaking.proposal import Proposal, Proposals
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tick import choose_map
from evenmatch.matchmaking.tickets import Member, Met, Ticket, Tickets
from evenmatch.matchmaking.waiting import Waiting, why
from evenmatch.policy import Policy, presets

__all__ = [
    "Attribute",
    "Filling",
    "LineUps",
    "Logistic",
    "Member",
    "Met",
    "OddsFunction",
    "Opening",
    "Policy",
    "Proposal",
    "Proposals",
    "Queue",
    "Ticket",
    "Tickets",
    "Waiting",
    "backfill",
    "check_choices",
    "choose_map",
    "presets",
    "propose",
    "why",
]
