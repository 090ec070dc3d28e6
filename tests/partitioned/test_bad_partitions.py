"""What is wrong with partitions is said with file and row, and nothing is left that could pass for a whole result."""

import resource
import signal
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenmatch import from_frame, rate, rules
from evenmatch.errors import BadRowsError, InputError, UsageError
from evenmatch.partitioned import rate_partitions
from evenmatch.partitioned.stream import Selection
from evenmatch.tables.partitions import find_partitions

ELO = rules("elo")
HOUR = 3_600_000_000


def duels(first, count, time=None, **columns):
    """Duels number `first` and on, an hour apart, as columns."""
    numbers = [number for number in range(first, first + count) for _ in range(2)]
    rows = {
        "match_id": [f"m{number}" for number in numbers],
        "played_at": [HOUR * number if time is None else time for number in numbers],
        "team": ["a", "b"] * count,
        "player": [name for number in range(first, first + count) for name in (f"p{number % 7}", f"q{number % 5}")],
        "place": [1, 2] * count,
    }
    rows = {**rows, **columns}
    table = pa.table({name: values for name, values in rows.items() if name != "played_at"})
    return table.append_column("played_at", pa.array(rows["played_at"], pa.timestamp("us", "UTC")))


def written(folder, *tables, row_group=4):
    folder.mkdir(exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=row_group)
    return str(folder)


def rated(address, tmp_path, **selection):
    return rate_partitions(
        find_partitions(address),
        ELO,
        out=str(tmp_path / "out"),
        journal=str(tmp_path / "journal"),
        selection=Selection(piece=8, **selection),
    )


def left_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def refused(address, tmp_path, error, *words, **selection):
    with pytest.raises(error) as raised:
        rated(address, tmp_path, **selection)
    for word in words:
        assert word in str(raised.value)
    assert left_in(tmp_path / "out") == left_in(tmp_path / "journal") == []


def changed(table, row, name, value):
    values = table[name].to_pylist()
    values[row] = value
    return table.set_column(table.column_names.index(name), name, pa.array(values, table[name].type))


def test_a_bad_row_is_named_with_its_file_and_row(tmp_path):
    bad = changed(duels(20, 20), 31, "place", -3)
    address = written(tmp_path / "in", duels(0, 20), bad, duels(40, 20))
    refused(
        address, tmp_path, BadRowsError, "1.parquet", "1.parquet, row 32, match 'm35'", "place is -3", "not checked"
    )


def test_partitions_skip_the_same_matches_as_one_file(tmp_path):
    tables = [duels(0, 20), changed(duels(20, 20), 31, "place", -3), changed(duels(40, 20), 0, "player", "")]
    address = written(tmp_path / "in", *tables)
    whole = rate(from_frame(pa.concat_tables(tables), skip_bad=True), ELO)
    result = rated(address, tmp_path, skip_bad=True)
    assert (result.matches, result.skipped_matches) == (58, 2)
    assert [str(problem).partition(";")[0] for problem in result.skipped] == [
        "1.parquet, row 32, match 'm35': place is -3",
        "2.parquet, row 1, match 'm40': player is empty",
    ]
    assert pq.read_table(tmp_path / "out" / "ratings.parquet").equals(whole.standings())


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.string_view()], ids=str)
def test_match_ids_may_be_a_category_or_a_view(tmp_path, kind):
    table = duels(0, 20)
    ids = table["match_id"].combine_chunks()
    cast = ids.dictionary_encode() if pa.types.is_dictionary(kind) else ids.cast(kind)
    rated(written(tmp_path / "in", table.set_column(0, "match_id", cast)), tmp_path)
    assert pq.read_table(tmp_path / "out" / "ratings.parquet").equals(rate(from_frame(table), ELO).standings())


def test_a_column_that_all_files_have_too_many_causes_one_warning(tmp_path):
    tables = [duels(10 * at, 10).append_column("foo", pa.array([1] * 20)) for at in range(3)]
    with pytest.warns(UserWarning, match="foo") as caught:
        rated(written(tmp_path / "in", *tables), tmp_path)
    assert len(caught) == 1


def test_matches_that_the_system_cannot_rate_are_named(tmp_path):
    three = pa.concat_tables(
        [duels(0, 10), duels(10, 1), changed(changed(duels(10, 1), 0, "team", "c"), 0, "player", "x")[:1]]
    )
    address = written(tmp_path / "in", three)
    by = rules("wager")
    with pytest.raises(BadRowsError) as raised:
        rate_partitions(find_partitions(address), by, out=str(tmp_path / "out"))
    assert "0.parquet, row 21, match 'm10': 3 teams" in str(raised.value)
    assert rate_partitions(find_partitions(address), by, selection=Selection(skip_bad=True)).matches == 10


def test_a_torn_file(tmp_path):
    address = written(tmp_path / "in", duels(0, 20), duels(20, 500))
    torn = tmp_path / "in" / "1.parquet"
    torn.write_bytes(torn.read_bytes()[:-100])
    refused(address, tmp_path, InputError, "1.parquet", "torn")


def test_a_file_that_is_torn_inside(tmp_path):
    address = written(tmp_path / "in", duels(0, 20), duels(20, 500), row_group=200)
    torn = tmp_path / "in" / "1.parquet"
    data = bytearray(torn.read_bytes())
    data[len(data) // 3 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
    torn.write_bytes(data)
    refused(address, tmp_path, InputError, "1.parquet")


def test_a_file_that_is_gone(tmp_path):
    address = written(tmp_path / "in", duels(0, 20), duels(20, 20))
    partitions = find_partitions(address)
    (tmp_path / "in" / "1.parquet").unlink()
    with pytest.raises(UsageError, match=r"1\.parquet: is missing"):
        rate_partitions(partitions, ELO, out=str(tmp_path / "out"))
    assert left_in(tmp_path / "out") == []


def test_a_file_that_is_no_parquet(tmp_path):
    address = written(tmp_path / "in", duels(0, 20))
    (tmp_path / "in" / "1.parquet").write_text("match_id,player\n")
    refused(address, tmp_path, InputError, "1.parquet", "not readable as Parquet")


def test_a_folder_with_other_files(tmp_path):
    address = written(tmp_path / "in", duels(0, 20))
    (tmp_path / "in" / "_SUCCESS").touch()
    assert len(find_partitions(address)) == 1
    (tmp_path / "in" / "notes.txt").touch()
    with pytest.raises(InputError, match=r"contains other files than Parquet: .*notes\.txt"):
        find_partitions(address)


def test_an_empty_folder_and_a_pattern_without_files(tmp_path):
    for address in (tmp_path, tmp_path / "*.parquet", tmp_path / "no" / "such"):
        with pytest.raises(UsageError, match="there are no files"):
            find_partitions(str(address))


def test_folders_of_ladders_beside_files_of_none(tmp_path):
    written(tmp_path / "in", duels(0, 20))
    written(tmp_path / "in" / "ladder=duel", duels(0, 20))
    with pytest.raises(InputError, match=r"0\.parquet is not in a folder ladder=NAME while others are"):
        find_partitions(str(tmp_path / "in"))


def test_a_row_of_another_ladder_than_its_folder(tmp_path):
    folder = tmp_path / "in" / "ladder=duel"
    folder.parent.mkdir()
    written(folder, duels(0, 20, ladder=["duel"] * 39 + ["team"]))
    refused(str(tmp_path / "in"), tmp_path, InputError, "has the ladder 'team', the folder is of 'duel'")


def test_a_missing_column(tmp_path):
    address = written(tmp_path / "in", duels(0, 20), duels(20, 20).drop_columns(["team"]))
    refused(address, tmp_path, InputError, "1.parquet lacks the column team")


def test_files_that_are_not_in_order_of_time(tmp_path):
    address = written(tmp_path / "in", duels(20, 20), duels(0, 20))
    refused(address, tmp_path, InputError, "1.parquet, row 1: played_at is 1970-01-01T00:00:00Z", "in time order")


def test_matches_that_are_not_in_order_of_time(tmp_path):
    address = written(tmp_path / "in", pa.concat_tables([duels(0, 2), duels(3, 1), duels(2, 1)]))
    refused(
        address, tmp_path, InputError, "0.parquet, row 7: played_at is 1970-01-01T02:00:00Z, the match before it has"
    )


@pytest.mark.parametrize("piece", [2, 8, 100])
def test_rows_of_a_match_that_are_not_adjacent(tmp_path, piece):
    rows = duels(0, 6, time=0).take([0, 2, 3, 1, 4, 5, 6, 7, 8, 9, 10, 11])
    address = written(tmp_path / "in", rows, row_group=2)
    with pytest.raises(InputError, match=r"0\.parquet") as raised:
        rate_partitions(find_partitions(address), ELO, selection=Selection(piece=piece))
    assert "row" in str(raised.value)


def test_a_match_id_that_is_used_again_much_later(tmp_path):
    again = duels(500, 100)
    again = changed(changed(again, 50, "match_id", "m3"), 51, "match_id", "m3")
    address = written(tmp_path / "in", duels(0, 500), again, row_group=100)
    refused(address, tmp_path, InputError, "1.parquet, row 51: match 'm3' is at", "0.parquet, row 7 already")


def test_a_match_that_goes_on_in_the_next_file(tmp_path):
    address = written(tmp_path / "in", pa.concat_tables([duels(0, 20), changed(duels(20, 1), 0, "player", "x")]),
                      changed(changed(duels(20, 1), 0, "team", "c"), 1, "team", "d"))  # fmt: skip
    refused(address, tmp_path, InputError, "1.parquet, row 1: match 'm20' is at", "0.parquet, row 41 already")


@contextmanager
def little_room(size):
    """No file may be longer than `size` bytes: the system refuses what is beyond, as a full disk does."""
    handler, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("size", [3_000, 100_000])
def test_a_full_disk_leaves_nothing_behind(tmp_path, size):
    address = written(tmp_path / "in", duels(0, 3000), duels(3000, 3000), row_group=1000)
    rated(address, tmp_path / "before")
    with little_room(size):
        refused(address, tmp_path, (UsageError, InputError), "cannot be written")
