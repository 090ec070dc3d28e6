"""Context columns: read from files and frames, kept through every change of a table, and known in odds."""

import json
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from evenmatch import backtest, from_frame, join, rate, read, write
from evenmatch.errors import BadRowsError, InputError, MissingColumnsError, UnknownNameError, UsageError
from evenmatch.tables.look import likely_columns
from evenmatch.tables.reading import RawFile
from evenmatch.tables.source import Source
from run_command import run_command

pytestmark = pytest.mark.filterwarnings("ignore:.* not read:evenmatch.errors.EvenmatchWarning")


def season(matches=60, **columns):
    """Duels of ann and bob; ann wins on dust and loses on nuke."""
    where = ["dust" if number % 2 else "nuke" for number in range(matches)]
    rows = {
        "match_id": [f"m{number}" for number in range(matches) for _ in "ab"],
        "played_at": [f"2026-01-{1 + number // 24:02}T{number % 24:02}:00" for number in range(matches) for _ in "ab"],
        "ladder": [f"mode {number % 3 // 2}" for number in range(matches) for _ in "ab"],
        "team": ["1", "2"] * matches,
        "player": ["ann", "bob"] * matches,
        "place": [place for name in where for place in ((1, 2) if name == "dust" else (2, 1))],
        "map": [name for name in where for _ in "ab"],
        "best_of": [3 + 2 * (number % 5 == 0) for number in range(matches) for _ in "ab"],
    }
    return pa.table(rows | columns)


def names(table):
    return {column.name: table.context_values(number).to_pylist() for number, column in enumerate(table.context)}


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_a_file_and_a_frame_give_the_same_context(tmp_path, suffix):
    table = from_frame(season(), context=["map", "best_of"])
    write(table, tmp_path / f"season.{suffix}")
    again = read(tmp_path / f"season.{suffix}", context=["map", "best_of"])
    assert names(again) == names(table)
    assert names(table)["map"][:2] == ["nuke", "dust"]
    assert names(table)["best_of"][:2] == ["5", "3"]
    assert again.to_arrow().equals(table.to_arrow())


def test_a_frame_with_a_row_per_match_has_context_too():
    rows = pa.table(
        {"w": ["ann", "bob"], "l": ["bob", "ann"], "date": ["2026-01-01", "2026-01-02"], "map": ["x", None]}
    )
    table = from_frame(rows, columns={"winner": "w", "loser": "l", "played_at": "date"}, context=["map"])
    assert names(table) == {"map": ["x", ""]}


@pytest.mark.parametrize("form", ["a row per match", "a row per player"])
def test_a_context_column_may_be_named_differently_in_the_file(tmp_path, form):
    wide = "Datum;Sieger;Verlierer;Name der Karte\n2026-01-01;ann;bob;Dorf\n2026-01-02;bob;ann;\n"
    long = (
        "id;Datum;Wer;Platz;Name der Karte\n1;2026-01-01;ann;1;Dorf\n1;2026-01-01;bob;2;Dorf\n"
        "2;2026-01-02;ann;2;\n2;2026-01-02;bob;1;\n"
    )
    path = tmp_path / "spiele.csv"
    path.write_text(wide if form == "a row per match" else long)
    columns = {"played_at": "Datum", "map": "Name der Karte"} | (
        {"winner": "Sieger", "loser": "Verlierer"}
        if form == "a row per match"
        else {"match_id": "id", "player": "Wer", "place": "Platz"}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert names(read(path, columns=columns, context=["map"])) == {"map": ["Dorf", ""]}
    with pytest.raises(InputError, match=r"has no column 'Karte'; it has .*'Name der Karte'"):
        read(path, columns=columns | {"map": "Karte"}, context=["map"])
    with pytest.raises(InputError, match=r"has no column 'mode'; it has .*'Name der Karte'"):
        read(path, columns=columns, context=["map", "mode"])
    with pytest.raises(UnknownNameError, match="unknown column 'map'"):
        read(path, columns=columns)
    frame = pa_csv.read_csv(path, parse_options=pa_csv.ParseOptions(delimiter=";"))
    assert names(from_frame(frame, columns=columns, context=["map"])) == {"map": ["Dorf", ""]}


def test_matches_keep_their_context_when_some_are_taken_and_when_ladders_are_pooled_and_joined():
    table = from_frame(season(), context=["map", "best_of"])
    chosen = np.arange(7, 40, 3)
    taken = table.take(chosen)
    assert names(taken) == {name: [values[at] for at in chosen] for name, values in names(table).items()}
    pooled = table.pooled().take(chosen)
    assert names(pooled)["ladder"] == [f"mode {number % 3 // 2}" for number in chosen]
    assert {name: values for name, values in names(pooled).items() if name != "ladder"} == names(taken)
    other = from_frame(season(match_id=[f"n{number}" for number in range(60) for _ in "ab"]), context=["map"])
    assert sorted(names(join(taken, other))["map"]) == sorted(names(taken)["map"] + names(other)["map"])


def test_a_player_has_one_record_for_each_value_of_each_column():
    table = from_frame(season(ladder=["one"] * 120), context=["map", "best_of"])
    c = table.history.columns
    player, offset = np.repeat(c.player, 2), c.offset
    value = c.context.reshape(-1, 2)[table.history.slot_match].ravel()
    assert len(set(zip(player, value, offset, strict=True))) == len(set(zip(player, value, strict=True))) == 8
    assert sorted(set(offset)) == list(range(8))


@pytest.mark.parametrize(
    ("context", "error", "told"),
    [
        (["mapp"], InputError, "no column 'mapp'; it has 'match_id'"),
        (["place"], UsageError, "'place' has a meaning of its own"),
        (["player"], UsageError, "'player' has a meaning of its own"),
        (["a", "b", "c", "d", "e"], UsageError, "5 context columns; expected at most 4"),
    ],
)
def test_a_column_that_cannot_be_context_is_refused(context, error, told):
    rows = season()
    for name in "abcde":
        rows = rows.append_column(name, pa.array(["x"] * len(rows)))
    with pytest.raises(error, match=told):
        from_frame(rows, context=context)


TWO_ROWS = "match_id,played_at,team,player,place,map\n" + "".join(
    f"m{number},2026-01-0{number + 1},{team},{team},{place},{value}\n"
    for number, values in enumerate([("dust", "mill"), ("dust", ""), ("", "mill"), ("", "")])
    for place, (team, value) in enumerate(zip(("ann", "bob"), values, strict=True), 1)
)


def test_a_match_with_two_values_is_refused_with_its_line_and_an_empty_cell_agrees(tmp_path):
    path = tmp_path / "season.csv"
    path.write_text(TWO_ROWS)
    with pytest.raises(BadRowsError) as refused:
        read(path, context=["map"])
    (problem,) = refused.value.problems
    assert (problem.match_id, problem.line) == ("m0", 3)
    reason = "map is 'mill', an earlier row of the match has 'dust'; expected one map per match"
    assert problem.reason == reason
    assert names(read(path, context=["map"], skip_bad=True)) == {"map": ["dust", "mill", ""]}


def test_a_match_of_three_uneven_sides_has_the_value_of_any_row(tmp_path):
    sides = [("red", "ann", 1, ""), ("red", "bob", 1, ""), ("blue", "cid", 2, ""), ("gold", "dan", 2, "dust")]
    lines = [f"m0,2026-01-01,{team},{player},{place},{value}\n" for team, player, place, value in sides]
    later = [line.replace("m0,2026-01-01", "m1,2027-05-01").replace(",\n", ",mill\n") for line in lines]
    path = tmp_path / "season.csv"
    path.write_text("match_id,played_at,team,player,place,map\n" + "".join(lines + later))
    with pytest.raises(BadRowsError, match="line 9, match 'm1': map is 'dust', an earlier row of the match has 'mill'"):
        read(path, context=["map"])
    assert names(read(path, context=["map"], skip_bad=True)) == {"map": ["dust"]}


@pytest.mark.parametrize("values", [59, 61, 120])
def test_a_column_has_a_value_for_each_match(values):
    with pytest.raises(InputError, match=f"context column 'map' has {values} values; expected 60, one per match"):
        from_frame(season()).with_context({"map": pa.chunked_array([["dust"] * values])})


@pytest.mark.parametrize(("context", "found"), [("map", "MAP"), ("Mode", "mode"), ("MAP", "MAP"), ("best_of", None)])
def test_a_likely_column_may_differ_in_case(context, found):
    raw = RawFile(pa.table({"MAP": ["x"], "mode": ["y"]}), Source("the data frame"))
    assert likely_columns(raw, {context: context}) == ({} if found is None else {context: found})


def test_rows_without_a_match_have_no_value_to_disagree_with(tmp_path):
    path = tmp_path / "season.csv"
    path.write_text(TWO_ROWS + ",2026-01-09,cid,cid,1,dust\n,2026-01-09,dan,dan,2,mill\n")
    with pytest.raises(BadRowsError) as refused:
        read(path, context=["map"])
    assert [(one.line, one.reason[:17]) for one in refused.value.problems] == [
        (3, "map is 'mill', an"),
        (10, "match_id is empty"),
        (11, "match_id is empty"),
    ]


@pytest.mark.parametrize("value", ["01", "1.50", "1e3", "10:00", "True", "2026-01-01", "null", "NA"])
def test_a_value_is_the_text_of_the_file(tmp_path, value):
    path = tmp_path / "season.csv"
    rows = f"m1,2026-01-01,a,ann,1,{value}\nm1,2026-01-01,b,bob,2,{value}\n"
    path.write_text("match_id,played_at,team,player,place,map\n" + rows)
    table = read(path, context=["map"])
    assert names(table) == names(read(path, columns={"map": "map"}, context=["map"])) == {"map": [value]}
    for suffix in ("csv", "parquet", "jsonl"):
        write(table, tmp_path / f"again.{suffix}")
        assert names(read(tmp_path / f"again.{suffix}", context=["map"])) == {"map": [value]}


@pytest.mark.parametrize("columns", [None, {"map": "map"}])
def test_a_value_that_is_not_utf_8_is_refused_with_its_line(tmp_path, columns):
    path = tmp_path / "season.csv"
    content = TWO_ROWS.replace("bob,bob", "zoë,zoë").replace("ann,1,dust", "ann,1,düst", 1).encode()
    path.write_bytes(content.replace("ü".encode(), b"\xfc"))
    with pytest.raises(BadRowsError) as refused:
        read(path, columns=columns, context=["map"])
    problem = refused.value.problems[0]
    assert (problem.line, problem.match_id) == (2, "m0")
    assert problem.reason == r"map is b'd\xfcst', which is not UTF-8; expected a file in UTF-8"


def test_a_file_that_cannot_be_read_says_so_with_context_as_without(tmp_path):
    broken, twice = tmp_path / "broken.jsonl", tmp_path / "twice.csv"
    broken.write_text("{bad\n")
    twice.write_text(TWO_ROWS.replace("place,map", "place,map,map"))
    with pytest.raises(BadRowsError, match="is not a JSON object"):
        read(broken, context=["map"])
    with pytest.raises(InputError, match="has the column 'map' more than once; expected once"):
        read(twice, context=["map"])
    other = tmp_path / "other.csv"
    other.write_text("match_id,date,winner,loser,map\n1,2026-01-01,ann,bob,x\n1,2026-01-01,bob,cid,y\n")
    for context in (["map"], ["mode"]):
        with pytest.raises(MissingColumnsError, match="lacks the columns played_at, team, player"):
            read(other, context=context)


def test_a_column_of_the_file_that_is_context_has_no_other_meaning(tmp_path):
    path = tmp_path / "season.csv"
    path.write_text("date,winner,loser,duration,ladder\n2026-01-01,ann,bob,bo5,dust\n2026-01-02,ann,bob,bo3,mill\n")
    columns = {"played_at": "date", "best_of": "duration", "map": "ladder"}
    table = read(path, columns=columns, context=["best_of", "map"])
    assert names(table) == {"best_of": ["bo5", "bo3"], "map": ["dust", "mill"]}
    assert table.ladders == ("default",)
    assert np.isnan(table.history.columns.duration).all()
    with pytest.raises(UsageError, match="the column 'date' is read as played_at and as context"):
        read(path, columns={"played_at": "date"}, context=["date"])


def test_odds_follow_the_context_and_know_values_that_no_match_had():
    ratings = rate(from_frame(season(), context=["map", "best_of"]).pooled(), "even")

    def chance(**context):
        return ratings.odds(["ann"], ["bob"], context=context).expected[0]

    assert chance(map="dust") > 0.6 > 0.4 > chance(map="nuke")
    assert chance(map="dust", best_of="3", ladder="mode 0") > 0.6
    assert chance(map="cache") == pytest.approx(ratings.odds(["ann"], ["bob"]).expected[0], abs=0.05)
    with pytest.raises(UnknownNameError, match="surface"):
        chance(surface="clay")


def test_odds_in_context_are_those_that_the_next_match_is_rated_with():
    table = from_frame(season(ladder=["one"] * 120), context=["map", "best_of"])
    ratings = rate(table.take(slice(0, 59)), "even")
    at = np.datetime64(int(table.history.columns.time[59]), "us")
    told = ratings.odds(["ann"], ["bob"], at=at, context={"map": "dust", "best_of": "3"})
    assert told.expected[0] == pytest.approx(rate(table, "even").expected[-2], abs=1e-12)


def test_other_systems_rate_matches_with_context_as_without():
    for system in ("elo", "glicko2", "trueskill", "wager"):
        plain, told = (rate(from_frame(season(), context=context), system) for context in ((), ["map"]))
        assert told.standings().equals(plain.standings())


def test_a_backtest_compares_context_with_none_and_with_a_ladder_for_each_value():
    table = from_frame(season(400, ladder=["one"] * 800), context=["map", "best_of"])
    found = backtest(table, ["even", "elo"])
    losses = {row["matches"]: row["log_loss"] for row in found.context.to_pylist()}
    assert set(losses) == {
        "with map, best_of",
        "without context",
        "with map alone",
        "with best_of alone",
        "a ladder for each map",
        "a ladder for each best_of",
    }
    assert set(found.context["system"].to_pylist()) == {"even"}
    default = next(row for row in found.scores.to_pylist() if (row["system"], row["variant"]) == ("even", "default"))
    assert losses["with map, best_of"] == default["log_loss"]
    assert losses["without context"] == pytest.approx(np.log(2), abs=0.1)  # ann wins on one map, bob on the other
    assert losses["with map, best_of"] < 0.4
    assert losses["with map alone"] < 0.4
    assert losses["with best_of alone"] > 0.6
    assert losses["a ladder for each map"] < 0.4
    differences = {row["matches"]: row["difference"] for row in found.context.to_pylist()}
    for name, loss in losses.items():
        assert differences[name] == pytest.approx(loss - losses["with map, best_of"])
    assert backtest(from_frame(season(400)), "even").context.num_rows == 0


def test_the_commands_take_context(tmp_path):
    file = tmp_path / "season.csv"
    write(from_frame(season(400, ladder=["one"] * 800), context=["map", "best_of"]), file)
    told = run_command("backtest", file, "--systems", "even", "--context", "map, best_of", "--json")
    assert told.code == 0, told.err
    assert "not read" not in told.err
    listed = [row["matches"] for row in json.loads(told.out)["context"]]
    assert listed[:2] == ["with map, best_of", "without context"]
    shown = run_command("backtest", file, "--systems", "even", "--context", "map")
    assert "a ladder for each map" in shown.out
    odds = ("odds", file, "--system", "even", "--teams", "ann vs bob", "--json")
    dust, nuke, plain = (
        json.loads(run_command(*odds, *context).out)["teams"][0]["expected"]
        for context in (("--context", "map=dust", "--context", "best_of=3"), ("--context", "map=nuke"), ())
    )
    assert dust > 0.8
    assert nuke < 0.2
    assert 0.3 < plain < 0.7
    rated = run_command("rate", file, "--system", "even", "--context", "mapp")
    assert rated.code != 0
    assert "no column 'mapp'" in rated.err
