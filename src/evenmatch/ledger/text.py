"""What names and ids must be so that both databases can keep and find them."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.errors import InputError

LONGEST = 256  # letters: PostgreSQL's indexes hold 2,704 bytes


def check_texts(what: str, texts: Sequence[str]) -> None:
    """Raise what `check_text` raises for the first of these that is no good; quick where all are plain."""
    joined = "".join(texts)
    lengths = list(map(len, texts))
    if lengths and (not joined.isascii() or "\0" in joined or max(lengths) > LONGEST or min(lengths) < 1):
        for text in texts:
            check_text(what, text)


def check_text(what: str, text: str, *, blank: bool = True) -> None:
    """Raise InputError for a text that no database could keep as a name; `blank`: spaces alone will do."""
    if len(text) > LONGEST:
        raise InputError(f"{what} {text[:20]!r}… has {len(text):,} letters; accepted are up to {LONGEST}")
    if "\0" in text:
        raise InputError(f"{what} {text!r} holds the character NUL; accepted is text without it")
    if not text.strip() and not (blank and text):
        raise InputError(f"{what} is {text!r}; accepted is text with at least one letter")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"{what} {text!r} holds half a letter; accepted is text that UTF-8 can hold") from None
