"""Descriptions of rating systems, of a ladder's rules and of matchmaking policies, as data."""

from __future__ import annotations

from collections.abc import Iterable

from evenmatch.options import options_of
from evenmatch.policy import Policy, presets
from evenmatch.systems.system import Rules, System

Row = dict[str, object]
STATES = {  # columns of a player's state that people care for, by name, or by system and name
    "deviation": "How far off the rating may be: the true level of two in three players is within this distance, "
    "and that of nearly all within twice of it.",
    "provisional": "Whether there are too few matches yet for the rating to be more than a first guess.",
    ("glicko2", "volatility"): "How much results swing: surprising ones raise it, expected ones lower it.",
    ("prav", "volatility"): "How changeable results are: the higher it is, the less the rating says about a match, "
    "and the nearer to even the odds are.",
}


def system_as_data(system: System) -> Row:
    """A rating system: source, needs, parameters, presets and factors."""
    return {
        "name": system.name,
        "title": system.title,
        "source": system.source,
        "needs": system.needs,
        "parameters": {
            name: {"default": option.default, "accepts": option.accepts, "meaning": option.meaning}
            for name, option in options_of(system.parameters).items()
        },
        "presets": {name: dict(values) for name, values in system.presets.items()},
        "factors": factors_as_data(system),
    }


def factors_as_data(system: System) -> dict[str, Row]:
    """The meaning of the factors of a rating change, by name."""
    return {
        factor.name: {"meaning": factor.meaning, **({"labels": list(factor.labels)} if factor.labels else {})}
        for factor in system.factors
    }


def state_meanings(system: System, columns: Iterable[str]) -> dict[str, str]:
    """The meanings of those columns of a player's state that people care for, by name."""
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
    """The effect and the accepted values of each option of a policy, by name."""
    return {
        name: {"effect": option.meaning, "accepts": option.accepts or None}
        for name, option in options_of(Policy).items()
    }
