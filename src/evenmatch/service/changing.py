"""A change of rules as a wish, so that it can be previewed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evenmatch.errors import BadRowsError
from evenmatch.ledger.events import Kind
from evenmatch.ledger.plan import write_rules
from evenmatch.ledger.store import Head, Store
from evenmatch.service.ladders import Wish, refused
from evenmatch.systems.system import Rules

Wishing = Callable[[Store, Head], Wish]  # what `Service.preview` and `Service.correct` are told


def other_rules(store: Store, head: Head, system: str, rules: Rules, *, skip_bad: bool) -> Wish:
    """Rate all matches by other rules, from the start. Raises BadRowsError as `Service.change_rules` does."""
    if not skip_bad:
        problems = refused(store, head, store.plan(head, head.corrected), rules)
        if problems:
            raise BadRowsError(f"ladder {head.name!r} by {rules.system.name}", problems)
    named = str(Path(system).resolve()) if system.endswith(".py") else system
    body = {**write_rules(rules, named), "start": True}
    return Wish(Kind.CHANGED, body, 1, f"ladder {head.name!r} is rated by {rules.system.name} from the start")
