"""Times that are none: commands say what the value looks like, and --time-format reads numbers in another format."""

import json

import pyarrow.parquet as pq
import pytest

from evenmatch import read

# Two matches whose times a spreadsheet wrote: 46347.84375 is 2026-11-21 20:15:00, 46348.5 is 2026-11-22 12:00:00
SHEET = """\
match_id,played_at,team,player,place
1,46347.84375,0,a,1
1,46347.84375,1,b,2
2,46348.5,0,a,2
2,46348.5,1,b,1
"""
TIMES = ["2026-11-21T20:15:00Z", "2026-11-22T12:00:00Z"]
SAID = (
    "line 2, match '1': played_at is 46347.84375, which looks like a spreadsheet date (2026-11-21T20:15:00Z); "
    "expected a timestamp or ISO 8601 text such as 2026-11-21T18:30:00Z, in the years 1800 to 2099, or epoch seconds "
    "from March 1973 on; --time-format spreadsheet reads it"
)
COMMANDS = [
    "rate sheet.csv -s elo",
    "rate sheet.csv -s elo --skip-bad",
    "explain sheet.csv -s elo -m 1",
    "odds sheet.csv -s elo -t a|vs|b",
    "backtest sheet.csv -s elo",
    "learned sheet.csv",
    "import sheet.csv",
]


@pytest.fixture
def sheet(league, tmp_path, clock_after):
    (tmp_path / "sheet.csv").write_text(SHEET)


@pytest.fixture
def clock_after(monkeypatch):
    """A clock that says 2026-11-23, so that the matches of the sheet are over."""
    monkeypatch.setattr("evenmatch.operations.clock.DatabaseClock.__call__", lambda _: 1795392000_000000)


@pytest.mark.parametrize("line", COMMANDS)
def test_spreadsheet_dates_are_refused_once_for_each_match_and_the_option_that_reads_them_is_named(line, run, sheet):
    ended = run(*(word.replace("|", " ") for word in line.split()))
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: sheet.csv: 2 problems; nothing was ")
    assert [text.strip() for text in ended.err.splitlines() if "played_at" in text] == [
        SAID,
        SAID.replace("line 2, match '1'", "line 4, match '2'")
        .replace("46347.84375", "46348.5")
        .replace("2026-11-21T20:15:00Z", "2026-11-22T12:00:00Z"),
    ]


def test_record_refuses_them_and_records_the_other_matches(run, sheet, tmp_path):
    (tmp_path / "sheet.csv").write_text(SHEET.replace("46348.5", "2026-11-22T12:00:00Z"))
    ended = run("record", "sheet.csv", "--json")
    assert ended.code == 1
    told = json.loads(ended.out)
    assert [receipt["match_id"] for receipt in told["receipts"]] == ["2"]
    assert told["refused"] == [{"match_id": "1", "reason": SAID}]


@pytest.mark.parametrize("command", ["import", "record"])
def test_the_named_option_reads_them_into_a_ladder(command, run, sheet):
    assert run(command, "sheet.csv", "--time-format", "spreadsheet").code == 0
    told = [json.loads(run("explain", "-m", match, "--json").out)["played_at"] for match in "12"]
    assert told == TIMES


@pytest.mark.parametrize("line", COMMANDS[:4])
def test_the_named_option_reads_them_from_a_file(line, run, sheet):
    ended = run(*(word.replace("|", " ") for word in line.split()), "--time-format", "spreadsheet")
    assert ended.code == 0, ended.err


def test_the_named_option_reads_them_from_a_folder_of_partitions(run, sheet, tmp_path):
    (tmp_path / "folder").mkdir()
    rows = read("sheet.csv", time_format="spreadsheet").to_arrow()
    days = [day for day in (46347.84375, 46348.5) for _ in "ab"]
    index = rows.column_names.index("played_at")
    pq.write_table(rows.set_column(index, "played_at", [days]), tmp_path / "folder" / "1.parquet")
    refused = run("rate", "folder", "-s", "elo")
    assert (refused.code, refused.out) == (1, "")
    assert "which looks like a spreadsheet date (2026-11-21T20:15:00Z)" in refused.err
    parts = run("rate", "folder", "-s", "elo", "--time-format", "spreadsheet")
    assert (parts.code, parts.out) == (0, run("rate", "sheet.csv", "-s", "elo", "--time-format", "spreadsheet").out)


def test_an_unknown_time_format_ends_with_2(run, sheet):
    for command in ("rate sheet.csv -s elo", "import sheet.csv"):
        ended = run(*command.split(), "--time-format", "excel")
        assert (ended.code, ended.out) == (2, "")
        assert "unknown time format 'excel'; known: seconds, milliseconds, microseconds" in ended.err


# An option and what the message says that its value looks like
OPTIONS = [
    (
        "rate sheet.csv -s elo --time-format spreadsheet --as-of 46347.84375",
        "a spreadsheet date (2026-11-21T20:15:00Z)",
    ),
    ("odds sheet.csv -s elo -t a|vs|b --as-of 1795285800000", "epoch milliseconds (2026-11-21T18:30:00Z)"),
    ("standings --as-of 05/01/2026", "2026-01-05 with the day first, or 2026-05-01 with the month first"),
    ("ban a --since 46347", "a spreadsheet date (2026-11-21T00:00:00Z)"),
    ("ban a --since 0026-11-21", "a year of two digits"),
    ("ban a --since 2026", "the year 2026"),
    ("queue audit --since 21.11.26", "a date whose year has two digits"),
    ("queue audit --until 1795285800000000000", "epoch nanoseconds (2026-11-21T18:30:00Z)"),
    ("key create x --scope read --expires 202611211830", "the time 2026-11-21T18:30:00 without separators"),
]


@pytest.mark.parametrize(("line", "likeness"), OPTIONS, ids=[line for line, _ in OPTIONS])
def test_an_option_says_what_its_value_looks_like(line, likeness, run, sheet):
    words = [word.replace("|", " ") for word in line.split()]
    ended = run(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {words[-2]} {words[-1]}, which looks like {likeness}: expected ")


def test_options_take_dates_of_eight_digits_and_epoch_seconds(run, sheet):
    for day in ("20260106", "1767657600"):
        assert "players move" in run("ban", "a", "--since", day, "--preview").out
