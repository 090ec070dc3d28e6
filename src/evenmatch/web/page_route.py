"""The declaration of a page: route, handler and required scope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.web.page_request import PageRequest

Handler = Callable[[PageRequest], Awaitable[Response]]


class PageRoute(NamedTuple):
    """A page of the site.

    path     the route, such as `/ladders/{ladder:text}`
    scope    required of the visitor, on the ladder of the URL if there is one; None: open to everybody
    methods  GET shows the page; POST accepts a form
    form     of a POST: the path of the page with the form, which is shown again if the form is refused
    whole    whether the page is only for visitors who may see all ratings of the ladder
    """

    path: str
    handler: Handler
    scope: str | None = "read"
    methods: tuple[str, ...] = ("GET",)
    form: str | None = None
    whole: bool = False
