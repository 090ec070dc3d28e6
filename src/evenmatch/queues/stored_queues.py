"""A ladder's queues as stored (policy, rules, experiment), and the penalties of players who fail to play a match."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from evenmatch.attributes import MAP
from evenmatch.durations import SECOND
from evenmatch.errors import BadParameterError, ConflictError, UnknownNameError
from evenmatch.experiment import ExperimentDesign
from evenmatch.ledger import event_rows, player_rows
from evenmatch.ledger.store import Store
from evenmatch.ledger.text import check_text
from evenmatch.policy import Policy, WaitTarget
from evenmatch.queues import queue_sql
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_sql import StoredExperiment, StoredPenalty, StoredQueue
from evenmatch.times import Time, iso_time

if TYPE_CHECKING:
    from evenmatch.matchmaking import OddsFunction


# Options that both policies of an experiment share, because the same players wait for both.
SHARED = ("team_size", "teams", "roles", "attributes", "maps", "vetoes", "map_seed")


class QueueExperiment(NamedTuple):
    """An experiment of a queue. In randomly drawn slices of time, a second policy decides alone.

    number      number of the change that started it
    stopped_at  null: the experiment is running
    first       arm a, the queue's own policy when the experiment started
    second      arm b, the policy on trial
    """

    number: int
    queue: str
    started_at: Time
    stopped_at: Time | None
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

    def refusal(self, advice: str) -> ConflictError:
        """The error for changing a policy that the experiment compares."""
        return ConflictError(
            f"queue {self.queue!r} has been running an experiment with two policies since {iso_time(self.started_at)}; "
            f"{advice}"
        )

    def arm_at(self, time: int) -> str:
        """The arm in force at a time: "a" or "b"."""
        return self.design.slice_at(time - self.started_at).arm


def second_policy(data: Mapping[str, object], first: Policy) -> Policy:
    """Read the policy on trial.

    Team sizes, roles, attributes and maps default to those of the queue's own policy.
    Raises UnknownNameError and BadParameterError.
    """
    own = first.to_data()
    second = Policy.from_data({name: own[name] for name in SHARED} | dict(data))
    for name, value in second.to_data().items():
        if name in SHARED and value != own[name]:
            raise BadParameterError(
                f"{name}={value}: expected {own[name]}, as in the queue's own policy; both serve the same players"
            )
    return second


AUTO = "auto"  # instead of a preset: the queue keeps its policy, which is then fitted to its arrivals
LONGEST_NAME = 64  # characters; match ids contain the name


class QueueSetup(NamedTuple):
    """A queue's configuration.

    change      the number of the change that last set it
    experiment  the running one
    paused      the operator's message to players, which may be empty, while the queue makes no matches; None: it does
    """

    name: str
    change: int
    policy: Policy
    rules: QueueRules
    experiment: QueueExperiment | None = None
    paused: str | None = None

    def policy_at(self, time: int) -> Policy:
        """The policy in force at a time, microseconds."""
        if self.experiment is None or self.experiment.arm_at(time) == "a":
            return self.policy
        return self.experiment.second

    def check_open(self) -> None:
        """Raise ConflictError if the queue is paused."""
        if self.paused is not None:
            why = f": {self.paused}" if self.paused else ""
            raise ConflictError(f"queue {self.name!r} is paused and takes no new tickets{why}")

    @property
    def rematch_fade(self) -> float:
        """Seconds for which a meeting of two players counts under any policy in use."""
        return max(self.policy.rematch_fade, 0.0 if self.experiment is None else self.experiment.second.rematch_fade)

    def with_odds(self, odds: OddsFunction) -> QueueSetup:
        """The same setup with policies that predict matches by this function."""
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
    """Read a policy from a JSON document. team_size defaults to that of the ladder."""
    if "team_size" not in data and team_size is not None:
        return Policy.from_data({**data, "team_size": team_size})
    return Policy.from_data(data)


def check_map_choice(store: Store, ladder: str, policy: Policy) -> None:
    """Raise BadParameterError if the policy chooses maps by their odds and the ladder has the same odds on all maps."""
    if policy.map_choice != "even":
        return
    head = store.head(ladder)
    plan = event_rows.read_plan(store, head, head.planned)
    if MAP not in plan.context_columns:
        system = plan.last_rules.system
        why = f"its system, {system.name}, does not learn from maps"
        expected = why if system.offset is None else f"add {MAP} to its setting context"
        raise BadParameterError(f"map_choice=even: ladder {ladder!r} has the same odds on all maps; {expected}")


def with_auto(
    data: Mapping[str, object], rules: QueueRules, before: QueueSetup | None
) -> tuple[Mapping[str, object], QueueRules]:
    """The policy and rules to set. For the preset `auto`: the present policy, and the default target if none is set.

    before  the queue so far; None: it is new and starts with the default policy
    """
    if data.get("preset") != AUTO:
        return data, rules
    present = {} if before is None else before.policy.to_data()
    if rules.auto_within is None:
        rules = dataclasses.replace(rules, auto_within=WaitTarget().within)
    return present | {name: value for name, value in data.items() if name != "preset"}, rules


def read(store: Store, ladder: int) -> dict[str, QueueSetup]:
    """The queues of a ladder by name, sorted by name."""
    return {queue.name: _setup(queue, experiment) for queue, experiment in queue_sql.read_queues(store, ladder)}


@lru_cache(1024)  # read in every transaction, rarely changed
def _setup(queue: StoredQueue, experiment: StoredExperiment | None) -> QueueSetup:
    return QueueSetup(
        queue.name,
        queue.change,
        Policy.from_data(json.loads(queue.policy)),
        QueueRules.from_data(json.loads(queue.rules)),
        None if experiment is None else QueueExperiment.of(experiment),
        queue.paused,
    )


def ticks(store: Store) -> dict[str, float]:
    """The shortest tick among each ladder's queues, by ladder name; only ladders with queues."""
    shortest: dict[str, float] = {}
    for _, ladder, _, rules in queue_sql.read_all_queues(store):
        tick = QueueRules.from_data(json.loads(rules)).tick
        shortest[ladder] = min(shortest.get(ladder, tick), tick)
    return shortest


def rules_of(store: Store, ladder: int, queue: str) -> QueueRules:
    """The rules of a queue, or the defaults if there is no such queue."""
    setup = read(store, ladder).get(queue)
    return QueueRules() if setup is None else setup.rules


def put(store: Store, ladder: int, setup: QueueSetup) -> None:
    """Insert or replace a queue."""
    policy, rules = (
        json.dumps(data, ensure_ascii=False, sort_keys=True) for data in (setup.policy.to_data(), setup.rules.to_data())
    )
    queue_sql.put_queue(store, ladder, StoredQueue(setup.name, setup.change, policy, rules, setup.paused))


LONGEST_MESSAGE = 200  # characters


def check_message(message: str) -> str:
    """The message of a pause without surrounding blanks. Raises BadParameterError, or InputError for its characters."""
    if message:
        check_text("message", message)
    if len(message) > LONGEST_MESSAGE:
        raise BadParameterError(f"the message has {len(message)} characters; at most {LONGEST_MESSAGE} are allowed")
    return message.strip()


def find(known: Mapping[str, QueueSetup], name: str) -> QueueSetup:
    """The queue of this name. Raises UnknownNameError, which lists the known queues."""
    if name not in known:
        raise UnknownNameError("queue", name, known)
    return known[name]


STRIKES_COUNTED = 50.0  # the wait reaches penalty_most long before


class Penalty(NamedTuple):
    """A player's strikes, faded as of now. until: when the player may queue again, microseconds since the epoch."""

    strikes: float
    until: int


def strike(store: Store, ladder: int, players: Sequence[int], now: int, rules: QueueRules) -> dict[int, StoredPenalty]:
    """Give each of these players one more strike and return their penalties. Requires the ladder's change lock.

    With s = faded former strikes + 1, the wait is penalty · 2^(s - 1), at most penalty_most.
    """
    chosen = sorted(set(players))
    before = queue_sql.read_penalties(store, ladder, chosen)
    new: dict[int, StoredPenalty] = {}
    for player in chosen:
        former = before.get(player)
        strikes = 1 + (0.0 if former is None else faded(former.strikes, former.struck_at, now, rules))
        wait = min(rules.penalty * 2 ** (min(strikes, STRIKES_COUNTED) - 1), rules.penalty_most)
        new[player] = StoredPenalty(strikes, now, now + round(wait * SECOND))
    queue_sql.put_penalties(store, ladder, new)
    return new


def faded(strikes: float, struck_at: int, now: int, rules: QueueRules) -> float:
    """Strikes after fading. They halve every `penalty_fades` seconds after `struck_at`."""
    left: float = strikes * 0.5 ** (max(now - struck_at, 0) / SECOND / rules.penalty_fades)
    return left


def penalty_of(store: Store, ladder: int, name: str, now: int) -> Penalty | None:
    """A player's penalty; None: no strikes, or an unknown name.

    Strikes fade as in the ladder's queue with the slowest fading.
    """
    player = player_rows.ids_of(store, [name]).get(name)
    stored = None if player is None else queue_sql.read_penalties(store, ladder, [player]).get(player)
    if stored is None:
        return None
    all_rules = [setup.rules for setup in read(store, ladder).values()] or [QueueRules()]
    slowest = max(all_rules, key=lambda rules: rules.penalty_fades)
    return Penalty(faded(stored.strikes, stored.struck_at, now, slowest), stored.until)
