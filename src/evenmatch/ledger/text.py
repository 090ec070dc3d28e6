"""Names and ids as text: what both databases can store and index, and the form used to search names."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from evenmatch.errors import InputError

LONGEST = 256  # characters; PostgreSQL index entries hold at most 2,704 bytes
WITHOUT_STROKES = str.maketrans(  # letters that Unicode does not decompose into a letter and a mark
    {"đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ł": "l", "ø": "o", "ŧ": "t", "æ": "ae", "œ": "oe", "þ": "th"}
)


def check_texts(what: str, texts: Sequence[str]) -> None:
    """Check many texts like `check_text`; fast if all are plain ASCII."""
    joined = "".join(texts)
    lengths = list(map(len, texts))
    if lengths and (not joined.isascii() or "\0" in joined or max(lengths) > LONGEST or min(lengths) < 1):
        for text in texts:
            check_text(what, text)


def check_text(what: str, text: str, *, blank: bool = True) -> None:
    """Raise InputError for a text that cannot be stored as a name; `blank`: only spaces are allowed too."""
    if len(text) > LONGEST:
        raise InputError(f"{what} {text[:20]!r}… has {len(text):,} characters; expected at most {LONGEST}")
    if "\0" in text:
        raise InputError(f"{what} {text!r} contains the character NUL; expected text without it")
    if not text.strip() and not (blank and text):
        raise InputError(f"{what} is {text!r}; expected text with at least one letter")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"{what} {text!r} is not valid Unicode; expected text that UTF-8 can encode") from None


def fold(text: str) -> str:
    """Return a text without case and diacritics, for searches: "Quân Đỗ" becomes "quan do".

    If a text contains a word, its fold contains the fold of the word. A text of only diacritics keeps them. Each
    character becomes at most 9 bytes, so that a folded name fits into an index.
    """
    if text.isascii():
        return text.casefold()
    folded = text.casefold()
    letters = [letter for letter in unicodedata.normalize("NFD", folded) if not unicodedata.combining(letter)]
    return "".join(letters).casefold().translate(WITHOUT_STROKES) or folded
