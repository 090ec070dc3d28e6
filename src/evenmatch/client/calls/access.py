"""Keys for servers, tokens for players, and who did what."""

from __future__ import annotations

from evenmatch.client.call import Call, at, delete, get, post
from evenmatch.client.operation import operation
from evenmatch.http.models.keys import AuditTold, KeyAsked, KeyMade, KeysTold, KeyTold, TokenAsked, TokenTold


class Access:
    """Who may do what."""

    @operation
    def create_key(self, key: KeyAsked) -> Call[KeyMade]:
        """Make a key, and show it: this once, since only its hash is kept."""
        return post(KeyMade, at("keys"), key)

    @operation
    def list_keys(self, *, limit: int = 50, cursor: str | None = None) -> Call[KeysTold]:
        """A page of the keys, those that were revoked or have expired among them; never their text."""
        return get(KeysTold, at("keys"), {"limit": limit, "cursor": cursor})

    @operation
    def revoke_key(self, key: str) -> Call[KeyTold]:
        """End a key by its id, and the players' tokens it issued; every process heeds it within two seconds."""
        return delete(KeyTold, at("keys", key))

    @operation
    def issue_token(self, token: TokenAsked) -> Call[TokenTold]:
        """A short-lived token with which a game's client queues and reads as one player, and does nothing else.

        >>> client.issue_token(TokenAsked(player="ann", expires_in=900)).token
        'eyJ…'
        """
        return post(TokenTold, at("tokens"), token, again=True)

    @operation
    def read_audit(self, *, ladder: str | None = None, limit: int = 50, cursor: str | None = None) -> Call[AuditTold]:
        """A page of who did what, on a ladder or on all, the latest first."""
        return get(AuditTold, at("audit"), {"ladder": ladder, "limit": limit, "cursor": cursor})
