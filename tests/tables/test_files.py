"""Files that are not what they should be, and files that cannot be written."""

import random
import warnings

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq
import pytest

from evenmatch import from_frame, read, write
from evenmatch.errors import BadRowsError, EvenmatchError, EvenmatchWarning, InputError, RowProblem, UsageError
from tables.tidy_rows import FILES, WHOLE, csv_text, jsonl_text, table_values, write_file

HELD = {"csv": csv_text(WHOLE).encode(), "jsonl": jsonl_text(WHOLE).encode()}
CALLED = {"csv": "CSV", "jsonl": "JSON Lines", "parquet": "Parquet"}


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    path = write_file(WHOLE, tmp_path_factory.mktemp("held") / "x.parquet")
    return HELD | {"parquet": path.read_bytes()}


@pytest.mark.parametrize("suffix", FILES)
@pytest.mark.parametrize("contents", FILES)
def test_a_file_that_is_not_what_its_suffix_says_is_named_for_what_it_is(contents, suffix, held, tmp_path):
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(held[contents])
    if contents == suffix:
        assert len(read(path)) == 3
        return
    with pytest.raises(InputError, match=rf"suffix says {CALLED[suffix]}.*contents are {CALLED[contents]}"):
        read(path)


@pytest.mark.parametrize("suffix", FILES)
@pytest.mark.parametrize("contents", [b"", b"\n", b" \n\n \t\r\n"], ids=["no byte", "a line end", "white space"])
def test_an_empty_file_is_called_empty(contents, suffix, tmp_path):
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(contents)
    with pytest.raises(InputError, match="is empty"):
        read(path)


@pytest.mark.parametrize("name", ["x.txt", "x.csv.gz", "x", "x.xlsx", "x.json"])
def test_another_suffix_is_a_usage_error_that_lists_the_accepted(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(HELD["csv"])
    with pytest.raises(UsageError, match=r"\.csv, \.parquet, \.jsonl"):
        read(path)


@pytest.mark.parametrize("suffix", FILES)
def test_a_missing_file_and_a_folder_are_usage_errors(suffix, tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / f"x.{suffix}")
    (tmp_path / f"y.{suffix}").mkdir()
    with pytest.raises(UsageError, match="directory"):
        read(tmp_path / f"y.{suffix}")


@pytest.mark.parametrize("suffix", [".CSV", ".Parquet", ".ndjson", ".JSONL"])
def test_the_suffix_may_be_in_capitals_or_ndjson(suffix, held, tmp_path):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(held[{".ndjson": "jsonl"}.get(suffix, suffix.lower()[1:])])
    assert len(read(path)) == 3


@pytest.mark.parametrize("place", [8, 20, 60, -20, -60, -100])
def test_a_damaged_parquet_file_is_an_input_error(place, held, tmp_path):
    damaged = bytearray(held["parquet"])
    damaged[place : place + 8] = b"\xff" * 8
    path = tmp_path / "x.parquet"
    path.write_bytes(damaged)
    try:
        matches = read(path)
    except InputError:
        return
    assert table_values(matches) == table_values(from_frame(pa.table(WHOLE)))  # only a remark of the file was hit


@pytest.mark.parametrize("length", [4, 50, -1, -50])
def test_half_a_parquet_file_is_an_input_error(length, held, tmp_path):
    path = tmp_path / "x.parquet"
    path.write_bytes(held["parquet"][:length])
    with pytest.raises(InputError):
        read(path)


def test_a_wide_parquet_file_is_read_by_its_known_columns(tmp_path):
    wide = WHOLE | {f"extra{number}": [number] * 12 for number in range(200)}
    path = write_file(wide, tmp_path / "x.parquet")
    assert table_values(read(path)) == table_values(from_frame(pa.table(WHOLE)))


def test_a_folder_whose_name_looks_like_a_partition_adds_no_column(tmp_path):
    folder = tmp_path / "ladder=duels"
    folder.mkdir()
    assert read(write_file(WHOLE, folder / "x.parquet")).ladders == ("default",)


def problems_of(path, skip_bad):
    """The problems with a file; none where it could be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenmatchWarning)
        try:
            table_values(read(path, skip_bad=skip_bad))
        except BadRowsError as error:
            return error.problems
        except EvenmatchError as error:
            return [RowProblem(None, None, str(error))]
    return []


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_damaged_text_file_gives_an_error_of_ours_or_its_matches(suffix, tmp_path):
    rng = random.Random(7)
    path = tmp_path / f"x.{suffix}"
    text = HELD[suffix].decode().replace("ann", "an\\n" if suffix == "jsonl" else '"a,""n\n"')
    whole = errors = 0
    for _ in range(400):
        letters = list(text)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(letters))
            letters[at : at + rng.randint(0, 1)] = rng.choice(
                ['"', ",", "\n", "\r", "{", "}", "[", ":", "0", "x", " ", ""]
            )
        path.write_bytes("".join(letters).encode())
        lines = len(path.read_bytes().splitlines())
        for skip_bad in (False, True):
            found = problems_of(path, skip_bad)
            assert all(problem.line is None or 1 <= problem.line <= lines for problem in found)
            whole, errors = whole + (not found), errors + bool(found)
    assert whole > 50
    assert errors > 50


@pytest.mark.parametrize("suffix", FILES)
def test_a_failed_write_leaves_no_file_behind(suffix, tmp_path):
    matches = from_frame(pa.table(WHOLE))
    with pytest.raises(UsageError, match="cannot be written"):
        write(matches, tmp_path / "nowhere" / f"x.{suffix}")
    (tmp_path / f"x.{suffix}").mkdir()
    with pytest.raises(UsageError, match="cannot be written"):
        write(matches, tmp_path / f"x.{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == [f"x.{suffix}"]


ODD = {"name": ["a, b", 'c "d"'], "share": [0.5, None], "games": [3, 4]}


@pytest.mark.parametrize("suffix", FILES)
@pytest.mark.parametrize("frame", [pa.table, pa.RecordBatch.from_pydict])
def test_any_data_frame_is_written(suffix, frame, tmp_path):
    path = tmp_path / f"x.{suffix}"
    write(frame(ODD), path)
    readers = {"csv": pa_csv.read_csv, "parquet": pq.read_table, "jsonl": pa_json.read_json}
    assert readers[suffix](path).to_pydict() == ODD


@pytest.mark.parametrize(("suffix", "column"), [("csv", [[1, 2]]), ("jsonl", [float("nan")]), ("jsonl", [b"x"])])
def test_a_column_that_a_format_cannot_hold_is_an_input_error_and_leaves_no_file(suffix, column, tmp_path):
    with pytest.raises(InputError, match=f"{suffix} cannot hold this table"):
        write(pa.table({"x": column}), tmp_path / f"x.{suffix}")
    assert not list(tmp_path.iterdir())


def test_an_object_that_is_no_table_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="cannot write a list; expected a table of matches or a data frame"):
        write([1, 2], tmp_path / "x.csv")


def test_parquet_holds_times_as_timestamps_and_text_forms_as_iso_8601(tmp_path):
    matches = from_frame(pa.table(WHOLE))
    write(matches, tmp_path / "x.parquet")
    assert pq.read_schema(tmp_path / "x.parquet").field("played_at").type == pa.timestamp("us", "UTC")
    write(matches, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines()[1].startswith("m1,2026-01-01T10:00:00Z,")
