"""An experiment of a queue as it is stored: its design and the two policies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.errors import BadParameterError
from evenmatch.experiment import ExperimentDesign
from evenmatch.ledger.tables.queue_experiments import StoredExperiment
from evenmatch.policy import Policy

SHARED = ("team_size", "teams", "roles", "attributes", "maps", "vetoes", "map_seed")  # the same players wait for both


class QueueExperiment(NamedTuple):
    """An experiment of a queue. Times are microseconds since the epoch.

    number   of the change that started it;  stopped_at  None: it runs
    first    the queue's policy when it started (arm a);  second  the policy that is tried (arm b)
    """

    number: int
    queue: str
    started_at: int
    stopped_at: int | None
    design: ExperimentDesign
    first: Policy
    second: Policy

    @classmethod
    def of(cls, stored: StoredExperiment) -> QueueExperiment:
        """The experiment of a row."""
        body = json.loads(stored.body)
        design = ExperimentDesign.from_data(body["design"])
        return cls(*stored[:4], design, Policy.from_data(body["first"]), Policy.from_data(body["second"]))

    @property
    def stored(self) -> StoredExperiment:
        """The row of this experiment."""
        body = {"design": self.design.to_data(), "first": self.first.to_data(), "second": self.second.to_data()}
        return StoredExperiment(*self[:4], json.dumps(body, ensure_ascii=False, sort_keys=True))

    def arm_at(self, time: int) -> str:
        """The arm in force at a time: "a" or "b"."""
        return self.design.slice_at(time - self.started_at).arm


def second_policy(data: Mapping[str, object], first: Policy) -> Policy:
    """Read the policy that is tried beside a queue's own.

    Team sizes, roles, attributes and maps that are not given are the queue's.
    Raises UnknownNameError and BadParameterError.
    """
    own = first.to_data()
    second = Policy.from_data({name: own[name] for name in SHARED} | dict(data))
    for name, value in second.to_data().items():
        if name in SHARED and value != own[name]:
            raise BadParameterError(
                f"{name}={value}: expected {own[name]} as in the queue's own policy; the same players wait for both"
            )
    return second
