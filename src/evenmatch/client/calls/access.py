"""API keys, player tokens and the audit trail."""

from __future__ import annotations

from evenmatch.client.call import Call, delete, get, path_of, post
from evenmatch.client.operation import operation
from evenmatch.http.models.keys import AuditPage, KeyCreate, KeyCreated, KeyOut, KeysPage, TokenOut, TokenRequest


class Access:
    """API keys, player tokens and the audit trail."""

    @operation
    def create_key(self, key: KeyCreate) -> Call[KeyCreated]:
        """Create an API key. Its text is returned only this once, since it is not stored."""
        return post(KeyCreated, path_of("keys"), key)

    @operation
    def list_keys(self, *, limit: int = 50, cursor: str | None = None) -> Call[KeysPage]:
        """A page of the keys, including revoked and expired ones, without their text."""
        return get(KeysPage, path_of("keys"), {"limit": limit, "cursor": cursor})

    @operation
    def revoke_key(self, key: str) -> Call[KeyOut]:
        """Revoke a key by its id, and the player tokens it issued; all processes refuse it within 2 s."""
        return delete(KeyOut, path_of("keys", key))

    @operation
    def issue_token(self, token: TokenRequest) -> Call[TokenOut]:
        """Issue a short-lived token that lets a game client queue and read as one player, and do nothing else.

        >>> client.issue_token(TokenRequest(player="ann", expires_in=900)).token
        'eyJ…'
        """
        return post(TokenOut, path_of("tokens"), token, again=True)

    @operation
    def read_audit(self, *, ladder: str | None = None, limit: int = 50, cursor: str | None = None) -> Call[AuditPage]:
        """A page of the audit trail of one ladder or of all, newest first."""
        return get(AuditPage, path_of("audit"), {"ladder": ladder, "limit": limit, "cursor": cursor})
