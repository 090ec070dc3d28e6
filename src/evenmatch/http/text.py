"""Any text as a part of an address, percent-encoded: the converter `text` of routes."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor


def as_meant(part: str) -> str:
    """The text that a part of an address stands for; bytes that are no UTF-8 become halves of letters."""
    return unquote(part, errors="surrogateescape")


def is_text(value: str) -> bool:
    """Whether a database can look for it: neither NUL nor half a letter is in it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


class Text(Convertor[str]):
    """A part of an address as it was meant, which may hold a slash."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """The text; no name may hold halves of letters."""
        return as_meant(value)

    def to_string(self, value: str) -> str:
        """As it stands in the address."""
        return value


register_url_convertor("text", Text())
