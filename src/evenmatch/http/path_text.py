"""Paths: which belong to the API, and any text as one percent-encoded segment, the route converter `text`."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor

API = ("/v1/", "/healthz", "/readyz", "/metrics")  # beginnings of paths; all others belong to the web site


def is_api(path: str) -> bool:
    """Whether a path belongs to the API, and not to the web site."""
    return path.startswith(API)


def as_meant(part: str) -> str:
    """The decoded text of a path segment; bytes that are not UTF-8 become lone surrogates."""
    return unquote(part, errors="surrogateescape")


def is_text(value: str) -> bool:
    """Whether a database can store the value: it has no NUL and no lone surrogate."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


class PathText(Convertor[str]):
    """A path segment, percent-decoded; the text may contain a slash."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """The decoded text; it may contain lone surrogates, which no valid name has."""
        return as_meant(value)

    def to_string(self, value: str) -> str:
        """The value unchanged, as it appears in the path."""
        return value


register_url_convertor("text", PathText())
