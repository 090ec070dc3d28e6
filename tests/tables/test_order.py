"""Which match, team and player comes first, whose place is derived, and who is the same player."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenmatch import from_frame, rate, read, rules
from evenmatch.errors import UnknownNameError
from tables.tidy_rows import FILES, FRAMES, frame_of, iso, put_together, table_values, taken_in, write_file

NAMES = ["match_id", "played_at", "team", "player", "place"]


START = 1767225600  # 2026-01-01, in epoch seconds


def columns_of(*rows, names=NAMES):
    """The columns of rows whose times are seconds after START."""
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return columns | {"played_at": [START + seconds for seconds in columns["played_at"]]}


EVERY_FORM = [*FILES, *FRAMES]


# The scores of the teams and their places, as a sports table gives them
PLACES = [
    ([13, 7], [1, 2]),
    ([7, 13], [2, 1]),
    ([7, 7], [1, 1]),
    ([3, 5, 3], [2, 1, 2]),
    ([5, 5, 3], [1, 1, 3]),
    ([0, -4, 0.5], [2, 3, 1]),
    ([1, 2, 2, 4, 4, 4], [6, 4, 4, 1, 1, 1]),
    ([-1e300, 1e300], [2, 1]),
    ([0.1 + 0.2, 0.3], [1, 2]),  # not quite a tie
]


@pytest.mark.parametrize("form", ["csv", "parquet", "pandas"])
@pytest.mark.parametrize(("scores", "places"), PLACES)
def test_places_are_derived_from_the_scores_of_the_teams(scores, places, form, tmp_path):
    rows = [("m", 1, f"t{at}", f"p{at}", float(score)) for at, score in enumerate(scores)]
    matches = taken_in(columns_of(*rows, names=[*NAMES[:4], "team_score"]), form, tmp_path)
    assert matches.history.columns.place.tolist() == places
    assert matches.history.columns.team_score.tolist() == scores


LADDERS = columns_of(
    ("m1", 1, "a", "ann", 1, "duel"),
    ("m1", 1, "b", "bob", 2, "duel"),
    ("m2", 2, "a", "ann", 2, "team"),
    ("m2", 2, "b", "cat", 1, "team"),
    ("m3", 3, "a", "ann", 1, None),
    ("m3", 3, "b", "bob", 2, None),
    ("m4", 4, "a", "bob", 1, "duel"),
    ("m4", 4, "b", "ann", 2, "duel"),
    names=[*NAMES, "ladder"],
)


@pytest.mark.parametrize("form", EVERY_FORM)
def test_the_same_name_on_two_ladders_is_two_players(form, tmp_path):
    matches = taken_in(LADDERS, form, tmp_path)
    players = {
        (matches.ladders[ladder], name)
        for ladder, name in zip(matches.player_ladder, matches.player_names, strict=True)
    }
    assert players == {
        ("duel", "ann"), ("duel", "bob"), ("team", "ann"), ("team", "cat"), ("default", "ann"), ("default", "bob"),
    }  # fmt: skip
    assert len(matches.player) == 6
    assert [match[2] for match in table_values(matches)] == ["duel", "team", "default", "duel"]


@pytest.mark.parametrize("form", EVERY_FORM)
def test_pooling_makes_them_one_as_though_there_were_no_ladders(form, tmp_path):
    pooled = taken_in(LADDERS, form, tmp_path).pooled()
    without = {name: values for name, values in LADDERS.items() if name != "ladder"}
    assert table_values(pooled) == table_values(from_frame(frame_of(without, "table")))
    assert sorted(pooled.player_names) == ["ann", "bob", "cat"]


@pytest.mark.parametrize("system", ["wager", "battlepoints", "scorefactor", "prav"])
def test_a_ladder_is_rated_as_though_it_stood_alone(system):
    matches = from_frame(frame_of(LADDERS, "table"))
    together = rate(matches, rules(system)).standings()
    for ladder in matches.ladders:
        alone = rate(matches.on_ladder(ladder), rules(system)).standings()
        assert alone.to_pylist() == [row for row in together.to_pylist() if row["ladder"] == ladder]


def test_an_unknown_ladder_is_refused_with_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"unknown ladder 'duels' \(did you mean 'duel'\?\); known: duel, team"):
        from_frame(frame_of(LADDERS, "table")).on_ladder("duels")


# Tables of valid rows in any order, as a person could type them.

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=6) | st.sampled_from(
    [
        ",",
        '"',
        '""',
        "\n",
        "\r\n",
        "a,b",
        'say "hi"',
        " ",
        "null",
        "NaN",
        "None",
        "-",
        "=1+1",
        "\ufeff",
        "👩‍🚀",
        "ß",
        "\u2028",
    ]
)
NUMBER = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-1000, 1000).map(float)
MICROSECONDS = st.integers(-5364662400_000000, -1) | st.integers(4102444800_000, 4102444799_999999)


def maybe(values):
    return st.none() | values


@st.composite
def tidy_rows(draw, names=TEXT):
    ids = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    times = draw(st.lists(MICROSECONDS, min_size=1, max_size=3))
    rows = []
    for match_id in ids:
        labels = draw(st.lists(names, min_size=2, max_size=4, unique=True))
        people = draw(st.lists(names, min_size=len(labels), max_size=8, unique=True))
        sides = labels + [draw(st.sampled_from(labels)) for _ in people[len(labels) :]]
        scored = draw(st.booleans())
        place = {team: None if scored else draw(st.integers(1, 2**31 - 1) | st.integers(1, 3)) for team in labels}
        score = {team: draw(NUMBER if scored else maybe(NUMBER)) for team in labels}
        common = {
            "match_id": match_id,
            "played_at": draw(st.sampled_from(times)),
            "ladder": draw(st.sampled_from([None, "one", "two, or three"])),
            "duration": draw(maybe(st.floats(0, 1e9))),
        }
        for team, player in zip(sides, people, strict=True):
            rows.append(
                common
                | {
                    "team": team,
                    "player": player,
                    "place": place[team],
                    "team_score": score[team],
                    "score": draw(maybe(NUMBER)),
                    "seconds": draw(maybe(st.floats(0, 1e9))),
                    "performance": draw(maybe(st.floats(-1, 1))),
                    "entry": draw(maybe(st.integers(1, 32))),
                    "quit": draw(maybe(st.booleans())),
                    "keep": draw(maybe(st.booleans())),
                }
            )
    return draw(st.permutations(rows))


def as_columns(rows):
    written = [row | {"played_at": iso(row["played_at"])} for row in rows]
    return {name: [row[name] for row in written] for name in written[0]}


@settings(max_examples=60, deadline=None)
@given(tidy_rows(), st.sampled_from(FILES))
def test_a_file_of_any_valid_rows_is_what_plain_python_makes_of_them(rows, form):
    with tempfile.TemporaryDirectory() as folder:
        assert table_values(read(write_file(as_columns(rows), Path(folder) / f"x.{form}"))) == put_together(rows)


@settings(max_examples=60, deadline=None)
@given(tidy_rows(), st.sampled_from(["table", "reader", "polars", "duckdb"]))
def test_a_frame_of_any_valid_rows_is_what_plain_python_makes_of_them(rows, form):
    assert table_values(from_frame(frame_of(as_columns(rows), form))) == put_together(rows)
