"""Sentences for players, which pages show in the visitor's language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Sentence(NamedTuple):
    """A sentence or a part of one; `str` formats it in English.

    template  in English, with the names of its values in braces
    values    by name: other sentences, or texts that stay as they are in every language
    """

    template: str
    values: Mapping[str, object] = {}

    def __str__(self) -> str:
        return self.said(str)

    def said(self, translate: Callable[[str], str]) -> str:
        """Return the sentence in a language. translate: returns the template in it, with the same names in braces."""
        values = {
            name: value.said(translate) if isinstance(value, Sentence) else value for name, value in self.values.items()
        }
        return translate(self.template).format(**values)
