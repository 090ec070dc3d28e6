"""Ladders, their rules and seasons, and the available rating systems and policies."""

from __future__ import annotations

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from evenmatch.http.models.base import Moment, ResponseModel
from evenmatch.http.models.ladder_changes import LadderOut, SettingsOut

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
    "other_sizes": "warn",
    "team_limit": 500,
    "player_limit": 1000,
    "reset": "soft",
    "factor": 0.5,
    "show": "rating",
    "placement": 10,
    "placement_bound": 5.0,
    "placement_most": 50,
    "active_days": 30.0,
    "divisions": [{"name": "Bronze", "lowest": 1}, {"name": "Gold", "lowest": 46}],
    "division_margin": 3,
    "stomp_margin": None,
    "side_counts": "time",
    "switch_window": 60.0,
    "inactivity": "rating",
    "grace_days": 14.0,
    "percentile_decay": 1.0,
    "percentile_floor": 1,
    "rating_decay": 0.05,
    "rating_floor": None,
    "rating_stop": "Gold",
    "names": "warn",
    "archived": False,
}
HEAD: JsonDict = {
    "ladder": "arena",
    "position": 4711,
    "seal": "9f86d081884c7d659a2feaa0c55ad015",
    "time": "2026-11-21T18:30:00Z",
}
LEARNED: JsonDict = {
    "name": "side",
    "meaning": "advantage of the team that is listed first",
    "unit": "points",
    "value": 38.2,
    "low": 25.1,
    "high": 51.3,
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


class ParameterOut(ResponseModel):
    """A parameter of a rating system. value: the ladder's value; null if there is no ladder."""

    value: Value = None
    default: Value
    accepts: str
    meaning: str


class FactorOut(ResponseModel):
    """A factor that explains a rating change. labels: the words for its values, if it has words."""

    meaning: str
    labels: list[str] | None = None


class RulesOut(ResponseModel):
    """The rating rules of a ladder, as its system describes them."""

    system: str
    title: str
    source: str
    needs: str
    preset: str | None
    parameters: dict[str, ParameterOut]
    factors: dict[str, FactorOut]


class SeasonOut(ResponseModel):
    """A season. closed_at: null for the current one."""

    number: int
    title: str
    position: int = Field(description="Ledger position of the event that opened the season.")
    opened_at: Moment
    closed_at: Moment | None


class HeadOut(ResponseModel):
    """The last event of a ladder's ledger. time: when it was recorded."""

    model_config = ConfigDict(json_schema_extra={"examples": [HEAD]})

    ladder: str
    position: int
    seal: str = Field(description="Over this event and all before it: 32 hexadecimal digits.")
    time: Moment


class LearnedOut(ResponseModel):
    """A number that a rating system has learned of a ladder. low, high: 95 % interval; null where there is none."""

    name: str
    meaning: str
    unit: str = Field(description="`points` of the rating, or `share` (0 to 1).")
    value: float
    low: float | None
    high: float | None


class LearnedPage(ResponseModel):
    """The numbers that a rating system has learned of a ladder."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [LEARNED], "next": None}]})

    items: list[LearnedOut]
    next: None = None


class LaddersPage(ResponseModel):
    """A page of ladders, by name."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [LADDER], "next": None}]})

    items: list[LadderOut]
    next: str | None


class LadderDetails(LadderOut):
    """A ladder with its rules explained and its current season."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{**LADDER, "rules": RULES, "present_season": SEASON}]},
    )

    rules: RulesOut
    present_season: SeasonOut


class LadderRules(ResponseModel):
    """The rules of a ladder as players read them: how matches are rated, who is listed, where divisions begin."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"ladder": "arena", "title": "Arena 6v6", "rules": RULES, "settings": SETTINGS}]
        }
    )

    ladder: str
    title: str
    rules: RulesOut
    settings: SettingsOut


class SeasonsPage(ResponseModel):
    """All seasons of a ladder, oldest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [SEASON], "next": None}]})

    items: list[SeasonOut]
    next: str | None


class SystemOut(ResponseModel):
    """A rating system: the data it needs, its parameters and presets, the factors that explain a change."""

    name: str
    title: str
    source: str
    needs: str
    parameters: dict[str, ParameterOut]
    presets: dict[str, dict[str, Value]]
    factors: dict[str, FactorOut]


class SystemsPage(ResponseModel):
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

    items: list[SystemOut]
    next: str | None


class OptionOut(ResponseModel):
    """An option of a policy. accepts: its valid values; null if `effect` states them."""

    effect: str
    accepts: str | None


class PolicyOut(ResponseModel):
    """A policy of the matchmaker, with every option."""

    name: str
    options: dict[str, int | float | str | bool | list[list[float]] | dict[str, int] | None]


class PoliciesPage(ResponseModel):
    """The matchmaker's preset policies, default first, and the effect of each option."""

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

    items: list[PolicyOut]
    options: dict[str, OptionOut]
    next: str | None
