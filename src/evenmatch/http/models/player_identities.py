"""Renaming, merging and erasing players, on all ladders at once."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from evenmatch.http.models.base import Name, RequestModel, ResponseModel


class RenameRequest(RequestModel):
    """A new name; reports under the old one still count for the player."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"to": "anna"}]})

    to: Name


class PlayerRenamed(ResponseModel):
    """The current name of the player."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"player": "anna", "changed": True}]})

    player: str
    changed: bool = Field(description="False: it was already the player's name.")


class MergeRequest(RequestModel):
    """The player who remains after the merge."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"into": "ann"}]})

    into: Name


class PlayersMerged(ResponseModel):
    """The player who remains, and the ladders that were rated again."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "player": "ann",
                    "ladders": ["arena"],
                    "note": "a match … with two of the player's names … is not rated",
                }
            ]
        }
    )

    player: str
    ladders: list[str]
    note: str = Field(description="The rule for matches reported with two names of the player, in words.")


class PlayerErased(ResponseModel):
    """The pseudonym that replaces the player's names."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"pseudonym": "erased-5d0c91aa2f7e"}]})

    pseudonym: str


class OddNameOut(ResponseModel):
    """A name that may pass as another one. like: names of other players on the ladder that look the same."""

    name: str
    player: str = Field(description="The present name of its player.")
    oddities: list[Literal["look-alike", "invisible", "mixed-scripts"]] = Field(
        description="look-alike: it looks like the names in `like`; invisible: it has control, zero-width or other "
        "unseen characters; mixed-scripts: letters of scripts that are not written together."
    )
    like: list[str]


class OddNamesPage(ResponseModel):
    """Names on a ladder that may pass as another one, by name. A page may be short although `next` is not null."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [{"name": "rnike", "player": "rnike", "oddities": ["look-alike"], "like": ["mike"]}],
                    "next": None,
                }
            ]
        }
    )

    items: list[OddNameOut]
    next: str | None
