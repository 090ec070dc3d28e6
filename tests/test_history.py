"""The columns of a History: their shape, their order, their parts."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch import Appearance, Match, Team, from_matches
from evenmatch.errors import InputError
from evenmatch.history import Columns, History, fill_duration, ranges, team_results

START = datetime(2026, 1, 1, tzinfo=UTC)
NAN = float("nan")

DTYPES = {
    "time": np.int64,
    "team_start": np.int32,
    "place": np.int32,
    "team_score": np.float64,
    "slot_start": np.int32,
    "player": np.int32,
    "score": np.float64,
    "seconds": np.float64,
    "performance": np.float64,
    "quit": np.bool_,
    "duration": np.float64,
    "keep": np.bool_,
    "pool": np.int32,
    "ladder": np.int32,
    "context": np.int32,
    "offset": np.int32,
    "entry": np.float32,
    "lengths": np.float64,
}


def made_columns(**changes):
    """Two matches: ann and bob against cat, then cat against dan against ann."""
    made = {
        "time": [10, 20],
        "team_start": [0, 2, 5],
        "place": [1, 2, 1, 2, 2],
        "team_score": [13.0, 7.0, NAN, NAN, NAN],
        "slot_start": [0, 2, 3, 4, 5, 6],
        "player": [0, 1, 2, 2, 3, 0],
        "score": [1.0, 2.0, 3.0, NAN, 5.0, 6.0],
        "seconds": [60.0, 50.0, 40.0, NAN, NAN, NAN],
        "performance": [NAN, 0.5, -0.5, NAN, NAN, NAN],
        "quit": [False, True, False, False, False, False],
        "duration": [60.0, NAN],
        "keep": [True, True, True, False, True, True],
        "pool": [0, 0],
        "ladder": [1, 2],
        "context": [3, 4],
        "offset": [0, 1, 2, 3, 4, 5],
        "entry": [1834.0, NAN, NAN, NAN, -3.5, 1834.0],
        "lengths": [NAN, NAN, NAN, 1.5, NAN],
    }
    return Columns(**{name: np.asarray(values, DTYPES[name]) for name, values in (made | changes).items()})


@st.composite
def histories(draw, most=6):
    """Any history: uneven teams, several sides, draws, gaps."""
    time = sorted(draw(st.lists(st.integers(-(10**12), 10**15), max_size=most)))
    listed = []
    for at, micros in enumerate(time):
        people = draw(st.lists(st.integers(0, 9), min_size=2, max_size=6, unique=True))
        sides = draw(st.integers(2, len(people)))
        cuts = sorted(draw(st.permutations(range(1, len(people))))[: sides - 1])
        teams = tuple(
            Team(
                tuple(
                    Appearance(
                        str(number),
                        score=draw(st.none() | st.floats(-9, 9)),
                        seconds=draw(st.none() | st.floats(0, 900)),
                        quit=draw(st.booleans()),
                        keep=draw(st.booleans()),
                    )
                    for number in people[start:end]
                ),
                draw(st.integers(1, 3)),
                draw(st.none() | st.floats(0, 9)),
            )
            for start, end in zip([0, *cuts], [*cuts, len(people)], strict=True)
        )
        listed.append(Match(str(at), datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros), teams))
    history = History.of(listed, lambda _, player: int(player))
    columns = draw(st.integers(0, 2))
    if not columns or not len(history):
        return history
    values = draw(st.lists(st.integers(2, 5), min_size=columns * len(history), max_size=columns * len(history)))
    return history.with_context(np.reshape(values, (-1, columns)))


def same(one, other):
    for name, a, b in zip(Columns._fields, one.columns, other.columns, strict=True):
        assert a.dtype == b.dtype == DTYPES[name], name
        np.testing.assert_array_equal(a, b, err_msg=name)


def test_a_history_counts_its_matches_players_and_largest_match():
    history = History(made_columns())
    assert (len(history), history.players, history.largest) == (2, 4, 3)
    assert history.match_slots.tolist() == [0, 3, 6]
    assert history.slot_match.tolist() == [0, 0, 0, 1, 1, 1]
    assert history.slot_team.tolist() == [0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", Columns._fields)
def test_columns_are_frozen_contiguous_and_of_one_type(name):
    loose = {field: values.repeat(2)[::2] for field, values in made_columns()._asdict().items()}
    loose = {field: values.astype("f8") if field in ("place", "player") else values for field, values in loose.items()}
    column = getattr(History(Columns(**loose)).columns, name)
    assert column.dtype == DTYPES[name]
    assert column.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1


def test_freezing_leaves_the_array_of_the_caller_writable():
    given_columns = made_columns()
    History(given_columns)
    given_columns.time[0] = 5


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"time": [20, 10]}, "is earlier than the one before it"),
        ({"duration": [60.0]}, "column duration has 1 entries; expected 2"),
        ({"score": [1.0] * 5}, "column score has 5 entries; expected 6"),
        ({"team_score": [1.0] * 6}, "column team_score has 6 entries; expected 5"),
        ({"keep": [True] * 7}, "column keep has 7 entries; expected 6"),
        ({"team_start": [0, 5]}, "column team_start has 2 entries; expected 3"),
        ({"team_start": [0, 1, 5]}, "team_start must run from 0 to 5 in steps of at least 2"),
        ({"team_start": [1, 3, 5]}, "team_start must run from 0 to 5"),
        ({"team_start": [0, 2, 4]}, "team_start must run from 0 to 5"),
        ({"slot_start": [0, 2, 2, 4, 5, 6]}, "slot_start must run from 0 to 6 in steps of at least 1"),
        ({"slot_start": [0, 2, 3, 4, 5, 7]}, "slot_start must run from 0 to 6"),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(changes, said):
    with pytest.raises(InputError, match=said):
        History(made_columns(**changes))


def test_an_empty_history_is_a_history():
    empty = History(made_columns()).take(slice(0, 0))
    assert (len(empty), empty.players, empty.largest) == (0, 0, 0)


@given(histories(), st.data())
def test_a_mask_a_list_and_a_slice_take_the_same_matches_and_taking_twice_is_taking_once(history, data):
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(history), max_size=len(history))), bool)
    taken = history.take(mask)
    same(taken, history.take(np.flatnonzero(mask)))
    inner = np.array(data.draw(st.lists(st.booleans(), min_size=len(taken), max_size=len(taken))), bool)
    same(taken.take(inner), history.take(np.flatnonzero(mask)[inner]))
    same(history.take(slice(None)), history)
    starts = history.match_slots
    slots = np.concatenate([np.arange(0), *(np.arange(starts[m], starts[m + 1]) for m in np.flatnonzero(mask))])
    np.testing.assert_array_equal(taken.columns.player, history.columns.player[slots.astype(int)])
    np.testing.assert_array_equal(taken.columns.seconds, history.columns.seconds[slots.astype(int)])


def made_match(at, *teams, **options):
    return Match(f"m{at}", START + timedelta(seconds=at), teams, **options)


def test_a_match_object_becomes_columns_with_its_players_numbered_in_order():
    first = Team((Appearance("ann", 5.0, 60.0), Appearance("bob", quit=True)), 2)
    second = Team((Appearance("cat", seconds=90.0, keep=False),), 1, 13.0)
    third = Team.of("dan", "eve", "fay", place=2)
    match = made_match(7, first, second, third, ladder="other")
    c = History.of_match(match, -1).columns
    again = History.of_match(match, 1767225608_000000).columns
    assert (c.time.tolist(), again.time.tolist()) == ([1767225607_000000], [1767225608_000000])
    assert c.team_start.tolist() == [0, 3]
    assert c.slot_start.tolist() == [0, 2, 3, 6]
    assert c.player.tolist() == [0, 1, 2, 3, 4, 5]
    assert c.place.tolist() == [2, 1, 2]
    assert (c.pool.tolist(), c.ladder.tolist(), c.duration.tolist()) == ([0], [1], [90.0])
    assert c.quit.tolist() == [False, True, False, False, False, False]
    assert c.keep.tolist() == [True, True, False, True, True, True]
    np.testing.assert_array_equal(c.team_score, [NAN, 13, NAN])
    assert not any(column.flags.writeable for column in (*c, *again))
    listed = History.of([match], lambda _, name: ["ann", "bob", "cat", "dan", "eve", "fay"].index(name)).columns
    for column, other in zip(c, listed, strict=True):
        assert column.dtype == other.dtype
        np.testing.assert_array_equal(column, other)


def test_match_objects_out_of_order_are_refused():
    teams = Team.of("ann", place=1), Team.of("bob", place=2)
    with pytest.raises(InputError, match="not in time order"):
        History.of([made_match(1, *teams), made_match(0, *teams)], lambda _, name: 0)


def test_a_late_report_counts_as_though_it_had_ended_with_the_latest():
    teams = Team.of("ann", place=1), Team.of("bob", place=2)
    latest = 1767225600_500000
    history = History.of([made_match(0, *teams), made_match(1, *teams)], lambda _, name: 0, not_before=latest)
    assert history.columns.time.tolist() == [latest, 1767225601_000000]


def test_a_missing_duration_is_the_longest_time_of_any_player():
    seconds = np.array([NAN, 60, 50, NAN, NAN, 7.0])
    filled = fill_duration(np.array([NAN, NAN, 9.0]), seconds, np.array([0, 3, 5, 6], np.int32))
    np.testing.assert_array_equal(filled, [60, NAN, 9])


def test_the_members_of_chosen_groups_are_listed_in_the_order_chosen():
    start = np.array([0, 2, 2, 5])
    assert ranges(start, np.array([2, 0])).tolist() == [2, 3, 4, 0, 1]
    assert ranges(start, np.array([1])).tolist() == []
    assert ranges(start, np.array([], int)).tolist() == []


def test_a_player_on_two_ladders_has_two_numbers():
    teams = Team.of("ann", place=1), Team.of("bob", place=2)
    table = from_matches([made_match(0, *teams, ladder="x"), made_match(1, *teams, ladder="y")])
    assert table.history.columns.player.tolist() == [0, 1, 2, 3]


@given(
    st.lists(st.lists(st.integers(1, 2**31 - 1) | st.integers(1, 3), min_size=2, max_size=9), min_size=1, max_size=5)
)
def test_a_result_is_the_mean_over_the_rivals_of_ahead_level_and_behind(places):
    team_start = np.concatenate(([0], np.cumsum([len(of_match) for of_match in places])))
    told = team_results(team_start, np.array([place for of_match in places for place in of_match], np.int32))
    expected = []
    for of_match in places:
        for at, own in enumerate(of_match):
            rivals = of_match[:at] + of_match[at + 1 :]
            points = [1.0 if place > own else 0.5 if place == own else 0.0 for place in rivals]
            expected.append(sum(points) / len(rivals))
    assert told.tolist() == expected


def test_results_of_a_hundred_thousand_teams_take_no_pair_of_them():
    """Pair by pair it would take hours."""
    count = 100_000
    told = team_results(np.array([0, count], np.int32), np.arange(1, count + 1, dtype=np.int32))
    assert (told[0], told[-1], told[count // 2]) == (1.0, 0.0, (count - 1 - count // 2) / (count - 1))
