"""Static files of the pages: style sheet, script, icon, and the chart library from its installed package."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

OWN = {"evenmatch.css": "text/css", "evenmatch.js": "text/javascript", "icon.svg": "image/svg+xml"}
PLOTLY = "plotly.min.js"
FOREVER = "public, max-age=31536000, immutable"  # the URL contains a version of the content


class Asset(NamedTuple):
    """A file as it is sent: its content, the content compressed by gzip, its media type and version."""

    body: bytes
    packed: bytes
    kind: str
    version: str


@lru_cache(8)
def asset(name: str) -> Asset:
    """Return the file of this name. Raises KeyError if there is none."""
    if name == PLOTLY:
        body, kind = _plotly().read_bytes(), "text/javascript"
    else:
        kind = OWN[name]
        body = resources.files("evenmatch.web").joinpath("static", name).read_bytes()
    version = hashlib.blake2b(body, digest_size=6).hexdigest()
    return Asset(body, gzip.compress(body, 6, mtime=0), f"{kind}; charset=utf-8", version)


@lru_cache(1)
def addresses() -> dict[str, str]:
    """The URL of each file by template name, such as `plotly`, `icon` and `evenmatch_css`."""
    versions = {name: asset(name).version for name in OWN} | {PLOTLY: _plotly_version()}
    return {name.partition(".")[0] + _suffix(name): f"/assets/{version}/{name}" for name, version in versions.items()}


def _suffix(name: str) -> str:
    return "" if name in (PLOTLY, "icon.svg") else "_" + name.rpartition(".")[2]


async def send_asset(request: Request) -> Response:
    """Send a file, which browsers may cache for a year."""
    name = request.path_params["name"]
    if name not in (*OWN, PLOTLY):
        return PlainTextResponse("no such file", 404)
    file = await run_in_threadpool(asset, name)  # the first call reads and compresses the file
    headers = {"Cache-Control": FOREVER, "Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=file.kind)
    return Response(file.body, headers=headers, media_type=file.kind)


@lru_cache(1)
def _plotly() -> Path:
    """The path of the chart library's script, without importing the package."""
    spec = importlib.util.find_spec("plotly")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "package_data" / PLOTLY


def _plotly_version() -> str:
    """A version from the file size: no need to read four megabytes before the first chart is opened."""
    return f"{_plotly().stat().st_size:x}"
