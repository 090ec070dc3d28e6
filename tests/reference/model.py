"""What the slow rating systems read and return."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SlowPlayer:
    """One player's part in one match; None where a value was not recorded."""

    name: str
    score: float | None = None
    seconds: float | None = None
    performance: float | None = None
    quit: bool = False
    entry: float | None = None  # known before the first match


@dataclass(frozen=True)
class SlowTeam:
    """A team of one match. Place 1 is best, equal places are a draw."""

    place: int
    score: float | None
    players: list[SlowPlayer]


@dataclass(frozen=True)
class SlowMatch:
    """A match. `time` in seconds since the epoch, `duration` in seconds or None where not recorded.

    context  its value in each context column
    """

    id: str
    time: float
    duration: float | None
    teams: list[SlowTeam]
    context: tuple[str, ...] = ()


@dataclass(frozen=True)
class SlowChange:
    """The shown rating of one player before and after one match, and the expected score of the player's team."""

    match_id: str
    player: str
    team: int
    before: float
    after: float
    expected: float
