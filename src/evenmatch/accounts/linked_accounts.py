"""Accounts at identity providers, each linked to the player whose owner logs in with it.

An issuer is the URL of an OpenID Connect provider, `discord` or `steam`; a subject is the id of an account there, which
never changes and is never given to somebody else.
"""

from __future__ import annotations

from collections.abc import Callable

from evenmatch.accounts import account_sql
from evenmatch.accounts.access import OPERATOR, PLAYER_SCOPES, Caller
from evenmatch.accounts.account_sql import LinkedAccount
from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.errors import AccessError, ConflictError, UnknownNameError
from evenmatch.ledger import player_rows
from evenmatch.ledger.database import Database
from evenmatch.ledger.store import Store
from evenmatch.ledger.text import check_text

DISCORD, STEAM = "discord", "steam"


def player_caller(
    player: str, issuer: str, expires_at: int | None = None, ladders: frozenset[str] | None = None
) -> Caller:
    """Return the caller who acts as this player. issuer: who vouches for them, as in Caller.issuer."""
    return Caller(f"player {player}", PLAYER_SCOPES, ladders, player, f"{issuer}/{player}", expires_at)


class LinkedAccounts:
    """The linked accounts of a database. Thread-safe."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock

    def link(
        self, player: str, issuer: str, subject: str, *, by: Caller = OPERATOR, request: str | None = None
    ) -> LinkedAccount:
        """Let the owner of an account act as a player, who need not exist yet. Linking twice changes nothing.

        Raises ConflictError if the account is linked to another player, InputError for an invalid name.
        """
        by.check("queue")
        for what, text in (("player name", player), ("issuer", issuer), ("subject", subject)):
            check_text(what, text, blank=False)
        now = self._clock()
        with self._database.write() as store:
            is_new = account_sql.read_account(store, issuer, subject) is None
            account_sql.put_new_account(store, LinkedAccount(issuer, subject, player, now))
            linked = account_sql.read_account(store, issuer, subject)
            assert linked is not None
            owner = _present_name(store, linked.player)
            if owner != _present_name(store, player):
                raise ConflictError(f"the account {subject!r} of {issuer} is linked to {owner!r}; unlink it first")
            if is_new:
                body = {"issuer": issuer, "subject": subject}
                AuditEntry(by, "account.linked", None, player, body, request).note(store, now)
        return linked._replace(player=owner)

    def unlink(
        self, player: str, issuer: str, subject: str, *, by: Caller = OPERATOR, request: str | None = None
    ) -> LinkedAccount:
        """End the link of an account to a player; its sessions end at once. Raises UnknownNameError."""
        by.check("queue")
        with self._database.write() as store:
            linked = account_sql.read_account(store, issuer, subject)
            if linked is None or linked.player not in _names(store, player):
                raise UnknownNameError("account", f"{issuer} {subject}", ())
            account_sql.delete_account(store, issuer, subject)
            body = {"issuer": issuer, "subject": subject}
            AuditEntry(by, "account.unlinked", None, linked.player, body, request).note(store, self._clock())
            return linked._replace(player=_present_name(store, linked.player))

    def of(self, player: str) -> list[LinkedAccount]:
        """Return the accounts of a player, who may be unknown to all ladders."""
        with self._database.read() as store:
            return account_sql.read_accounts_of(store, _names(store, player))

    def player(self, issuer: str, subject: str) -> str | None:
        """Return the present name of the player of an account; None if it is not linked.

        A Discord account that is not linked is that of the player whom the Discord bot named after it.
        """
        with self._database.read() as store:
            linked = account_sql.read_account(store, issuer, subject)
            if linked is not None:
                return _present_name(store, linked.player)
            of_bot = f"{DISCORD}:{subject}"
            return _present_name(store, of_bot) if issuer == DISCORD and player_rows.ids_of(store, [of_bot]) else None

    def caller(self, issuer: str, subject: str, expires_at: int | None = None) -> Caller:
        """Return the player of an account. Raises AccessError if it is not linked."""
        player = self.player(issuer, subject)
        if player is None:
            raise AccessError(
                f"the account {subject!r} of {issuer} is not linked to a player; the game's backend or an operator can "
                "link it, see evenmatch player link"
            )
        return player_caller(player, issuer, expires_at)


def _present_name(store: Store, name: str) -> str:
    """Return the present name of the player with this name; the name itself if nobody has it."""
    ids, names = player_rows.find_known(store, [name])
    return names[ids[name]] if ids else name


def _names(store: Store, name: str) -> list[str]:
    player = player_rows.ids_of(store, [name]).get(name)
    return [name] if player is None else player_rows.aliases(store, player)
