"""The library as a notebook meets it: frames and names of systems, short texts for objects, a word about compiling."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pandas
import polars
import pytest

import evenmatch
from evenmatch import Match, Rater, Team, backtest, explain, from_matches, rate, read, rules
from evenmatch.errors import BadRowsError, UsageError

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
