"""The tables of a running service: who may do what, who waits, which matches are on, who is to be told.

None of it changes a rating. Times are microseconds since the Unix epoch, UTC; columns called body, policy, rules,
scopes, ladders, events and said hold JSON. `change` numbers the changes of a ladder's queues as `position` does its
events.
"""

from __future__ import annotations

import sqlalchemy as sa

from evenmatch.ledger.schema import BYTES, REAL, TEXT, WHOLE, column, key, table

OPEN = "state = 'open'"  # few among those that are over
DEAD = "next_at IS NULL AND delivered_at IS NULL"

# Of a key its SHA-256 alone is kept. ladders: null stands for all of them, those to come too.
api_key = table(
    "api_key",
    key("key", TEXT),
    column("name", TEXT),
    column("digest", BYTES),
    column("scopes", TEXT),
    column("ladders", TEXT, empty=True),
    column("created_at"),
    column("expires_at", empty=True),
    column("revoked_at", empty=True),
)
# Sessions of pages that were ended before their time; until: when they would have ended.
ended_session = table("ended_session", key("session", TEXT), column("until"))
# What the processes share and tell nobody: by which players' tokens are signed.
secret = table("secret", key("name", TEXT), column("value", BYTES), column("created_at"))
# How often something changed that processes remember: names, since players were renamed, merged or erased.
counter = table("counter", key("name", TEXT), column("value"))
# Who did what, when: rows are added and never changed.
audit = table(
    "audit",
    sa.Column("entry", WHOLE, sa.Identity(), primary_key=True),
    column("at"),
    column("actor", TEXT),
    column("action", TEXT),
    column("ladder", TEXT, empty=True),
    column("target", TEXT, empty=True),
    column("body", TEXT),
    column("request", TEXT, empty=True),
    sa.Index("ix_audit_ladder", "ladder", "entry"),
)
# Which process does what only one may do at a time. beat: counted up by each renewal; held_at: when that was.
lease = table("lease", key("name", TEXT), column("owner", TEXT), column("beat"), column("held_at", empty=True))

# A ladder that has queues: the row by which their writers wait for one another.
line = table("line", key("ladder"), column("change"))
queue = table(
    "queue", key("ladder"), key("queue", TEXT), column("change"), column("policy", TEXT), column("rules", TEXT)
)
# state: waiting, offered, matched or gone; ended: why it is gone; offer, match_id: of the state offered, and matched.
ticket = table(
    "ticket",
    key("ladder"),
    key("ticket"),
    column("change"),
    column("state", TEXT),
    column("queued_at"),
    column("seen_at"),
    column("body", TEXT),
    column("offer", empty=True),
    column("match_id", TEXT, empty=True),
    column("ended", TEXT, empty=True),
    sa.Index("ix_ticket_change", "ladder", "change"),
)
# A player waits in one ticket or plays in one match, on whatever ladder: the key says so.
seat = table(
    "seat",
    key("player"),
    column("ladder"),
    column("ticket", empty=True),
    column("match_id", TEXT, empty=True),
    clustered=True,
)
# state: open, made or off. said: which of its players have accepted.
offer = table(
    "offer",
    key("ladder"),
    key("offer"),
    column("change"),
    column("queue", TEXT),
    column("state", TEXT),
    column("made_at"),
    column("deadline"),
    column("match_id", TEXT, empty=True),
    column("body", TEXT),
    column("said", TEXT),
    sa.Index("ix_offer_change", "ladder", "change"),
)
# strikes: how often a player let others down, fading since struck_at; until: when they may queue again.
penalty = table(
    "penalty",
    key("ladder"),
    key("player"),
    column("strikes", REAL),
    column("struck_at"),
    column("until"),
    clustered=True,
)
# A match that is on, or was. state: open, closed (it was reported), cancelled or expired. openings: seats to be filled.
live = table(
    "live",
    key("ladder"),
    key("match_id", TEXT),
    column("change"),
    column("state", TEXT),
    column("queue", TEXT, empty=True),
    column("started_at"),
    column("expires_at"),
    column("body", TEXT),
    column("openings", TEXT, empty=True),
    sa.Index("ix_live_change", "ladder", "change"),
    sa.Index("ix_live_open", "ladder", postgresql_where=sa.text(OPEN), sqlite_where=sa.text(OPEN)),
)

# ladder: null stands for all. secret: by which what is sent is signed, so it must be kept as it is.
webhook = table(
    "webhook",
    sa.Column("webhook", WHOLE, sa.Identity(), primary_key=True),
    column("ladder", TEXT, empty=True),
    column("url", TEXT),
    column("secret", BYTES),
    column("events", TEXT),
    column("created_at"),
    column("removed_at", empty=True),
)
# Up to which event of a ladder's ledger, and which change of its queues, deliveries were made.
told = table("told", key("ladder"), key("webhook"), column("position"), column("change"), clustered=True)
# next_at: when to try (again); null where it is over: delivered_at, or dead.
delivery = table(
    "delivery",
    sa.Column("delivery", WHOLE, sa.Identity(), primary_key=True),
    column("webhook"),
    column("event", TEXT),
    column("body", TEXT),
    column("made_at"),
    column("attempts"),
    column("next_at", empty=True),
    column("delivered_at", empty=True),
    column("error", TEXT, empty=True),
    sa.Index("ix_delivery_next_at", "next_at"),
    sa.Index("ix_delivery_webhook", "webhook", "delivery"),
    sa.Index("ix_delivery_dead", "delivery", postgresql_where=sa.text(DEAD), sqlite_where=sa.text(DEAD)),
)
# Work that takes longer than a request: how far it is. state: running, done or failed.
job = table(
    "job",
    key("job", TEXT),
    column("ladder_name", TEXT),
    column("kind", TEXT),
    column("state", TEXT),
    column("done"),
    column("total"),
    column("told", TEXT),
    column("begun_at"),
    column("changed_at"),
)
