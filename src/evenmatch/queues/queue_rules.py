"""The rules of a queue besides its policy: offers, heartbeats, penalties, and the automatic fit of the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from evenmatch.options import Checked, choice, known_values, number
from evenmatch.policy import FEWEST_SHARE, LONGEST_TARGET, MOST_SHARE, SHORTEST_TARGET, WaitTarget

DAY = 86_400  # seconds


@dataclass(frozen=True, kw_only=True)
class QueueRules(Checked):
    """The rules of a queue besides its policy; times in seconds. Raises BadParameterError with the allowed range."""

    accept_within: float = number(20.0, 1, DAY, "Time to answer an offer.")
    heartbeat: float | None = number(
        30.0, 10, DAY, "Time without a heartbeat after which a ticket is dropped; none: never.", optional=True
    )
    tick: float = number(1.0, 0.05, 3600, "Time between two searches for matches.")
    penalty: float = number(30.0, 0, 30 * DAY, "Waiting time after the first strike. Each further strike doubles it.")
    penalty_most: float = number(900.0, 0, 30 * DAY, "Longest waiting time after a strike.")
    penalty_fades: float = number(3600.0, 1, 365 * DAY, "Half-life of strikes.")
    longest_match: float = number(7200.0, 1, 30 * DAY, "Time after which an unreported match expires.")
    auto_within: float | None = number(
        None,
        SHORTEST_TARGET,
        LONGEST_TARGET,
        "Wait that most players should not exceed. The policy is fitted to it once a day; none: never.",
        optional=True,
    )
    auto_share: float = number(
        0.9, FEWEST_SHARE, MOST_SHARE, "The share of the players to which `auto_within` applies."
    )

    allocate_within: float | None = number(
        None,
        1,
        300,
        "Time to find a game server once all players have accepted, see the webhook event `server.wanted`; none: "
        "matches begin without one.",
        optional=True,
    )
    allocate_fallback: str = choice(
        "requeue",
        ("requeue", "play"),
        "If no server is found in time, the players wait again and keep their place (requeue), or the match begins "
        "without one (play).",
    )

    @property
    def target(self) -> WaitTarget | None:
        """The wait to which the policy is fitted; None: the policy is not fitted."""
        return None if self.auto_within is None else WaitTarget(within=self.auto_within, share=self.auto_share)

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> QueueRules:
        """Read rules from a JSON document. Missing ones get their defaults. Raises UnknownNameError."""
        return cls(**known_values(cls, "rule of a queue", data))

    def to_data(self) -> dict[str, object]:
        """All rules, ready for JSON."""
        return asdict(self)
