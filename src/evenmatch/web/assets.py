"""What pages load beside themselves: style, script, icon, and the chart library out of its installed package."""

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
FOREVER = "public, max-age=31536000, immutable"  # another content has another address


class Asset(NamedTuple):
    """A file as it is sent. packed: the same by gzip."""

    body: bytes
    packed: bytes
    kind: str
    version: str


@lru_cache(8)
def asset(name: str) -> Asset:
    """A file by its name; KeyError for one that is not there."""
    if name == PLOTLY:
        body, kind = _plotly().read_bytes(), "text/javascript"
    else:
        kind = OWN[name]
        body = resources.files("evenmatch.web").joinpath("static", name).read_bytes()
    version = hashlib.blake2b(body, digest_size=6).hexdigest()
    return Asset(body, gzip.compress(body, 6, mtime=0), f"{kind}; charset=utf-8", version)


@lru_cache(1)
def addresses() -> dict[str, str]:
    """The address of each file by the first word of its name, as plotly."""
    versions = {name: asset(name).version for name in OWN} | {PLOTLY: _plotly_version()}
    return {name.partition(".")[0] + _kind(name): f"/assets/{version}/{name}" for name, version in versions.items()}


def _kind(name: str) -> str:
    return "" if name in (PLOTLY, "icon.svg") else "_" + name.rpartition(".")[2]


async def send_asset(request: Request) -> Response:
    """A file; whoever holds it keeps it."""
    name = request.path_params["name"]
    if name not in (*OWN, PLOTLY):
        return PlainTextResponse("there is no such file", 404)
    found = await run_in_threadpool(asset, name)  # the first time, the chart library is packed
    headers = {"Cache-Control": FOREVER, "Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=found.kind)
    return Response(found.body, headers=headers, media_type=found.kind)


@lru_cache(1)
def _plotly() -> Path:
    """The chart library's script, found without loading the package."""
    spec = importlib.util.find_spec("plotly")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "package_data" / PLOTLY


def _plotly_version() -> str:
    """By the size of the file: four megabytes need not be read before somebody looks at a chart."""
    return f"{_plotly().stat().st_size:x}"
