"""Bytes that are not UTF-8: told by line, match and column, and left out like any bad row."""

import random

import pytest

from evenmatch import read
from evenmatch.errors import BadRowsError, InputError
from evenmatch.tables.reading import read_matches

HEAD = b"match_id,played_at,team,player,place,map\n"
LATIN = (  # as a spreadsheet writes it: every name with an accent is one byte
    HEAD
    + b"m1,2026-01-01,a,ann,1,x\nm1,2026-01-01,b,Zo\xeb,2,x\n"
    + b'm2,2026-01-02,a,"an\nn",1,x\nm2,2026-01-02,b,bob,2,x,\n'
    + b"m\xff3,2026-01-03,a,ann,1,x\nm\xff3,2026-01-03,b,bob,2,x\n"
    + b"m4,2026-01-04,b,bob,2,Caf\xe9\nm4,2026-01-04,a,ann,1,x\n"
)
FOUND = [
    (3, "m1", r"player is b'Zo\xeb', which is not UTF-8; expected a file in UTF-8"),
    (6, "m2", "7 columns; expected 6, as in the first line"),
    (7, "m\N{REPLACEMENT CHARACTER}3", r"match_id is b'm\xff3', which is not UTF-8; expected a file in UTF-8"),
    (8, "m\N{REPLACEMENT CHARACTER}3", r"match_id is b'm\xff3', which is not UTF-8; expected a file in UTF-8"),
]
pytestmark = pytest.mark.filterwarnings("ignore:.*unknown column 'map'")


def test_bytes_that_are_no_text_are_bad_rows_of_their_match(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(LATIN)
    with pytest.raises(BadRowsError) as caught:
        read(path)
    assert [(problem.line, problem.match_id, problem.reason) for problem in caught.value.problems] == FOUND
    matches = read(path, skip_bad=True)
    assert matches.match_id.to_pylist() == ["m4"]
    assert matches.skipped_matches == 3


def test_bytes_that_are_no_text_do_no_harm_in_a_column_that_is_not_read(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(LATIN.splitlines(keepends=True)[0] + b"m4,2026-01-04,b,bob,2,Caf\xe9\nm4,2026-01-04,a,ann,1,x\n")
    assert read(path).match_id.to_pylist() == ["m4"]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_random_bytes_are_an_input_error_that_names_a_line(suffix, tmp_path):
    path = tmp_path / f"r.{suffix}"
    path.write_bytes(random.Random(3).randbytes(3000))
    with pytest.raises(InputError, match=r"line 1: .* is not "):
        read(path)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_first_line_in_another_encoding_is_reported(encoding, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("match_id,played_at,team,player,place,größe\nm,2026-01-01,a,ann,1,\n".encode(encoding))
    with pytest.raises(InputError, match=r"x\.csv: line 1: b'.* is not UTF-8; expected CSV in UTF-8"):
        read(path)


def test_json_lines_that_are_not_utf_8_are_reported_by_line(tmp_path):
    row = '{"match_id": "m%d", "played_at": "2026-01-01", "team": "%s", "player": "%s", "place": 1}\n'
    lines = [row % (1, "a", "ann"), row % (1, "b", "bob"), row % (2, "a", "Zoë"), row % (2, "b", "bob")]
    path = tmp_path / "x.jsonl"
    path.write_bytes("".join(lines).encode("latin-1"))
    with pytest.raises(BadRowsError) as caught:
        read(path)
    (problem,) = caught.value.problems
    assert (problem.line, problem.match_id) == (3, "m2")
    assert problem.reason.endswith("is not UTF-8; expected a file in UTF-8")
    assert read(path, skip_bad=True).match_id.to_pylist() == ["m1"]


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (b"\xef\xbb\xbf", "the pipe is empty"),
        (b" \n", "the pipe is empty"),
        (b"PAR1", "the pipe: not readable as Parquet, the format detected from its first line"),
        (b"a,b\n1,2\n", "the pipe lacks the columns match_id"),
        (b"match_id;played_at\n", "columns must be separated by commas"),
        (b"[1,2]\n", r"'\[1,2\]' is not a JSON object; expected one per line"),
        (b"hello\n", "'hello' is not a JSON object"),
        (b"{}\n", "the pipe lacks the columns match_id"),
    ],
)
def test_a_pipe_is_what_its_contents_say(held, said, tmp_path):
    path = tmp_path / "received"
    path.write_bytes(held)
    with pytest.raises(InputError, match=said):
        read_matches(path, "the pipe")


def test_a_file_of_nothing_but_broken_lines_names_them_and_no_columns(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('7\n{"match_id":"m1","pla')
    for skip_bad in (False, True):
        with pytest.raises(BadRowsError) as caught:
            read(path, skip_bad=skip_bad)
        assert [problem.line for problem in caught.value.problems] == [1, 2]
        assert caught.value.all_bad
