"""Recent meetings of players in the matches of a ladder's queues, to avoid rematches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from evenmatch.matchmaking import Met
from evenmatch.service.stored_queues import QueueSetup

KEPT = 86_400_000_000  # microseconds; offers are stored no longer


class Meetings:
    """Matches with their players and times: the end if known, otherwise the creation."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}
        self._players: defaultdict[str, set[int]] = defaultdict(set)
        self._matches: defaultdict[int, list[str]] = defaultdict(list)  # by player, the latest last
        self._pruned = 0

    @staticmethod
    def longest(setups: Mapping[str, QueueSetup]) -> float:
        """Seconds after the creation of a match when no queue counts its meetings any more."""
        return max((setup.rematch_fade + setup.rules.longest_match for setup in setups.values()), default=0.0)

    def add(self, match_id: str, time: int, players: Sequence[int]) -> None:
        """Add players who have been in a match since a time."""
        self._times[match_id] = max(time, self._times.get(match_id, time))
        for player in set(players) - self._players[match_id]:
            self._matches[player].append(match_id)
        self._players[match_id].update(players)

    def end(self, match_id: str, now: int) -> None:
        """Set the end time of a match."""
        if match_id in self._times:
            self._times[match_id] = now

    def of(self, now: int, fade: float) -> Callable[[int], tuple[Met, ...]]:
        """A function that returns whom a player met in the last `fade` seconds, each once with the latest time."""
        self._prune(now)
        since = now - round(fade * 1e6)

        def met(player: int) -> tuple[Met, ...]:
            latest: dict[int, int] = {}
            for match_id in self._matches.get(player, ()):
                time = self._times[match_id]
                if time > since:
                    others = self._players[match_id] - {player}
                    latest |= {other: max(time, latest.get(other, time)) for other in others}
            return tuple(Met(*item) for item in sorted(latest.items()))

        return met

    def _prune(self, now: int) -> None:
        if now - self._pruned < KEPT // 100:
            return
        self._pruned = now
        for match_id in [match_id for match_id, time in self._times.items() if time < now - KEPT]:
            del self._times[match_id]
            for player in self._players.pop(match_id):
                self._matches[player].remove(match_id)
                if not self._matches[player]:
                    del self._matches[player]
