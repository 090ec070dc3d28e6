"""Change some of the rules of a ladder, and keep the others."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch import systems
from evenmatch.errors import UnknownNameError, UsageError
from evenmatch.ladders.export import corrections_of
from evenmatch.ladders.ladders import ChangeRules, Ladder, lasting
from evenmatch.operations.service import Service
from evenmatch.rating import rules
from evenmatch.systems.system import Rules


def check_installed(system: str) -> None:
    """Raise UnknownNameError for a system that is not installed; a remote caller must not name a file to execute."""
    known = systems.names()
    if system not in known:
        raise UnknownNameError("system", system, known)


def choose(
    service: Service,
    ladder: Ladder,
    system: str | None,
    preset: str | None,
    values: Mapping[str, object],
    *,
    start: bool,
    skip_bad: bool = False,
) -> ChangeRules | None:
    """The request to change a ladder's system, preset or parameters; None if nothing would change.

    Parameters that are not named stay as they are; another system, or a preset, starts from its own values.
    """
    if system is None and preset is None and not values:
        return None
    changed = _other_rules(ladder, system, preset, values)
    system_source = ladder.system if system in (None, ladder.rules.system.name) else lasting(str(system))
    if not start and changed.system.name != ladder.rules.system.name:
        raise UsageError("another system cannot rate from now on; it must rate from the start")
    same = (system_source, changed.preset, changed.values()) == (
        ladder.system,
        ladder.rules.preset,
        ladder.rules.values(),
    )
    if same and (not start or _is_from_the_start(service, ladder)):
        return None
    return ChangeRules(system_source, changed, start, skip_bad)


def _is_from_the_start(service: Service, ladder: Ladder) -> bool:
    """Whether the ladder's current rules apply to all its matches."""
    events = [row["event"] for row in corrections_of(service.database, ladder.name)]
    return bool([event["start"] for event in events if isinstance(event, dict) and "parameters" in event][-1])


def _other_rules(ladder: Ladder, system: str | None, preset: str | None, values: Mapping[str, object]) -> Rules:
    """The requested rules; if the system and preset stay, the ladder's own with the given values replaced."""
    same = system is None or system in (ladder.system, ladder.rules.system.name)
    if not same or preset is not None:
        return rules(ladder.system if system is None else system, preset, **values)
    return Rules.of(ladder.rules.system, ladder.rules.preset, **(ladder.rules.values() | dict(values)))
