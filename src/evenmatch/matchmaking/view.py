"""The view of a queue at one time under one policy: the sorted tickets with their windows."""

from __future__ import annotations

import numpy as np

from evenmatch.errors import InputError
from evenmatch.history import Floats
from evenmatch.matchmaking.attributes import fields_of, mask_of, waived_bits
from evenmatch.matchmaking.conflict import keep_apart
from evenmatch.matchmaking.queue import Queue, fill_waiting
from evenmatch.matchmaking.records import WAITING, KernelRules, QueueView, Records
from evenmatch.matchmaking.tickets import ANYWHERE, Masks, Whole, check_number
from evenmatch.options import options_of
from evenmatch.policy import INFINITE, Policy

LONGEST_PLAUSIBLE_WAIT = 300_000_000  # seconds; a longer wait means that a time is not in microseconds

# Fields of KernelRules that are options of a policy, which kernels read as they are.
PASSED_ON = sorted(set(KernelRules._fields) & set(options_of(Policy)) - {"teams", "roles"})


def rules_of(policy: Policy, now: int, size: int) -> KernelRules:
    """The rules for matches with teams of `size` players."""
    return KernelRules(
        now=now,
        teams=policy.teams,
        size=size,
        roles=bool(policy.roles),
        rating_cap=np.inf if policy.max_rating_spread is None else float(policy.max_rating_spread),
        **{name: float(getattr(policy, name)) for name in PASSED_ON},
    )


def view_of(queue: Queue, now: int, policy: Policy) -> tuple[QueueView, Whole]:
    """The view of the tickets that can be matched, and the ids of the expired tickets."""
    check_number("now", now)
    check_policy(policy, "propose")
    order = queue.order()
    longest = INFINITE if policy.max_wait is None else float(policy.max_wait)
    t, expired = np.empty(len(order), WAITING), np.empty(len(order), np.int64)
    visible, given_up = fill_waiting(
        queue.tickets,
        order,
        now,
        longest,
        policy.team_size,
        np.array(policy.steps),
        float(policy.even_spread),
        t,
        expired,
    )
    t = t[:visible]
    if visible and t["waited"].max() > LONGEST_PLAUSIBLE_WAIT:
        raise InputError(
            f"ticket {t['id'][t['waited'].argmax()]} has waited {t['waited'].max():.0f} s; expected times in "
            "microseconds since the epoch"
        )
    if policy.max_ping is not None and queue.region_names:
        t["able"] = _within_ping(queue, t, policy.max_ping)
    apart = keep_apart(t, queue.members, queue.named, now, float(policy.rematch_wait), float(policy.rematch_fade))
    accepts = _accepts(queue, t, policy)
    view = QueueView(t, queue.members, queue.named, _offers(queue, policy), apart[0], apart[1], accepts)
    return view, np.sort(expired[:given_up])


def meets_in(policy: Policy, t: Records, place: int) -> Floats:
    """Seconds until each ticket and the one at `place` are in each other's windows; infinite: never."""
    own = t[place]
    gap = np.maximum(t["high"] - own["low"], own["high"] - t["low"])
    return np.maximum(_reaches_in(policy, t, gap), _reaches_in(policy, t[place : place + 1], gap))


def _reaches_in(policy: Policy, t: Records, gap: Floats) -> Floats:
    """Seconds until the windows of these tickets span a gap, float64 (N,); infinite: never."""
    chosen = np.maximum(t["low"] - t["chosen_lo"], t["chosen_hi"] - t["high"])
    after, width = (np.array(column) for column in zip(*policy.steps, strict=True))
    step = np.searchsorted(np.maximum.accumulate(width), gap)
    begins = np.append(after, INFINITE)[step]
    wait: Floats = np.where(t["loose"], begins - t["waited"], INFINITE)
    return np.where(gap <= chosen, 0.0, np.maximum(wait, 0.0))


def check_policy(policy: object, where: str) -> None:
    """Raise InputError unless the value is a Policy."""
    if not isinstance(policy, Policy):
        raise InputError(f"{where}: the policy is {policy!r}; expected a Policy, such as presets()['balanced']")


def _within_ping(queue: Queue, t: Records, most: float) -> Masks:
    """The region bits where each ticket can play under the policy's ping limit."""
    able: Masks = t["able"]
    good = queue.ping[t["slot"], : len(queue.region_names)] <= most
    near = (good.astype(np.uint64) << np.arange(good.shape[1], dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    return np.where(able == ANYWHERE, able, able & near)


def _accepts(queue: Queue, t: Records, policy: Policy) -> Masks:
    """The mask of the values that each ticket accepts after its wait; 0 without attributes and maps."""
    fields = fields_of(policy)
    if not fields:
        return np.zeros(len(t), np.uint64)
    masks: Masks = np.array([mask_of(choice, fields) for choice in queue.choices.known], np.uint64)
    accepts: Masks = masks[queue.choices.row[t["slot"]]] | waived_bits(fields, t["waited"])
    return accepts


def _offers(queue: Queue, policy: Policy) -> Whole:
    """The policy's roles that each member in the pool offers, bit r for role r. A member without roles offers all."""
    given = queue.members["roles"]
    if not policy.roles:
        return np.zeros(1, np.int64)
    offers = np.zeros(len(given), np.int64)
    for bit, name in enumerate(policy.roles):
        if name in queue.role_names:
            own = np.uint64(queue.role_names.index(name))
            offers |= (given >> own & np.uint64(1)).astype(np.int64) << bit
    return np.where(given == 0, (1 << len(policy.roles)) - 1, offers)


def role_room(policy: Policy, size: int) -> Whole:
    """For each subset of roles, how many players of a team may offer no role outside it (Hall's condition)."""
    counts = list(policy.roles.values())
    free = size - sum(counts)
    return np.array(
        [
            free + sum(count for bit, count in enumerate(counts) if subset >> bit & 1)
            for subset in range(1 << len(counts))
        ],
        np.int64,
    )
