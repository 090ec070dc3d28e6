"""A file is replaced when all of it is written, and stays as it was otherwise."""

import os
import stat

import pytest

from evenmatch.errors import UsageError
from evenmatch.whole_file import remove_drafts, whole_file


def test_a_file_is_replaced_when_the_block_ends(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("before")
    with whole_file(path) as draft:
        draft.write_text("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_stays_as_it_was_when_the_block_raises(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), whole_file(path) as draft:
        draft.write_text(f"half {1 / 0}")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_file_has_the_permissions_of_a_new_one(tmp_path, mask):
    path = tmp_path / "ratings.csv"
    before = os.umask(mask)
    try:
        with whole_file(path) as draft:
            draft.write_text("all")
        (tmp_path / "plain").write_text("all")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode) == 0o666 & ~mask


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"), whole_file(tmp_path / "a/b"):
        pass


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(UsageError, match="cannot be written: Is a directory"), whole_file(tmp_path / "taken") as draft:
        draft.write_text("all")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_drafts_of_processes_that_were_killed_are_removed_and_nothing_else(tmp_path):
    folder = tmp_path / "ladder=duel"
    folder.mkdir()
    others = [folder / ".hidden", folder / "1.parquet", folder / ".profile.d", folder / "a.b.12345678"]
    for path in others:
        path.write_text("theirs")
    with whole_file(folder / "1.parquet") as draft:
        draft.write_text("half")
        remove_drafts(tmp_path)
        assert not draft.exists()
        draft.write_text("whole")
    assert sorted(folder.iterdir()) == sorted(others)
