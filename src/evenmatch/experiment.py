"""Experiments with two policies in one queue: the design, and the policy in force at a time.

All waiting players share one pool, so a match made by one policy decides which players are left for the other. Time is
therefore cut into slices, and a single policy decides throughout each slice (a switchback experiment). Slices are drawn
in small blocks, each with the right share of both policies, so that both see the same hours of the day. The policy of
a slice depends only on the design and the slice's number, so every process can compute it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import Literal, NamedTuple

from evenmatch.durations import SECOND
from evenmatch.errors import BadParameterError
from evenmatch.options import Checked, known_values, number, whole

Arm = Literal["a", "b"]
ARMS: tuple[Arm, Arm] = ("a", "b")  # a: the queue's policy, b: the policy that is tried
LARGEST_SEED = 2**32 - 1
LONGEST_BLOCK = 20  # slices


@dataclass(frozen=True, kw_only=True)
class ExperimentDesign(Checked):
    """How two policies share a queue. Raises BadParameterError for a value outside the range of its option."""

    share: float = number(
        0.5, 0, 1, "Share of the slices in which the second policy decides, as a fraction of at most 20 slices."
    )
    seed: int = whole(1, 0, LARGEST_SEED, "Seed of the draw that gives each slice its policy.")
    slice_seconds: float = number(600.0, 10, 86_400, "Length of a slice, in which a single policy decides.")
    washout: float = number(
        120.0,
        0,
        86_400,
        "Seconds after a change of policy in which matches do not count, because players waited under both.",
    )
    worth: float = number(
        0.1, 0.001, 1, "The smallest difference worth detecting, as a share of the first policy's figure."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fraction in (0, 1) and self.share not in (0, 1):
            raise BadParameterError(f"share={self.share:g}: expected 0, 1 or a number from 0.05 to 0.95")
        if self.washout >= self.slice_seconds:
            raise BadParameterError(
                f"washout={self.washout:g}: expected less than slice_seconds, which is {self.slice_seconds:g}"
            )

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> ExperimentDesign:
        """Read a design from a JSON document; missing options get their defaults. Raises UnknownNameError."""
        return cls(**known_values(cls, "option of an experiment", data))

    def to_data(self) -> dict[str, object]:
        """All options, ready for JSON."""
        return asdict(self)

    @property
    def slice_length(self) -> int:
        """Length of a slice in microseconds."""
        return round(self.slice_seconds * SECOND)

    @property
    def fraction(self) -> Fraction:
        """The share of every block's slices that the second policy gets."""
        return Fraction(self.share).limit_denominator(LONGEST_BLOCK)

    def block_of(self, number: int) -> int:
        """The block of a slice. The share of the second policy is the same in every block."""
        return number // self.fraction.denominator

    def arm_of(self, number: int) -> str:
        """The arm of a slice, "a" or "b": always the same, on every machine."""
        size = self.fraction.denominator
        first = number // size * size
        order = sorted(range(first, first + size), key=self._draw)
        return ARMS[order.index(number) < self.fraction.numerator]

    def _draw(self, number: int) -> bytes:
        return blake2b(f"{self.seed}/{number}".encode(), digest_size=16).digest()

    def slice_at(self, since_start: int) -> Slice:
        """The slice at a time in microseconds since the start of the experiment; for earlier times, the first."""
        number = max(since_start, 0) // self.slice_length
        return Slice(number, self.arm_of(number))

    def settled_from(self, number: int) -> int:
        """When the matches of a slice begin to count, in microseconds since the start of the experiment."""
        before = ARMS[0] if number == 0 else self.arm_of(number - 1)
        washout = 0 if before == self.arm_of(number) else round(self.washout * SECOND)
        return number * self.slice_length + washout


class Slice(NamedTuple):
    """A slice of an experiment. arm: "a" or "b"."""

    number: int
    arm: str
