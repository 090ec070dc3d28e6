"""Rating systems, rules and policies in words: what there is to choose from, and what a ladder chose."""

from __future__ import annotations

from evenmatch.matchmaking.policy import OTHER_OPTIONS, options, presets
from evenmatch.systems.parameter import specs
from evenmatch.systems.system import Rules, System

Row = dict[str, object]


def system_told(system: System) -> Row:
    """Everything about a system that a user may want to know, as data."""
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
    """What the factors of a change mean, by name."""
    return {
        factor.name: {"meaning": factor.meaning, **({"labels": list(factor.labels)} if factor.labels else {})}
        for factor in system.factors
    }


def rules_told(rules: Rules) -> Row:
    """What a ladder is rated by: its system in words, and every parameter with its value and what it means."""
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
    """The matchmaker's presets with every option, the default first."""
    return [{"name": name, "options": policy.to_data()} for name, policy in presets().items()]


def options_told() -> dict[str, Row]:
    """What each option of a policy does and accepts, by name."""
    numbers: dict[str, Row] = {name: {"effect": one.effect, "accepts": one.accepts} for name, one in options().items()}
    return numbers | {name: {"effect": effect, "accepts": None} for name, effect in OTHER_OPTIONS.items()}
