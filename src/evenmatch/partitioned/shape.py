"""Kernels that find the matches and teams of rows which are in order; whatever is not plain is left to `tables`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Flags, Floats, Integers, Times
from evenmatch.partitioned.compiled import compiled

Rows = NDArray[np.int64]
LARGEST = 256  # slots of a match whose pairs are compared here


@compiled
def find_teams(match_row: Rows, label: NDArray[np.int64], team_start: Integers, slot_start: Integers) -> int:
    """Find the teams: runs of equal labels in a match. Returns their number.

    match_row  int64 (M + 1,)  first row of each match, then the number of rows;  label  int64 (S,)
    team_start int32 (M + 1,) and slot_start (S + 1,) are written
    -1 if a match has one team only, more than LARGEST, or a team whose rows are apart.
    """
    teams = 0
    for m in range(len(match_row) - 1):
        first = teams
        team_start[m] = first
        for row in range(match_row[m], match_row[m + 1]):
            if row > match_row[m] and label[row] == label[row - 1]:
                continue
            if teams - first >= LARGEST:
                return -1
            for other in range(first, teams):
                if label[slot_start[other]] == label[row]:
                    return -1
            slot_start[teams] = row
            teams += 1
        if teams - first < 2:
            return -1
    team_start[len(match_row) - 1] = teams
    slot_start[teams] = match_row[len(match_row) - 1]
    return teams


@compiled
def has_one_time(match_row: Rows, time: Times) -> bool:
    """Whether the rows of each match have one time, and no match is earlier than the one before it."""
    for m in range(len(match_row) - 1):
        first = match_row[m]
        if m > 0 and time[first] < time[first - 1]:
            return False
        for row in range(first + 1, match_row[m + 1]):
            if time[row] != time[first]:
                return False
    return True


@compiled
def has_one_label(match_row: Rows, label: Integers) -> bool:
    """Whether the rows of each match have one label."""
    for m in range(len(match_row) - 1):
        for row in range(match_row[m] + 1, match_row[m + 1]):
            if label[row] != label[row - 1]:
                return False
    return True


@compiled
def has_player_twice(match_row: Rows, player: Integers) -> bool:
    """Whether a player is in a match twice, or a match has more than LARGEST slots."""
    for m in range(len(match_row) - 1):
        if match_row[m + 1] - match_row[m] > LARGEST:
            return True
        for row in range(match_row[m], match_row[m + 1]):
            for other in range(match_row[m], row):
                if player[other] == player[row]:
                    return True
    return False


@compiled
def first_of_each(start: Integers, values: Floats, out: Floats) -> bool:
    """Write the number of each group of rows, NaN where none of its rows has one; False if rows of a group differ."""
    for group in range(len(out)):
        out[group] = np.nan
        for row in range(start[group], start[group + 1]):
            if not np.isnan(values[row]):
                if np.isnan(out[group]):
                    out[group] = values[row]
                elif out[group] != values[row]:
                    return False
    return True


@compiled
def places_of_teams(slot_start: Integers, place: Integers, out: Integers) -> bool:
    """Write the place of each team; False if its rows differ or have none (below 1)."""
    for team in range(len(out)):
        first = slot_start[team]
        out[team] = place[first]
        for row in range(first, slot_start[team + 1]):
            if place[row] != place[first] or place[row] < 1:
                return False
    return True


@compiled
def count_activity(
    match_slots: Integers, time: Times, player: Integers, quit_: Flags, keep: Flags, seen: NDArray[np.void]
) -> None:
    """Add the matches to the records of their players (see activity.SEEN)."""
    for m in range(len(time)):
        for slot in range(match_slots[m], match_slots[m + 1]):
            own = seen[player[slot]]
            own.appearances += 1
            if keep[slot]:
                own.matches += 1
                own.last_played = time[m]
                if not quit_[slot]:
                    own.completed += 1
                    own.last_completed = time[m]


@compiled
def count_before(match_slots: Integers, player: Integers, played: Rows, fewest: Rows) -> None:
    """Write the number of earlier matches of the least experienced player of each match.

    played  int64 (P,)  matches of each player so far; counted on
    """
    for m in range(len(fewest)):
        least = played[player[match_slots[m]]]
        for slot in range(match_slots[m], match_slots[m + 1]):
            least = min(least, played[player[slot]])
            played[player[slot]] += 1
        fewest[m] = least
