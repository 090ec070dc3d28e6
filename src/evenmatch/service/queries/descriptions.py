"""Descriptions of rating systems, of a ladder's rules and of matchmaking policies, as data."""

from __future__ import annotations

from evenmatch.matchmaking.policy import OTHER_OPTIONS, options, presets
from evenmatch.systems.parameter import specs
from evenmatch.systems.system import Rules, System

Row = dict[str, object]


def system_told(system: System) -> Row:
    """A rating system: source, needs, parameters, presets and factors."""
    return {
        "name": system.name,
        "title": system.title,
        "source": system.source,
        "needs": system.needs,
        "parameters": {
            name: {"default": default, "accepts": spec.accepts, "meaning": spec.meaning}
            for name, (spec, default) in specs(system.parameters).items()
        },
        "presets": {name: dict(values) for name, values in system.presets.items()},
        "factors": factors_told(system),
    }


def factors_told(system: System) -> dict[str, Row]:
    """The meaning of the factors of a rating change, by name."""
    return {
        factor.name: {"meaning": factor.meaning, **({"labels": list(factor.labels)} if factor.labels else {})}
        for factor in system.factors
    }


def rules_told(rules: Rules) -> Row:
    """The rules of a ladder: its system, and the value and meaning of every parameter."""
    declared, values = specs(rules.system.parameters), rules.values()
    return {
        "system": rules.system.name,
        "title": rules.system.title,
        "source": rules.system.source,
        "needs": rules.system.needs,
        "preset": rules.preset,
        "parameters": {
            name: {"value": values[name], "default": default, "accepts": spec.accepts, "meaning": spec.meaning}
            for name, (spec, default) in declared.items()
        },
        "factors": factors_told(rules.system),
    }


def policies_told() -> list[Row]:
    """The matchmaker's presets with all their options, the default first."""
    return [{"name": name, "options": policy.to_data()} for name, policy in presets().items()]


def options_told() -> dict[str, Row]:
    """The effect and the accepted values of each option of a policy, by name."""
    numbers: dict[str, Row] = {
        name: {"effect": option.effect, "accepts": option.accepts} for name, option in options().items()
    }
    return numbers | {name: {"effect": effect, "accepts": None} for name, effect in OTHER_OPTIONS.items()}
