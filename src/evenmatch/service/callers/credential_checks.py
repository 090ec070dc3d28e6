"""Whether the keys, tokens and sessions of requests that wait for long are still good."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from evenmatch.errors import AccessError
from evenmatch.service.callers.keys import Keys
from evenmatch.service.callers.sessions import Sessions
from evenmatch.service.callers.tokens import Tokens


class Credential(NamedTuple):
    """The credential of a request.

    key         the id of the API key, or of the key that issued the token or began the session
    expires_at  of the token or session, in microseconds since the epoch; None: the key's expiry alone counts
    token       the text of a player's token
    session     the id of a web session
    """

    key: str
    expires_at: int | None = None
    token: str | None = None
    session: str | None = None


class CredentialChecks:
    """Checks of many credentials at once. Use it in one thread at a time."""

    def __init__(self, keys: Keys, tokens: Tokens, sessions: Sessions, clock: Callable[[], int]) -> None:
        self._keys, self._tokens, self._sessions, self._clock = keys, tokens, sessions, clock
        self._secrets = b""

    def ended(self, credentials: Collection[Credential]) -> set[Credential]:
        """Those that were revoked or ended, or have expired, as the database says now. Raises StoreError."""
        keys = self._keys.ended({credential.key for credential in credentials})
        sessions = {credential.session for credential in credentials if credential.session is not None}
        ended_sessions = self._sessions.ended(sessions) if sessions else set()
        unsigned = self._unsigned(credentials) if any(credential.token for credential in credentials) else set()
        now = self._clock()
        return unsigned | {
            credential
            for credential in credentials
            if credential.key in keys
            or credential.session in ended_sessions
            or (credential.expires_at is not None and credential.expires_at <= now)
        }

    def _unsigned(self, credentials: Collection[Credential]) -> set[Credential]:
        """Those whose token is signed by neither secret any more; looked for only after a secret was replaced."""
        secrets = self._tokens.secrets_digest()
        before, self._secrets = self._secrets, secrets
        return set() if before == secrets else {each for each in credentials if each.token and not self._is_good(each)}

    def _is_good(self, credential: Credential) -> bool:
        try:
            self._tokens.verify(credential.token or "")
        except AccessError:
            return False
        return True
