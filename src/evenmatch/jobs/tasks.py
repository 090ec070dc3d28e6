"""Tasks on a ladder that may take long. They are values, so they can be sent to a worker process."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol, cast

from evenmatch.accounts.audit_entries import Correcting
from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.corrections.effect import Effect, RatingMove
from evenmatch.corrections.repair import RebuildResult
from evenmatch.corrections.replay import Progress, replay_size
from evenmatch.ladders.ladders import is_done
from evenmatch.ledger import event_rows, rating_rows
from evenmatch.ledger.events import digest_of_change
from evenmatch.ledger.store import Head, Store
from evenmatch.operations.service import Service
from evenmatch.players.explanations import ShownRatingChange
from evenmatch.systems.system import RATING_DECIMALS
from evenmatch.times import iso_time

MOVES_LISTED = 200


def correction_result(effect: Effect, *, preview: bool) -> dict[str, object]:
    """The result of a correction or of its preview; its effect is None if the correction was already applied."""
    return {
        "told": effect.told,
        "there_already": effect.done,
        "preview": preview,
        "effect": None if effect.done else effect_document(effect),
    }


def effect_document(effect: Effect) -> dict[str, object]:
    """The effect of a correction, with the largest rating moves."""
    return {
        "players": effect.players,
        "matches": effect.matches,
        "left_out": effect.left_out,
        "moved": effect.moved,
        "moves": [_move(move) for move in effect.moves[:MOVES_LISTED]],
        "position": effect.position,
    }


def _move(move: RatingMove) -> dict[str, object]:
    before, after = (None if rating is None else round(rating, RATING_DECIMALS) for rating in (move.before, move.after))
    change = None if before is None or after is None else ShownRatingChange.of(before, after).change
    return {**move._replace(before=before, after=after)._asdict(), "change": change}


def effect_of(result: Mapping[str, object]) -> Effect:
    """The effect in a result of `correction_result`, with the moves that it lists."""
    told, document = str(result["told"]), result["effect"]
    if document is None:
        return Effect(told, [], 0, 0, 0, 0, done=True)
    counts = cast("dict[str, int]", document)
    listed = cast("list[dict[str, object]]", cast("dict[str, object]", document)["moves"])
    moves = [RatingMove(**{name: move[name] for name in RatingMove._fields}) for move in listed]  # type: ignore[arg-type]
    players, matches, left_out, position = (counts[name] for name in ("players", "matches", "left_out", "position"))
    return Effect(told, moves, players, matches, left_out, position, unlisted=counts["moved"] - len(moves))


DIFFERENCES_LISTED = 100  # in the result of a verification


class Outline(NamedTuple):
    """The size and identity of a task, known before it begins.

    size     events to replay and states to write
    request, as_of  see Jobs.begin
    """

    size: int
    request: str = ""
    as_of: str | None = None


class Task(Protocol):
    """Work on a ladder. Instances can be pickled."""

    kind: ClassVar[str]

    @property
    def ladder(self) -> str:
        """The name of the ladder."""
        ...

    def outline(self, store: Store, head: Head) -> Outline:
        """Check the request and return its outline. Raises what `run` would raise for a wrong request."""
        ...

    def run(self, service: Service, progress: Progress) -> Mapping[str, object]:
        """Do the work and return the result as JSON values. progress: called with the position reached."""
        ...


@dataclass(frozen=True)
class CorrectionTask:
    """Apply a correction, or change the rules of a ladder.

    event_id     chosen by the caller, or by `named`
    audit_entry  stored in the transaction that adds the event
    """

    ladder: str
    correction: Correcting
    event_id: str | None
    audit_entry: AuditEntry

    kind: ClassVar[str] = "correction"

    def outline(self, store: Store, head: Head) -> Outline:
        """The events to replay. Requests with the same id are equal."""
        size = _size(store, head, self.correction, self.event_id)
        return Outline(size, _digest(store, head, self.correction, self.event_id))

    def run(self, service: Service, progress: Progress) -> Mapping[str, object]:
        """Apply the correction; the result is that of the endpoint."""
        noting = service.noting(self.audit_entry)
        effect = noting.correct(self.ladder, self.correction, progress, self.event_id)
        return correction_result(effect, preview=False)


@dataclass(frozen=True)
class PreviewTask:
    """Compute what a correction would do."""

    ladder: str
    correction: Correcting
    event_id: str | None

    kind: ClassVar[str] = "preview"

    def outline(self, store: Store, head: Head) -> Outline:
        """The events to replay. A result holds until an event, a correction or a rename changes the ladder."""
        size = _size(store, head, self.correction, self.event_id)
        as_of = f"{head.position}:{head.generation}:{head.names}"
        return Outline(size, _digest(store, head, self.correction, self.event_id), as_of)

    def run(self, service: Service, progress: Progress) -> Mapping[str, object]:
        """Compute the preview; the result is that of the endpoint."""
        effect = service.preview(self.ladder, self.correction, progress, self.event_id)
        return correction_result(effect, preview=True)


@dataclass(frozen=True)
class SeasonTask:
    """End the season and open the next one; the values are those of `Service.open_season`."""

    ladder: str
    title: str | None
    reset: str | None
    factor: float | None
    event_id: str | None
    audit_entry: AuditEntry

    kind: ClassVar[str] = "season"

    def outline(self, store: Store, head: Head) -> Outline:
        """The standings to store, and the replay that is due. Equal requests have the same id and content."""
        sent = [self.event_id, self.title, self.reset, self.factor]
        size = rating_rows.count_states(store, head) if head.due is None else replay_size(store, head, head.due)
        return Outline(size, _text_digest(sent))

    def run(self, service: Service, progress: Progress) -> Mapping[str, object]:
        """Open the season; the result is that of the endpoint."""
        season = service.noting(self.audit_entry).open_season(
            self.ladder, title=self.title, reset=self.reset, factor=self.factor, event_id=self.event_id
        )
        closed_at = None if season.closed_at is None else iso_time(season.closed_at)
        named = {"number": season.number, "title": season.title, "position": season.position}
        return {**named, "opened_at": iso_time(season.opened_at), "closed_at": closed_at}


@dataclass(frozen=True)
class DueTask:
    """Carry out the rebuild that is due on a ladder, as after a merge of players."""

    ladder: str

    kind: ClassVar[str] = "update"

    def outline(self, store: Store, head: Head) -> Outline:
        """The events to replay."""
        return Outline(0 if head.due is None else replay_size(store, head, head.due))

    def run(self, service: Service, progress: Progress) -> Mapping[str, object]:
        """Rebuild."""
        return rebuilt_result(service.rebuild(self.ladder, progress=progress))


@dataclass(frozen=True)
class RebuildTask:
    """Rebuild a ladder's ratings from the first event."""

    ladder: str

    kind: ClassVar[str] = "rebuild"

    def outline(self, store: Store, head: Head) -> Outline:
        """The whole ladder."""
        return _whole(store, head)

    def run(self, service: Service, progress: Progress) -> Mapping[str, object]:
        """Rebuild."""
        return rebuilt_result(service.rebuild(self.ladder, whole=True, progress=progress))


@dataclass(frozen=True)
class VerifyTask:
    """Compare a ladder's ratings with a replay of its ledger."""

    ladder: str

    kind: ClassVar[str] = "verify"

    def outline(self, store: Store, head: Head) -> Outline:
        """The whole ladder."""
        return _whole(store, head)

    def run(self, service: Service, progress: Progress) -> Mapping[str, object]:
        """Verify."""
        verification = service.verify(self.ladder, progress)
        return {
            "equal": verification.is_equal,
            "events": verification.events,
            "matches": verification.matches,
            "players": verification.players,
            "damage": list(verification.damage[:DIFFERENCES_LISTED]),
            "differences": list(verification.differences[:DIFFERENCES_LISTED]),
            "rebuild_due_from": verification.due,
            "same_engine": verification.same_engine,
        }


def named(task: Task) -> Task:
    """The task with a new id for the event that it adds, unless the caller chose one."""
    if isinstance(task, CorrectionTask | SeasonTask) and task.event_id is None:
        return replace(task, event_id=f"{task.kind}:{secrets.token_hex(8)}")
    return task


def is_recorded(task: Task, store: Store, head: Head) -> bool:
    """True if the ledger has the event that the task adds."""
    if not isinstance(task, CorrectionTask | SeasonTask) or task.event_id is None:
        return False
    return task.event_id in event_rows.find_events(store, head, [task.event_id])


def rebuilt_result(rebuilt: RebuildResult | None) -> dict[str, object]:
    """The result of a rebuild as JSON values."""
    if rebuilt is None:
        return {"told": "no rating changed"}
    return {"since": rebuilt.since, "matches": rebuilt.matches, "changed": rebuilt.changed}


def _whole(store: Store, head: Head) -> Outline:
    return Outline(head.position + rating_rows.count_states(store, head))


def _size(store: Store, head: Head, correction: Correcting, event_id: str | None) -> int:
    """The events that a correction replays, plus the states that it writes. Raises what planning it raises."""
    if event_id is not None and is_done(store, head, correction, event_id):
        return 0
    planned = correction(store, head)
    starts = [position for position in (planned.since, head.due) if position is not None]
    if not starts:
        return 0
    return replay_size(store, head, min(starts))


def _digest(store: Store, head: Head, correction: Correcting, name: str | None) -> str:
    """A digest of the request and of the id of its event, without settings that may change meanwhile."""
    return _text_digest([digest_of_change(correction.change(store, head)).hex(), name])


def _text_digest(values: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:32]
