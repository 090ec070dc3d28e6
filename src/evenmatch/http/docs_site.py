"""The documentation site that `make docs` builds, at /docs."""

from __future__ import annotations

from fastapi import FastAPI, Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from evenmatch.accounts.access import ANYONE
from evenmatch.http.access import allow, check_host, recalled
from evenmatch.http.site import Site

POLICY = (  # the search runs in a worker; the theme writes styles into the page
    "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}


def add_docs(app: FastAPI, site: Site, reference: str) -> None:
    """Serve the folder of the setting `docs`; without one, redirect /docs to the path of the API reference."""
    folder = site.options.docs

    async def entrance(request: Request) -> Response:
        check_host(site, request.scope)
        allow(site, request.scope, recalled(site, request.scope) or ANYONE)
        return RedirectResponse("/docs/" if folder else reference)

    app.add_route("/docs", entrance, include_in_schema=False)
    if not folder:
        return
    files = StaticFiles(directory=folder, html=True)

    async def page(request: Request) -> Response:
        check_host(site, request.scope)
        allow(site, request.scope, recalled(site, request.scope) or ANYONE)
        response = await files.get_response(request.path_params["path"] or ".", request.scope)
        response.headers.update(HEADERS)
        return response

    app.add_route("/docs/{path:path}", page, include_in_schema=False)
