"""Safe display of untrusted names: no control or direction characters, never invisible."""

from __future__ import annotations

import unicodedata

DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
UNSEEN = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufeff")  # characters without a visible glyph
BLANK = "(blank name)"


def plain(text: str, longest: int | None = None) -> str:
    """Replace control, line-break and text-direction characters, and truncate to `longest` characters."""
    safe = "".join(
        "�" if char in DIRECTIONS or unicodedata.category(char) in {"Cc", "Zl", "Zp"} else char for char in text
    )
    return safe if longest is None or len(safe) <= longest else safe[: longest - 1].rstrip() + "…"


def visible(text: str, longest: int | None = None) -> str:
    """Like `plain`, but return BLANK for a name without any visible character."""
    safe = plain(text, longest)
    return BLANK if all(_is_invisible(char) for char in safe) else safe


def _is_invisible(letter: str) -> bool:
    return letter in UNSEEN or unicodedata.category(letter) in {"Zs", "Cf", "Mn"} or "\ufe00" <= letter <= "\ufe0f"
