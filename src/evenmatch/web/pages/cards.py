"""Pictures of a player's standing to share, and the best players of a ladder for another site's page."""

from __future__ import annotations

from collections.abc import Mapping

import resvg_py
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from evenmatch.errors import UnknownNameError
from evenmatch.standings.bands import division_progress
from evenmatch.web.page_request import PageRequest, addresses, asset, render
from evenmatch.web.view_models import LadderShown

FRESH = "public, max-age=300"
EMBEDDED = 10  # players of an embedded table
FRAMED = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors *"
)
COLOURS = ("#333b4a", "#7b4221", "#4a566b", "#7a5600", "#05646a", "#2549b8", "#8f1668")  # by tier, as --h in the CSS
MEDIA_TYPES = {"png": "image/png", "svg": "image/svg+xml"}


async def card(visit: PageRequest) -> Response:
    """Return a player's card as a picture of 1200 × 630, SVG or PNG, for messages and social networks."""
    visit.check_own(visit.part("player"))
    return await _picture(visit, "card")


async def badge(visit: PageRequest) -> Response:
    """Return a player's division and rating as a small SVG or PNG for a signature or a profile elsewhere."""
    visit.check_own(visit.part("player"))
    return await _picture(visit, "badge")


async def _picture(visit: PageRequest, template: str) -> Response:
    kind = visit.part("kind")
    if kind not in MEDIA_TYPES:
        raise UnknownNameError("kind of picture", kind, MEDIA_TYPES)

    def draw() -> bytes:
        svg = render(f"{template}.svg", _card(visit), visit.texts)
        return svg.encode() if kind == "svg" else bytes(resvg_py.svg_to_bytes(svg_string=svg))

    picture = await visit.site.work(draw, is_limited=False)
    return visit.in_language(Response(picture, media_type=MEDIA_TYPES[kind], headers={"Cache-Control": FRESH}))


def _card(visit: PageRequest) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    profile = visit.reading.profile(visit.ladder, visit.part("player"))
    _, career, _ = visit.reading.career(visit.ladder, profile.player)
    standing = profile.standing
    rating, percentile = (None, None) if standing is None else (standing.rating, standing.percentile)
    ladder = LadderShown.of(view)
    division = None if standing is None else standing.division
    tier = 0 if division is None else ladder.tiers[division]
    return {
        "site_name": visit.site.options.site_name,
        "ladder": ladder,
        "tier": tier,
        "colour": COLOURS[tier],
        "crests": Markup(asset("crests.svg").body.decode()),
        "player": profile.player,
        "standing": standing,
        "career": career,
        "listed": len(view.snapshot),
        "way": division_progress(view.snapshot, rating, percentile),
    }


async def embedded(visit: PageRequest) -> Response:
    """Show the best players of a ladder as a table that other sites may put into a frame."""

    def page() -> str:
        view = visit.reading.view(visit.ladder)
        top = visit.site.service.named(view.snapshot.page(1, EMBEDDED)) if len(view.snapshot) else []
        values = {
            "ladder": LadderShown.of(view),
            "top": top,
            "assets": addresses(),
            "base": str(visit.request.base_url),
        }
        return render("embedded", values, visit.texts)

    content = await visit.site.work(page)
    return visit.in_language(HTMLResponse(content, headers={"Content-Security-Policy": FRAMED, "Cache-Control": FRESH}))
