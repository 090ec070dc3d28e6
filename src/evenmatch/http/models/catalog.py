"""Ladders, their rules and seasons, and what there is to make them of."""

from __future__ import annotations

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from evenmatch.http.models.base import Moment, Told
from evenmatch.http.models.changes import LadderTold, SettingsTold

Value = float | str | bool | list[float] | None
OPENED = "2026-11-01T00:00:00Z"
PARAMETER: JsonDict = {
    "value": 0.05,
    "default": 0.05,
    "accepts": "a number from 0 to 1",
    "meaning": "share of the rank at stake",
}
FACTOR: JsonDict = {"meaning": "the share of the rank that was at stake", "labels": None}
RULES: JsonDict = {
    "system": "wager",
    "title": "a twentieth of the rank at stake",
    "source": "Wagering (2018)",
    "needs": "two teams",
    "preset": None,
    "parameters": {"stake": PARAMETER},
    "factors": {"stake": FACTOR},
}
SETTINGS: JsonDict = {
    "title": "Arena 6v6",
    "team_size": 6,
    "reset": "soft",
    "factor": 0.5,
    "placement": 10,
    "active_days": 30.0,
    "divisions": [{"name": "Bronze", "lowest": 1}, {"name": "Gold", "lowest": 46}],
    "division_margin": 3,
    "archived": False,
}
SEASON: JsonDict = {"number": 1, "title": "Season 1", "position": 1, "opened_at": OPENED, "closed_at": None}
LADDER: JsonDict = {
    "name": "arena",
    "title": "Arena 6v6",
    "system": "wager",
    "preset": None,
    "parameters": {"stake": 0.05},
    "settings": SETTINGS,
    "events": 120,
    "matches": 118,
    "players": 40,
    "season": 1,
    "rebuild_due_from": None,
}


class ParameterTold(Told):
    """A parameter of a rating system; value: this ladder's, null too where there is no ladder."""

    value: Value = None
    default: Value
    accepts: str
    meaning: str


class FactorTold(Told):
    """A factor of a change. labels: its words, where it has such."""

    meaning: str
    labels: list[str] | None = None


class RulesTold(Told):
    """What a ladder's matches are rated by, in the system's own words."""

    system: str
    title: str
    source: str
    needs: str
    preset: str | None
    parameters: dict[str, ParameterTold]
    factors: dict[str, FactorTold]


class SeasonTold(Told):
    """A season. closed_at: null while it is the present one."""

    number: int
    title: str
    position: int = Field(description="Of the event that opened it.")
    opened_at: Moment
    closed_at: Moment | None


class LaddersPage(Told):
    """Ladders by name."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [LADDER], "next": None}]})

    items: list[LadderTold]
    next: str | None


class LadderDetails(LadderTold):
    """A ladder as it is now, with its rules in words and its present season."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{**LADDER, "rules": RULES, "present_season": SEASON}]},
    )

    rules: RulesTold
    present_season: SeasonTold


class LadderRules(Told):
    """The rules of a ladder as players read them: how matches are rated, who is listed, where divisions begin."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"ladder": "arena", "title": "Arena 6v6", "rules": RULES, "settings": SETTINGS}]
        }
    )

    ladder: str
    title: str
    rules: RulesTold
    settings: SettingsTold


class SeasonsPage(Told):
    """All seasons of a ladder, the first one first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [SEASON], "next": None}]})

    items: list[SeasonTold]
    next: str | None


class SystemTold(Told):
    """A rating system: what it needs, what it can be told, what explains a change."""

    name: str
    title: str
    source: str
    needs: str
    parameters: dict[str, ParameterTold]
    presets: dict[str, dict[str, Value]]
    factors: dict[str, FactorTold]


class SystemsPage(Told):
    """All rating systems by name."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [
                        {
                            **{name: RULES[name] for name in ("title", "source", "needs", "factors")},
                            "name": "wager",
                            "parameters": {"stake": PARAMETER},
                            "presets": {},
                        }
                    ],
                    "next": None,
                }
            ]
        }
    )

    items: list[SystemTold]
    next: str | None


class OptionTold(Told):
    """An option of a policy. accepts: null where the effect says it."""

    effect: str
    accepts: str | None


class PolicyTold(Told):
    """A policy of the matchmaker, with every option."""

    name: str
    options: dict[str, int | float | str | bool | list[list[float]] | dict[str, int] | None]


class PoliciesPage(Told):
    """The matchmaker's presets, the default first, and what each option does."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [{"name": "balanced", "options": {"team_size": 6, "steps": [[0, 2], [15, 5]]}}],
                    "options": {"team_size": {"effect": "Players in each team.", "accepts": "a whole number from 1"}},
                    "next": None,
                }
            ]
        }
    )

    items: list[PolicyTold]
    options: dict[str, OptionTold]
    next: str | None
