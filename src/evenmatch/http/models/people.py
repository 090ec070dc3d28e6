"""Players across ladders: another name, one player of two, nobody any more."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from evenmatch.http.models.base import Asked, Name, Told


class RenameAsked(Asked):
    """Another name; what is reported under the old one still reaches the player."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"to": "anna"}]})

    to: Name


class Renamed(Told):
    """What the player is called now."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"player": "anna", "changed": True}]})

    player: str
    changed: bool = Field(description="False: it was their name already.")


class MergeAsked(Asked):
    """Whom the player shall be part of."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"into": "ann"}]})

    into: Name


class Merged(Told):
    """The player who is left, and the ladders that were rated anew."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"player": "ann", "ladders": ["arena"]}]})

    player: str
    ladders: list[str]


class Erased(Told):
    """What stands in the place of the player's names."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"pseudonym": "erased-5d0c91aa2f7e"}]})

    pseudonym: str
