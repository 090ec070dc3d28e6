"""Rating systems, a ladder's rules and matchmaking policies as data; requests to change rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evenmatch import systems
from evenmatch.errors import UnknownNameError, UsageError
from evenmatch.ladders.export import corrections_of
from evenmatch.ladders.ladders import ChangeRules, Ladder, lasting
from evenmatch.operations.service import Service
from evenmatch.options import options_of
from evenmatch.policy import Policy, presets
from evenmatch.rating import rules
from evenmatch.systems.system import Rules, System, factors_as_data

Row = dict[str, object]
STATES = {  # the meaning of columns of a player's state that people see, by name, or by system and name
    "deviation": "How far off the rating may be: two in three players are truly within this distance of their rating, "
    "and nearly all are within twice that.",
    "provisional": "True while the player has too few matches for the rating to be more than a first guess.",
    ("glicko2", "volatility"): "How much results swing: surprising results raise it, expected ones lower it.",
    ("prav", "volatility"): "How changeable results are: the higher it is, the less the rating says about a match, "
    "and the closer to even the odds are.",
}


def state_meanings(system: System, columns: Iterable[str]) -> dict[str, str]:
    """The meanings of these columns of a player's state by name, omitting columns of no interest to people."""
    meanings = {name: STATES.get((system.name, name), STATES.get(name)) for name in columns}
    return {name: meaning for name, meaning in meanings.items() if meaning is not None}


def rules_as_data(rules: Rules) -> Row:
    """The rules of a ladder: its system, and the value and meaning of every parameter."""
    declared, values = options_of(rules.system.parameters), rules.values()
    return {
        "system": rules.system.name,
        "title": rules.system.title,
        "source": rules.system.source,
        "needs": rules.system.needs,
        "preset": rules.preset,
        "parameters": {
            name: {
                "value": values[name],
                "default": option.default,
                "accepts": option.accepts,
                "meaning": option.meaning,
            }
            for name, option in declared.items()
        },
        "factors": factors_as_data(rules.system),
    }


def policies_as_data() -> list[Row]:
    """The matchmaker's presets with all their options, the default first."""
    return [{"name": name, "options": policy.to_data()} for name, policy in presets().items()]


def options_as_data() -> dict[str, Row]:
    """The effect and the accepted values of each policy option, by name."""
    return {
        name: {"effect": option.meaning, "accepts": option.accepts or None}
        for name, option in options_of(Policy).items()
    }


def check_installed(system: str) -> None:
    """Raise UnknownNameError for a system that is not installed: remote callers must not name a file to execute."""
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

    Parameters that are not named keep their values; a new system or preset starts from its own values.
    """
    if system is None and preset is None and not values:
        return None
    changed = _other_rules(ladder, system, preset, values)
    system_source = ladder.system if system in (None, ladder.rules.system.name) else lasting(str(system))
    if not start and changed.system.name != ladder.rules.system.name:
        raise UsageError("a new system cannot start from now on; it must rate all matches from the start")
    same = (system_source, changed.preset, changed.values()) == (
        ladder.system,
        ladder.rules.preset,
        ladder.rules.values(),
    )
    if same and (not start or _is_from_the_start(service, ladder)):
        return None
    return ChangeRules(system_source, changed, start, skip_bad)


def _is_from_the_start(service: Service, ladder: Ladder) -> bool:
    """True if the ladder's current rules apply to all its matches."""
    events = [row["event"] for row in corrections_of(service.database, ladder.name)]
    return bool([event["start"] for event in events if isinstance(event, dict) and "parameters" in event][-1])


def _other_rules(ladder: Ladder, system: str | None, preset: str | None, values: Mapping[str, object]) -> Rules:
    """The requested rules; with the same system and no preset, the ladder's own with the given values replaced."""
    same = system is None or system in (ladder.system, ladder.rules.system.name)
    if not same or preset is not None:
        return rules(ladder.system if system is None else system, preset, **values)
    return Rules.of(ladder.rules.system, ladder.rules.preset, **(ladder.rules.values() | dict(values)))
