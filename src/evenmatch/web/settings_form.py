"""The form for the settings of a ladder, derived from where each setting is declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.errors import UsageError
from evenmatch.options import Choice, shown
from evenmatch.service.settings import SETTINGS, Settings
from evenmatch.web.forms import about

OFFERED = {name: option for name, option in SETTINGS.items() if not option.separate and option.accepts}


class SettingField(NamedTuple):
    """A field of the form. choices: empty if the value is typed."""

    name: str
    label: str
    value: str
    choices: tuple[str, ...]


def settings_fields(present: Settings) -> list[SettingField]:
    """The fields, filled with the present settings; an empty field stands for none."""
    values = present.plain()
    return [
        SettingField(
            *(name, option.meaning.rstrip("."), "" if values[name] is None else shown(values[name])),
            option.choices if isinstance(option, Choice) else (),
        )
        for name, option in OFFERED.items()
    ]


def settings_of(form: Mapping[str, str]) -> dict[str, object]:
    """The settings of a submitted form, those that it has. Raises FieldError for a value that is not allowed."""
    changes: dict[str, object] = {}
    for name, option in OFFERED.items():
        if name not in form:
            continue
        typed = form[name].strip()
        with about(name):
            try:
                changes[name] = option.read(None if option.optional and not typed else typed)
            except (ValueError, TypeError, OverflowError):
                raise UsageError(f"expected {option.accepts}, got {typed[:20]!r}") from None
    return changes
