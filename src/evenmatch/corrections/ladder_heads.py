"""Heads of event chains: exported, kept elsewhere and compared, which reveals events removed from the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evenmatch.errors import InputError
from evenmatch.ledger import event_rows
from evenmatch.ledger.store import Head, Store
from evenmatch.operations.transactions import Transacting
from evenmatch.times import iso_time

FORM = "expected the output of `evenmatch head`: a ladder, a position, a seal of 32 hexadecimal digits and a time"
QUOTED = ("{", "[", '"')  # beginnings of JSON


@dataclass(frozen=True)
class LadderHead:
    """The last event of a ladder's ledger.

    seal  over this event and all before it: 32 hexadecimal digits
    time  when the event was recorded, as ISO 8601
    """

    ladder: str
    position: int
    seal: str
    time: str

    def line(self) -> str:
        """The head as a line of text; a name that could not be parsed back is written as a JSON string."""
        is_plain = self.ladder.isprintable() and self.ladder == self.ladder.strip() and self.ladder[:1] not in QUOTED
        return f"{self.ladder if is_plain else json.dumps(self.ladder)} {self.position} {self.seal} {self.time}"

    def document(self) -> dict[str, object]:
        """The head as JSON values."""
        return {"ladder": self.ladder, "position": self.position, "seal": self.seal, "time": self.time}


def present_head(service: Transacting, ladder: str) -> LadderHead:
    """The head of a ladder's chain now. Raises UnknownNameError, and StoreError if its last event is missing."""
    with service.reading(ladder) as (store, head):
        return read_head(store, head)


def positions_of(service: Transacting) -> dict[str, int]:
    """The number of events of every ladder, by name. Events are not read, because they may be damaged."""
    with service.database.read() as store:
        return {head.name: head.position for head in store.heads()}


def read_head(store: Store, head: Head) -> LadderHead:
    """The head of a ladder's chain as stored. Raises StoreError if its last event is missing."""
    seal, recorded_at = event_rows.read_seal(store, head.ladder, head.position)
    return LadderHead(head.name, head.position, (head.seal or seal).hex(), iso_time(recorded_at))


def parse_heads(text: str) -> list[LadderHead]:
    """The heads in a text: lines, or JSON as `evenmatch head --json` prints it. Raises InputError."""
    try:
        document: object = json.loads(text)
    except ValueError:  # lines, whose first name looks like JSON
        heads = [_from_line(line) for line in text.splitlines() if line.strip()]
    else:
        heads = list(_from_json(document))
    if not heads:
        raise InputError(f"there is no head in the text; {FORM}")
    return heads


def _from_line(line: str) -> LadderHead:
    parts = line.strip().rsplit(None, 3)
    if len(parts) != 4:
        raise InputError(f"{line.strip()!r} is not a head; {FORM}")
    return _checked(_unquoted(parts[0]), *parts[1:], shown=line.strip())


def _unquoted(name: str) -> str:
    """The name of a ladder from a line, where it may be quoted."""
    try:
        read: object = json.loads(name) if name.startswith('"') else name
    except ValueError:
        return name
    return read if isinstance(read, str) else name


def _from_json(document: object) -> Iterator[LadderHead]:
    listed = document.get("heads", [document]) if isinstance(document, Mapping) else document
    if not isinstance(listed, list):
        raise InputError(f"{listed!r} is not a head; {FORM}")
    for item in listed:
        if not isinstance(item, Mapping):
            raise InputError(f"{item!r} is not a head; {FORM}")
        yield _checked(*(str(item.get(name)) for name in ("ladder", "position", "seal", "time")), shown=str(dict(item)))


def _checked(ladder: str, position: str, seal: str, time: str, *, shown: str) -> LadderHead:
    is_seal = len(seal) == 32 and all(digit in "0123456789abcdef" for digit in seal)
    if not (position.isascii() and position.isdecimal() and int(position) > 0 and is_seal):
        raise InputError(f"{shown!r} is not a head; {FORM}")
    return LadderHead(ladder, int(position), seal, time)


def cut_of(store: Store, head: Head, kept: LadderHead) -> str | None:
    """A sentence if events were removed or replaced since a head was kept; None: none were.

    The chain up to the ladder's present head must be whole, see `verification.damage_of`.
    """
    if kept.position > head.position:
        return (
            f"the ledger ends at position {head.position}, before the kept head at position {kept.position}: its last "
            "events were removed, or this is an older copy of the database"
        )
    seal = event_rows.read_seal(store, head.ladder, kept.position)[0]
    if seal.hex() != kept.seal:
        return f"the event at position {kept.position} differs from the kept head: it or an earlier event was replaced"
    return None
