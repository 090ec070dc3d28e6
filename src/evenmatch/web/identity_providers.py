"""Identity providers at which visitors log in: OpenID Connect and Discord through Authlib, and Steam's OpenID 2.0.

A login leaves for the provider and comes back to this site. What ties both ends together (state, nonce, PKCE verifier)
is the login's state, which the caller keeps in a signed cookie of the visitor's browser.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request

from evenmatch.accounts.issuer_tokens import ALGORITHMS
from evenmatch.accounts.linked_accounts import DISCORD, STEAM
from evenmatch.errors import AccessError, IssuerError
from evenmatch.http.options import Options

if TYPE_CHECKING:
    from authlib.integrations.starlette_client import StarletteOAuth2App

T = TypeVar("T")
State = dict[str, Any]
DISCORD_AT = "https://discord.com"
STEAM_AT = "https://steamcommunity.com/openid"
OPERATORS = "operators"  # the name of the provider at which operators log in
ANSWERS_WITHIN = 5.0  # seconds
OPENID_2 = "http://specs.openid.net/auth/2.0"
SIGNED = {"op_endpoint", "claimed_id", "identity", "return_to", "response_nonce", "assoc_handle"}  # OpenID 2.0, 10.1
CANCELLED = "the login was cancelled"


class Identity(NamedTuple):
    """Who logged in at a provider. name: as the provider shows them; groups: of operators."""

    issuer: str
    subject: str
    name: str
    groups: Sequence[str] = ()


class IdentityProvider(Protocol):
    """A way to log in. label: its name for people.

    Both methods raise AccessError if the login fails, IssuerError if the provider does not answer.
    """

    label: str

    async def leave(self, back: str) -> tuple[str, State]:
        """Return the URL to which the visitor goes, and the login's state. back: the URL they come back to."""

    async def come_back(self, request: Request, back: str, state: State) -> Identity:
        """Return who comes back."""


def providers_of(options: Options) -> Mapping[str, IdentityProvider]:
    """Return the configured providers by their names in URLs. Their libraries are loaded here."""
    providers: dict[str, IdentityProvider] = {}
    if options.player_issuer and options.player_client_id:
        client = options.player_client_id, options.player_client_secret
        providers["openid"] = OpenIdConnect(options.player_issuer, *client)
    if options.discord_client_id:
        providers[DISCORD] = Discord(options.discord_client_id, options.discord_client_secret)
    if options.steam_login:
        providers[STEAM] = Steam()
    if options.operator_issuer and options.operator_client_id:
        client = options.operator_client_id, options.operator_client_secret
        providers[OPERATORS] = OpenIdConnect(options.operator_issuer, *client, options.operator_groups_claim)
    return providers


class _OAuth:
    """A login by authorization code with state and PKCE (RFC 7636)."""

    def __init__(self, label: str, scope: str, client_id: str, client_secret: str, **where: str) -> None:
        from authlib.integrations.starlette_client import StarletteIntegration, StarletteOAuth2App  # noqa: PLC0415

        self.label = label
        self._app: StarletteOAuth2App = StarletteOAuth2App(
            StarletteIntegration(label),
            label,
            client_id=client_id,
            client_secret=client_secret or None,
            client_kwargs={"scope": scope, "code_challenge_method": "S256", "timeout": ANSWERS_WITHIN},
            **where,
        )

    async def leave(self, back: str) -> tuple[str, State]:
        await self._prepare()
        begun = await _answered(self.label, lambda: self._app.create_authorization_url(back))
        return begun["url"], begun

    async def come_back(self, request: Request, back: str, state: State) -> Identity:
        await self._prepare()
        query = request.query_params
        if not secrets.compare_digest(query.get("state", "").encode(), str(state.get("state")).encode()):
            raise AccessError("this login was begun in another window; log in again")
        if "error" in query:
            told = query.get("error_description") or query["error"]
            raise AccessError(CANCELLED if query["error"] == "access_denied" else f"{self.label} says: {told[:200]}")
        token = await _answered(
            self.label,
            lambda: self._app.fetch_access_token(back, code=query.get("code"), code_verifier=state["code_verifier"]),
        )
        return await _answered(self.label, lambda: self._identity(token, state))

    async def _prepare(self) -> None:
        """Read what is needed about the provider."""

    async def _identity(self, token: dict[str, Any], state: State) -> Identity:
        raise NotImplementedError


class OpenIdConnect(_OAuth):
    """A provider of OpenID Connect. groups_claim: the claim with the groups of operators; empty: there are none."""

    def __init__(self, issuer: str, client_id: str, client_secret: str, groups_claim: str = "") -> None:
        document = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        super().__init__(
            urlsplit(issuer).netloc, "openid profile", client_id, client_secret, server_metadata_url=document
        )
        self._issuer, self._groups_claim = issuer, groups_claim

    async def _prepare(self) -> None:
        metadata = await _answered(self.label, self._app.load_server_metadata)
        if metadata.get("issuer") != self._issuer:
            found, self._app.server_metadata = metadata.get("issuer"), {}
            raise IssuerError(f"{self._issuer} calls itself {found!r}; expected the same URL")
        offered = metadata.get("id_token_signing_alg_values_supported", ())
        if self._groups_claim in metadata.get("scopes_supported", ()):
            self._app.client_kwargs["scope"] = f"openid profile {self._groups_claim}"
        metadata["id_token_signing_alg_values_supported"] = [name for name in offered if name in ALGORITHMS]

    async def _identity(self, token: dict[str, Any], state: State) -> Identity:
        claims = await self._app.parse_id_token(token, state["nonce"])
        if claims is None:
            raise AccessError(f"{self.label} sent no ID token")
        if (self._groups_claim or "preferred_username") not in claims:  # many providers tell it only there
            told = await self._app.userinfo(token=token) if "userinfo_endpoint" in self._app.server_metadata else claims
            if told.get("sub") != claims["sub"]:
                raise AccessError(f"{self.label} told of somebody else; log in again")  # Core, 5.3.2
            claims = {**claims, **told}
        groups = claims.get(self._groups_claim)
        name = claims.get("preferred_username") or claims.get("name") or claims["sub"]
        return Identity(self._issuer, str(claims["sub"]), str(name), groups if isinstance(groups, list) else ())


class Discord(_OAuth):
    """Discord's OAuth 2."""

    def __init__(self, client_id: str, client_secret: str) -> None:
        authorize, token = f"{DISCORD_AT}/oauth2/authorize", f"{DISCORD_AT}/api/oauth2/token"
        super().__init__(
            "Discord", "identify", client_id, client_secret, authorize_url=authorize, access_token_url=token
        )

    async def _identity(self, token: dict[str, Any], state: State) -> Identity:
        answer = await self._app.get(f"{DISCORD_AT}/api/users/@me", token=token)
        user = answer.raise_for_status().json()
        return Identity(DISCORD, str(user["id"]), str(user.get("global_name") or user["username"]))


class Steam:
    """Steam's OpenID 2.0, for which no maintained library exists: an assertion that Steam itself confirms."""

    label = "Steam"

    async def leave(self, back: str) -> tuple[str, State]:
        """Return the URL with the request of OpenID 2.0, section 9; the state is in the URL to come back to."""
        state = {"state": secrets.token_urlsafe(24)}
        anybody = f"{OPENID_2}/identifier_select"
        asked = {
            "ns": OPENID_2,
            "mode": "checkid_setup",
            "claimed_id": anybody,
            "identity": anybody,
            "return_to": f"{back}?{urlencode(state)}",
            "realm": "{0.scheme}://{0.netloc}/".format(urlsplit(back)),
        }
        return f"{STEAM_AT}/login?{urlencode({f'openid.{name}': value for name, value in asked.items()})}", state

    async def come_back(self, request: Request, back: str, state: State) -> Identity:
        """Check the assertion as section 11 says, and have Steam confirm it."""
        sent = {
            name.removeprefix("openid."): value
            for name, value in request.query_params.multi_items()
            if name.startswith("openid.")
        }
        if sent.get("mode") == "cancel":
            raise AccessError(CANCELLED)
        account = re.fullmatch(rf"{re.escape(STEAM_AT)}/id/([0-9]{{1,20}})", sent.get("claimed_id", ""))
        is_ours = sent.get("return_to") == f"{back}?{urlencode({'state': state.get('state')})}"
        is_signed = set(sent.get("signed", "").split(",")) >= SIGNED and sent.get("op_endpoint") == f"{STEAM_AT}/login"
        if account is None or not is_ours or not is_signed or sent.get("identity") != sent["claimed_id"]:
            raise AccessError("this login was begun in another window; log in again")
        question = {f"openid.{name}": value for name, value in {**sent, "mode": "check_authentication"}.items()}

        async def confirm() -> str:
            import httpx2  # noqa: PLC0415

            async with httpx2.AsyncClient(timeout=ANSWERS_WITHIN) as client:
                answer = await client.post(f"{STEAM_AT}/login", data=question)
            text: str = answer.raise_for_status().text
            return text

        if "is_valid:true" not in (await _answered(self.label, confirm)).splitlines():
            raise AccessError("Steam did not confirm this login; log in again")
        return Identity(STEAM, account[1], account[1])


async def _answered(label: str, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Ask a provider. Raises AccessError if it refuses or its answer is not valid, IssuerError if there is none."""
    import httpx2  # noqa: PLC0415 - the client that Authlib uses
    from authlib.common.errors import AuthlibBaseError  # noqa: PLC0415
    from joserfc.errors import JoseError  # noqa: PLC0415

    try:
        return await ask()
    except (AuthlibBaseError, JoseError) as error:
        raise AccessError(f"{label} refused this login: {str(error)[:200]}; log in again") from None
    except httpx2.HTTPError as error:
        raise IssuerError(f"{label} does not answer: {str(error)[:200]}") from None
    except (KeyError, TypeError, ValueError, RuntimeError) as error:  # documents without what the standards require
        raise IssuerError(f"{label} answers something unexpected: {str(error)[:200]}") from None
