"""The events of a ledger: matches, and the corrections of a ladder's history, one type for each.

A match is stored in the columns of the event table, see codec.py. The content of a correction is stored as JSON, whose
keys are the attributes of its type.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import ClassVar, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from evenmatch.errors import DamageError
from evenmatch.history import Floats
from evenmatch.ledger.codec import ID, Ids
from evenmatch.ledger.seals import correction_seal, match_seal

Body = Mapping[str, object]
NO_IDS: Ids = np.empty(0, np.int64)
NO_RATINGS: Floats = np.empty(0)


class Kind(StrEnum):
    """The kinds of events."""

    MATCH = "match-recorded"
    VOIDED = "match-voided"
    UNVOIDED = "match-reinstated"
    BANNED = "player-banned"
    REINSTATED = "player-reinstated"
    MERGED = "player-merged"
    RENAMED = "player-renamed"
    ERASED = "player-erased"
    RULES = "rules-changed"
    SETTINGS = "settings-changed"
    SEASON = "season-opened"
    STARTED = "ratings-started"
    DECAYED = "ratings-decayed"
    INSERTED = "matches-inserted"


BanRule = Literal["void", "refund", "keep"]


@dataclass(frozen=True)
class MatchVoided:
    """A match no longer counts.

    match   the position of its event;  id  the id that it was reported with
    reason  given by the operator, as for every correction with one
    """

    kind: ClassVar[Kind] = Kind.VOIDED
    match: int
    id: str
    reason: str | None = None


@dataclass(frozen=True)
class MatchReinstated:
    """A voided match counts again. match: the position of its event; id: the id that it was reported with."""

    kind: ClassVar[Kind] = Kind.UNVOIDED
    match: int
    id: str
    reason: str | None = None


@dataclass(frozen=True)
class PlayerBanned:
    """A player is banned from the ladder.

    since  only matches that ended at or after this time (microseconds) are affected; None: all
    rule   "void": the player's matches do not count; "refund": they count, but players who finished behind lose
           nothing; "keep": they count as usual
    until  the end of a ban with the rule "keep", microseconds; None: it has none. No rating depends on it
    """

    kind: ClassVar[Kind] = Kind.BANNED
    player: int
    since: int | None
    rule: BanRule
    reason: str | None = None
    until: int | None = None


@dataclass(frozen=True)
class PlayerReinstated:
    """A ban is lifted, as if it had never existed."""

    kind: ClassVar[Kind] = Kind.REINSTATED
    player: int
    reason: str | None = None


@dataclass(frozen=True)
class PlayerMerged:
    """All matches of `player`, past and future, count as matches of the player `into`."""

    kind: ClassVar[Kind] = Kind.MERGED
    player: int
    into: int


@dataclass(frozen=True)
class PlayerRenamed:
    """A player has another name from here on. The names are in the table of names, where they can be erased."""

    kind: ClassVar[Kind] = Kind.RENAMED
    player: int


@dataclass(frozen=True)
class PlayerErased:
    """A player's names were replaced by a pseudonym."""

    kind: ClassVar[Kind] = Kind.ERASED
    player: int


@dataclass(frozen=True)
class RulesChanged:
    """The ladder is rated by other rules. The first event of every ladder is one.

    system      as `systems.find` takes it;  preset, parameters  with every parameter of the system
    start       True: from the first match; False: from here on
    settings    all settings of the ladder at this time
    """

    kind: ClassVar[Kind] = Kind.RULES
    system: str
    preset: str | None
    parameters: Body
    start: bool
    settings: Body


@dataclass(frozen=True)
class SettingsChanged:
    """Settings of the ladder changed, without changing ratings. settings: all new ones; changes: as requested."""

    kind: ClassVar[Kind] = Kind.SETTINGS
    settings: Body
    changes: Body


@dataclass(frozen=True)
class SeasonOpened:
    """A season ended and the next one began.

    season     its number, from 2
    factor     the share of each rating's distance from the mean that remains: 1 changes none, 0 resets all
    standings  a digest of the final standings of the season that ended
    """

    kind: ClassVar[Kind] = Kind.SEASON
    title: str
    season: int
    factor: float
    standings: str


@dataclass(frozen=True, eq=False)
class RatingsStarted:
    """Players without a match were given starting ratings.

    system        ratings of other systems do not start by it;  count  the number of players
    ids, ratings  the players, ascending, and their ratings; stored in columns of their own instead of the JSON
    """

    kind: ClassVar[Kind] = Kind.STARTED
    count: int
    system: str
    ids: Ids
    ratings: Floats


@dataclass(frozen=True)
class RatingsDecayed:
    """The ratings of idle players fell. Times are microseconds since the epoch. See idle_decay.py.

    system      ratings of other systems do not decay by it
    began       when the rule was set; idle time counts from here at the earliest
    after       weeks that ended up to this time were counted by an earlier decay
    until       weeks that ended up to this time count
    grace_days  idle days before the first week
    rate        points lost per whole week
    floor       no rating falls below it
    placement   completed matches that a player must have, at least 1
    stop        the division at which the fall stops;  bound  its lowest rating at the time; None: there is none
    count       the number of ratings that fell
    """

    kind: ClassVar[Kind] = Kind.DECAYED
    system: str
    began: int
    after: int
    until: int
    grace_days: float
    rate: float
    floor: float
    placement: int
    stop: str | None
    bound: float | None
    count: int


@dataclass(frozen=True)
class MatchesInserted:
    """Matches that were reported late were rated at the time they were played. Their own events precede this one.

    matches  how many;  content  a digest of their contents, hexadecimal
    """

    kind: ClassVar[Kind] = Kind.INSERTED
    matches: int
    content: str
    reason: str | None = None


AboutPlayer = PlayerBanned | PlayerReinstated | PlayerMerged | PlayerRenamed | PlayerErased
AboutMatch = MatchVoided | MatchReinstated
WithReason = AboutMatch | PlayerBanned | PlayerReinstated | MatchesInserted
Change = (
    AboutPlayer
    | AboutMatch
    | RulesChanged
    | SettingsChanged
    | SeasonOpened
    | RatingsStarted
    | RatingsDecayed
    | MatchesInserted
)
_TYPES: Mapping[str, type[Change]] = {each.kind: each for each in get_args(Change)}
_IN_COLUMNS = ("ids", "ratings")  # attributes that are not part of the JSON


class Correction(NamedTuple):
    """An event other than a match. id: of the event; recorded_at: microseconds. A planned one has neither yet."""

    position: int
    change: Change
    id: str = ""
    recorded_at: int = 0


def body_of(change: Change) -> dict[str, object]:
    """The content of a change by attribute, as it is stored."""
    return {each.name: getattr(change, each.name) for each in fields(change) if each.name not in _IN_COLUMNS}


def columns_of(change: Change) -> tuple[Ids, Floats]:
    """The players and ratings of a change that has them, otherwise none."""
    return (change.ids, change.ratings) if isinstance(change, RatingsStarted) else (NO_IDS, NO_RATINGS)


def write_body(body: Body) -> str:
    """Serialize a body as canonical JSON: equal content gives equal text."""
    return json.dumps(body, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def digest_of_change(change: Change) -> bytes:
    """Content digest of a correction, 16 bytes, over what was requested; resulting settings are excluded."""
    requested = {name: value for name, value in body_of(change).items() if name != "settings"}
    whole = f"{change.kind}\0{write_body(requested)}".encode() + b"".join(map(bytes, columns_of(change)))
    return hashlib.blake2b(whole, digest_size=16).digest()


def read_change(kind: str, body: str | None, players: bytes | None, ratings: bytes | None) -> Change:
    """Read a correction from the columns of its event. Raises ValueError if they are not as evenmatch writes them."""
    content = json.loads(body or "")
    if kind not in _TYPES:
        raise ValueError(f"unknown kind {kind!r}")
    if not isinstance(content, dict):
        raise ValueError("its body is not a JSON object")  # noqa: TRY004 - one class for all kinds of damage
    kind_of_change = _TYPES[kind]
    hints = _hints_of(kind)
    if kind_of_change is RatingsStarted:
        content["ids"] = np.frombuffer(players or b"", ID).astype(np.int64)
        content["ratings"] = np.frombuffer(ratings or b"", "<f8").astype(np.float64)
    for name in hints.keys() | content.keys():
        if name not in hints or name not in content or not _fits(content[name], hints[name]):
            raise ValueError(f"{name} is {content.get(name, 'missing')!r}")
    return kind_of_change(**content)


@cache
def _hints_of(kind: str) -> Mapping[str, object]:
    """The type of each attribute of a kind of correction."""
    return {name: hint for name, hint in get_type_hints(_TYPES[kind]).items() if name != "kind"}


def _fits(value: object, hint: object) -> bool:
    """True if a value from JSON has the type of an attribute."""
    if isinstance(hint, UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if hint is NoneType:
        return value is None
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    origin = get_origin(hint) or hint
    assert isinstance(origin, type)
    return isinstance(value, origin)


def correction_of(
    ladder: str,
    position: int,
    event_id: str,
    recorded_at: int,
    kind: str,
    body: str | None,
    players: bytes | None,
    ratings: bytes | None,
) -> Correction:
    """Create a correction from its row. Raises DamageError if it is damaged."""
    try:
        return Correction(position, read_change(kind, body, players, ratings), event_id, recorded_at)
    except (ValueError, RecursionError) as error:
        raise damaged(ladder, position, kind, error) from error


def damaged(ladder: str, position: int, kind: str, error: Exception) -> DamageError:
    """The error for a correction that cannot be read or planned."""
    reason, of = str(error) or type(error).__name__, f" of ladder {ladder!r}" if ladder else ""
    return DamageError(
        f"the event {kind} at position {position}{of} is damaged, or of a newer evenmatch ({reason}); "
        "`evenmatch verify` shows which, restore it from a backup"
    )


class Event(NamedTuple):
    """An event as stored; fields that its kind does not have are None."""

    position: int
    id: str
    kind: str
    recorded_at: int
    played_at: int | None
    counted_at: int | None
    counts_before: int | None
    duration: float | None
    rated: int | None
    teams: bytes | None
    players: bytes | None
    slots: bytes | None
    context: str | None
    digest: bytes
    seal: bytes | None
    body: str | None
    generation: int | None
    told: bytes | None

    def is_whole(self, previous: bytes) -> bool:
        """True if the stored event is intact and follows the event with the seal `previous`."""
        try:
            return self.seal is not None and self.seal == self.seal_after(previous)
        except (TypeError, ValueError, RecursionError, struct.error):  # a field is missing, torn or out of range
            return False

    def seal_after(self, previous: bytes) -> bytes | None:
        """The seal of this event after one with the seal `previous`; None if its digest does not match its content.

        Raises TypeError, ValueError or struct.error for a torn event.
        """
        if self.kind != Kind.MATCH:
            return self._correction_seal(previous)
        if self.body is not None:
            return None
        times = (self.recorded_at, self.played_at, self.counted_at, self.counts_before)
        content = (self.duration, self.rated, self.teams, self.players, self.slots, self.digest, self.context)
        receipt = {"generation": self.generation, "told": self.told}
        return match_seal(previous, self.position, self.id, *times, *content, **receipt)  # type: ignore[arg-type]

    def _correction_seal(self, previous: bytes) -> bytes | None:  # which leaves out the reason, unlike the digest
        times = (self.played_at, self.counted_at, self.counts_before)
        of_matches = (*times, self.duration, self.rated, self.teams, self.context, self.generation, self.told)
        if any(value is not None for value in of_matches) or b"" in (self.players, self.slots):
            return None
        body = str(self.body)
        change = read_change(self.kind, body, self.players, self.slots)
        if write_body(body_of(change)) != body or self.digest != digest_of_change(change):
            return None
        if not isinstance(change, RatingsStarted) and (self.players, self.slots) != (None, None):
            return None
        return correction_seal(previous, self.position, self.id, self.recorded_at, self.kind, body, *columns_of(change))
