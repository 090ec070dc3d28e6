"""The appearance of names: Unicode TR 39 skeletons, and properties that let a name be mistaken for another."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

import disarm

BRAILLE_BLANK = "\u2800"  # a pattern without dots: a letter to Unicode, a space to the eye
ZERO_WIDTH_JOINER = "\u200d"  # part of many emoji; elsewhere disarm reports it
HIDDEN = {"invisible", "bidi", "smuggled", "control"}  # kinds of anomalies that are invisible characters
# Default_Ignorable_Code_Point of Unicode 16, including unassigned ones: nothing is displayed for them.
IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
PIECES = re.compile(r"(?s).{1,16}(?:(?<=\u200d).|(?=\u200d).)*")
LONGEST_PIECE = 40  # characters
LONGEST = 512  # characters of a skeleton; the hash of a longer one takes its place
REMEMBERED = 16_000_000  # characters of names and skeletons
WRITTEN_TOGETHER = {"Latin", "Han", "Hiragana", "Katakana", "Hangul", "Bopomofo"}  # UTS 39: highly restrictive
LOOK_ALIKE, INVISIBLE, MIXED_SCRIPTS = "look-alike", "invisible", "mixed-scripts"


class JudgedName(NamedTuple):
    """The skeleton of a name, and its oddities (INVISIBLE, MIXED_SCRIPTS)."""

    skeleton: str
    oddities: tuple[str, ...]


class _JudgedNames:
    """Cached judgements of names that are not ASCII; emptied when it takes too much memory."""

    def __init__(self) -> None:
        self._names: dict[str, JudgedName] = {}
        self._characters = 0

    def find(self, name: str) -> JudgedName:
        """Return the cached judgement of a name, or judge it now."""
        known = self._names.get(name)
        if known is None:
            known = JudgedName(skeleton_of(name), oddities_of(name))
            if self._characters > REMEMBERED:
                self._names, self._characters = {}, 0
            self._names[name] = known
            self._characters += len(name) + len(known.skeleton)
        return known


_JUDGED = _JudgedNames()


def judged(name: str) -> JudgedName:
    """Judge a name; the result is cached if judging takes long."""
    return JudgedName(skeleton_of(name), ()) if _is_plain(name) else _JUDGED.find(name)


def judge(names: Iterable[str]) -> None:
    """Judge names before a transaction, where others would wait: a name with many emoji takes a millisecond."""
    listed = list(names)
    if "".join(listed).isascii():  # of nearly all batches
        return
    for name in listed:
        if not name.isascii():
            _JUDGED.find(name)


def skeleton_of(name: str) -> str:
    """A text that is equal for names that look alike, whatever their case. Not for display.

    As in TR 39, 0 looks like O; 1, l and I look alike; m looks like rn; ignorable characters do not count. In addition,
    i looks like its capital, I.
    """
    seen = name if name.isascii() else IGNORABLE.sub("", name)
    skeleton = disarm.skeleton_key(seen, digit_policy="tr39").replace("i", "l").replace("m", "rn") or name
    return skeleton if len(skeleton) <= LONGEST else hashlib.blake2b(skeleton.encode(errors="replace")).hexdigest()


def oddities_of(name: str) -> tuple[str, ...]:
    """INVISIBLE for control, zero-width and other invisible characters, MIXED_SCRIPTS for unusual mixes of scripts."""
    if _is_plain(name):
        return ()
    oddities = [INVISIBLE] if _has_unseen(name) else []
    scripts = {str(script.value) for script in disarm.detect_scripts(name)}
    if disarm.is_mixed_script(name) and not scripts <= WRITTEN_TOGETHER:
        oddities.append(MIXED_SCRIPTS)
    return tuple(oddities)


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isprintable()


def _has_unseen(name: str) -> bool:
    """Whether a name has invisible characters, or joins characters other than emoji with ZERO_WIDTH_JOINER."""
    categories = {character: unicodedata.category(character) for character in name}
    if any(category in ("Cc", "Cf") and character != ZERO_WIDTH_JOINER for character, category in categories.items()):
        return True
    if any(category == "Cn" and IGNORABLE.match(character) for character, category in categories.items()):
        return True
    if not IGNORABLE.sub("", name).replace(BRAILLE_BLANK, "").strip():
        return True
    # disarm takes quadratic time, so names are cut into pieces where no joiner connects two characters.
    pieces = PIECES.findall(name)
    if max(map(len, pieces), default=0) > LONGEST_PIECE:  # no emoji has as many parts
        return True
    return any(not HIDDEN.isdisjoint(disarm.inspect_anomalies(piece).kinds) for piece in dict.fromkeys(pieces))
