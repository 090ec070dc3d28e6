"""Submitted forms: the typed values, the error if refused, and the forms for rules and settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from evenmatch import systems
from evenmatch.errors import EvenmatchError, UnknownNameError, UsageError
from evenmatch.ladders.descriptions import check_installed
from evenmatch.ladders.settings import SETTINGS
from evenmatch.options import Flag, Option, options_of, shown
from evenmatch.rating import rules
from evenmatch.systems.system import Rules

CONFIRM = "confirm"  # the field in which a name is typed as confirmation; never filled from the URL
Fields = tuple[tuple[str, str], ...]  # names and values, in the order of the request


class FieldError(EvenmatchError):
    """An error that belongs to one form field; `error` is the original exception."""

    def __init__(self, field: str, error: EvenmatchError) -> None:
        self.field, self.error = field, error
        super().__init__(str(error))


@contextmanager
def about(field: str) -> Iterator[None]:
    """Turn an EvenmatchError raised in the block into a FieldError for this field."""
    try:
        yield
    except FieldError:
        raise
    except EvenmatchError as error:
        raise FieldError(field, error) from error


def check_confirmed(form: Mapping[str, str], name: str) -> None:
    """Raise FieldError if this name was not typed as confirmation. White space may differ."""
    with about(CONFIRM):
        if form.get(CONFIRM, "").split() != name.split():
            raise UsageError(f"type {name} to confirm")


@dataclass(frozen=True)
class Form:
    """A form on a page: empty, or with the values and the error of a refused submission.

    action  the URL to submit it to
    sent    the submitted values; None: not submitted yet
    error   why it was refused;  field  the field with the error, None: the form as a whole
    """

    action: str
    sent: Fields | None = None
    error: EvenmatchError | None = None
    field: str | None = None

    def value(self, name: str, first: object = "") -> object:
        """Return the value of a field as typed; `first` if the form was not submitted or has no such value."""
        return dict(self.sent or ()).get(name, first)

    def is_chosen(self, name: str, value: object, first: bool = False) -> bool:
        """Return whether a checkbox is ticked or an option selected; `first` if the form was not submitted."""
        return first if self.sent is None else (name, str(value)) in self.sent

    def wrong(self, name: str) -> str | None:
        """Return the error message of a field."""
        return str(self.error) if self.error is not None and self.field == name else None

    @property
    def refusal(self) -> str | None:
        """The error message that belongs to no single field."""
        return str(self.error) if self.error is not None and self.field is None else None

    @property
    def meant(self) -> str | None:
        """The known name closest to an unknown one that was typed."""
        return self.error.close if isinstance(self.error, UnknownNameError) else None


def refused(action: str, sent: Fields, error: EvenmatchError) -> Form:
    """Return the form submitted to this URL and refused with this error."""
    if isinstance(error, FieldError):
        return Form(action, sent, error.error, error.field)
    return Form(action, sent, error)


FIELD = "p."  # prefix of a parameter's form field
FLAGS = ("true", "false")
JSON = "a list or table as JSON, such as [[0, 5], [60, 10]]"


class Field(NamedTuple):
    """A parameter in the form: field name, label, value as typed, meaning, and accepted values."""

    name: str
    called: str
    value: str
    meaning: str
    accepts: str


class RulesForm(NamedTuple):
    """The choices of the form: systems, presets of the selected system, and its parameters. title: of the system."""

    system: str
    title: str
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
    known = dict.fromkeys([*systems.names(), chosen.system.name])  # the ladder's system may come from a file
    system = chosen.system
    return RulesForm(system.name, system.title, tuple(known), chosen.preset or "", tuple(chosen.system.presets), fields)


def base_rules(sent: Mapping[str, str], present: Rules) -> Rules:
    """Return the default rules of the form's system and preset; `present` if they are the current ones.

    Raises UnknownNameError for a system that is not installed.
    """
    system, preset = sent.get("system") or present.system.name, sent.get("preset") or None
    if system != present.system.name:
        check_installed(system)
    if system == present.system.name and preset == present.preset:
        return present
    if preset is not None and preset not in systems.find(system).presets:
        preset = None  # it belongs to the previously selected system
    return rules(system, preset)


def chosen_rules(sent: Mapping[str, str], present: Rules) -> Rules:
    """Return the rules of a form; values that it does not change are those of `base_rules`.

    Parameter values are ignored if they belong to another system or preset than the selected one. Raises
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


class OptionField(NamedTuple):
    """A field for an option: name, label, value as typed (empty: none), meaning, accepted values, choices if few."""

    name: str
    called: str
    value: str
    meaning: str
    accepts: str
    choices: tuple[str, ...]


OFFERED = {name: option for name, option in SETTINGS.items() if not option.separate and option.accepts}


def option_fields(options: Mapping[str, Option], values: Mapping[str, object]) -> dict[str, OptionField]:
    """Return the fields for these options, filled with values by name. Lists and tables are typed as JSON."""
    return {
        name: OptionField(
            *(name, name.replace("_", " "), typed_value(option, values[name]), option.meaning.rstrip(".")),
            *(option.accepts, FLAGS if isinstance(option, Flag) else getattr(option, "choices", ())),
        )
        for name, option in options.items()
    }


def typed_value(option: Option, value: object) -> str:
    """Return the value as it is typed in the field of an option."""
    if value is None:
        return ""
    return shown(value) if option.accepts else json.dumps(value, ensure_ascii=False)


def options_typed(form: Mapping[str, str], options: Mapping[str, Option]) -> dict[str, object]:
    """Return the values of these options in a submitted form. Raises FieldError for a value that is not allowed."""
    typed: dict[str, object] = {}
    for name, option in options.items():
        if name not in form:
            continue
        text = form[name].strip()
        with about(name):
            try:
                empty = option.optional and not text
                typed[name] = json.loads(text) if not option.accepts else option.read(None if empty else text)
            except (ValueError, TypeError, OverflowError):
                raise UsageError(f"expected {option.accepts or JSON}, got {text[:20]!r}") from None
    return typed
