"""Options: a value that people set, declared once with its type, default, range and meaning.

Parameters of rating systems, matchmaking policies, rules of queues, settings of ladders and scenarios of simulated
queues are frozen dataclasses whose fields are declared with the functions below. The check of a value, the models of
the HTTP API, options of the command line, forms and reference pages are derived from these declarations.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

from evenmatch.errors import BadParameterError, UnknownNameError

Range = tuple[float, float]
Value = float | str | bool | tuple[float, ...] | None


def check_colour(colour: str) -> str:
    """Return a colour of the form #rrggbb. Raises ValueError for another text."""
    if re.fullmatch("#[0-9a-fA-F]{6}", colour) is None:
        raise ValueError(f"expected # and six hexadecimal digits, such as #2a7de1, got {colour[:40]!r}")
    return colour


@dataclass(frozen=True, kw_only=True)
class Option:
    """The meaning of one option and the values it allows; this base class leaves the check to the option's owner.

    default   default value of the field
    meaning   one sentence for people
    search    where tuning looks for the best value: a range or a list of values; None: not tuned
    optional  None is allowed; in text: "none"
    separate  set by its own command and page, so lists of options leave it out
    """

    default: Any
    meaning: str
    search: Range | tuple[str, ...] | None = None
    optional: bool = False
    separate: bool = False

    @property
    def accepts(self) -> str:
        """The allowed values in words, for messages: "expected …"."""
        return ""

    def check(self, value: object) -> None:
        """Raise ValueError or TypeError for a value that is not allowed. Text is not converted."""

    def parse(self, text: str) -> object:
        """Convert typed text to a value, unchecked. Raises ValueError."""
        return text

    def read(self, value: object) -> Any:  # noqa: ANN401 - as the field is typed
        """Return the checked value; text is parsed first. Raises ValueError or TypeError."""
        if self.optional and (value is None or value == "none"):
            return None
        parsed = self.parse(value) if isinstance(value, str) else value
        self.check(parsed)
        return parsed


@dataclass(frozen=True, kw_only=True)
class Number(Option):
    """A number in a closed range. decimals: the most allowed; None: no limit. word: allowed instead of a number."""

    low: float
    high: float
    whole: bool = False
    decimals: int | None = None
    word: str | None = None

    @property
    def accepts(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        exact = "" if self.decimals is None else f" with at most {self.decimals} decimals"
        none = f", or {self.word or 'none'}" if self.word or self.optional else ""
        return f"{kind} from {self.low:,.10g} to {self.high:,.10g}{exact}{none}"

    def check(self, value: object) -> None:
        if (value is None and self.optional) or (self.word is not None and value == self.word):
            return
        if not isinstance(value, Integral if self.whole else Real) or isinstance(value, bool):
            raise TypeError
        number = float(value)
        if not self.low <= number <= self.high:
            raise ValueError
        if self.decimals is not None and round(number, self.decimals) != number:
            raise ValueError

    def parse(self, text: str) -> object:
        if text == self.word:
            return text
        if "_" in text:
            raise ValueError
        return int(text) if self.whole else float(text)

    def read(self, value: object) -> Any:  # noqa: ANN401
        number = super().read(value)
        return number if number is None or number == self.word or self.whole else float(number)


@dataclass(frozen=True, kw_only=True)
class Choice(Option):
    """One of a few words."""

    choices: tuple[str, ...]

    @property
    def accepts(self) -> str:
        return " or ".join((", ".join(self.choices[:-1]), self.choices[-1])) if self.choices[1:] else self.choices[0]

    def check(self, value: object) -> None:
        if value not in self.choices:
            raise ValueError


@dataclass(frozen=True, kw_only=True)
class Flag(Option):
    """True or false."""

    @property
    def accepts(self) -> str:
        return "true or false"

    def check(self, value: object) -> None:
        if not isinstance(value, bool):
            raise TypeError

    def parse(self, text: str) -> object:
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(text.lower())


@dataclass(frozen=True, kw_only=True)
class Text(Option):
    """Any text."""

    @property
    def accepts(self) -> str:
        return "text"

    def check(self, value: object) -> None:
        if not isinstance(value, str):
            raise TypeError


@dataclass(frozen=True, kw_only=True)
class Names(Option):
    """Up to `most` different names that match a pattern; in text, separated by commas."""

    most: int
    pattern: str

    @property
    def accepts(self) -> str:
        return f"up to {self.most} different names of letters, digits and underscores, separated by commas, or none"

    def check(self, value: object) -> None:
        if not isinstance(value, tuple | list) or not all(isinstance(name, str) for name in value):
            raise TypeError
        if len(set(value)) < len(value) or len(value) > self.most:
            raise ValueError
        if not all(re.fullmatch(self.pattern, name) for name in value):
            raise ValueError

    def parse(self, text: str) -> object:
        return () if text in ("", "none") else tuple(name.strip() for name in text.split(","))


@dataclass(frozen=True, kw_only=True)
class Numbers(Option):
    """Several numbers, one per bracket; a single number applies to all."""

    count: int
    low: float
    high: float
    ascending: bool = False

    @property
    def accepts(self) -> str:
        order = " in ascending order" if self.ascending else ""
        return f"{self.count} numbers from {self.low:g} to {self.high:g}{order}, separated by commas, or one for all"

    def check(self, value: object) -> None:
        self.read(value)

    def parse(self, text: str) -> object:
        return [float(number) for number in text.split(",")]

    def read(self, value: object) -> Any:  # noqa: ANN401
        listed = self.parse(value) if isinstance(value, str) else value
        if isinstance(listed, Real) and not isinstance(listed, bool):
            listed = (listed,)
        if not isinstance(listed, tuple | list) or any(isinstance(number, bool) for number in listed):
            raise TypeError
        numbers = tuple(float(number) for number in listed)
        if len(numbers) == 1:
            numbers *= self.count
        if len(numbers) != self.count or not all(self.low <= number <= self.high for number in numbers):
            raise ValueError
        if self.ascending and any(a > b for a, b in pairwise(numbers)):
            raise ValueError
        return numbers


# declarations of dataclass fields


def number(
    default: float | None,
    low: float,
    high: float,
    meaning: str,
    *,
    decimals: int | None = None,
    optional: bool = False,
    search: Range | None = None,
) -> Any:  # noqa: ANN401 - as the field is typed
    """Declare a number. `search` is where tuning looks for the best one."""
    return _field(
        Number(
            default=default,
            meaning=meaning,
            low=low,
            high=high,
            decimals=decimals,
            optional=optional,
            search=search,
        )
    )


def whole(
    default: int | None, low: int, high: int, meaning: str, *, optional: bool = False, word: str | None = None
) -> Any:  # noqa: ANN401
    """Declare a whole number. word: allowed in its place."""
    return _field(
        Number(default=default, meaning=meaning, low=low, high=high, whole=True, optional=optional, word=word)
    )


def choice(default: str, choices: tuple[str, ...], meaning: str, *, search: bool = False) -> Any:  # noqa: ANN401
    """Declare a choice of words. `search`: tuning tries them all."""
    return _field(Choice(default=default, meaning=meaning, choices=choices, search=choices if search else None))


def flag(default: bool, meaning: str, *, search: bool = False, separate: bool = False) -> Any:  # noqa: ANN401
    """Declare a switch. `search`: tuning tries both."""
    tried = ("true", "false") if search else None
    return _field(Flag(default=default, meaning=meaning, search=tried, separate=separate))


def text(default: str, meaning: str) -> Any:  # noqa: ANN401
    """Declare a text option."""
    return _field(Text(default=default, meaning=meaning))


def name_list(most: int, pattern: str, meaning: str) -> Any:  # noqa: ANN401
    """Declare a list of names, empty by default."""
    return _field(Names(default=(), meaning=meaning, most=most, pattern=pattern))


def numbers(
    default: tuple[float, ...],
    low: float,
    high: float,
    meaning: str,
    *,
    ascending: bool = False,
    search: Range | None = None,
) -> Any:  # noqa: ANN401
    """Declare a tuple of numbers, one per bracket; tuning searches for the best ones within `search`."""
    return _field(
        Numbers(
            default=default,
            meaning=meaning,
            count=len(default),
            low=low,
            high=high,
            ascending=ascending,
            search=search,
        )
    )


def structure(default: object, meaning: str) -> Any:  # noqa: ANN401
    """Declare a list or table that its class checks itself."""
    return _field(Option(default=default, meaning=meaning))


def _field(option: Option) -> Any:  # noqa: ANN401
    if isinstance(option.default, dict):
        return field(default_factory=option.default.copy, metadata={"option": option})
    return field(default=option.default, metadata={"option": option})


# uses of the declarations


def options_of(owner: type) -> Mapping[str, Option]:
    """The options of a dataclass by name, in the order declared."""
    return {item.name: item.metadata["option"] for item in dataclasses.fields(owner) if "option" in item.metadata}


class Checked:
    """Base of frozen dataclasses that check every option when an object is made. Raises BadParameterError."""

    def __post_init__(self) -> None:
        for name, option in options_of(type(self)).items():
            value = getattr(self, name)
            try:
                option.check(value)
            except (ValueError, TypeError, OverflowError):
                is_round = isinstance(value, float) and value.is_integer() and not getattr(option, "whole", False)
                written = f"{value:.0f}" if is_round else repr(value)
                raise BadParameterError(f"{name}={written}: expected {option.accepts}") from None


def known_values(owner: type, kind: str, data: Mapping[str, object]) -> dict[str, Any]:
    """Read the values of an options dataclass from a TOML or JSON document; "none" is None where that is allowed.

    Raises UnknownNameError for a name that is not an option; `kind` says in the message what the options are of.
    """
    options = options_of(owner)
    for name in data:
        if name not in options:
            raise UnknownNameError(kind, name, options)
    return {name: None if value == "none" and options[name].optional else value for name, value in data.items()}


def read_values(owner: type, kind: str, values: Mapping[str, object], place: str = "") -> dict[str, Any]:
    """Read values by name; text is parsed. Raises UnknownNameError or BadParameterError.

    kind, place  how messages name an option and its owner
    """
    options = options_of(owner)
    read = {}
    for name, value in values.items():
        if name not in options:
            raise UnknownNameError(kind, name, options)
        try:
            read[name] = options[name].read(value)
        except (ValueError, TypeError, OverflowError):
            raise BadParameterError(f"{name}={shown(value)}{place}: expected {options[name].accepts}") from None
    return read


def shown(value: object) -> str:
    """A value as it would be typed after --param name=."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ",".join(shown(item) for item in value) or "none"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.12g}"
    return "none" if value is None else str(value)
