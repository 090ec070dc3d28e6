"""The tables of a running service: access, audit, queues, tickets, offers, live matches, webhooks and jobs.

None of them affects a rating. Times are microseconds since the Unix epoch, UTC; the columns body, policy, rules,
scopes, ladders, events and said contain JSON. `change` numbers the changes of a ladder's queues, as `position` numbers
its events.
"""

from __future__ import annotations

import sqlalchemy as sa

from evenmatch.ledger.schema import BYTES, REAL, TEXT, WHOLE, column, key, table

OPEN = "state = 'open'"  # few rows compared with finished ones
ALLOCATING = "state = 'allocating'"
PENDING = "next_at IS NOT NULL"
DEAD = "next_at IS NULL AND delivered_at IS NULL"

# Sealed columns contain values that secrets.Sealer has encrypted; this is the check value of the master secret.
secret_check = table("secret_check", key("name", TEXT), column("value", BYTES))
# verifier: the SHA-256 of the SHA-256 of the key's text; signing_key: that SHA-256, sealed; null: the key cannot sign.
# ladders: null means all ladders, including future ones.
api_key = table(
    "api_key",
    key("key", TEXT),
    column("name", TEXT),
    column("verifier", BYTES),
    column("signing_key", BYTES, empty=True),
    column("scopes", TEXT),
    column("ladders", TEXT, empty=True),
    column("created_at"),
    column("expires_at", empty=True),
    column("revoked_at", empty=True),
)
# Accounts at identity providers, by which players log in. issuer: the URL of an OpenID provider, discord or steam.
# player: a name of the player, not necessarily the present one.
linked_account = table(
    "linked_account",
    key("issuer", TEXT),
    key("subject", TEXT),
    column("player", TEXT),
    column("linked_at"),
    sa.Index("ix_linked_account_player", "player"),
)
# Page sessions ended before they expired; until: when they would have expired.
ended_session = table("ended_session", key("session", TEXT), column("until"))
# Signatures of writes that were accepted. until: when their timestamp is too old, in seconds since the epoch.
seen_signature = table("seen_signature", key("until"), key("digest", BYTES), clustered=True)
# Requests with an Idempotency-Key. digest: SHA-256 of that key, hexadecimal; content: SHA-256 of the request.
# held_until: end of the lease of the process that runs it; answer: sealed, null while it runs.
idempotent_request = table(
    "idempotent_request",
    key("caller", TEXT),
    key("digest", TEXT),
    column("content", BYTES),
    column("request", TEXT),
    column("begun_at"),
    column("held_until"),
    column("answer", BYTES, empty=True),
    sa.Index("ix_idempotent_request_begun_at", "begun_at"),
)
# Change counters for data that processes cache; `names` counts renamed, merged and erased players.
counter = table("counter", key("name", TEXT), column("value"))
# The audit trail: rows are added and never changed.
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
# Leases on work that only one process may do at a time. beat: incremented by each renewal; held_at: time of renewal.
lease = table("lease", key("name", TEXT), column("owner", TEXT), column("beat"), column("held_at", empty=True))

# The change lock of each ladder that has queues: writers lock this row.
line = table("line", key("ladder"), column("change"))
# paused: the operator's message, which may be empty; null: the queue is not paused.
queue = table(
    "queue",
    key("ladder"),
    key("queue", TEXT),
    column("change"),
    column("policy", TEXT),
    column("rules", TEXT),
    column("paused", TEXT, empty=True),
)
# state: waiting, offered, elsewhere (another ticket of its playlist has an offer), matched or gone (removed).
# ended: the reason for gone; offer, match_id: set for the states offered and matched.
# playlist: [ladder, ticket] of each ticket of the playlist; null: the party waits on one ladder only.
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
    column("playlist", TEXT, empty=True),
    sa.Index("ix_ticket_change", "ladder", "change"),
)
# The key ensures that a player waits in at most one ticket (or playlist) or plays in one match, across all ladders. The
# seat of a playlist names the ticket that has an offer, or any open one.
seat = table(
    "seat",
    key("player"),
    column("ladder"),
    column("ticket", empty=True),
    column("match_id", TEXT, empty=True),
    clustered=True,
)
# The seat of a player in a match announced by a key that is limited to some ladders: it applies to this ladder only.
ladder_seat = table("ladder_seat", key("ladder"), key("player"), column("match_id", TEXT), clustered=True)
# state: open, allocating (accepted by all, wants a game server), made (the match began) or off (cancelled). said: the
# players who have accepted.
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
    sa.Index(
        "ix_offer_allocating",
        "deadline",
        postgresql_where=sa.text(ALLOCATING),
        sqlite_where=sa.text(ALLOCATING),
    ),
)
# strikes: missed or declined matches, decaying since struck_at; until: when the player may queue again.
penalty = table(
    "penalty",
    key("ladder"),
    key("player"),
    column("strikes", REAL),
    column("struck_at"),
    column("until"),
    clustered=True,
)
# A live or former match. state: open, closed (reported), cancelled or expired. openings: seats to be filled.
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
    sa.Index("ix_live_open", "ladder", "expires_at", postgresql_where=sa.text(OPEN), sqlite_where=sa.text(OPEN)),
)

# The filters that players keep on a ladder.
queue_filter = table("queue_filter", key("ladder"), key("player"), column("body", TEXT), clustered=True)
# Matches that queues formed, with their predictions; kept as long as the ladder. policy: the number of the
# change that set the queue's policy.
formed_match = table(
    "formed_match",
    key("ladder"),
    key("match_id", TEXT),
    column("queue", TEXT),
    column("formed_at"),
    column("policy"),
    column("body", TEXT),
    sa.Index("ix_formed_match_queue", "ladder", "queue", "formed_at"),
)
# Experiments with two policies in one queue; kept as long as the ladder. experiment: the number of the change that
# started it; stopped_at: null while it runs.
queue_experiment = table(
    "queue_experiment",
    key("ladder"),
    key("experiment"),
    column("queue", TEXT),
    column("started_at"),
    column("stopped_at", empty=True),
    column("body", TEXT),
)

# ladder: null means all ladders. secret: the signing key for payloads, sealed.
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
# The last event of a ladder's ledger, and the last change of its queues, with deliveries created for a webhook.
told = table("told", key("ladder"), key("webhook"), column("position"), column("change"), clustered=True)
# next_at: time of the next attempt; null if delivered (delivered_at is set) or given up (dead).
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
    sa.Index(
        "ix_delivery_pending",
        *("webhook", "delivery"),
        postgresql_where=sa.text(PENDING),
        sqlite_where=sa.text(PENDING),
    ),
    sa.Index("ix_delivery_made_at", "made_at"),
    sa.Index("ix_delivery_webhook", "webhook", "delivery"),
    sa.Index("ix_delivery_dead", "delivery", postgresql_where=sa.text(DEAD), sqlite_where=sa.text(DEAD)),
)
# Background jobs and their progress. state: running, cancelling, done, failed or cancelled. request, as_of: equal jobs.
job = table(
    "job",
    key("job", TEXT),
    column("ladder_name", TEXT),
    column("kind", TEXT),
    column("request", TEXT),
    column("as_of", TEXT, empty=True),
    column("state", TEXT),
    column("done"),
    column("total"),
    column("told", TEXT),
    column("begun_at"),
    column("changed_at"),
)
