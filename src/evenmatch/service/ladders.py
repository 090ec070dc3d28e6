"""Make a ladder, look at it, change it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from evenmatch.errors import ConflictError, InputError
from evenmatch.ledger import schema
from evenmatch.ledger.events import NO_IDS, NO_RATINGS, Body, Kind, correction_digest, write_body
from evenmatch.ledger.plan import write_rules
from evenmatch.ledger.replay import engine_of
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.text import check_text
from evenmatch.service.settings import Settings
from evenmatch.systems.system import Rules


@dataclass(frozen=True)
class Ladder:
    """A ladder as it is now.

    system    by which systems.find finds it;  rules  with every parameter
    position  events in its ledger;  matches  of them;  players  who have a rating
    due       a rebuild is due from this position on; None: ratings are as the ledger says
    """

    name: str
    settings: Settings
    system: str
    rules: Rules
    position: int
    matches: int
    players: int
    due: int | None
    season: int

    @property
    def title(self) -> str:
        """What people read."""
        return self.settings.title or self.name


def create(store: Store, name: str, system: str, rules: Rules, settings: Settings, now: int) -> Head:
    """Make a ladder whose first event are its rules. Raises ConflictError where the name is taken."""
    check_text("the ladder's name", name, blank=False)
    store.hold_names()  # so that nobody else makes a ladder of that name at the same moment
    if store.all("SELECT 1 FROM ladder WHERE name = ?", name):
        raise ConflictError(f"ladder {name!r} exists already; choose another name")
    columns = ("name", "position", "generation", "corrected", "settings", "created_at", "divided_at")
    store.rows.insert(store.connection, schema.ladder, columns, [(name, 0, 1, 0, settings.write(), now, 0)])
    ladder: int = store.all("SELECT ladder FROM ladder WHERE name = ?", name)[0][0]
    store.add_generation(ladder, 1, rules.system.name, engine_of(rules.system), planned=0, ready=True, now=now)
    body = {**write_rules(rules, system), "start": True, "settings": settings.plain()}
    correct(store, store.head(name), Kind.CHANGED, body, f"ladder:{name}", now, since=None)
    store.add_season(ladder, 1, "Season 1", position=1, now=now)
    return store.head(name)


def correct(
    store: Store,
    head: Head,
    kind: Kind,
    body: Body,
    event_id: str,
    now: int,
    *,
    since: int | None,
    ids: np.ndarray[tuple[int], np.dtype[np.int64]] = NO_IDS,
    ratings: np.ndarray[tuple[int], np.dtype[np.float64]] = NO_RATINGS,
) -> int | None:
    """Add an event that is no match; its position, or None where it is there already.

    since  the position from which on ratings change; None: none that there is does
    Raises ConflictError where the id is there with other content.
    """
    digest = correction_digest(kind, body, ids, ratings)
    known = store.known(head, [event_id])
    if known:
        if known[event_id][1] != digest:
            raise _taken(event_id, head)
        return None
    position = store.add_correction(head, kind, event_id, digest, write_body(body), now, ids, ratings)
    if since is not None:
        due = since if head.due is None else min(head.due, since)
        store.run("UPDATE ladder SET due = ? WHERE ladder = ?", due, head.ladder)
    elif head.due is None:  # what is due must not be taken for done
        store.run(
            "UPDATE generation SET planned = ? WHERE ladder = ? AND generation = ?",
            position,
            head.ladder,
            head.generation,
        )
    return position


class Wish(NamedTuple):
    """A correction that somebody wishes: what would be added to the ledger, and from where on it changes ratings.

    since   None: it changes no rating that there is
    told    what it is, in words
    strict  matches that it leaves without a rating are an error
    """

    kind: Kind
    body: Body
    since: int | None
    told: str
    strict: bool = False


class Wishing(Protocol):
    """What somebody wishes for, before it is held against a ladder: what `Service.correct` is told."""

    @property
    def kind(self) -> Kind:
        """The kind of the event."""
        ...

    def body(self, store: Store, head: Head) -> Body:
        """What the event says, whether or not it can be done now."""
        ...

    def __call__(self, store: Store, head: Head) -> Wish:
        """The event. Raises what speaks against it: UnknownNameError, ConflictError, InputError."""
        ...


def is_done(store: Store, head: Head, wish: Wishing, event_id: str) -> bool:
    """Whether the ladder holds this wish under this id already. Raises ConflictError where it holds something else."""
    known = store.known(head, [event_id])
    if not known:
        return False
    if known[event_id][1] != correction_digest(wish.kind, wish.body(store, head), NO_IDS, NO_RATINGS):
        raise _taken(event_id, head)
    return True


def _taken(event_id: str, head: Head) -> ConflictError:
    return ConflictError(f"{event_id!r} is on ladder {head.name!r} already, with other content; accepted is another id")


def describe(store: Store, head: Head, players: int | None = None) -> Ladder:
    """A ladder with its numbers; players: how many it has, where that was counted already."""
    corrections = store.corrections(head, head.corrected)
    told = [one.body for one in corrections if one.kind == Kind.CHANGED and one.body.get("system") is not None][-1]
    matches = head.position - len(corrections)
    if players is None:
        sql = "SELECT COUNT(*) FROM state WHERE ladder = ? AND generation = ?"
        players = int(store.all(sql, head.ladder, head.generation)[0][0])
    season = store.all("SELECT MAX(season) FROM season WHERE ladder = ?", head.ladder)
    rules = store.plan(head, head.corrected).last_rules
    return Ladder(
        head.name,
        Settings.read(head.settings),
        str(told["system"]),
        rules,
        head.position,
        matches,
        players,
        head.due,
        season[0][0],
    )


def change_settings(store: Store, head: Head, changes: Mapping[str, object], event_id: str, now: int) -> Settings:
    """Change what a ladder decided beside its system, and return all of it; ratings stay."""
    before = Settings.read(head.settings)
    settings = before.changed(changes)
    asked = {name: value for name, value in settings.plain().items() if name in changes}
    body = {"settings": settings.plain(), "changes": asked}
    if correct(store, head, Kind.CHANGED, body, event_id, now, since=None) is None:  # it was done already
        return before
    store.run("UPDATE ladder SET settings = ? WHERE ladder = ?", settings.write(), head.ladder)
    if settings.standings.divisions != before.standings.divisions:  # others than were recorded
        store.run("DELETE FROM division WHERE ladder = ?", head.ladder)
        store.run("UPDATE ladder SET divided_at = ? WHERE ladder = ?", now, head.ladder)
    return settings


@dataclass(frozen=True)
class ChangeRules:
    """Rate by other rules, from the ladder's start or from now on. A change of system is from the start.

    system    what `rules` were made from: a name, or the path of a .py file
    skip_bad  leave the matches that the new system cannot rate unrated, instead of BadRowsError with all of them
    """

    system: str
    rules: Rules
    start: bool = True
    skip_bad: bool = False

    kind: ClassVar[Kind] = Kind.CHANGED

    def body(self, store: Store, head: Head) -> Body:
        """The rules with every parameter, and the ladder's settings as they are."""
        rules = write_rules(self.rules, lasting(self.system))
        return {**rules, "start": self.start, "settings": json.loads(head.settings)}

    def __call__(self, store: Store, head: Head) -> Wish:
        """The event."""
        before = store.plan(head, head.corrected).last_rules.system.name
        if self.rules.system.name != before and not self.start:
            raise InputError("a change of system is from the start: its ratings are not those of another one")
        when = "from the start" if self.start else "from now on"
        told = f"ladder {head.name!r} is rated by {self.rules.system.name} {when}"
        return Wish(self.kind, self.body(store, head), 1 if self.start else None, told, not self.skip_bad)


def lasting(system: str) -> str:
    """What a system is found by from any folder: its name, or the whole path of its .py file."""
    return str(Path(system).resolve()) if system.endswith(".py") else system
