"""Whether the keys, tokens and sessions of requests that wait for long are still good."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from evenmatch.service.callers.keys import Keys
from evenmatch.service.callers.sessions import Sessions
from evenmatch.service.callers.tokens import Tokens


class Credential(NamedTuple):
    """The credential of a request.

    key         the id of the API key, or of the key that issued the token or began the session
    expires_at  of the token or session, in microseconds since the epoch; None: the key's expiry alone counts
    signer      of a player: the digest of the secret that signed the token
    session     the id of a web session
    """

    key: str
    expires_at: int | None = None
    signer: str | None = None
    session: str | None = None


class CredentialChecks:
    """Checks of many credentials at once."""

    def __init__(self, keys: Keys, tokens: Tokens, sessions: Sessions, clock: Callable[[], int]) -> None:
        self._keys, self._tokens, self._sessions, self._clock = keys, tokens, sessions, clock

    def ended(self, credentials: Collection[Credential]) -> set[Credential]:
        """Those that were revoked or ended, or have expired, as the database says now. Raises StoreError."""
        keys = self._keys.ended({credential.key for credential in credentials})
        sessions = {credential.session for credential in credentials if credential.session is not None}
        ended_sessions = self._sessions.ended(sessions) if sessions else set()
        signers = {credential.signer for credential in credentials if credential.signer is not None}
        ended_signers = signers - self._tokens.signers() if signers else set()
        now = self._clock()
        return {
            credential
            for credential in credentials
            if credential.key in keys
            or credential.session in ended_sessions
            or credential.signer in ended_signers
            or (credential.expires_at is not None and credential.expires_at <= now)
        }
