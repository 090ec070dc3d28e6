"""Other rules for a ladder, on top of those that it has."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch import systems
from evenmatch.errors import UnknownNameError, UsageError
from evenmatch.rating import rules
from evenmatch.service.exports import corrections_of
from evenmatch.service.ladders import ChangeRules, Ladder, lasting
from evenmatch.service.service import Service
from evenmatch.systems.system import Rules


def check_installed(system: str) -> None:
    """Raise UnknownNameError for a system that is not installed: strangers may name no file, which would be run."""
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
    """The change of rules to a system, a preset and parameters by name; None where all of it is so already.

    What is not named stays as it is; another system, or a preset, begins with its own values.
    """
    if system is None and preset is None and not values:
        return None
    by = _other_rules(ladder, system, preset, values)
    found = ladder.system if system in (None, ladder.rules.system.name) else lasting(str(system))
    if not start and by.system.name != ladder.rules.system.name:
        raise UsageError("from now: another system rates from the start; accepted is from start")
    same = (found, by.preset, by.values()) == (ladder.system, ladder.rules.preset, ladder.rules.values())
    if same and (not start or _is_from_the_start(service, ladder)):
        return None
    return ChangeRules(found, by, start, skip_bad)


def _is_from_the_start(service: Service, ladder: Ladder) -> bool:
    """Whether all matches of a ladder are rated by the rules that it has now."""
    events = [row["event"] for row in corrections_of(service.database, ladder.name)]
    return bool([one["start"] for one in events if isinstance(one, dict) and "parameters" in one][-1])


def _other_rules(ladder: Ladder, system: str | None, preset: str | None, values: Mapping[str, object]) -> Rules:
    """The rules that are named, on top of the ladder's where the system stays."""
    same = system is None or system in (ladder.system, ladder.rules.system.name)
    if not same or preset is not None:
        return rules(ladder.system if system is None else system, preset, **values)
    return Rules.of(ladder.rules.system, ladder.rules.preset, **(ladder.rules.values() | dict(values)))
