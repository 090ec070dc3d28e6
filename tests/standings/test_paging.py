"""Pages of standings by where the one before ended: nobody who stood still is repeated or left out."""

import numpy as np
import pytest

from evenmatch.standings.board import Board, snapshot
from evenmatch.standings.rules import StandingsRules

DAY = 86_400_000_000
RATINGS = {1: 1500.0, 2: 1700.0, 3: 1500.0, 4: 1400.0, 5: 1500.0, 6: 1600.0, 7: 1300.0}
ORDER = [2, 6, 1, 3, 5, 4, 7]  # by rating downwards, then by id


def taken(ratings, unplaced=()):
    ids = np.array(sorted(ratings), np.int64)
    completed = np.array([0 if one in unplaced else 5 for one in ids], np.int64)
    many = len(ids)
    board = Board(
        player=ids,
        rating=np.array([ratings[one] for one in ids.tolist()]),
        matches=np.full(many, 5),
        completed=completed,
        last_completed=np.full(many, DAY),
        expected_move=np.full(many, 100.0),
        division=np.full(many, -1, np.int16),
        hidden=np.zeros(many, bool),
    )
    return snapshot(board, StandingsRules(placement=3), DAY)


@pytest.mark.parametrize("size", range(1, 9))
def test_pages_together_are_the_whole(size):
    board = taken(RATINGS)
    rows = board.page(1, size)
    while len(rows) < len(ORDER):
        more = board.after(rows[-1].rating, rows[-1].player, size)
        assert 0 < len(more) <= size
        rows += more
    assert [one.player for one in rows] == ORDER
    assert board.after(rows[-1].rating, rows[-1].player, size) == []


# where a page ended, and who comes after: among ties, between two, beyond both ends
PLACES = [
    ((1500.0, 1), [3, 5, 4, 7]),
    ((1500.0, 4), [5, 4, 7]),  # 4 had 1500 then
    ((1550.0, 9), [1, 3, 5, 4, 7]),
    ((2000.0, 1), ORDER),
    ((1300.0, 7), []),
    ((0.0, 0), []),
    ((1300.0, 0), [7]),
]


@pytest.mark.parametrize(("place", "following"), PLACES)
def test_the_next_page_begins_after_a_place_even_if_its_player_changed(place, following):
    assert [one.player for one in taken(RATINGS).after(*place, 100)] == following


def test_a_player_who_moves_between_two_pages_displaces_nobody_else():
    first = [one.player for one in taken(RATINGS).page(1, 3)]
    later = taken({**RATINGS, 6: 1000.0, 7: 1800.0})
    second = [one.player for one in later.after(1500.0, 1, 100)]
    still = [one for one in ORDER if one not in (6, 7)]
    assert [one for one in first + second if one in still] == still


def test_unlisted_players_are_on_no_page():
    assert [one.player for one in taken(RATINGS, unplaced=(3,)).after(1500.0, 1, 100)] == [5, 4, 7]
