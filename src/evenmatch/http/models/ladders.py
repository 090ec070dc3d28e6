"""Ladders, their rules and seasons, changes to them, and the available rating systems and policies."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from evenmatch.http.models.base import Moment, Name, RequestModel, ResponseModel
from evenmatch.http.models.options import OptionsRequest, OptionsResponse, checked_fields, response_fields
from evenmatch.ladders.settings import SETTINGS

Parameter = Annotated[
    float | bool | str | list[float] | None, Field(description="Value of a parameter that `evenmatch systems` lists.")
]
Parameters = Annotated[dict[Name, Parameter], Field(max_length=256)]
Rating = Annotated[float, Field(description="A rating on the scale that the ladder shows.")]
EventId = Annotated[
    Name | None,
    Field(
        description="Chosen by you: a repeated request changes nothing; the same id with other content is a conflict."
    ),
]


REQUESTED = {**SETTINGS, "divisions": replace(SETTINGS["divisions"], default=[])}


class DivisionIn(RequestModel):
    """A division: a range of percentiles, from `lowest` up to the next division."""

    name: Name
    lowest: Annotated[int, Field(ge=1, le=100)]


@checked_fields(REQUESTED, divisions=Annotated[list[DivisionIn], Field(min_length=1, max_length=100)])
class SettingsChange(OptionsRequest):
    """Settings of a ladder apart from its rating rules; omitted settings stay unchanged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Arena 6v6", "placement": 5, "team_size": 6}]})

    def named(self) -> dict[str, object]:
        """The settings that were sent, in the form that `Settings.changed` takes."""
        sent = {name: getattr(self, name) for name in self.model_fields_set}
        if "divisions" in sent:
            sent["divisions"] = [(division.name, division.lowest) for division in self.divisions]
        return sent


class LadderCreate(RequestModel):
    """The ladder to create."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "arena", "system": "wager", "parameters": {"stake": 0.05}, "settings": {"team_size": 6}}
            ]
        }
    )

    name: Name
    system: Name = Field(description="An installed rating system: elo, glicko2, wager and others.")
    preset: Name | None = Field(default=None, description="A named set of parameters.")
    parameters: Parameters = Field(default_factory=dict)
    settings: SettingsChange = Field(default_factory=lambda: SettingsChange.model_validate({}))


class RulesChange(RequestModel):
    """New rules; omitted parameters stay unchanged, except that a new system or preset starts from its own values."""

    model_config = ConfigDict(
        populate_by_name=True, json_schema_extra={"examples": [{"parameters": {"k": 20}, "from": "start"}]}
    )

    system: Name | None = None
    preset: Name | None = None
    parameters: Parameters = Field(default_factory=dict)
    begin: Literal["start", "now"] = Field(
        default="start",
        validation_alias="from",
        serialization_alias="from",
        description="start: all matches are rated again; now: ratings stay, and the rules apply to later matches.",
    )
    skip_bad: bool = Field(
        default=False, description="Leave matches unrated that the new rules cannot rate, instead of failing."
    )
    id: EventId = None


class DivisionOut(ResponseModel):
    """A division: a range of percentiles, from `lowest` up to the next division."""

    name: str
    lowest: int


@response_fields(SETTINGS, divisions=list[DivisionOut])
class SettingsOut(OptionsResponse):
    """The settings of a ladder apart from its rating rules."""


class LadderOut(ResponseModel):
    """A ladder as it is now."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "arena",
                    "title": "Arena 6v6",
                    "system": "wager",
                    "preset": None,
                    "parameters": {"stake": 0.05},
                    "settings": {
                        "title": "Arena 6v6",
                        "placement": 10,
                        "placement_bound": 5.0,
                        "placement_most": 50,
                        "active_days": 30.0,
                        "divisions": [{"name": "Bronze", "lowest": 1}, {"name": "Gold", "lowest": 50}],
                        "division_margin": 3,
                        "inactivity": "rating",
                        "grace_days": 14.0,
                        "percentile_decay": 1.0,
                        "percentile_floor": 1,
                        "rating_decay": 0.05,
                        "rating_floor": None,
                        "rating_stop": "Gold",
                        "team_size": 6,
                        "other_sizes": "warn",
                        "team_limit": 500,
                        "player_limit": 1000,
                        "reset": "soft",
                        "factor": 0.5,
                        "stomp_margin": 4.0,
                        "side_counts": "time",
                        "switch_window": 60.0,
                        "show": "rating",
                        "names": "warn",
                        "archived": False,
                    },
                    "events": 1,
                    "matches": 0,
                    "players": 0,
                    "season": 1,
                    "rebuild_due_from": None,
                }
            ]
        }
    )

    name: str
    title: str
    system: str
    preset: str | None
    parameters: dict[str, float | bool | str | list[float] | None]
    settings: SettingsOut
    events: int
    matches: int
    players: int
    season: int
    rebuild_due_from: int | None = Field(description="First event from which ratings are out of date; null: none.")


class SeasonCreate(RequestModel):
    """The next season; omitted values are those of the ladder's settings."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"title": "Winter", "reset": "soft", "factor": 0.5, "id": "season-2"}]}
    )

    title: Name | None = None
    reset: Literal["full", "soft", "none"] | None = None
    factor: Annotated[float, Field(ge=0, le=1)] | None = Field(default=None, description="Only for a soft reset.")
    id: EventId = None


class SeasonOpened(ResponseModel):
    """The season that is open now."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "number": 2,
                    "title": "Winter",
                    "position": 812,
                    "opened_at": "2026-12-01T00:00:00Z",
                    "closed_at": None,
                }
            ]
        }
    )

    number: int
    title: str
    position: int
    opened_at: Moment
    closed_at: Moment | None


class StartingRatings(RequestModel):
    """Starting ratings from elsewhere, for players who have not played on the ladder."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ratings": {"ann": 1710, "bob": 1480}, "id": "old-site"}]}
    )

    ratings: dict[Name, Rating] = Field(min_length=1, max_length=100_000)
    id: EventId = None


class StartingRatingsSet(ResponseModel):
    """The number of players who got a starting rating; 0 if the request was already done."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"players": 2}]})

    players: int


class DecayOut(ResponseModel):
    """A decay of inactive players' ratings; position and until are null if no rating fell."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"players": 31, "position": 901, "until": "2026-12-13T00:00:00Z"}]}
    )

    players: int = Field(description="Players whose rating fell.")
    position: int | None = Field(description="Ledger position of the event.")
    until: Moment | None = Field(description="Weeks without a completed match that ended up to then were counted.")


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
SETTINGS_EXAMPLE: JsonDict = {
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
    "settings": SETTINGS_EXAMPLE,
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
            "examples": [{"ladder": "arena", "title": "Arena 6v6", "rules": RULES, "settings": SETTINGS_EXAMPLE}]
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
