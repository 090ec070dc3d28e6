"""Rules of a rating system by its name."""

from __future__ import annotations

from evenmatch import systems
from evenmatch.errors import UsageError
from evenmatch.systems.system import Rules


def rules(system: str, preset: str | None = None, **parameters: object) -> Rules:
    """Create the rules of a rating system from its name (or the path of a .py file), a preset and parameters.

    Raises UnknownNameError or BadParameterError.
    """
    return Rules.of(systems.find(system), preset, **parameters)


def rules_of(by: Rules | str) -> Rules:
    """Return rules unchanged; turn a system name into its rules with default parameters."""
    if isinstance(by, Rules):
        return by
    if isinstance(by, str):
        return rules(by)
    raise UsageError(f"the rules are a {type(by).__name__}; expected a system's name or evenmatch.rules(…)")
