"""What a page of the site is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.web.visit import Visit

Handler = Callable[[Visit], Awaitable[Response]]


class Page(NamedTuple):
    """An address, and what answers there.

    scope    what a visitor must be allowed, on the ladder of the address if it has one; None: everybody may
    methods  GET shows; POST takes a form
    form     of a POST: the path of the page that shows the form, which is shown again where it is refused
    """

    path: str
    handler: Handler
    scope: str | None = "read"
    methods: tuple[str, ...] = ("GET",)
    form: str | None = None
