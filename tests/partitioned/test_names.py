"""Numbers of players and repeated match ids, against plain Python."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from evenmatch.partitioned import names
from evenmatch.partitioned.names import MatchIds, Names, TextArrays, hashes_of

KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
TEXTS = ["a", "foobar", "7 bytes", "8 bytes!", "name of 16 bytes", "é" * 50, "x" * 300]


@pytest.mark.skipif(sys.hash_info.algorithm != "siphash13", reason="this Python hashes text by another algorithm")
def test_the_hash_is_the_one_of_python():
    code = f"print([hash(text.encode()) % 2**64 for text in {TEXTS!r}])"
    run = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True
    )  # a seed of 0 is a key of zeros
    assert hashes_of(TextArrays.of(pa.array(TEXTS)), (0, 0)).tolist() == json.loads(run.stdout)


def test_hashes_depend_on_the_key_which_differs_from_stream_to_stream():
    text = TextArrays.of(pa.array(TEXTS))
    assert not np.isin(hashes_of(text, KEY), hashes_of(text, KEY[::-1])).any()
    assert Names()._key != Names()._key


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
    monkeypatch.setattr(names, "hashes_of", lambda text, key: hashes_of(text, key) & np.uint64(0xFF))
    check_numbers()


def test_ids_that_are_used_again_are_found_in_any_chunk(tmp_path):
    ids = MatchIds(tmp_path)
    for start in range(0, 100_000, 20_000):
        ids.add(pa.array([f"m{number}" for number in range(start, start + 20_000)]))
    ids.add(pa.array(["m7", "m99999", "new"]))
    again = hashes_of(TextArrays.of(pa.array(["m7", "m99999"])), ids._key)
    assert sorted(ids.repeated().tolist()) == sorted(again.tolist())
