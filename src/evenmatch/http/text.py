"""Any text as a part of an address, percent-encoded: the converter `text` of routes."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor


class Text(Convertor[str]):
    """A part of an address as it was meant, which may hold a slash."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """The text; bytes that are no UTF-8 become halves of letters, which no name may hold."""
        return unquote(value, errors="surrogateescape")

    def to_string(self, value: str) -> str:
        """As it stands in the address."""
        return value


register_url_convertor("text", Text())
