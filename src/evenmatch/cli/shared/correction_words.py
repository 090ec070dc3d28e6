"""Text of a ladder's corrections and changes: banned players and rules, old and new values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evenmatch.cli.shared.database_options import counted

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
    """The differences of the names that are in both mappings."""
    return [
        Difference(name, before[name], new) for name, new in after.items() if name in before and before[name] != new
    ]


def in_words(value: object, name: str = "") -> str:
    """The value of a setting or parameter as text."""
    from evenmatch.options import shown

    if name == "divisions" and isinstance(value, list):
        return ", ".join(f"{division} from {lowest}" for division, lowest in value)
    if name == "team_size" and value is None:
        return "any"
    return "none" if value == "" else shown(value)


def changed_by(rows: Sequence[Row]) -> list[list[Difference]]:
    """For each correction of a ladder, creation first, the rules and settings that it changed."""
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
    """The differences of two sets of rules; parameters are compared only if the system is the same."""
    names = list(after) if before.get("system") == after.get("system") else ["system"]
    return differences({name: before[name] for name in names if name in before}, {name: after[name] for name in names})


def _rules(event: Mapping[str, object]) -> dict[str, object]:
    return {"system": event["system"], "preset": event["preset"], **_mapping(event["parameters"])}


def about(row: Row, changed: Sequence[Difference]) -> str | None:
    """The subject and content of a correction as text, or None."""
    event, player = _mapping(row["event"]), row["player"]
    match str(row["kind"]):
        case "ladder-changed":
            when = "" if "parameters" not in event else ", from the start" if event["start"] else ", from now on"
            text: object = ("; ".join(map(str, changed)) or "the same values") + when
        case "player-banned":
            text = f"{player}, {event['rule']}{_since(event['since'])}"
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


def _since(since: object) -> str:
    from evenmatch.times import iso_time

    return f", since {iso_time(since)}" if isinstance(since, int) else ""


def _mapping(value: object) -> Mapping[str, object]:
    assert isinstance(value, Mapping)
    return value
