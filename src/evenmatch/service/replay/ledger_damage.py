"""Find events of a ladder that were altered, removed, inserted or moved. Only a backup restores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evenmatch.ledger.events import Event, Kind
from evenmatch.ledger.seals import FIRST
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import corrections, events
from evenmatch.ledger.tail import read_traces


def damage_of(store: Store, head: Head, visit: Callable[[list[Event]], None]) -> Iterator[str]:
    """Yield a sentence for each place where a ladder's events are not the chain that was recorded.

    visit  called with each batch of the events that are whole
    """
    last, seal = 0, FIRST
    correction_positions = []
    for batch in events.read(store, head):
        whole = []
        for event in batch:
            if event.position != last + 1:
                yield f"positions {last + 1} to {event.position - 1} have no event"
            elif event.is_whole(seal):
                whole.append(event)
            else:
                yield _altered(event)
            last, seal = event.position, event.seal or FIRST
            if event.kind != Kind.MATCH:
                correction_positions.append(event.position)
        visit(whole)
    if last < head.position:
        yield f"positions {last + 1} to {head.position} have no event"
    elif last > head.position:
        yield f"the ladder's row says that position {head.position} is the last, but there are events up to {last}"
    elif seal != (head.seal or FIRST):
        yield f"the event at position {last} is not the one that the ladder's row has as its last"
    if corrections.read_positions(store, head.ladder) != correction_positions:
        yield "the table of corrections does not agree with the events"
    known = {trace: position for trace, position in read_traces(store, head).items() if position > head.position}
    if known and last <= head.position:
        yield _cut(head.position, known)


def _altered(event: Event) -> str:
    subject = f"match {event.id!r}" if event.kind == Kind.MATCH else f"{event.kind} {event.id!r}"
    if event.position == 1:
        return f"{subject} at position 1 is not as it was recorded"
    return f"{subject} at position {event.position} is not as it was recorded, or the event before it is another one"


def _cut(last: int, known: dict[str, int]) -> str:
    highest = max(known.values())
    traces = ", ".join(trace for trace, position in known.items() if position == highest)
    return f"events after position {last} were removed: {traces} knew an event at position {highest}"
