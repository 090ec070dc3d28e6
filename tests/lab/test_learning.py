"""What a system learns of a ladder: that it is learned from matches in which it is true."""

import pyarrow as pa
import pytest

from evenmatch import rate, rules
from evenmatch.errors import InputError
from evenmatch.lab.ladder.learning import learned_over_time, shown_number
from evenmatch.systems.ladder_records import Learned
from sided_matches import sided_season


def test_sides_and_sizes_are_learned_as_they_are():
    season = sided_season()
    moments = learned_over_time(season, rules("even"))
    assert [moment.matches for moment in moments] == [500, 1000, 1500, 2000]
    learned = {number.name: number for number in moments[-1].numbers}
    assert learned["side"].low < 60 < learned["side"].high
    assert learned["side"].low > 0
    # 2 players against 1 are worth ln 2 / ln 1.25 times five against four, 3 against 2 less: 150 is between.
    assert 40 < learned["player"].value < 110
    assert learned["margin"].value == 0
    experts = [number.value for number in moments[-1].numbers[7:]]
    assert sum(experts) == pytest.approx(1)
    widths = [moment.numbers[1].high - moment.numbers[1].low for moment in moments]
    assert widths == sorted(widths, reverse=True)


def test_what_is_learned_in_parts_is_what_the_whole_teaches_with_context_columns_too():
    season = sided_season(400)
    maps = ["dust" if number % 3 else "mill" for number in range(len(season))]
    season = season.with_context({"map": pa.chunked_array([maps])})
    by = rules("even")
    whole = by.system.learned(rate(season, by).ladders, by.parameters)
    assert repr(learned_over_time(season, by)[-1].numbers) == repr(whole)  # NaN is not equal to itself


def test_a_system_that_learns_nothing_of_ladders_is_refused():
    season = sided_season(10)
    with pytest.raises(
        InputError, match="elo learns nothing about a ladder; expected a system that does, such as even"
    ):
        learned_over_time(season, rules("elo"))


def test_numbers_are_shown_as_people_read_them():
    none = float("nan")
    assert shown_number(Learned("side", "", "points", 38.4, 25.2, 51.9)) == "+38 (25 to 52)"
    assert shown_number(Learned("margin", "", "share", 0.804, none, none)) == "80%"
