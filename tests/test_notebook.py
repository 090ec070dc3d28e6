"""The library as a notebook meets it: frames and names of systems, short texts for objects, a word about compiling."""

import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import numpy
import pandas
import polars
import pytest

import evenmatch
from elo_matches import duels_table
from evenmatch import Match, Rater, Team, backtest, explain, from_matches, progress, rate, read, rules
from evenmatch.errors import BadRowsError, UnknownNameError, UsageError
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.simulation import simulate
from evenmatch.matchmaking import presets, propose

PLAYED = datetime(2004, 7, 9, 18, tzinfo=UTC)


@pytest.fixture
def season_table(beside_docs):
    return read(beside_docs / "season.csv")


@pytest.fixture
def beside_docs(request):
    return request.config.rootpath / "docs" / "examples"


@pytest.mark.parametrize("library", [pandas, polars], ids=lambda library: library.__name__)
def test_a_frame_and_the_name_of_a_system_rate_as_a_table_and_rules_do(library, season_table, beside_docs):
    frame = library.read_csv(beside_docs / "season.csv")
    expected = rate(season_table, rules("wager")).standings(placement=0)
    assert rate(frame, "wager").standings(placement=0).equals(expected)
    story, same = explain(frame, "wager", "m17"), explain(season_table, rules("wager"), "m17")
    assert story.changes(0) == same.changes(0)
    assert Rater("wager").rating("anybody") == 1.0


def test_bad_rows_of_a_frame_are_left_out_where_that_is_asked_for(beside_docs):
    frame = pandas.read_csv(beside_docs / "season.csv", dtype={"seconds": str})
    frame.loc[frame.match_id == "m3", "seconds"] = "long"
    with pytest.raises(BadRowsError, match="long"):
        rate(frame, "wager")
    rated = rate(frame, "wager", skip_bad=True)
    assert len(rated.matches) == 23
    assert rated.matches.skipped_matches == 1


def test_backtest_takes_a_frame_and_one_name():
    names = "abcdefgh"
    listed = [
        Match(
            f"m{at}",
            PLAYED + timedelta(hours=at),
            (Team.of(names[at % 8], place=1), Team.of(names[(at * 3 + 1) % 8], place=2)),
        )
        for at in range(240)
        if at % 8 != (at * 3 + 1) % 8
    ]
    table = from_matches(listed)
    found = backtest(table.to_arrow(), "elo", workers=1)
    assert [one.system for one in found.chosen] == ["elo"]
    assert len(repr(found)) < 400
    assert "<td>elo</td>" in found._repr_html_()


WRONG = [
    (lambda: rate([1, 2], "elo"), "the matches are a list; expected a table from evenmatch.read, or a data frame"),
    (lambda: rate("season.csv", "elo"), "matches are a str; "),
    (lambda: rate(from_matches(duels(2)), 7), "the rules are a int; expected a system's name"),
    (lambda: Rater(None), "the rules are a NoneType"),
]


@pytest.mark.parametrize(("call", "said"), WRONG)
def test_anything_else_is_refused_with_what_is_accepted(call, said):
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        call()


def duels(count, *, ladder="default", names=("ann", "bob")):
    return [
        Match(
            f"{ladder}{at}",
            PLAYED + timedelta(days=at),
            tuple(Team.of(name, place=place) for place, name in enumerate(names, 1)),
            ladder,
        )
        for at in range(count)
    ]


def test_a_table_and_its_ratings_say_in_a_line_what_they_are():
    table = from_matches(duels(54))
    assert repr(table) == "54 matches, 2 players, 2004-07-09 to 2004-08-31"
    assert repr(table.take(slice(0, 1))) == "1 match, 2 players, 2004-07-09"
    assert repr(table.take(slice(0, 0))) == "0 matches"
    both = from_matches(duels(2) + duels(3, ladder="arena"))
    assert repr(both) == "5 matches, 4 players, 2 ladders, 2004-07-09 to 2004-07-11"
    assert repr(rate(table, "elo")) == f"ratings of 2 players by elo, after {table!r}"
    assert repr(Rater.after(rate(table, "elo"))) == "ladder 'default' of 2 players by elo"
    assert repr(evenmatch.read) != repr(table)


def test_a_notebook_shows_the_first_rows_and_escapes_what_strangers_wrote():
    hostile = "<script>alert(1)</script>"
    table = from_matches(duels(30, names=(hostile, "bob")))
    for shown in (table._repr_html_(), rate(table, "elo")._repr_html_()):
        assert len(shown) < 6000
        assert "<table>" in shown
        assert "&lt;script&gt;" in shown
        assert hostile not in shown
    assert table._repr_html_().count("<tr>") == 9  # a head, and the rows of the first matches
    assert "… and" in table._repr_html_()


def test_a_path_tells_time_result_and_rating_of_each_match_of_a_player():
    matches = [*duels(2), *duels(1, ladder="arena", names=("bob", "ann"))]
    told = rate(from_matches(matches), "elo").path("ann").to_pylist()
    assert sorted((row["match_id"], row["ladder"], row["result"]) for row in told) == [
        ("arena0", "arena", 0.0),
        ("default0", "default", 1.0),
        ("default1", "default", 1.0),
    ]
    assert [row["played_at"] for row in told] == [PLAYED, PLAYED, PLAYED + timedelta(days=1)]
    # Elo with K = 32: +16 against an equal; then 1516 against 1484, whose expected score is 1 / (1 + 10^(-32/400))
    assert [row["before"] for row in told] == [1500, 1500, 1516]
    assert told[2]["expected"] == pytest.approx(1 / (1 + 10 ** (-32 / 400)))
    assert told[2]["after"] == pytest.approx(1516 + 32 * (1 - told[2]["expected"]))
    with pytest.raises(UnknownNameError, match="did you mean 'ann'"):
        rate(from_matches(matches), "elo").path("anne")


def test_odds_are_asked_of_ratings_by_name_and_time():
    ratings = rate(from_matches(duels(1)), "elo")
    told = ratings.odds(["ann"], ["bob"])
    assert told.expected[0] == pytest.approx(1 / (1 + 10 ** (-32 / 400)))  # 1516 against 1484
    assert ratings.odds(["bob"], ["ann"]).win[0][1] == pytest.approx(told.win[1][0])
    with pytest.raises(UnknownNameError, match="'zoe'"):
        ratings.odds(["ann"], ["zoe"])
    two = rate(from_matches(duels(1) + duels(1, ladder="arena")), "elo")
    with pytest.raises(UsageError, match="ladder= one of default, arena"):
        two.odds(["ann"], ["bob"])
    assert two.odds(["ann"], ["bob"], ladder="arena").expected == told.expected


def test_odds_far_in_the_future_are_less_certain_than_now_whatever_kind_of_time_says_so():
    ratings = rate(from_matches(duels(12)), "glicko2")
    later = PLAYED + timedelta(days=4000)
    now, then = ratings.odds(["ann"], ["bob"]), ratings.odds(["ann"], ["bob"], at=later)
    assert 0.5 < then.expected[0] < now.expected[0]
    assert ratings.odds(["ann"], ["bob"], at=numpy.datetime64(later.replace(tzinfo=None))) == then
    assert ratings.odds(["ann"], ["bob"], at=pandas.Timestamp(later).tz_convert("Asia/Tokyo")) == then
    with pytest.raises(UsageError, match="the time is 17; expected a datetime"):
        ratings.odds(["ann"], ["bob"], at=17)


def test_standings_are_written_as_parquet_with_times_in_utc(tmp_path):
    ratings = rate(from_matches(duels(3)), "elo")
    ratings.to_parquet(tmp_path / "ratings.parquet")
    read_back = pandas.read_parquet(tmp_path / "ratings.parquet")
    assert read_back.player.tolist() == ["ann", "bob"]
    assert read_back.last_played.tolist() == [pandas.Timestamp(PLAYED + timedelta(days=2))] * 2
    with pytest.raises(UsageError, match=r"ends in \.parquet"):
        ratings.to_parquet(tmp_path / "ratings.csv")


def band_of(figure):
    """The lower and the upper end of the only band of a figure."""
    return [numpy.array(trace.y) for trace in figure.data if trace.line.width == 0]


def test_ratings_are_plotted_over_time_with_intervals_where_the_system_has_them():
    figure = rate(from_matches(duels(5)), "elo").plot("ann")
    assert [trace.name for trace in figure.data] == ["ann"]
    assert figure.data[0].y[0] == 1516
    last = pandas.Timestamp(figure.data[0].x[-1], unit="ms", tz="UTC")
    assert last == PLAYED + timedelta(days=4)

    ratings = rate(from_matches(duels(5)), "glicko2", journal=True)
    low, high = band_of(ratings.plot("ann"))
    row = next(row for row in ratings.standings().to_pylist() if row["player"] == "ann")
    assert high[-1] - row["rating"] == pytest.approx(1.96 * row["deviation"])
    assert row["rating"] - low[-1] == pytest.approx(1.96 * row["deviation"])
    assert (numpy.diff(high - low) < 0).all()

    ratings = rate(from_matches(duels(5)), "trueskill", journal=True)
    low, high = band_of(ratings.plot("bob"))
    row = next(row for row in ratings.standings().to_pylist() if row["player"] == "bob")
    assert (low[-1] + high[-1]) / 2 == pytest.approx(row["mean"])  # and not the rating, three deviations below it
    assert len(ratings.plot().data) == 2 * 3


def test_a_distribution_counts_every_player():
    both = from_matches(duels(5) + duels(4, names=("zoe", "kim"), ladder="arena"))
    assert sum(rate(both, "elo").plot_distribution().data[0].y) == 4


def test_a_backtest_and_a_queue_are_plotted():
    found = backtest(duels_table(1, 1200, k=60.0, spread=100), ["elo", "glicko2"], workers=1)
    drawn = {trace.name: trace.x[0] for trace in found.plot().data}
    assert drawn == {f"{row['system']}, {row['variant']}": row["log_loss"] for row in found.scores.to_pylist()}
    policy = replace(presets()["balanced"], team_size=1)
    busy, quiet = (
        simulate(Scenario(arrivals=arrivals, minutes=1), propose, policy, name=name)
        for arrivals, name in ((5.0, "busy"), (0.5, "quiet"))
    )
    assert [trace.name for trace in busy.plot(quiet).data] == ["busy", "quiet"]
    assert max(busy.plot().data[0].x) == busy.waits[busy.matched].max()


class Terminal(StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_step_its_share_and_the_time_left_on_one_line(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "_state", {"silent": False, "width": 0})
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with progress.shown_progress() as report:
        report("tuning elo", 0.0)
        assert screen.getvalue() == ""  # nothing for a call that ends within a second
        for now[0], share in ((5.0, 0.25), (5.1, 0.26), (10.0, 0.5)):
            report("tuning elo", share)
        progress.say("compiling")
    steps = [line.strip() for line in screen.getvalue().split("\r") if line.strip()]
    assert steps == [
        "evenmatch: tuning elo (25%, about 15 s left)",
        "evenmatch: tuning elo (50%, about 10 s left)",
        "compiling",
    ]


def test_a_pipe_and_a_command_are_shown_no_progress(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    table = duels_table(1, 400)
    backtest(table, "elo", workers=1)  # compiles what is missing
    for screen, silent in ((StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(progress, "_state", {"silent": silent, "width": 0})
        monkeypatch.setattr(sys, "stderr", screen)
        backtest(table, "elo", workers=1)
        rate(table, "elo")
        assert screen.getvalue() == ""


TUNED = """
import evenmatch, elo_matches
found = evenmatch.backtest(elo_matches.duels_table(1, 600, k=40.0), "elo", tune=1)
print([variant for _, variant, _ in found.chosen])
"""


def test_tuning_lets_no_warning_of_a_library_escape():
    path = os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(Path(__file__).parent)))
    backtest(duels_table(1, 400), "elo", workers=1)  # compiles what is missing
    run = [sys.executable, "-c", TUNED]
    told = subprocess.run(run, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path})
    assert (told.stdout, told.stderr) == ("['tuned']\n", "")


PROGRAM = """
import evenmatch
matches = evenmatch.read({path!r})
for _ in range(2):
    evenmatch.rate(matches, "planeswalker")
print("rated")
"""


@pytest.mark.slow
def test_the_first_rate_of_an_installation_says_that_it_compiles_and_later_ones_are_silent(beside_docs, tmp_path):
    program = PROGRAM.format(path=str(beside_docs / "season.csv"))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    told = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
        for _ in range(2)
    ]
    assert [one.stdout for one in told] == ["rated\n", "rated\n"]
    assert told[0].stderr == "evenmatch: compiling planeswalker, once per installation\n"
    assert told[1].stderr == ""
