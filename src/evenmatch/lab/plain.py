"""Names of strangers as they may be shown: they stay in their place, and can be seen."""

from __future__ import annotations

import unicodedata

DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
UNSEEN = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufeff")  # letters and marks without ink
BLANK = "(blank name)"


def plain(text: str, longest: int | None = None) -> str:
    """A name that stays in its place: no line ends, no marks that turn the direction of what follows, not too long."""
    kept = "".join("�" if one in DIRECTIONS or unicodedata.category(one) in {"Cc", "Zl", "Zp"} else one for one in text)
    return kept if longest is None or len(kept) <= longest else kept[: longest - 1].rstrip() + "…"


def visible(text: str, longest: int | None = None) -> str:
    """The same, with words in place of a name of which nothing would be seen."""
    kept = plain(text, longest)
    return BLANK if all(_leaves_no_ink(one) for one in kept) else kept


def _leaves_no_ink(letter: str) -> bool:
    return letter in UNSEEN or unicodedata.category(letter) in {"Zs", "Cf", "Mn"} or "\ufe00" <= letter <= "\ufe0f"
