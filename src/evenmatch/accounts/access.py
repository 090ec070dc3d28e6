"""The caller of a request: identity, scopes and the ladders they may act on."""

from __future__ import annotations

from dataclasses import dataclass

from evenmatch.errors import ForbiddenError

SCOPES = ("report", "queue", "read", "ratings", "admin")
GIVES = {
    "report": frozenset({"report", "read", "ratings"}),
    "queue": frozenset({"queue", "read"}),
    "read": frozenset({"read"}),
    "ratings": frozenset({"ratings", "read"}),  # including ratings that the ladder hides from its players
    "admin": frozenset(SCOPES),
}

PLAYER_SCOPES = frozenset({"queue", "read"})


@dataclass(frozen=True)
class Caller:
    """An authenticated caller.

    actor       their name in the audit trail
    scopes      the granted scopes, from SCOPES; some include others (GIVES)
    ladders     the ladders they may act on; None: all, including ladders created later
    player      the only player they may act for; None: not limited to one player
    key         identifies the caller for rate limiting
    expires_at  expiry of a player's token, in microseconds since the epoch; None: for callers with a key
    """

    actor: str
    scopes: frozenset[str]
    ladders: frozenset[str] | None = None
    player: str | None = None
    key: str = ""
    expires_at: int | None = None

    @property
    def issuer(self) -> str:
        """Who vouches for the caller: their API key, the key that issued their token, or an identity provider."""
        return self.key if self.player is None else self.key.removesuffix(f"/{self.player}")

    def may(self, scope: str, ladder: str | None = None) -> bool:
        """Return whether `check` would pass."""
        return self._has(scope) and self._reaches(scope, ladder)

    def check(self, scope: str, ladder: str | None = None) -> None:
        """Raise ForbiddenError unless the caller has this scope on this ladder.

        ladder  None: the request concerns no single ladder; the scope admin must then cover all ladders
        """
        if not self._has(scope):
            granted = " and ".join(name for name in SCOPES if name in self.scopes)
            raise ForbiddenError(
                f"{self.actor} has {f'the scope {granted}' if granted else 'no scope'}; the scope {scope} is required"
            )
        if not self._reaches(scope, ladder):
            required = "all ladders (the request concerns no single ladder)" if ladder is None else f"ladder {ladder!r}"
            allowed = ", ".join(map(repr, sorted(self.ladders or ())))
            raise ForbiddenError(
                f"{self.actor} may act on {allowed or 'no ladder'}; the scope {scope} on {required} is required"
            )

    def check_everywhere(self, what: str) -> None:
        """Raise ForbiddenError for a player's token, and for a caller who may act on some ladders only.

        what  the resource that concerns all ladders, for the message
        """
        if self.player is not None:
            raise ForbiddenError(f"{self.actor} cannot read {what}, which concerns all players; send an API key")
        if self.ladders is not None:
            allowed = ", ".join(map(repr, sorted(self.ladders)))
            raise ForbiddenError(
                f"{self.actor} may act on {allowed or 'no ladder'}; {what} concerns all ladders and requires a key "
                "for all of them"
            )

    def speaks_for(self, player: str) -> None:
        """Raise ForbiddenError if the caller may only act for another player."""
        if self.player is not None and self.player != player:
            raise ForbiddenError(f"{self.actor} cannot act for {player!r}: the token is only valid for {self.player!r}")

    def _has(self, scope: str) -> bool:
        return any(scope in GIVES[granted] for granted in self.scopes)

    def _reaches(self, scope: str, ladder: str | None) -> bool:
        if self.ladders is None:
            return True
        return scope != "admin" if ladder is None else ladder in self.ladders


ANYONE = Caller("anyone", frozenset({"read"}), key="anyone")  # unauthenticated, if the operator allows public reads
OPERATOR = Caller("operator", frozenset({"admin"}), key="operator")  # whoever uses the command line
SERVICE = Caller("service", frozenset({"admin"}), key="service")  # automatic actions of the service
