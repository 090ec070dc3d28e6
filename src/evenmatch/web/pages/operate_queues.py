"""The operator pages of a ladder's queues: list, create, change with preview, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.options import Option, options_of
from evenmatch.policy import Policy, presets
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.stored_queues import SHARED, QueueSetup, check_name, policy_of
from evenmatch.web.forms import check_confirmed, option_fields, options_typed, typed_value
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.view_models import LadderShown

POLICY, RULES = options_of(Policy), options_of(QueueRules)
OPTIONS: Mapping[str, Option] = {**POLICY, **RULES}
MEANT = {  # presets of the policy, in words
    "balanced": "waits and evenness in balance",
    "quick": "shorter waits",
    "fair": "closer matches",
}


async def queues(visit: PageRequest) -> Response:
    """Show the queues of a ladder."""
    return await visit.show("operate_queues", lambda: _queues(visit))


def _queues(visit: PageRequest) -> Mapping[str, object]:
    queues = [(setup, _waiting(visit, setup.name)) for setup in visit.site.queue_service.queues(visit.ladder)]
    form = visit.form_at("ladders", visit.ladder, "operate", "queue", "pause")
    return {"ladder": LadderShown.of(visit.reading.view(visit.ladder)), "queues": queues, "form": form}


def _waiting(visit: PageRequest, queue: str) -> int:
    counts = visit.site.queue_service.counts(visit.ladder).get(queue)
    return 0 if counts is None else counts.players


class QueueChange(NamedTuple):
    """A queue as a form describes it. before: the present queue, None if it is new;  old, new: values by option."""

    name: str
    before: QueueSetup | None
    old: Mapping[str, object]
    new: Mapping[str, object]

    @property
    def changed(self) -> list[tuple[str, str, str]]:
        """Each option that changes, with its values before and after as they are typed."""
        before, after = (
            {name: typed_value(OPTIONS[name], of[name]) for name in OPTIONS} for of in (self.old, self.new)
        )
        return [(name, before[name], after[name]) for name in OPTIONS if before[name] != after[name]]

    def part(self, options: Mapping[str, Option]) -> dict[str, object]:
        """The new values of these options."""
        return {name: self.new[name] for name in options}


def _change(visit: PageRequest, form: Mapping[str, str]) -> QueueChange:
    """Read a form. Values are ignored if they belong to another preset than the selected one."""
    name = form.get("name", "").strip() or "main"
    check_name(name)
    queues = {setup.name: setup for setup in visit.site.queue_service.queues(visit.ladder)}
    before = queues.get(name)
    old = _values({} if before is None else before.policy.to_data(), before, visit)
    preset = form.get("preset", "")
    base = old
    if preset in presets():
        base = _values({"preset": preset} | ({} if before is None else _shape(before.policy)), before, visit)
    typed = options_typed(form, OPTIONS) if form.get("shown_preset", "") == preset else {}
    return QueueChange(name, before, old, {**base, **typed})


def _values(policy: Mapping[str, object], before: QueueSetup | None, visit: PageRequest) -> dict[str, object]:
    team_size = visit.reading.view(visit.ladder).settings.team_size
    rules = QueueRules() if before is None else before.rules
    return policy_of(policy, team_size).to_data() | rules.to_data()


def _shape(policy: Policy) -> dict[str, object]:
    """The options of a policy that describe the game, which no preset changes."""
    data = policy.to_data()
    return {name: data[name] for name in (*SHARED, "map_choice")}


async def queue(visit: PageRequest) -> Response:
    """Show the form for a queue, and what a change would do."""
    return await visit.show("operate_queue", lambda: _queue(visit))


def _queue(visit: PageRequest) -> Mapping[str, object]:
    typed = visit.typed
    kept = {name: typed.get(name, "") for name in ("name", "preset")}
    change = _change(visit, kept)
    with visit.previewing():
        change = _change(visit, typed)
        _checked(visit, change)
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "name": change.name,
        "before": change.before,
        "preset": kept["preset"],
        "presets": MEANT,
        "fields": option_fields(OPTIONS, change.new),
        "changed": change.changed,
        "looked": bool(typed.get("look")),
        "waiting": _waiting(visit, change.name),
        "form": visit.form_here(),
    }


def _checked(visit: PageRequest, change: QueueChange) -> tuple[dict[str, object], QueueRules]:
    """The policy and rules to set. Raises BadParameterError."""
    policy = Policy.from_data(change.part(POLICY))
    visit.site.queue_service.check_policy(visit.ladder, policy)
    return policy.to_data(), QueueRules.from_data(change.part(RULES))


async def set_queue(visit: PageRequest) -> Response:
    """Create a queue, or change its policy and rules."""
    form = await visit.form()

    def change() -> str:
        wanted = _change(visit, form)
        policy, rules = _checked(visit, wanted)
        changed = {name: wanted.new[name] for name, _, _ in wanted.changed}
        body = {
            "policy": {name: value for name, value in changed.items() if name in POLICY},
            "rules": {name: value for name, value in changed.items() if name in RULES},
        }
        entry = visit.audit_entry("queue.set", visit.ladder, wanted.name, body)
        visit.site.queue_service.noting(entry).set_queue(visit.ladder, wanted.name, policy, rules)
        if wanted.before is None:
            return visit.text("Queue %(name)s was created.", name=wanted.name)
        return visit.text("Queue %(name)s was changed.", name=wanted.name)

    notice = await visit.site.change(visit.ladder, change)
    visit.site.kernels.follow()
    return visit.go(address("ladders", visit.ladder, "operate", "queues"), notice)


async def pause_queue(visit: PageRequest) -> Response:
    """Pause a queue with a message to players, or resume it."""
    form = await visit.form()
    name, message = form.get("name", ""), form.get("message", "") if form.get("do") == "pause" else None
    words = "resumed" if message is None else "paused"
    body = {} if message is None else {"message": message}
    service = visit.site.queue_service.noting(visit.audit_entry(f"queue.{words}", visit.ladder, name, body))
    await visit.site.change(visit.ladder, service.pause_queue, visit.ladder, name, message)
    shown = {"name": name[:60]}
    resumed, paused = (
        visit.text("Queue %(name)s was resumed.", **shown),
        visit.text("Queue %(name)s was paused.", **shown),
    )
    notice = resumed if message is None else paused
    return visit.go(address("ladders", visit.ladder, "operate", "queues"), notice)


async def queue_to_remove(visit: PageRequest) -> Response:
    """Show the effects of deleting a queue, and ask for confirmation."""

    def make() -> Mapping[str, object]:
        setup = visit.site.queue_service.queue(visit.ladder, visit.typed.get("name", ""))
        shown = LadderShown.of(visit.reading.view(visit.ladder))
        return {"ladder": shown, "queue": setup, "waiting": _waiting(visit, setup.name), "form": visit.form_here()}

    return await visit.show("operate_queue_remove", make)


async def remove_queue(visit: PageRequest) -> Response:
    """Delete a queue whose name was typed as confirmation, with its tickets."""
    form = await visit.form()
    name = form.get("name", "")
    check_confirmed(form, name)
    service = visit.site.queue_service.noting(visit.audit_entry("queue.removed", visit.ladder, name, {"force": True}))
    await visit.site.change(visit.ladder, lambda: service.remove_queue(visit.ladder, name, force=True))
    return visit.go(
        address("ladders", visit.ladder, "operate", "queues"), visit.text("Queue %(name)s was deleted.", name=name[:60])
    )
