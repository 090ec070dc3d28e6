"""Making ladders and changing them: rules, settings, seasons, ratings to start from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from evenmatch.http.models.base import LONGEST, Asked, Moment, Name, Text, Told

MANY = 2**31 - 1
DAYS = 36_525  # a century
Parameter = Annotated[float | bool | str | list[float] | None, Field(description="As `evenmatch systems` lists them.")]
Parameters = Annotated[dict[Name, Parameter], Field(max_length=256)]
Rating = Annotated[float, Field(description="As the ladder shows it.")]
EventId = Annotated[
    Name | None,
    Field(description="Chosen by you: the same again changes nothing; with other content it is a conflict."),
]


class DivisionAsked(Asked):
    """A band of percentiles, from its lowest up to the next."""

    name: Name
    lowest: Annotated[int, Field(ge=1, le=100)]


class SettingsAsked(Asked):
    """What a ladder decides beside its system; what is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Arena 6v6", "placement": 5, "team_size": 6}]})

    title: Annotated[Text, Field(max_length=LONGEST)] = Field(
        default="", description="What people read; empty: the name."
    )
    placement: Annotated[int, Field(ge=0, le=MANY)] = Field(default=10, description="Matches to complete to be listed.")
    active_days: Annotated[float, Field(ge=0, le=DAYS)] = Field(
        default=30.0, description="Listed is who played within."
    )
    divisions: list[DivisionAsked] = Field(
        default_factory=list, min_length=1, max_length=100, description="The lowest begins at 1."
    )
    division_margin: Annotated[int, Field(ge=0, le=100)] = Field(
        default=3, description="Percentiles below that still keep it."
    )
    team_size: Annotated[int, Field(ge=1, le=MANY)] | None = Field(
        default=None, description="Of a full team; null: any."
    )
    reset: Literal["full", "soft", "none"] = Field(default="soft", description="How a season begins.")
    factor: Annotated[float, Field(ge=0, le=1)] = Field(default=0.5, description="What a soft reset leaves of a lead.")
    archived: bool = Field(default=False, description="Nothing is added any more; it can be read as before.")

    def named(self) -> dict[str, object]:
        """The settings that were sent, as `Settings.changed` knows them."""
        sent = {name: getattr(self, name) for name in self.model_fields_set}
        if "divisions" in sent:
            sent["divisions"] = [(one.name, one.lowest) for one in self.divisions]
        return sent


class LadderAsked(Asked):
    """A ladder to be made."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "arena", "system": "wager", "parameters": {"stake": 0.05}, "settings": {"team_size": 6}}
            ]
        }
    )

    name: Name
    system: Name = Field(description="A rating system that is installed: elo, glicko2, wager and others.")
    preset: Name | None = Field(default=None, description="A named set of parameters.")
    parameters: Parameters = Field(default_factory=dict)
    settings: SettingsAsked = Field(default_factory=lambda: SettingsAsked.model_validate({}))


class RulesAsked(Asked):
    """Other rules; what is not named stays as it is, but another system or a preset begins with its own values."""

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
        description="start: all matches are rated anew; now: ratings stay, later ones differ.",
    )
    skip_bad: bool = Field(
        default=False, description="Leave matches unrated that the new rules cannot rate, and do not fail."
    )
    id: EventId = None


class DivisionTold(Told):
    """A band of percentiles, from its lowest up to the next."""

    name: str
    lowest: int


class SettingsTold(Told):
    """What a ladder decided beside its system."""

    title: str
    placement: int
    active_days: float
    divisions: list[DivisionTold]
    division_margin: int
    team_size: int | None
    reset: str
    factor: float
    archived: bool = False


class LadderTold(Told):
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
                        "active_days": 30.0,
                        "divisions": [{"name": "Bronze", "lowest": 1}, {"name": "Gold", "lowest": 50}],
                        "division_margin": 3,
                        "team_size": 6,
                        "reset": "soft",
                        "factor": 0.5,
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
    settings: SettingsTold
    events: int
    matches: int
    players: int
    season: int
    rebuild_due_from: int | None = Field(description="Ratings are not as the ledger says from this event on.")


class SeasonAsked(Asked):
    """The next season; what is left out is as the ladder's settings say."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"title": "Winter", "reset": "soft", "factor": 0.5, "id": "season-2"}]}
    )

    title: Name | None = None
    reset: Literal["full", "soft", "none"] | None = None
    factor: Annotated[float, Field(ge=0, le=1)] | None = Field(default=None, description="For a soft reset alone.")
    id: EventId = None


class SeasonOpened(Told):
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


class StartAsked(Asked):
    """Ratings from elsewhere, for players who have not played on the ladder."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ratings": {"ann": 1710, "bob": 1480}, "id": "old-site"}]}
    )

    ratings: dict[Name, Rating] = Field(min_length=1, max_length=100_000)
    id: EventId = None


class Started(Told):
    """How many players begin at such ratings; none where that was done already."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"players": 2}]})

    players: int
