"""The hash and the tables under it, against other implementations and plain Python."""

import subprocess

import numpy as np
import pyarrow as pa
import pytest

from evenmatch.partitioned.names import MatchIds, Names, run_starts, siphash, text_of

KEY = bytes(range(16))
# from vectors.h of the authors' reference implementation (SipHash-2-4, 128 bits): input 00 01 02 … of this length
VECTORS = {0: "a3817f04ba25a8e66df67214c7550293", 1: "da87c1d86b99af44347659119b22fc45"}


def hashed(data):
    keys = np.frombuffer(KEY, np.uint64)
    found = siphash(np.frombuffer(data + b"\0", np.uint8), 0, len(data), keys[0], keys[1])
    return np.array(found, np.uint64).tobytes().hex()


@pytest.mark.parametrize("size", VECTORS)
def test_siphash_gives_the_published_values(size):
    assert hashed(bytes(range(size))) == VECTORS[size]


@pytest.mark.parametrize("size", [7, 8, 9, 15, 16, 17, 63, 300])
def test_siphash_is_that_of_openssl(size):
    data = bytes(number % 251 for number in range(size))
    command = ["openssl", "mac", "-macopt", f"hexkey:{KEY.hex()}", "-macopt", "size:16", "-in", "/dev/stdin", "SIPHASH"]
    told = subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode().strip().lower()
    assert hashed(data) == told


def test_names_are_numbered_in_order_of_first_appearance(tmp_path):
    rng = np.random.default_rng(1)
    names, expected, order = Names(tmp_path / "names"), {}, []
    for size in (0, 1, 5000, 20_000):
        texts = [f"player {number} é" for number in rng.integers(30_000, size=size)]
        ladder = rng.integers(2, size=size).astype(np.int32)
        for key in zip(texts, ladder.tolist(), strict=True):
            if key not in expected:
                expected[key] = len(expected)
                order.append(key)
        array, text = text_of(pa.array(texts, pa.string()))
        if size > 1:
            found = names.number(array, text, ladder)
            assert found.tolist() == [expected[key] for key in zip(texts, ladder.tolist(), strict=True)]
        elif size:
            names.number(array, text, ladder)
    assert list(zip(names.read().to_pylist(), names.ladder.tolist(), strict=True)) == order


def test_runs_of_equal_texts():
    texts = ["a", "a", "b", "a", "", "", "ab", "bb", "bb"]
    _, text = text_of(pa.chunked_array([texts[:4], texts[4:]]))
    out = np.empty(len(texts), np.int64)
    assert out[: run_starts(text, out)].tolist() == [0, 2, 3, 4, 6, 7]


def test_ids_that_are_used_again_are_found_in_any_chunk(tmp_path):
    names = Names(tmp_path / "names")
    ids = MatchIds(tmp_path / "ids", names)
    for start in range(0, 100_000, 20_000):
        ids.add(pa.array([f"m{number}" for number in range(start, start + 20_000)]))
    ids.add(pa.array(["m7", "m99999", "new", "m7"]))
    assert len(ids.repeated()) == 2
