"""What is written is read back, what is split is joined again, and Match objects give what a file of them gives."""

import tempfile
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenmatch import Appearance, Match, Team, from_frame, from_matches, join, read, write
from evenmatch.errors import InputError
from tables.tidy_rows import FILES, table_values

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=6) | st.sampled_from(
    [
        ",",
        '"',
        "\n",
        "\r",
        "\r\n",
        'a "b", c\n',
        " ",
        "\t",
        "null",
        "NA",
        "nan",
        "\ufeff",
        "👩‍🚀",
        "ﷺ",
        "\u2028",
        "\x1b[31m",
    ]
)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
ZONES = st.none() | st.just(timezone(timedelta(hours=5, minutes=30)))
TIMES = st.datetimes(datetime(1800, 1, 2), datetime(1969, 12, 31), timezones=ZONES) | st.datetimes(
    datetime(1970, 3, 1), datetime(2099, 12, 31), timezones=ZONES
)


@st.composite
def drawn_matches(draw):
    listed = []
    for match_id in draw(st.lists(TEXT, min_size=1, max_size=5, unique=True)):
        people = draw(st.lists(TEXT, min_size=2, max_size=7, unique=True))
        sides = draw(st.integers(2, min(4, len(people))))
        cuts = sorted(draw(st.permutations(range(1, len(people))))[: sides - 1])
        scored = draw(st.booleans())
        teams = []
        for start, end in zip([0, *cuts], [*cuts, len(people)], strict=True):
            slots = tuple(
                Appearance(
                    player,
                    score=draw(st.none() | NUMBER),
                    seconds=draw(st.none() | st.floats(0, 1e12)),
                    quit=draw(st.booleans()),
                    performance=draw(st.none() | st.floats(-1, 1)),
                    keep=draw(st.booleans()),
                    entry=draw(st.none() | st.floats(-1e9, 1e9, width=32)),
                )
                for player in people[start:end]
            )
            place = None if scored else draw(st.integers(1, 4))
            teams.append(Team(slots, place, draw(NUMBER if scored else st.none() | NUMBER)))
        ladder = draw(st.sampled_from(["default", "duel", "6 v 6, ranked"]))
        duration = draw(st.none() | st.floats(0, 1e12))
        listed.append(Match(match_id, draw(TIMES), tuple(teams), ladder, duration))
    return listed


def same(one, other):
    """The same columns in the same order, bit for bit, and the same names for the players."""
    for name in one.history.columns._fields:
        a, b = getattr(one.history.columns, name), getattr(other.history.columns, name)
        if name != "player":
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, err_msg=name)
    assert table_values(one) == table_values(other)
    assert one.ladders == other.ladders
    assert len(one.player) == len(other.player)


@settings(max_examples=60, deadline=None)
@given(drawn_matches(), st.sampled_from(FILES))
def test_match_objects_and_a_file_of_them_give_the_same_columns(listed, form):
    built = from_matches(listed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x.{form}"
        write(built, path)
        again = read(path)
        same(again, built)
        write(again, Path(folder) / f"y.{form}")
        if form != "parquet":
            assert (Path(folder) / f"y.{form}").read_bytes() == path.read_bytes()


@settings(max_examples=60, deadline=None)
@given(drawn_matches())
def test_an_arrow_table_of_matches_is_read_back(listed):
    built = from_matches(listed)
    same(from_frame(built.to_arrow()), built)


@settings(max_examples=60, deadline=None)
@given(drawn_matches())
def test_a_table_holds_what_its_match_objects_say(listed):
    expected = []
    for match in sorted(listed, key=lambda match: match.time):
        seconds = [slot.seconds for team in match.teams for slot in team.players if slot.seconds is not None]
        teams = [
            (
                str(at),
                place,
                team.score,
                [(p.player, p.score, p.seconds, p.performance, p.entry, p.quit, p.keep) for p in team.players],
            )
            for at, (team, place) in enumerate(zip(match.teams, match.places, strict=True))
        ]
        duration = max(seconds, default=None) if match.duration is None else match.duration
        expected.append((match.id, match.time, match.ladder, duration, teams))
    assert table_values(from_matches(listed)) == expected


@settings(max_examples=60, deadline=None)
@given(drawn_matches(), st.data())
def test_a_table_split_anywhere_and_joined_is_the_table(listed, data):
    whole = from_matches(listed)
    cut = data.draw(st.integers(1, len(whole)))
    parts = [whole.take(slice(0, cut))] + ([whole.take(slice(cut, None))] if cut < len(whole) else [])
    same(join(*parts), whole)


@settings(max_examples=60, deadline=None)
@given(drawn_matches(), st.data())
def test_a_part_holds_only_its_matches_and_their_players(listed, data):
    whole = from_matches(listed)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole))), bool)
    expected = [match for match, chosen in zip(table_values(whole), mask, strict=True) if chosen]
    for chosen in (mask, np.flatnonzero(mask)):
        part = whole.take(chosen)
        assert table_values(part) == expected
        people = {(match[2], player[0]) for match in expected for team in match[4] for player in team[3]}
        assert len(part.player) == len(people)
        assert set(part.ladders) == {match[2] for match in expected}


def duels(*minutes, prefix="m", ladder="default"):
    return [
        Match(
            f"{prefix}{at}",
            datetime(2026, 1, 1, 0, minute, tzinfo=UTC),
            (Team.of("ann", place=1), Team.of("bob", place=2)),
            ladder,
        )
        for at, minute in enumerate(minutes)
    ]


def test_joined_tables_are_put_in_order_of_time_and_ties_in_order_of_the_tables():
    joined = join(from_matches(duels(5, 1, prefix="a")), from_matches(duels(1, 3, prefix="b")))
    assert joined.match_id.to_pylist() == ["a1", "b0", "b1", "a0"]
    assert joined.player_names == ["ann", "bob"]


def test_joined_ladders_stay_apart():
    joined = join(from_matches(duels(1, ladder="x")), from_matches(duels(2, prefix="n", ladder="y")))
    assert joined.ladders == ("x", "y")
    assert len(joined.player) == 4


def test_an_id_in_two_tables_is_an_error():
    with pytest.raises(InputError, match="match id 'm0' is in more than one table"):
        join(from_matches(duels(1)), from_matches(duels(2)))


def test_an_id_used_twice_among_match_objects_is_an_error():
    with pytest.raises(InputError, match="match id 'm0' is used more than once"):
        from_matches(duels(1) + duels(2))


def test_no_matches_and_no_tables_are_errors():
    with pytest.raises(InputError, match="no matches were given"):
        from_matches(iter([]))
    with pytest.raises(InputError):
        join()


def test_columns_that_hold_nothing_are_not_written(tmp_path):
    write(from_matches(duels(1)), tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == (
        "match_id,played_at,ladder,team,player,place\n"
        "m0,2026-01-01T00:01:00Z,default,0,ann,1\n"
        "m0,2026-01-01T00:01:00Z,default,1,bob,2\n"
    )


def test_a_written_json_line_is_one_object_with_null_for_what_is_missing(tmp_path):
    first = Team((Appearance("ann", seconds=1.5),), 1)
    write(from_matches([Match("m", datetime(2026, 1, 1), (first, Team.of("bob", place=2)))]), tmp_path / "x.jsonl")
    assert (tmp_path / "x.jsonl").read_text().splitlines()[1] == (
        '{"match_id": "m", "played_at": "2026-01-01T00:00:00Z", "ladder": "default", "team": "1", "player": "bob", '
        '"place": 2, "seconds": null}'
    )
