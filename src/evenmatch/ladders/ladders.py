"""Create, describe and change a ladder; add correction events to its ledger."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from evenmatch.errors import ConflictError, InputError
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows, ladder_rows, player_rows, rating_rows
from evenmatch.ledger.block_rating import engine_of
from evenmatch.ledger.events import Body, Change, RulesChanged, SettingsChanged, digest_of_change
from evenmatch.ledger.plan import plan_of, read_rules
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.text import check_text
from evenmatch.systems.system import Rules

if TYPE_CHECKING:
    from evenmatch.recording.insertion import Insertion


@dataclass(frozen=True)
class Ladder:
    """A ladder as it is now.

    system    as accepted by systems.find;  rules  with every parameter;  season  number of the current season
    position  number of events in its ledger;  matches  number of matches;  players  number of players with a rating
    due       a rebuild is due from this position on; None: ratings agree with the ledger
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
        """The title shown to people: the setting `title`, or the name."""
        return self.settings.title or self.name


def create(store: Store, name: str, system: str, rules: Rules, settings: Settings, now: int) -> Head:
    """Create a ladder; its first event states its rules. Raises ConflictError if the name is taken."""
    check_text("the ladder's name", name, blank=False)
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in name):
        raise InputError(f"the ladder's name {name!r} contains a control character; expected text on one line")
    player_rows.hold_names(store)  # serializes concurrent creations of the same name
    if ladder_rows.ladder_exists(store, name):
        raise ConflictError(f"ladder {name!r} exists already; choose another name")
    ladder = ladder_rows.insert_ladder(store, name, settings.write(), now)
    rating_rows.insert_generation(
        store, ladder, 1, rules.system.name, engine_of(rules.system), planned=0, ready=True, now=now
    )
    change = RulesChanged(system, rules.preset, rules.values(), start=True, settings=settings.plain())
    correct(store, store.head(name), change, f"{ladder_rows.MADE}{name}", now)
    ladder_rows.insert_season(store, ladder, 1, ladder_rows.FIRST_TITLE, position=1, now=now)
    return store.head(name)


def correct(
    store: Store, head: Head, change: Change, event_id: str, now: int, *, since: int | None = None
) -> int | None:
    """Add a correction event. Return its position, or None if it is already in the ledger.

    since  the position from which ratings change; None: no existing rating changes
    Raises ConflictError if the id is already used with other content.
    """
    known = event_rows.find_events(store, head, [event_id])
    if known:
        if known[event_id][1] != digest_of_change(change):
            raise taken(event_id, head)
        return None
    position = event_rows.append_correction(store, head, change, event_id, now)
    if since is not None:
        due = since if head.due is None else min(head.due, since)
        ladder_rows.set_due(store, head.ladder, due)
    elif head.due is None:  # with a rebuild due, `planned` must stay behind it
        rating_rows.set_planned(store, head.ladder, head.generation, position)
    return position


C = TypeVar("C", bound=Change)


class PlannedCorrection(NamedTuple):
    """A correction that was checked against a ladder: the event to add, and from where it changes ratings.

    change     the content of the event
    since      position; None: it changes no existing rating
    told       what it does, in words
    strict     fail if it would leave matches without a rating
    insertion  matches that are recorded with it
    """

    change: Change
    since: int | None
    told: str
    strict: bool = False
    insertion: Insertion | None = None


class CorrectionRequest(Protocol):
    """A requested correction, not yet checked against a ladder: an argument of `Service.correct`."""

    def change(self, store: Store, head: Head) -> Change:
        """The content of the event, whether or not it can be applied now."""
        ...

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event. Raises UnknownNameError, ConflictError or InputError if it cannot be applied."""
        ...


def is_done(store: Store, head: Head, request: CorrectionRequest, event_id: str) -> bool:
    """True if the ledger already has this request under this id. Raises ConflictError if its content differs."""
    known = event_rows.find_events(store, head, [event_id])
    if not known:
        return False
    if known[event_id][1] != digest_of_change(request.change(store, head)):
        raise taken(event_id, head)
    return True


def recorded_change(store: Store, head: Head, kind: type[C], event_id: str) -> C | None:
    """The correction of this kind with this id; None if there is none.

    Raises ConflictError if it is the id of a match or of a correction of another kind.
    """
    known = event_rows.find_events(store, head, [event_id])
    if not known:
        return None
    position = known[event_id][0]
    for correction in event_rows.read_corrections(store, head, position, after=position - 1):
        if isinstance(correction.change, kind):
            return correction.change
    raise taken(event_id, head)


def taken(event_id: str, head: Head) -> ConflictError:
    """The error for an id that is already used with other content."""
    return ConflictError(f"{event_id!r} is already on ladder {head.name!r}, with other content; choose another id")


def describe(store: Store, head: Head, players: int | None = None) -> Ladder:
    """Describe a ladder. players: how many it has, if the caller has counted them."""
    all_corrections = event_rows.read_corrections(store, head, head.corrected)
    rule_changes = [one.change for one in all_corrections if isinstance(one.change, RulesChanged)]
    matches = head.position - len(all_corrections)
    if players is None:
        players = rating_rows.count_states(store, head)
    rules = plan_of(all_corrections).last_rules
    return Ladder(
        head.name,
        Settings.read(head.settings),
        rule_changes[-1].system,
        rules,
        head.position,
        matches,
        players,
        head.due,
        ladder_rows.last_season(store, head.ladder),
    )


def change_settings(store: Store, head: Head, changes: Mapping[str, object], event_id: str, now: int) -> Settings:
    """Change settings of a ladder and return all of them.

    Other context columns make a rebuild due if the ladder's system uses them; other settings change no rating.
    """
    before = Settings.read(head.settings)
    settings = before.changed(changes)
    requested = {name: value for name, value in settings.plain().items() if name in changes}
    since = None
    if settings.context != before.context:
        used = event_rows.read_plan(store, head, head.corrected).last_rules.system.offset is not None
        since = 1 if used else None
    change = SettingsChanged(settings.plain(), requested)
    if correct(store, head, change, event_id, now, since=since) is None:  # already applied
        return before
    ladder_rows.set_settings(store, head.ladder, settings.write())
    if settings.standings.divisions != before.standings.divisions:  # the recorded divisions no longer apply
        ladder_rows.delete_divisions(store, head.ladder)
        ladder_rows.set_divided_at(store, head.ladder, now)
    return settings


@dataclass(frozen=True)
class ChangeRules:
    """A request to rate by new rules, from the first match or from now on; a new system only from the first match.

    system    where `rules` came from: a system's name, or the path of a .py file
    skip_bad  leave matches that the new system cannot rate unrated, instead of raising BadRowsError
    """

    system: str
    rules: Rules
    start: bool = True
    skip_bad: bool = False

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle names and values of the rules; the process that unpickles them supplies the kernels."""
        rules = (lasting(self.system), self.rules.preset, self.rules.values())
        return _read_request, (*rules, self.start, self.skip_bad)

    def change(self, _: Store, head: Head) -> RulesChanged:
        """The rules with every parameter, and the ladder's current settings."""
        settings = json.loads(head.settings)
        return RulesChanged(lasting(self.system), self.rules.preset, self.rules.values(), self.start, settings)

    def __call__(self, store: Store, head: Head) -> PlannedCorrection:
        """Plan the event. Raises InputError if new rules from now on cannot continue the current ratings."""
        if not self.start:
            self._check_continues(event_rows.read_plan(store, head, head.corrected).last_rules)
        when = "from the start" if self.start else "from now on"
        effect = f"ladder {head.name!r} is rated by {self.rules.system.name} {when}"
        since = 1 if self.start else None
        return PlannedCorrection(self.change(store, head), since, effect, not self.skip_bad)

    def _check_continues(self, before: Rules) -> None:
        system = self.rules.system
        if system.name != before.system.name:
            raise InputError("a new system must rate from the start, because it cannot continue the current ratings")
        ours, theirs = self.rules.values(), before.values()
        for name in system.from_start:
            if ours[name] != theirs[name]:
                raise InputError(
                    f"{name}={ours[name]} must rate from the start, because it cannot continue the current ratings; "
                    f"expected {name}={theirs[name]} as before"
                )


def _read_request(system: str, preset: str | None, parameters: Body, start: bool, skip_bad: bool) -> ChangeRules:
    return ChangeRules(system, read_rules(system, preset, parameters), start, skip_bad)


def lasting(system: str) -> str:
    """A reference to a system that is valid in every working directory: its name, or the absolute path of its file."""
    return str(Path(system).resolve()) if system.endswith(".py") else system
