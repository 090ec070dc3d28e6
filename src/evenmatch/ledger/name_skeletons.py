"""How names look: skeletons that are equal for names that look alike, and characters that disguise a name.

With the package disarm (the extra `lookalikes`), look-alikes are those of Unicode TR 39. Without it, only case,
compatibility variants such as full-width letters, and invisible characters are ignored.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from types import ModuleType
from typing import NamedTuple

BRAILLE_BLANK = "\u2800"  # Unicode classifies it as a letter, but it looks like a space
# Default_Ignorable_Code_Point of Unicode 16, including unassigned ones: nothing is displayed for them.
IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
OF_EMOJI = re.compile(  # variation selectors, and zero-width joiners between two emoji
    "[\ufe00-\ufe0f]|(?<=[\u2190-\u2bff\ufe0f\U0001f000-\U0001ffff])\u200d(?=[\u2190-\u2bff\U0001f000-\U0001ffff])"
)
VIRAMA = 9  # the canonical combining class
LONGEST = 512  # characters of a skeleton; the hash of a longer one takes its place
REMEMBERED = 10_000  # names
WRITTEN_TOGETHER = {"Latin", "Han", "Hiragana", "Katakana", "Hangul", "Bopomofo"}  # UTS 39: highly restrictive
LOOK_ALIKE, INVISIBLE, MIXED_SCRIPTS = "look-alike", "invisible", "mixed-scripts"


class JudgedName(NamedTuple):
    """The skeleton of a name, and its oddities (INVISIBLE, MIXED_SCRIPTS)."""

    skeleton: str
    oddities: tuple[str, ...]


@lru_cache(REMEMBERED)
def judged(name: str) -> JudgedName:
    """Judge a name."""
    return JudgedName(skeleton_of(name), oddities_of(name))


def skeleton_of(name: str) -> str:
    """Return a text that is equal for names that look alike, ignoring case and invisible characters.

    As TR 39 has it, 0 looks like O, 1 and l like I, and m like rn. Since case is ignored, so does i.
    """
    seen, disarm = IGNORABLE.sub("", name), _disarm()
    if disarm is None:
        skeleton = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())
    else:
        skeleton = disarm.skeleton_key(seen, digit_policy="tr39").replace("i", "l").replace("m", "rn")
    if len(skeleton) > LONGEST:
        return hashlib.blake2b(skeleton.encode(errors="replace")).hexdigest()
    return skeleton or name


def oddities_of(name: str) -> tuple[str, ...]:
    """Return INVISIBLE for a name with invisible characters, MIXED_SCRIPTS for scripts not written together.

    Without disarm, scripts are not compared.
    """
    if name.isascii() and name.isprintable():
        return ()
    oddities, disarm = [INVISIBLE] if _has_invisible(name) else [], _disarm()
    if disarm is not None and disarm.is_mixed_script(name):
        scripts = {str(script.value) for script in disarm.detect_scripts(name)}
        if not scripts <= WRITTEN_TOGETHER:
            oddities.append(MIXED_SCRIPTS)
    return tuple(oddities)


def _has_invisible(name: str) -> bool:
    rest = OF_EMOJI.sub("", name)
    for before, joiner in pairwise(rest):  # after a virama, a joiner shapes a conjunct, as Indic scripts need it
        if joiner in "\u200c\u200d" and unicodedata.combining(before) == VIRAMA:
            rest = rest.replace(before + joiner, before)
    if IGNORABLE.search(rest) or any(unicodedata.category(character) in ("Cc", "Cf") for character in rest):
        return True
    return not rest.replace(BRAILLE_BLANK, "").strip()


@cache
def _disarm() -> ModuleType | None:
    return import_module("disarm") if find_spec("disarm") is not None else None
