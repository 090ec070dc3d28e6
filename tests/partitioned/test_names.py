"""Numbers of players and repeated match ids, against plain Python."""

import numpy as np
import pyarrow as pa

from evenmatch.partitioned import names
from evenmatch.partitioned.names import MatchIds, Names, TextArrays, hashes_of

# FNV-1a of 64 bits; http://www.isthe.com/chongo/tech/comp/fnv/ gives this value for "foobar"
FNV_FOOBAR = 0x85944171F73967E8


def mixed(value):
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = ((value ^ (value >> 33)) * factor) % 2**64
    return value ^ (value >> 33)


def test_the_hash_is_the_published_one():
    assert hashes_of(TextArrays.of(pa.array(["foobar"]))).tolist() == [mixed(FNV_FOOBAR)]


def check_numbers():
    """Number 25,001 names in several chunks and on two ladders as a dict does."""
    rng = np.random.default_rng(1)
    found, expected, order = Names(), {}, []
    for size in (1, 5000, 20_000):
        texts = [f"player {number} é" for number in rng.integers(30_000, size=size)]
        ladder = rng.integers(2, size=size).astype(np.int32)
        keys = list(zip(texts, ladder.tolist(), strict=True))
        order += [key for key in dict.fromkeys(keys) if key not in expected]
        for key in keys:
            expected.setdefault(key, len(expected))
        number = found.number(pa.array(["left out", *texts], pa.large_string())[1:], ladder)
        assert number.tolist() == [expected[key] for key in keys]
    assert list(zip(found.texts().to_pylist(), found.ladder.tolist(), strict=True)) == order


def test_names_are_numbered_in_order_of_first_appearance():
    check_numbers()


def test_names_with_equal_hashes_have_numbers_of_their_own(monkeypatch):
    monkeypatch.setattr(names, "hashes_of", lambda text: hashes_of(text) & np.uint64(0xFF))
    check_numbers()


def test_ids_that_are_used_again_are_found_in_any_chunk(tmp_path):
    ids = MatchIds(tmp_path)
    for start in range(0, 100_000, 20_000):
        ids.add(pa.array([f"m{number}" for number in range(start, start + 20_000)]))
    ids.add(pa.array(["m7", "m99999", "new"]))
    again = hashes_of(TextArrays.of(pa.array(["m7", "m99999"])))
    assert sorted(ids.repeated().tolist()) == sorted(again.tolist())
