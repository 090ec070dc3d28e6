"""Parameters of a rating system: their base class, and how they are built from values by name."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.options import Value, options_of, shown


class Parameters:
    """Base of a system's parameters: a frozen dataclass whose fields are options (see evenmatch.options).

    A system overrides `conflict` where values may not go together.
    """

    def conflict(self) -> str:
        """What does not go together and what would be accepted; empty where all is well."""
        return ""


def build(system: str, parameters: type[Parameters], values: Mapping[str, object]) -> Parameters:
    """Parameters with these values, defaults elsewhere; text is parsed.

    Raises UnknownNameError for a name that the system does not have, BadParameterError for a value it does not accept.
    """
    options = options_of(parameters)
    read: dict[str, Value] = {}
    for name, value in values.items():
        if name not in options:
            raise UnknownNameError(f"parameter of {system}", name, options)
        try:
            read[name] = options[name].read(value)
        except (ValueError, TypeError, OverflowError):
            raise BadParameterError(f"{name}={shown(value)} for {system}: expected {options[name].accepts}") from None
    made = parameters(**read)
    if conflict := made.conflict():
        raise BadParameterError(f"{system}: {conflict}")
    return made
