"""Ladders, their rules and seasons, changes to them, and the available rating systems and policies."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from pydantic import ConfigDict, Field

from evenmatch.http.models import reports
from evenmatch.http.models.base import Name, Page, RequestModel, ResponseModel, ShownTime, examples
from evenmatch.http.models.from_options import OptionsRequest, OptionsResponse, checked_fields, response_fields
from evenmatch.http.models.from_records import Shown
from evenmatch.ladders.seasons import Season
from evenmatch.ladders.settings import SETTINGS
from evenmatch.standings.division import Division

Value = float | str | bool | list[float] | None

Parameter = Annotated[
    float | bool | str | list[float] | None, Field(description="Value of a parameter that `evenmatch systems` lists.")
]
Parameters = Annotated[dict[Name, Parameter], Field(max_length=256)]
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

    model_config = examples({"title": "Arena 6v6", "placement": 5, "team_size": 6})

    def named(self) -> dict[str, object]:
        """The settings that were sent, in the form that `Settings.changed` takes."""
        sent = {name: getattr(self, name) for name in self.model_fields_set}
        if "divisions" in sent:
            sent["divisions"] = [(division.name, division.lowest) for division in self.divisions]
        return sent


class LadderCreate(RequestModel):
    """The ladder to create."""

    model_config = examples(
        {"name": "arena", "system": "wager", "parameters": {"stake": 0.05}, "settings": {"team_size": 6}}
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


@response_fields(SETTINGS, divisions=list[Shown[Division]])
class SettingsOut(OptionsResponse):
    """The settings of a ladder apart from its rating rules."""


class LadderOut(ResponseModel):
    """A ladder as it is now."""

    name: str
    title: str
    system: str
    preset: str | None
    parameters: dict[str, Value]
    settings: SettingsOut
    events: int
    matches: int
    players: int
    season: int
    rebuild_due_from: int | None = Field(description="First event from which ratings are out of date; null: none.")


class SeasonCreate(RequestModel):
    """The next season; omitted values are those of the ladder's settings."""

    model_config = examples({"title": "Winter", "reset": "soft", "factor": 0.5, "id": "season-2"})

    title: Name | None = None
    reset: Literal["full", "soft", "none"] | None = None
    factor: Annotated[float, Field(ge=0, le=1)] | None = Field(default=None, description="Only for a soft reset.")
    id: EventId = None


class StartingRatings(Struct, frozen=True, forbid_unknown_fields=True):
    """Starting ratings for players who have not played on the ladder."""

    ratings: Annotated[
        dict[reports.Name, float],
        Meta(min_length=1, max_length=100_000, description="Ratings by player, on the scale that the ladder shows."),
    ]
    id: reports.EventId = None

    EXAMPLE: ClassVar[dict[str, Any]] = {"ratings": {"ann": 1710, "bob": 1480}, "id": "old-site"}


class StartingRatingsSet(Struct, frozen=True):
    """The number of players who got a starting rating; 0 if the request was already done."""

    players: int


class DecayOut(ResponseModel):
    """A decay of inactive players' ratings; position and until are null if no rating fell."""

    players: int = Field(description="Players whose rating fell.")
    position: int | None = Field(description="Ledger position of the event.")
    until: ShownTime | None = Field(description="Weeks without a completed match were counted up to this time.")


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


class SystemOut(ResponseModel):
    """A rating system: the data it needs, its parameters, and the factors that explain a change."""

    title: str
    source: str
    needs: str
    parameters: dict[str, ParameterOut]
    factors: dict[str, FactorOut]


class RulesOut(SystemOut):
    """The rating rules of a ladder, as its system describes them."""

    system: str
    preset: str | None


class InstalledSystem(SystemOut):
    """An installed rating system with its presets."""

    name: str
    presets: dict[str, dict[str, Value]]


class LadderDetails(LadderOut):
    """A ladder with its rules explained and its current season."""

    rules: RulesOut
    present_season: Shown[Season]


class LadderRules(ResponseModel):
    """The rules of a ladder as players read them: how matches are rated, who is listed, where divisions begin."""

    ladder: str
    title: str
    rules: RulesOut
    settings: SettingsOut


class OptionOut(ResponseModel):
    """An option of a policy. accepts: its valid values; null if `effect` states them."""

    effect: str
    accepts: str | None


class PolicyOut(ResponseModel):
    """A policy of the matchmaker, with every option."""

    name: str
    options: dict[str, int | float | str | bool | list[list[float]] | dict[str, int] | None]


class PoliciesPage(Page):
    """The matchmaker's preset policies, default first, and the effect of each option."""

    items: list[PolicyOut]
    options: dict[str, OptionOut]
