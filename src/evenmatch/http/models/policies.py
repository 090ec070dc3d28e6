"""The options of a matchmaking policy, for requests and responses; evenmatch.policy declares and checks them."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from evenmatch.attributes import Attribute
from evenmatch.http.models.options import OptionsRequest, OptionsResponse, passed_fields, response_fields
from evenmatch.options import options_of
from evenmatch.policy import Policy

Texts = Annotated[list[str], Field(max_length=256)]
Step = Annotated[list[float], Field(min_length=2, max_length=2)]


@passed_fields(options_of(Attribute), values=Texts)
class AttributeOptions(OptionsRequest):
    """An attribute on which all players of a match agree."""


@response_fields(options_of(Attribute), values=Texts)
class QueueAttribute(OptionsResponse):
    """An attribute on which all players of a match agree."""


@passed_fields(
    options_of(Policy),
    steps=Annotated[list[Step], Field(max_length=256)],
    roles=dict[str, int],
    attributes=dict[str, AttributeOptions],
    maps=Texts,
)
class PolicyOptions(OptionsRequest):
    """Options of a policy; omitted ones are those of the preset, and an omitted team size is that of the ladder."""

    # Unknown names pass here, so that Policy can suggest the right option; the document does not allow them.
    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    preset: str = Field(
        default="balanced",
        description="The policy that provides all options omitted here; auto: that of the queue so far, which is then "
        "fitted to the players who join (rule `auto_within`).",
    )


@response_fields(
    options_of(Policy),
    steps=Annotated[list[Step], Field(max_length=256)],
    roles=dict[str, int],
    attributes=dict[str, QueueAttribute],
    maps=Texts,
)
class QueuePolicy(OptionsResponse):
    """All options of a queue's policy."""
