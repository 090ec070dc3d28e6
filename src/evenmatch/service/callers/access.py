"""Who asks, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass

from evenmatch.errors import ForbiddenError

SCOPES = ("report", "queue", "read", "admin")
GIVES = {
    "report": frozenset({"report", "read"}),
    "queue": frozenset({"queue", "read"}),
    "read": frozenset({"read"}),
    "admin": frozenset(SCOPES),
}


@dataclass(frozen=True)
class Caller:
    """Whoever asks.

    actor    as the audit trail names them
    scopes   as they were granted: of SCOPES, of which some give others (GIVES)
    ladders  on which they may act; None: all, those to come too
    player   the one player whom they act for; None: no player's client asks
    key      whose requests are counted together where their rate is limited
    """

    actor: str
    scopes: frozenset[str]
    ladders: frozenset[str] | None = None
    player: str | None = None
    key: str = ""

    def may(self, scope: str, ladder: str | None = None) -> bool:
        """Whether `check` raises nothing."""
        return self._has(scope) and self._reaches(scope, ladder)

    def check(self, scope: str, ladder: str | None = None) -> None:
        """Raise ForbiddenError where they lack a scope, on a ladder.

        ladder  None: what is asked for is no one ladder's; as an admin, that takes all ladders
        """
        if not self._has(scope):
            has = " and ".join(one for one in SCOPES if one in self.scopes)
            raise ForbiddenError(f"{self.actor} has the scope {has or 'of nothing'}; needed is {scope}")
        if not self._reaches(scope, ladder):
            needed = "all ladders, as this is no one ladder's" if ladder is None else f"ladder {ladder!r}"
            has = ", ".join(map(repr, sorted(self.ladders or ())))
            raise ForbiddenError(
                f"{self.actor} may act on {has or 'no ladder'}; needed is the scope {scope} on {needed}"
            )

    def speaks_for(self, player: str) -> None:
        """Raise ForbiddenError where they are another player than this one."""
        if self.player is not None and self.player != player:
            raise ForbiddenError(f"{self.actor} asks as {player!r}; a player's token is for {self.player!r} alone")

    def _has(self, scope: str) -> bool:
        return any(scope in GIVES[one] for one in self.scopes)

    def _reaches(self, scope: str, ladder: str | None) -> bool:
        if self.ladders is None:
            return True
        return scope != "admin" if ladder is None else ladder in self.ladders


ANYONE = Caller("anyone", frozenset({"read"}), key="anyone")  # where the operator opens reads
OPERATOR = Caller("operator", frozenset({"admin"}), key="operator")  # whoever is at the command line
