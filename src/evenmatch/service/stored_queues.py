"""The queues of a ladder as they are stored: name, matchmaking policy and rules."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.ledger.store import Store
from evenmatch.ledger.tables import queues
from evenmatch.ledger.tables.queue_experiments import StoredExperiment
from evenmatch.ledger.tables.queues import StoredQueue
from evenmatch.ledger.text import check_text
from evenmatch.policy import Policy
from evenmatch.service.queue_experiment import QueueExperiment
from evenmatch.service.queue_rules import QueueRules
from evenmatch.wait_target import WaitTarget

if TYPE_CHECKING:
    from evenmatch.matchmaking import OddsFunction

AUTO = "auto"  # in place of a preset: the queue keeps its policy, which is then fitted to its arrivals
LONGEST_NAME = 64  # characters; the name is part of match ids


class QueueSetup(NamedTuple):
    """A queue's configuration. change: the number of the change that last set it;  experiment: the running one."""

    name: str
    change: int
    policy: Policy
    rules: QueueRules
    experiment: QueueExperiment | None = None

    def policy_at(self, time: int) -> Policy:
        """The policy in force at a time, microseconds."""
        if self.experiment is None or self.experiment.arm_at(time) == "a":
            return self.policy
        return self.experiment.second

    @property
    def rematch_fade(self) -> float:
        """Seconds for which a meeting of two players counts, by any policy in use."""
        return max(self.policy.rematch_fade, 0.0 if self.experiment is None else self.experiment.second.rematch_fade)

    def with_odds(self, odds: OddsFunction) -> QueueSetup:
        """The same with policies that predict matches by this function."""
        experiment = self.experiment
        if experiment is not None:
            experiment = experiment._replace(second=dataclasses.replace(experiment.second, odds=odds))
        return self._replace(policy=dataclasses.replace(self.policy, odds=odds), experiment=experiment)


def check_name(name: str) -> None:
    """Raise InputError or BadParameterError for an invalid queue name."""
    check_text("queue name", name, blank=False)
    if len(name) > LONGEST_NAME:
        raise BadParameterError(
            f"queue name {name[:20]!r}… has {len(name)} characters; at most {LONGEST_NAME} are allowed"
        )


def policy_of(data: Mapping[str, object], team_size: int | None) -> Policy:
    """Read a policy from a JSON document; the default of team_size is the ladder's."""
    if "team_size" not in data and team_size is not None:
        return Policy.from_data({**data, "team_size": team_size})
    return Policy.from_data(data)


def with_auto(
    data: Mapping[str, object], rules: QueueRules, before: QueueSetup | None
) -> tuple[Mapping[str, object], QueueRules]:
    """The policy and rules to set; for the preset `auto` the policy so far, and the default target if none is set.

    before  the queue as it is; None: it is new, and begins with the default policy
    """
    if data.get("preset") != AUTO:
        return data, rules
    present = {} if before is None else before.policy.to_data()
    if rules.auto_within is None:
        rules = dataclasses.replace(rules, auto_within=WaitTarget().within)
    return present | {name: value for name, value in data.items() if name != "preset"}, rules


def read(store: Store, ladder: int) -> dict[str, QueueSetup]:
    """The queues of a ladder by name, sorted by name."""
    return {queue.name: _setup(queue, experiment) for queue, experiment in queues.read(store, ladder)}


@lru_cache(1024)  # read in every transaction, rarely changed
def _setup(queue: StoredQueue, experiment: StoredExperiment | None) -> QueueSetup:
    return QueueSetup(
        queue.name,
        queue.change,
        Policy.from_data(json.loads(queue.policy)),
        QueueRules.from_data(json.loads(queue.rules)),
        None if experiment is None else QueueExperiment.of(experiment),
    )


def ticks(store: Store) -> dict[str, float]:
    """The shortest tick among each ladder's queues, by ladder name; only ladders with queues."""
    shortest: dict[str, float] = {}
    for ladder, rules in queues.read_all_rules(store):
        tick = QueueRules.from_data(json.loads(rules)).tick
        shortest[ladder] = min(shortest.get(ladder, tick), tick)
    return shortest


def rules_of(store: Store, ladder: int, queue: str) -> QueueRules:
    """The rules of a queue; the defaults if there is no such queue."""
    rules = queues.read_rules(store, ladder, queue)
    return QueueRules() if rules is None else QueueRules.from_data(json.loads(rules))


def put(store: Store, ladder: int, setup: QueueSetup) -> None:
    """Insert or replace a queue."""
    policy, rules = (
        json.dumps(data, ensure_ascii=False, sort_keys=True) for data in (setup.policy.to_data(), setup.rules.to_data())
    )
    queues.put(store, ladder, StoredQueue(setup.name, setup.change, policy, rules))


def find(known: Mapping[str, QueueSetup], name: str) -> QueueSetup:
    """The queue of this name. Raises UnknownNameError, which lists the known queues."""
    if name not in known:
        raise UnknownNameError("queue", name, known)
    return known[name]
