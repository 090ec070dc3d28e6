"""Rating systems and their parameters as a form, and what was chosen in it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from evenmatch import systems
from evenmatch.errors import UsageError
from evenmatch.rating import rules
from evenmatch.service.choosing import check_installed
from evenmatch.systems.parameter import shown, specs
from evenmatch.systems.system import Rules
from evenmatch.web.forms import FieldError

FIELD = "p."  # before the name of a parameter


class Field(NamedTuple):
    """A parameter in a form: its name there, its value as typed, what it means and accepts."""

    name: str
    called: str
    value: str
    meaning: str
    accepts: str


class RulesForm(NamedTuple):
    """What can be chosen: systems, presets of the present one, and its parameters."""

    system: str
    systems: tuple[str, ...]
    preset: str
    presets: tuple[str, ...]
    fields: tuple[Field, ...]


def rules_form(chosen: Rules, sent: Mapping[str, str] = MappingProxyType({})) -> RulesForm:
    """The form in which these rules stand; `sent`: values as they were typed, where they were refused."""
    declared, values = specs(chosen.system.parameters), chosen.values()
    typed = sent if sent.get("shown_system") == chosen.system.name else {}
    fields = tuple(
        Field(
            *(FIELD + name, name.replace("_", " "), typed.get(FIELD + name, shown(values[name]))),
            *(spec.meaning, spec.accepts),
        )
        for name, (spec, _) in declared.items()
    )
    known = dict.fromkeys([*systems.names(), chosen.system.name])  # a ladder's own may be out of a file
    return RulesForm(chosen.system.name, tuple(known), chosen.preset or "", tuple(chosen.system.presets), fields)


def base_rules(sent: Mapping[str, str], present: Rules) -> Rules:
    """The system and the preset of a form with their own values; the present rules where it names no others.

    Raises UnknownNameError for a system that is not installed.
    """
    system, preset = sent.get("system") or present.system.name, sent.get("preset") or None
    if system != present.system.name:
        check_installed(system)
    if system == present.system.name and preset == present.preset:
        return present
    if preset is not None and preset not in systems.find(system).presets:
        preset = None  # it was one of the system that was chosen before
    return rules(system, preset)


def chosen_rules(sent: Mapping[str, str], present: Rules) -> Rules:
    """The rules of a form; on top of the present ones where it names no other system or preset.

    Values count where the form shows the parameters of this very system and preset: else the fields are those of the
    choice before. Raises UnknownNameError, and FieldError with the parameter whose value is not accepted.
    """
    base = base_rules(sent, present)
    system, preset = sent.get("system") or present.system.name, sent.get("preset") or None
    if (sent.get("shown_system", system), sent.get("shown_preset") or None) != (system, preset):
        return base
    typed = {key.removeprefix(FIELD): value.strip() for key, value in sent.items() if key.startswith(FIELD)}
    before = {name: shown(value) for name, value in base.values().items()}
    changed = {name: value for name, value in typed.items() if value != before.get(name)}
    declared = specs(base.system.parameters)
    for name in changed.keys() & declared.keys():
        try:
            declared[name][0].read(changed[name])
        except (ValueError, TypeError, OverflowError):
            error = UsageError(f"expected {declared[name][0].accepts}, got {changed[name][:20]!r}")
            raise FieldError(FIELD + name, error) from None
    return Rules.of(base.system, base.preset, **(base.values() | changed)) if changed else base
