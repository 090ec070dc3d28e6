"""evenmatch void, ban and reinstate: correct a ladder, preview a correction, and describe past ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import (
    DATABASE,
    Db,
    Id,
    OnLadder,
    Preview,
    Reason,
    counted,
    ladder_of,
    opened,
    typed,
)
from evenmatch.cli.shared.options import argument, option
from evenmatch.cli.shared.output import note, print_json, print_table, printable, working
from evenmatch.errors import ConflictError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from evenmatch.accounts.audit_entries import Correcting
    from evenmatch.corrections.effect import Effect
    from evenmatch.operations.service import Service

TOP = 20
ONLY_SEEN = "this is a preview; nothing has changed. To apply it, run the command again without --preview"


def correct(
    db: str, ladder: str | None, correction: Correcting, preview: bool, json: bool, event_id: str | None = None
) -> Effect:
    """Apply or only preview a correction, print the rating changes, and return them."""
    with opened(db) as service:
        name = ladder_of(service, ladder)
        seen = carry_out(service, name, correction, preview, event_id)
    if json:
        print_json({"ladder": name, "preview": preview, **as_document(seen)})
        return seen
    print_effect(seen, preview)
    if not preview and not seen.done:
        print(printable(f"ladder {name}: {seen.told}"))
    return seen


def carry_out(service: Service, ladder: str, correction: Correcting, preview: bool, event_id: str | None) -> Effect:
    """Apply a correction, or preview it; return the rating changes."""
    from evenmatch.accounts.access import OPERATOR
    from evenmatch.accounts.audit_entries import correcting

    events = service.ladder(ladder).position
    if preview:
        with working("calculating the preview", events) as progress:
            return service.preview(ladder, correction, progress, event_id)
    with working("recalculating ratings", events) as progress:
        noting = service.noting(correcting(OPERATOR, ladder, correction))
        return noting.correct(ladder, correction, progress, event_id)


def as_document(seen: Effect | None) -> dict[str, object]:
    """Return an effect as JSON data, largest rating change first. None means that nothing changes."""
    if seen is None:
        return {"told": None, "there_already": False, "players": 0, "matches": 0, "left_out": 0, "moves": []}
    return {
        "told": seen.told,
        "there_already": seen.done,
        "players": seen.players,
        "matches": seen.matches,
        "left_out": seen.left_out,
        "moves": [move._asdict() for move in seen.moves],
    }


def print_effect(seen: Effect, preview: bool) -> None:
    """Print the players with the largest rating changes, and how many matches become unrated."""
    if preview:
        note(ONLY_SEEN)
    begin = f"{'preview: ' if preview else ''}{seen.told}"
    if seen.done:
        print(printable(f"{begin}; nothing changed"))
        return
    left_out = counted(seen.left_out, "match becomes", "matches become") + " unrated"
    unrated = f"; {left_out}, which the new rules cannot rate" if seen.left_out else ""
    if not seen.moves:
        print(printable(f"{begin}: no rating moves{unrated}"))
        return
    summary = f"{len(seen.moves):,} of {counted(seen.players, 'player')} {'moves' if len(seen.moves) == 1 else 'move'}"
    shown = f", the {TOP} largest changes are shown" if len(seen.moves) > TOP else ""
    rows = [
        [
            move.player,
            move.before,
            move.after,
            None if move.before is None or move.after is None else f"{move.after - move.before:+.2f}",
            move.matches_before,
            move.matches_after,
        ]
        for move in seen.moves[:TOP]
    ]
    heads = ("player", "before", "after", "change", "matches before", "matches after")
    print_table(f"{begin}: {summary}{shown}{unrated}", heads, rows, right=heads[1:])


Row = Mapping[str, object]


class Difference(NamedTuple):
    """The old and new value of a setting, a parameter, the preset or the system."""

    name: str
    old: object
    new: object

    def __str__(self) -> str:
        return f"{self.name}: {in_words(self.old, self.name)} → {in_words(self.new, self.name)}"

    def plain(self) -> dict[str, object]:
        """The difference as JSON data."""
        return {"name": self.name, "from": self.old, "to": self.new}


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> list[Difference]:
    """Return the differences between two mappings, for the names in both."""
    return [
        Difference(name, before[name], new) for name, new in after.items() if name in before and before[name] != new
    ]


def in_words(value: object, name: str = "") -> str:
    """Return the value of a setting or parameter as text."""
    from evenmatch.options import shown

    if name == "divisions" and isinstance(value, list):
        return ", ".join(f"{division} from {lowest}" for division, lowest in value)
    if name == "team_size" and value is None:
        return "any"
    return "none" if value == "" else shown(value)


def changed_by(rows: Sequence[Row]) -> list[list[Difference]]:
    """Return the rules and settings that each correction of a ladder changed, starting with its creation."""
    rules: Mapping[str, object] = {}
    settings: Mapping[str, object] = {}
    changes = []
    for row in rows:
        event = _mapping(row["event"])
        now_rules = _rules(event) if "parameters" in event else rules
        now_settings = _mapping(event.get("settings", settings))
        changes.append(_between(rules, now_rules) + differences(settings, now_settings))
        rules, settings = now_rules, now_settings
    return changes


def _between(before: Mapping[str, object], after: Mapping[str, object]) -> list[Difference]:
    """Return the differences between two sets of rules; parameters are compared only within one system."""
    names = list(after) if before.get("system") == after.get("system") else ["system"]
    return differences({name: before[name] for name in names if name in before}, {name: after[name] for name in names})


def _rules(event: Mapping[str, object]) -> dict[str, object]:
    return {"system": event["system"], "preset": event["preset"], **_mapping(event["parameters"])}


def about(row: Row, changed: Sequence[Difference]) -> str | None:
    """Describe the subject and content of a correction, or return None if it has neither."""
    event, player = _mapping(row["event"]), row["player"]
    match str(row["kind"]):
        case "rules-changed" | "settings-changed":
            when = "" if "parameters" not in event else ", from the start" if event["start"] else ", from now on"
            text: object = ("; ".join(map(str, changed)) or "the same values") + when
        case "player-banned":
            text = f"{player}, {event['rule']}{_time('since', event['since'])}{_time('until', event['until'])}"
        case "player-merged":
            text = f"{player} into {row['into']}"
        case "player-renamed":
            text = f"{event['from']} → {player}" if "from" in event else f"now {player}"
        case "ratings-started":
            text = counted(int(str(event["count"])), "player")
        case "ratings-decayed":
            text = f"{counted(int(str(event['count'])), 'player')}, {in_words(event['rate'])} a week"
        case "matches-inserted":
            text = counted(int(str(event["matches"])), "match", "matches")
        case "season-opened":
            text = f"{event['title']}, factor {in_words(event['factor'])}"
        case _:
            text = player or row["match_id"]
    return None if text is None else str(text)


def _time(word: str, time: object) -> str:
    from evenmatch.times import iso_time

    return f", {word} {iso_time(time)}" if isinstance(time, int) else ""


def _mapping(value: object) -> Mapping[str, object]:
    assert isinstance(value, Mapping)
    return value


def void(
    match: Annotated[str, argument("MATCH", "The match_id of the match.")],
    ladder: OnLadder = None,
    reason: Reason = None,
    preview: Preview = False,
    event_id: Id = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Void a match so that it does not count, and rate all later matches again.

    The match stays in the ledger; `evenmatch reinstate --match MATCH` makes it count again.

    Examples:
    evenmatch void m17 --ladder duel --preview
    evenmatch void m17 --ladder duel --reason "the server crashed"
    """
    from evenmatch.corrections.corrections import Void

    correct(db, ladder, Void(match, reason), preview, json, event_id)


def ban(
    player: Annotated[str, argument("PLAYER", "The player's name.")],
    ladder: OnLadder = None,
    rule: Annotated[
        str | None,
        option("--rule RULE", "void (their matches do not count), refund (losers get points back) or keep."),
    ] = None,
    since: Annotated[str | None, option("--since TIME", "Leave matches that ended earlier unchanged.")] = None,
    until: Annotated[
        str | None, option("--until WHEN", "When the ban ends: a span like 7d or 12h, or an ISO 8601 time.")
    ] = None,
    reason: Reason = None,
    preview: Preview = False,
    event_id: Id = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Ban a player from a ladder, and recalculate the ratings that their matches affected.

    With rule void, their matches do not count. With rule refund, their matches stay, but players on teams that finished
    behind theirs keep the rating they had. With rule keep, no rating changes. Without --rule, a ban with an end has the
    rule keep, and any other the rule void. Banned players leave the standings and cannot queue, with --until only until
    then. `evenmatch reinstate PLAYER` undoes the ban and all its effects.

    Examples:
    evenmatch ban mallory --ladder duel --preview
    evenmatch ban mallory --ladder duel --rule refund --since 2026-11-01 --reason "aimbot"
    evenmatch ban mallory --ladder duel --until 7d --reason "insults"
    """
    if rule not in (None, "void", "refund", "keep"):
        raise UsageError(f"--rule {rule}: expected void, refund or keep")
    now = time.time_ns() // 1000
    begin, ends = options.moment(since, "--since"), options.end(until, "--until", now)
    from evenmatch.corrections.corrections import Ban

    effect = correct(db, ladder, Ban(player, rule, begin, reason, ends), preview, json, event_id)
    if begin is not None and begin > now and not effect.moves and not effect.done:
        note(f"--since {since} is in the future: no match has changed yet, but the player has left the standings")


def reinstate(
    player: Annotated[str | None, argument("[PLAYER]", "The banned player; for a void match, use --match.")] = None,
    match: Annotated[str | None, option("--match, -m MATCH", "The void match to reinstate.")] = None,
    ladder: OnLadder = None,
    reason: Reason = None,
    preview: Preview = False,
    event_id: Id = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Lift the ban of a player, or make a void match count again.

    Examples:
    evenmatch reinstate mallory --ladder duel
    evenmatch reinstate --match m17 --ladder duel --preview
    """
    from evenmatch.corrections.corrections import Reinstate, Unvoid

    if match is not None and player is None:
        correct(db, ladder, Unvoid(match, reason), preview, json, event_id)
    elif player is not None and match is None:
        try:
            correct(db, ladder, Reinstate(player, reason), preview, json, event_id)
        except UnknownNameError as error:
            if error.kind == "player" and _is_match(db, ladder, player):
                hint = typed(db, "reinstate", "--match", player, *([] if ladder is None else ["--ladder", ladder]))
                raise UsageError(
                    f"no player is called {player!r}, but a match has this id; to reinstate it: {hint}"
                ) from None
            raise
    else:
        raise UsageError("expected either a banned player, or --match with a void match")


def _is_match(db: str, ladder: str | None, name: str) -> bool:
    """Whether the ladder has a match with this id, void or not."""
    from evenmatch.corrections.corrections import Unvoid

    with opened(db) as service:
        try:
            service.preview(ladder_of(service, ladder), Unvoid(name))
        except UnknownNameError:
            return False
        except ConflictError:
            return True
    return True
