"""The cookies of the site: names, lifetimes, and what protects them.

Over HTTPS their names begin with __Host-, which browsers accept from this very host and over HTTPS alone: neither
another host of the same domain nor anybody on the way can set them. A load balancer that ends TLS must be trusted to
say so.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from evenmatch.accounts.sessions import LASTS
from evenmatch.http.path_text import as_meant, is_text

SESSION, ME, NOTICE, ONCE = "evenmatch-session", "evenmatch-me", "evenmatch-notice", "evenmatch-once"
PREFIX = "__Host-"
YEAR = 365 * 86_400
LASTING = {SESSION: LASTS, ME: YEAR, NOTICE: 60, ONCE: 60}  # seconds
SAME_SITE: dict[str, Literal["lax", "strict"]] = {SESSION: "lax", ME: "lax", NOTICE: "lax", ONCE: "strict"}


class Cookies:
    """The cookies of a request, and those of its response."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._is_secure = request.url.scheme == "https"

    def read(self, name: str) -> str | None:
        """The value of a cookie as it was set; None if there is none."""
        return self._request.cookies.get(self._full(name))

    def text(self, name: str) -> str:
        """The text in a cookie that `write_text` has set; empty if there is none, or it is not valid UTF-8."""
        cookie = self.read(name)
        text = "" if cookie is None else as_meant(cookie)
        return text if is_text(text) else ""

    def write(self, response: Response, name: str, value: str) -> None:
        """Set a cookie."""
        self._write(response, name, value, LASTING[name])

    def write_text(self, response: Response, name: str, text: str) -> None:
        """Set a cookie to any text."""
        self.write(response, name, quote(text, safe=""))

    def delete(self, response: Response, name: str) -> None:
        """Delete a cookie, if the request has it."""
        if self.read(name) is not None:
            self._write(response, name, "", 0)

    def _write(self, response: Response, name: str, value: str, lasts: int) -> None:
        response.set_cookie(
            self._full(name), value, lasts, path="/", httponly=True, samesite=SAME_SITE[name], secure=self._is_secure
        )

    def _full(self, name: str) -> str:
        return f"{PREFIX}{name}" if self._is_secure else name
