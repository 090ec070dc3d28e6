"""Requests of the bot to `evenmatch serve`. A refusal becomes a sentence for the Discord user."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from urllib.parse import quote

import aiohttp
import yarl

from evenmatch.discord.settings import Settings
from evenmatch.errors import EvenmatchError

Json = dict[str, Any]
TIMEOUT = aiohttp.ClientTimeout(total=10.0)  # seconds
USER = "discord:"  # prefix of the names of Discord users; the user id follows
_QUOTED_USER = re.compile(rf"'?{USER}(\d+)'?")


class RefusalError(EvenmatchError):
    """The service refused a request or did not answer. The message is a sentence for a Discord user.

    status  of the answer; 0: there was none
    detail  for the operator's log
    """

    def __init__(self, sentence: str, status: int, detail: str) -> None:
        self.status, self.detail = status, detail
        super().__init__(sentence)


class Api:
    """The API of one ladder. http must stay open."""

    def __init__(self, http: aiohttp.ClientSession, settings: Settings) -> None:
        self._http, self._base = http, f"{settings.url}/v1/ladders/{quote(settings.ladder, '')}"
        self._key, self._report_key = settings.key, settings.report_key

    async def get(self, *path: str, limit: int | None = None) -> Json:
        """Read a resource of the ladder. Raises RefusalError."""
        return await self._ask("GET", path, self._key, "" if limit is None else f"?limit={limit}")

    async def find(self, *path: str, limit: int | None = None) -> Json | None:
        """Read a resource of the ladder; None: it does not exist. Raises RefusalError."""
        try:
            return await self.get(*path, limit=limit)
        except RefusalError as error:
            if error.status != 404:
                raise
            return None

    async def write(self, method: str, *path: str, body: Json | None = None) -> Json:
        """Change a ticket of the ladder. Raises RefusalError."""
        return await self._ask(method, path, self._key, body=body)

    async def report(self, *path: str, body: Json) -> Json:
        """Post the end of a match. Raises RefusalError."""
        return await self._ask("POST", path, self._report_key, body=body)

    async def _ask(
        self, method: str, path: tuple[str, ...], key: str, query: str = "", *, body: Json | None = None
    ) -> Json:
        address = "/".join((self._base, *(quote(part, "") for part in path))) + query
        try:
            async with self._http.request(
                *(method, yarl.URL(address, encoded=True)),
                json=body,
                headers={"Authorization": f"Bearer {key}"},
                timeout=TIMEOUT,
            ) as answer:
                document, status = await answer.json(content_type=None), answer.status
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            sentence = "The ranking server does not answer. Please try again in a minute."
            raise RefusalError(sentence, 0, f"{method} {address}: {error or type(error).__name__}") from error
        if status >= 400 or not isinstance(document, dict):
            problem = document if isinstance(document, dict) else {}
            raise RefusalError(_sentence(status, problem), status, f"{method} {address}: {status} {document}")
        return document


def _sentence(status: int, problem: Json) -> str:
    """Why a request was refused, as a Discord user may read it."""
    if status in {401, 403}:
        return "The ranking server does not accept the bot's key for this. Please tell an operator."
    if status in {429, 503}:
        return f"The ranking server is busy. Please try again in {max(1, round(problem.get('retry_after') or 60))} s."
    detail = problem.get("detail")
    if status >= 500 or not detail:
        return "The ranking server could not do this. Please tell an operator."
    until = problem.get("until")
    when = "" if until is None else f" You can try again <t:{round(datetime.fromisoformat(until).timestamp())}:R>."
    return f"{with_mentions(detail[0].upper() + detail[1:]).rstrip('.')}.{when}"


def with_mentions(text: str) -> str:
    """Replace the names of Discord users by mentions."""
    return _QUOTED_USER.sub(r"<@\1>", text)
