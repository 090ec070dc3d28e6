"""The appearance of names: skeletons by Unicode TR 39, and properties by which a name passes as another one."""

from __future__ import annotations

import unicodedata

import disarm

ZERO_WIDTH_JOINER = "\u200d"  # part of many emoji; elsewhere disarm reports it
HIDDEN = {"invisible", "bidi", "smuggled", "control"}  # kinds of anomalies of unseen characters
WRITTEN_TOGETHER = {"Latin", "Han", "Hiragana", "Katakana", "Hangul", "Bopomofo"}  # UTS 39: highly restrictive
LOOK_ALIKE, INVISIBLE, MIXED_SCRIPTS = "look-alike", "invisible", "mixed-scripts"


def skeleton_of(name: str) -> str:
    """A text that is equal for names that look alike, whatever their case. Not for display.

    As TR 39 has it, 0 and O, and 1, l and I are alike, and m is like rn.
    """
    return disarm.skeleton_key(name, digit_policy="tr39").replace("m", "rn") or name


def oddities_of(name: str) -> list[str]:
    """INVISIBLE for control, zero-width and other unseen characters, MIXED_SCRIPTS for scripts not written together."""
    if name.isascii() and name.isprintable():
        return []
    hidden = {character for character in name if unicodedata.category(character) in ("Cc", "Cf")}
    oddities = []
    if hidden - {ZERO_WIDTH_JOINER} or not HIDDEN.isdisjoint(disarm.inspect_anomalies(name).kinds):
        oddities.append(INVISIBLE)
    scripts = {str(script.value) for script in disarm.detect_scripts(name)}
    if disarm.is_mixed_script(name) and not scripts <= WRITTEN_TOGETHER:
        oddities.append(MIXED_SCRIPTS)
    return oddities
