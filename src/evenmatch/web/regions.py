"""The regions of a page that an open page reloads: only those that have changed are sent."""

from __future__ import annotations

import hashlib
import re

HEADER = "X-Evenmatch-Part"  # of a request and of its response: ids of regions, each with the tag of its content
VOLATILE = re.compile(r'data-ago>[^<]*<|name="proof" value="[^"]*"')  # differs although nothing has changed


def changed_regions(page: str, asked: str) -> dict[str, tuple[str, str]]:
    """Return tag and HTML of each region that differs from the one with the tag sent, by id.

    asked  ids and tags, such as `standings=1f0c path=`; an empty tag: the client has no tag yet
    """
    found = {}
    for name, _, tag in (one.partition("=") for one in asked.split()):
        region = region_of(page, name)
        if region is not None and (now := _tag_of(region)) != tag:
            found[name] = now, region
    return found


def region_of(page: str, name: str) -> str | None:
    """Return the element with this id; None if there is none."""
    begin = re.search(rf'<(\w+)[^<>]* id="{re.escape(name)}"', page)
    if begin is None:
        return None
    depth = 0
    for tag in re.compile(rf"<(/?){begin[1]}\b[^>]*>").finditer(page, begin.start()):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return page[begin.start() : tag.end()]
    return None


def _tag_of(region: str) -> str:
    return hashlib.blake2b(VOLATILE.sub("", region).encode(), digest_size=6).hexdigest()
