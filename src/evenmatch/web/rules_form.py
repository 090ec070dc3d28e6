"""The form for a rating system, its preset and parameters, and the rules read from it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from evenmatch import systems
from evenmatch.errors import UsageError
from evenmatch.options import options_of, shown
from evenmatch.rating import rules
from evenmatch.service.rule_overrides import check_installed
from evenmatch.systems.system import Rules
from evenmatch.web.forms import FieldError

FIELD = "p."  # prefix of a parameter's form field


class Field(NamedTuple):
    """A parameter in the form: field name, label, value as typed, meaning, and accepted values."""

    name: str
    called: str
    value: str
    meaning: str
    accepts: str


class RulesForm(NamedTuple):
    """The choices of the form: systems, presets of the selected system, and its parameters."""

    system: str
    systems: tuple[str, ...]
    preset: str
    presets: tuple[str, ...]
    fields: tuple[Field, ...]


def rules_form(chosen: Rules, sent: Mapping[str, str] = MappingProxyType({})) -> RulesForm:
    """Return the form filled with these rules; `sent`: the values of a refused submission."""
    declared, values = options_of(chosen.system.parameters), chosen.values()
    typed = sent if sent.get("shown_system") == chosen.system.name else {}
    fields = tuple(
        Field(
            *(FIELD + name, name.replace("_", " "), typed.get(FIELD + name, shown(values[name]))),
            *(option.meaning, option.accepts),
        )
        for name, option in declared.items()
    )
    known = dict.fromkeys([*systems.names(), chosen.system.name])  # the ladder's own system may come from a file
    return RulesForm(chosen.system.name, tuple(known), chosen.preset or "", tuple(chosen.system.presets), fields)


def base_rules(sent: Mapping[str, str], present: Rules) -> Rules:
    """Return the default rules of the form's system and preset; `present` if they are the present ones.

    Raises UnknownNameError for a system that is not installed.
    """
    system, preset = sent.get("system") or present.system.name, sent.get("preset") or None
    if system != present.system.name:
        check_installed(system)
    if system == present.system.name and preset == present.preset:
        return present
    if preset is not None and preset not in systems.find(system).presets:
        preset = None  # a preset of the previously selected system
    return rules(system, preset)


def chosen_rules(sent: Mapping[str, str], present: Rules) -> Rules:
    """Return the rules of a form; values that it does not change are those of `base_rules`.

    Parameter values are ignored if the form shows those of another system or preset than the selected one. Raises
    UnknownNameError for a system that is not installed, FieldError for a parameter with an invalid value.
    """
    base = base_rules(sent, present)
    system, preset = sent.get("system") or present.system.name, sent.get("preset") or None
    if (sent.get("shown_system", system), sent.get("shown_preset") or None) != (system, preset):
        return base
    typed = {key.removeprefix(FIELD): value.strip() for key, value in sent.items() if key.startswith(FIELD)}
    before = {name: shown(value) for name, value in base.values().items()}
    changed = {name: value for name, value in typed.items() if value != before.get(name)}
    declared = options_of(base.system.parameters)
    for name in changed.keys() & declared.keys():
        try:
            declared[name].read(changed[name])
        except (ValueError, TypeError, OverflowError):
            error = UsageError(f"expected {declared[name].accepts}, got {changed[name][:20]!r}")
            raise FieldError(FIELD + name, error) from None
    return Rules.of(base.system, base.preset, **(base.values() | changed)) if changed else base
