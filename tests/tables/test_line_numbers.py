"""The line in a message is the line in the file, whatever stands before it."""

import json

import pytest

from evenmatch import read
from evenmatch.errors import BadRowsError
from tables.tidy_rows import table_values

HEAD = "match_id,played_at,team,player,place\n"
GOOD = "m1,2026-01-01,a,ann,1\nm1,2026-01-01,b,bob,2\n"
TIME = "m2,2026-01-02"


def problems_of(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadRowsError) as caught:
        read(path)
    return [(problem.line, problem.match_id) for problem in caught.value.problems]


# What stands before the bad row, the text, and its line as `grep -n` counts it
CSV_LINES = [
    ("nothing", HEAD + f"{TIME},a,ann,0\n{TIME},b,bob,2\n", 2),
    ("rows", HEAD + GOOD + f"{TIME},a,ann,0\n{TIME},b,bob,2\n", 4),
    ("blank lines", HEAD + "\n" + GOOD + "\n\n" + f"{TIME},a,ann,0\n\n{TIME},b,bob,2\n", 7),
    ("a quoted line end", HEAD + GOOD.replace("ann", '"an\nn"') + f"{TIME},a,ann,0\n{TIME},b,bob,2\n", 5),
    ("a quoted blank line", HEAD + GOOD.replace("ann", '"an\n\nn"') + f"{TIME},a,ann,0\n{TIME},b,bob,2\n", 6),
    ("its own quoted line end", HEAD + GOOD + f'{TIME},a,"an\nn",0\n{TIME},b,bob,2\n', 4),
    ("a quoted comma and quote", HEAD + GOOD.replace("ann", '"a,""n"""') + f"{TIME},a,ann,0\n{TIME},b,bob,2\n", 4),
    ("a quote inside a cell", HEAD + GOOD.replace("ann", 'a"n') + f"{TIME},a,ann,0\n{TIME},b,bob,2\n", 4),
    ("blank lines above the first line", "\n\n" + HEAD + GOOD + f"{TIME},a,ann,0\n{TIME},b,bob,2\n", 6),
    ("no line end at the end", HEAD + GOOD + f"{TIME},b,bob,2\n{TIME},a,ann,0", 5),
    ("a very long name", HEAD + GOOD.replace("ann", "n" * 200_000) + f"{TIME},a,ann,0\n{TIME},b,bob,2\n", 4),
]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["no mark", "byte order mark"])
@pytest.mark.parametrize(("text", "line"), [case[1:] for case in CSV_LINES], ids=[case[0] for case in CSV_LINES])
def test_a_line_of_csv_is_counted_past(text, line, mark, end, tmp_path):
    assert problems_of(tmp_path / "x.csv", mark + text.replace("\n", end).encode()) == [(line, "m2")]


def test_lines_are_right_in_a_file_of_many_blocks(tmp_path):
    rows = "".join(f"g{n},2026-01-01,a,{'x' * 120}{n},1\n\ng{n},2026-01-01,b,bob,2\n" for n in range(20_000))
    text = HEAD + rows + f"{TIME},a,ann,0\n{TIME},b,bob,2\n"
    assert len(text) > 3 << 20
    assert problems_of(tmp_path / "x.csv", text) == [(60_002, "m2")]


# What stands before the line with a cell too few, and its line
CSV_WIDTHS = [
    ("nothing", HEAD + f"{TIME},a,ann\n{TIME},b,bob,2\n{TIME},c,cat,1\n" + GOOD, 2),
    ("rows", HEAD + GOOD + f"{TIME},b,bob,2\n{TIME},c,cat,1\n{TIME},a,ann\n", 6),
    ("blank lines", HEAD + "\n\n" + GOOD + f"{TIME},b,bob,2\n{TIME},c,cat,1\n{TIME},a,ann\n", 8),
    ("a quoted line end", HEAD + GOOD.replace("ann", '"an\nn"') + f"{TIME},b,bob,2\n{TIME},c,cat,1\n{TIME},a,ann\n", 7),
    ("another such line", HEAD + GOOD + f"{TIME},b,bob,2\n{TIME},c,cat,1\n{TIME},a,ann,3,4\n", 6),
]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(("text", "line"), [case[1:] for case in CSV_WIDTHS], ids=[case[0] for case in CSV_WIDTHS])
def test_a_line_with_a_cell_too_few_or_too_many_is_a_bad_row_of_its_match(text, line, end, tmp_path):
    path = tmp_path / "x.csv"
    assert problems_of(path, text.replace("\n", end)) == [(line, "m2")]
    matches = read(path, skip_bad=True)
    assert matches.match_id.to_pylist() == ["m1"]
    assert matches.skipped_matches == 1


def test_bad_rows_after_lines_of_another_width_keep_their_lines(tmp_path):
    text = HEAD + "m0,2026-01-01,a\n" + GOOD + f"{TIME},a,ann,0\n{TIME},b,bob,2\nm3,2026-01-01\n"
    assert problems_of(tmp_path / "x.csv", text) == [(2, "m0"), (5, "m2"), (7, "m3")]


def lines_of_json(*rows):
    names = ("match_id", "played_at", "team", "player", "place")
    return [json.dumps(dict(zip(names, row, strict=True))) for row in rows]


A, B, BAD, BACK = lines_of_json(
    ("m1", "2026-01-01", "a", "ann", 1),
    ("m1", "2026-01-01", "b", "bob", 2),
    ("m2", "2026-01-02", "a", "ann", 0),
    ("m2", "2026-01-02", "b", "bob", 2),
)

JSON_LINES = [
    ("nothing", f"{BAD}\n{BACK}\n", 1),
    ("rows", f"{A}\n{B}\n{BAD}\n{BACK}\n", 3),
    ("blank lines", f"\n{A}\n\n \t\n{B}\n\n{BAD}\n{BACK}\n", 7),
    ("no line end at the end", f"{A}\n{B}\n{BACK}\n{BAD}", 4),
    ("an escaped line end", f"{A}\n{B}\n{BAD}\n{BACK}\n".replace("bob", "b\\nob"), 3),
    ("a name that is a number", f"{A}\n{B}\n{BAD}\n{BACK}\n".replace('"bob"', "7"), 3),
]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["no mark", "byte order mark"])
@pytest.mark.parametrize(("text", "line"), [case[1:] for case in JSON_LINES], ids=[case[0] for case in JSON_LINES])
def test_a_line_of_json_is_counted_past(text, line, mark, end, tmp_path):
    assert problems_of(tmp_path / "x.jsonl", mark + text.replace("\n", end).encode()) == [(line, "m2")]


@pytest.mark.parametrize(
    "broken",
    [
        "{",
        '{"match_id": "m2"',
        "m2,2026-01-02,a,ann,1",
        "[1, 2]",
        "7",
        "null",
        '"text"',
        '{"match_id": "m2", "player": ' + "[" * 100_000,
        '{"match_id": "m2", "player": ' + "9" * 5_000 + "}",
    ],
    ids=["a brace", "no end", "csv", "a list", "a number", "null", "a text", "too deep", "too many digits"],
)
def test_a_line_that_is_no_json_object_is_reported_and_can_be_skipped(broken, tmp_path):
    path = tmp_path / "x.jsonl"
    found = problems_of(path, f"{A}\n{B}\n{broken}\n")
    assert {line for line, _ in found} == {3}
    assert read(path, skip_bad=True).match_id.to_pylist() == ["m1"]


def test_a_json_text_that_no_file_can_hold_is_an_input_error(tmp_path):
    half = BAD.replace("ann", "\\ud800").replace("0}", "1}")  # half of a surrogate pair
    assert [line for line, _ in problems_of(tmp_path / "x.jsonl", f"{A}\n{B}\n{half}\n{BACK}\n")] == [3]


@pytest.mark.parametrize("first", [A, BAD], ids=["good", "bad"])
def test_two_objects_on_one_line_are_an_error_and_not_a_wrong_line(first, tmp_path):
    found = problems_of(tmp_path / "x.jsonl", f"{A}\n{B}\n{first}{B}\n{BAD}\n{BACK}\n")
    assert {line for line, _ in found} == {3, 4}


def test_an_object_spread_over_lines_does_not_shift_the_lines_after_it(tmp_path):
    spread = B.replace(", ", ",\n")
    found = problems_of(tmp_path / "x.jsonl", f"{A}\n{spread}\n{BAD}\n{BACK}\n")
    assert 7 in {line for line, _ in found}
    assert 3 not in {line for line, match_id in found if match_id == "m2"}


def test_json_lines_may_leave_out_what_was_not_recorded(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(A + "\n" + B[:-1] + ', "seconds": 5, "quit": true}\n')
    (match,) = table_values(read(path))
    assert match[4] == [
        ("a", 1, None, [("ann", None, None, None, None, False, True)]),
        ("b", 2, None, [("bob", None, 5.0, None, None, True, True)]),
    ]
