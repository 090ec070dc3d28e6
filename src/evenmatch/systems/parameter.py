"""Parameters of a rating system: what each accepts, by name, from Python values or from text."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Real
from typing import Any, Protocol, cast

from evenmatch.errors import BadParameterError, UnknownNameError

Value = float | str | bool | tuple[float, ...] | None


Range = tuple[float, float]


class Spec(Protocol):
    """What one parameter means and accepts."""

    @property
    def meaning(self) -> str:
        """One line for people."""
        ...

    @property
    def search(self) -> Range | tuple[str, ...] | None:
        """Where tuning looks for the best value: from … to, or these; None: tuning leaves it as it is."""
        ...

    @property
    def accepts(self) -> str:
        """The accepted values, as they end the sentence "accepted is …"."""
        ...

    def read(self, value: object) -> Value:
        """The value, or ValueError; text is read as a person would have typed it."""
        ...


@dataclass(frozen=True)
class Number:
    """A number in a closed range, with at most so many decimals, or none at all where it is optional."""

    meaning: str
    low: float
    high: float
    decimals: int | None = None
    optional: bool = False
    search: Range | None = None

    @property
    def accepts(self) -> str:
        exact = "" if self.decimals is None else f" with at most {self.decimals} decimals"
        return f"a number from {self.low:g} to {self.high:g}{exact}" + (", or none" if self.optional else "")

    def read(self, value: object) -> Value:
        if self.optional and (value is None or value == "none"):
            return None
        if isinstance(value, bool) or not isinstance(value, Real | str) or "_" in str(value):
            raise ValueError
        number = float(value)
        if not self.low <= number <= self.high:
            raise ValueError
        if self.decimals is not None and round(number, self.decimals) != number:
            raise ValueError
        return number


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    meaning: str
    choices: tuple[str, ...]
    search: tuple[str, ...] | None = None

    @property
    def accepts(self) -> str:
        return " or ".join(self.choices)

    def read(self, value: object) -> Value:
        if value not in self.choices:
            raise ValueError
        return str(value)


@dataclass(frozen=True)
class Flag:
    """True or false."""

    meaning: str
    accepts: str = "true or false"
    search: tuple[str, ...] | None = None

    def read(self, value: object) -> Value:
        if isinstance(value, str):
            value = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(value.lower())
        if not isinstance(value, bool):
            raise ValueError
        return value


@dataclass(frozen=True)
class Numbers:
    """So many numbers, one per bracket; one alone counts for all."""

    meaning: str
    count: int
    low: float
    high: float
    ascending: bool = False
    search: Range | None = None

    @property
    def accepts(self) -> str:
        order = ", none below the one before" if self.ascending else ""
        return f"{self.count} numbers from {self.low:g} to {self.high:g}{order}, separated by commas, or one for all"

    def read(self, value: object) -> Value:
        listed = value.split(",") if isinstance(value, str) else value
        if isinstance(listed, Real) and not isinstance(listed, bool):
            listed = (listed,)
        if not isinstance(listed, tuple | list) or any(isinstance(number, bool) for number in listed):
            raise ValueError
        numbers = tuple(float(number) for number in listed)
        if len(numbers) == 1:
            numbers *= self.count
        if len(numbers) != self.count or not all(self.low <= number <= self.high for number in numbers):
            raise ValueError
        if self.ascending and any(a > b for a, b in pairwise(numbers)):
            raise ValueError
        return numbers


def number(
    default: float, low: float, high: float, meaning: str, *, decimals: int | None = None, search: Range | None = None
) -> float:
    """Declare a number, as the default of a dataclass field. `search` is where tuning looks for the best one."""
    declared: Any = field(default=default, metadata={"spec": Number(meaning, low, high, decimals, search=search)})
    return declared


def optional_number(low: float, high: float, meaning: str) -> float | None:
    """Declare a number that may be absent, and is by default."""
    declared: Any = field(default=None, metadata={"spec": Number(meaning, low, high, optional=True)})
    return declared


def choice(default: str, choices: tuple[str, ...], meaning: str, *, search: bool = False) -> str:
    """Declare a word out of a few. `search`: tuning tries them all."""
    spec = Choice(meaning, choices, choices if search else None)
    declared: Any = field(default=default, metadata={"spec": spec})
    return declared


def flag(default: bool, meaning: str, *, search: bool = False) -> bool:
    """Declare a switch. `search`: tuning tries both."""
    spec = Flag(meaning, search=("true", "false") if search else None)
    declared: Any = field(default=default, metadata={"spec": spec})
    return declared


def numbers(
    default: tuple[float, ...],
    low: float,
    high: float,
    meaning: str,
    *,
    ascending: bool = False,
    search: Range | None = None,
) -> tuple[float, ...]:
    """Declare a row of numbers, one per bracket; tuning looks for the best ones within `search`."""
    spec = Numbers(meaning, len(default), low, high, ascending, search)
    declared: Any = field(default=default, metadata={"spec": spec})
    return declared


class Parameters:
    """Base of a system's parameters: a frozen dataclass whose fields were declared with the functions above.

    A system overrides `conflict` where values may not go together.
    """

    def conflict(self) -> str:
        """What does not go together and what would be accepted; empty where all is well."""
        return ""


def specs(parameters: type[Parameters]) -> dict[str, tuple[Spec, Value]]:
    """Each parameter's spec and default, by name, in the order declared."""
    fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(parameters)  # type: ignore[arg-type]
    return {f.name: (f.metadata["spec"], cast("Value", f.default)) for f in fields}


def build(system: str, parameters: type[Parameters], values: Mapping[str, object]) -> Parameters:
    """Parameters with these values, defaults elsewhere.

    Raises UnknownNameError for a name that the system does not have, BadParameterError for a value it does not accept.
    """
    known = specs(parameters)
    read: dict[str, Value] = {}
    for name, value in values.items():
        if name not in known:
            raise UnknownNameError(f"parameter of {system}", name, known)
        spec = known[name][0]
        try:
            read[name] = spec.read(value)
        except (ValueError, TypeError, OverflowError):
            raise BadParameterError(f"{name}={shown(value)} for {system}: accepted is {spec.accepts}") from None
    made = parameters(**read)
    if conflict := made.conflict():
        raise BadParameterError(f"{system}: {conflict}")
    return made


def shown(value: object) -> str:
    """A value as it would be typed after --param name=."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ",".join(shown(one) for one in value)
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.12g}"
    return "none" if value is None else str(value)
