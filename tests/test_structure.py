"""The language of the source stays as it is: counts of `tools/structure.py` that may fall and not rise."""

import pytest

from structure import measure

LIMITS = {
    "class names in several modules": 4,
    "words: a docstring that begins with who or what": 31,
    "words: anew": 4,
    "words: likewise": 2,
    "words: so many, so much": 8,
    "words: somebody, nobody": 13,
    "words: whom, of which": 11,
    "words: is told, are told": 0,
    "words: accepted is, accepted are": 9,
    "identifier: one": 125,
    "identifier: at": 375,
    "identifier: found": 201,
    "identifier: told": 163,
    "identifier: so": 0,
    "identifier: mine": 0,
}


@pytest.fixture(scope="module")
def counts():
    return measure()


@pytest.mark.parametrize("name", LIMITS)
def test_no_count_rises(counts, name):
    assert counts[name] <= LIMITS[name]
