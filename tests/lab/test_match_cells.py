"""How matches are divided: by block of time, ladder, period, and how many matches the players had behind them."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from elo_matches import START, duel, duels
from evenmatch import from_matches
from evenmatch.lab.backtests.match_cells import divide


def at_times(*times):
    """A duel at each of these times."""
    moments = [datetime.fromisoformat(time).replace(tzinfo=UTC) for time in times]
    return from_matches(replace(duel(at, "a", "b", 1.0), played_at=moment) for at, moment in enumerate(moments))


def labels(matches, cells, by):
    """What each match is counted under."""
    names = {"ladder": cells.ladders, "period": cells.periods, "experience": cells.experiences}[by]
    return [names[at] for at in getattr(cells, by)[cells.of]]


def test_experience_is_the_least_of_any_players_and_its_groups_begin_where_they_say():
    played = [duel(at, "a", "b", 1.0) for at in range(120)]
    assert labels(None, divide(from_matches(played), 60), "experience") == [
        *["0"] * 1,
        *["1–9"] * 9,
        *["10–29"] * 20,
        *["30–99"] * 70,
        *["100 or more"] * 20,
    ]
    newcomer = from_matches([*played, duel(120, "a", "new", 1.0), duel(121, "b", "new", 0.0)])
    assert labels(None, divide(newcomer, 60), "experience")[120:] == ["0", "1–9"]
    # who is known on one ladder is a newcomer on another
    elsewhere = from_matches([*played, duel(120, "a", "b", 1.0, "other")])
    assert labels(None, divide(elsewhere, 60), "experience")[120:] == ["0"]
    assert labels(None, divide(elsewhere.pooled(), 60), "experience")[120:] == ["100 or more"]


# times of matches and the periods they are counted under
PERIODS = [
    (["2024-02-29T23:59:59.999999", "2024-03-01T00:00:00"], ["2024-02-29", "2024-03-01"]),
    (["2024-01-31T12:00:00", "2024-02-01T11:00:00", "2024-02-01T23:59:59"], ["2024-01-31", "2024-02-01", "2024-02-01"]),
    (["1969-12-31T23:59:59.999999", "1970-01-01"], ["1969-12-31", "1970-01-01"]),
    (["2024-01-31", "2024-02-29T23:59:59.999999", "2024-03-01"], ["2024-01", "2024-02", "2024-03"]),
    (["2022-12-31T23:00:00", "2024-01-01", "2024-01-31", "2024-02-01"], ["2022-12", "2024-01", "2024-01", "2024-02"]),
    (["1969-11-30T23:59:59.999999", "1969-12-01", "1970-01-01"], ["1969-11", "1969-12", "1970-01"]),
    (["2021-06-01", "2022-06-01", "2023-06-01"], ["2021-06", "2022-06", "2023-06"]),
    (["2021-06-01", "2022-06-01", "2023-06-01", "2024-01-01"], ["2021", "2022", "2023", "2024"]),
    (["2020-05-01", "2020-12-31T23:59:59", "2021-01-01", "2024-01-01", "2025-01-01"],
     ["2020", "2020", "2021", "2024", "2025"]),
    (["1872-11-30", "1969-12-31T23:59:59.999999", "1970-01-01", "2024-01-01"], ["1872", "1969", "1970", "2024"]),
]  # fmt: skip


@pytest.mark.parametrize(("times", "expected"), PERIODS)
def test_periods_are_days_or_in_longer_histories_months_or_years(times, expected):
    cells = divide(at_times(*times), 1)
    assert labels(None, cells, "period") == expected
    assert cells.periods == tuple(sorted(set(expected)))


@pytest.mark.parametrize(
    ("count", "warm_up"),
    [(1, 0), (2, 1), (100, 0), (100, 99), (499, 7), (1001, 500), (1250, 1), (2500, 0), (2500, 2250), (3001, 1500)],
)
def test_blocks_follow_one_another_in_time_and_are_of_equal_size(count, warm_up):
    matches = from_matches(duel(at, "a", "b", 1.0, hours=1 / 60) for at in range(count))
    cells = divide(matches, warm_up)
    block = cells.block[cells.of].tolist()
    assert block == sorted(block)
    assert block[0] == 0
    assert set(block) == set(range(cells.blocks))
    early, late = Counter(block[:warm_up]), Counter(block[warm_up:])
    assert not set(early) & set(late)
    assert (len(early), len(late)) == tuple(min(500, part, max(50, part // 5)) for part in (warm_up, count - warm_up))
    assert cells.warm_up_blocks == len(early)
    for sizes in (early.values(), late.values()):
        assert max(sizes, default=0) - min(sizes, default=0) <= 1
    assert cells.warm_up[cells.of].tolist() == [at < warm_up for at in range(count)]


def test_a_cell_holds_the_matches_that_have_everything_in_common():
    played = duels(8, 900, players=40, ladders=("x", "y"), hours=4)
    matches = from_matches(played)
    cells = divide(matches, 450)
    kinds = list(
        zip(
            cells.block[cells.of].tolist(),
            *(labels(matches, cells, by) for by in ("ladder", "period", "experience")),
            strict=True,
        )
    )
    assert len(set(kinds)) == len(cells)
    assert len({(kind, cell) for kind, cell in zip(kinds, cells.of.tolist(), strict=True)}) == len(cells)
    assert [match.ladder for match in played] == [kind[1] for kind in kinds]
    assert [f"{START + timedelta(hours=4 * at):%Y-%m}" for at in range(900)] == [kind[2] for kind in kinds]
    assert cells.of.dtype == np.int32


def test_values_of_chosen_cells_are_summed_by_block():
    matches = from_matches(duels(8, 500, players=40, ladders=("x", "y")))
    cells = divide(matches, 100)
    values = np.arange(2.0 * len(cells)).reshape(-1, 2) + 1
    chosen = (cells.ladder == 1) & ~cells.warm_up
    expected = np.zeros((cells.blocks, 2))
    for cell in range(len(cells)):
        if chosen[cell]:
            expected[cells.block[cell]] += values[cell]
    assert np.array_equal(cells.by_block(values, chosen), expected)
    assert cells.by_block(np.ones((len(cells), 3, 2)), ~chosen).shape == (cells.blocks, 3, 2)
