"""Kernels that decide whether players can cover the roles of a team, by Hall's condition."""

from __future__ import annotations

import numpy as np

from evenmatch.matchmaking.records import INT64, QueueView, compiled, lean, lean_inner
from evenmatch.matchmaking.tickets import Whole


@lean
def add(held: Whole, room: Whole, times: int, mask: int) -> bool:
    """Count a player who offers the roles in `mask`, or return False if `times` teams have no room for one more.

    held  int64 (2^R,)  by subset of roles: the counted players who offer no role outside the subset; updated
    room  int64 (2^R,)  how many of these players fit into one team, including free seats
    """
    for subset in range(len(room)):
        if mask & ~subset == 0 and held[subset] + 1 > times * room[subset]:
            return False
    for subset in range(len(room)):
        if mask & ~subset == 0:
            held[subset] += 1
    return True


@lean_inner
def take_back(held: Whole, mask: int) -> None:
    """Undo `add`."""
    for subset in range(len(held)):
        if mask & ~subset == 0:
            held[subset] -= 1


@lean
def add_party(held: Whole, room: Whole, times: int, v: QueueView, j: int) -> bool:
    """Count all members of the party at place `j` of the view, or none of them and return False."""
    first = v.t[j].first
    for m in range(first, first + v.t[j].size):
        if not add(held, room, times, v.role[m]):
            for done in range(first, m):
                take_back(held, v.role[done])
            return False
    return True


@lean_inner
def covers(v: QueueView, room: Whole, own: Whole, team: Whole, number: int, held: Whole) -> bool:
    """Whether team `number` covers its roles; `team` is the team of each ticket of `own`, `held` is scratch."""
    held[:] = 0
    good = True
    for i in range(len(own)):
        if team[i] == number:
            good = good and add_party(held, room, INT64(1), v, own[i])
    return good


@compiled
def assign(masks: Whole, need: Whole, out: Whole) -> bool:
    """Assign each player of a full team an offered role, or a free seat (-1). Returns False if that is impossible.

    masks  int64 (S,)  offered roles of each player;  need  int64 (R,)  required number of each role;  out  int64 (S,)
    Bipartite matching with augmenting paths (Kuhn 1955), which finds a solution whenever one exists.
    """
    seats, players = need.sum(), len(masks)
    role_of, holder = np.empty(seats, np.int64), np.full(seats, -1, np.int64)
    seat = 0
    for role in range(len(need)):
        for _ in range(need[role]):
            role_of[seat] = role
            seat += 1
    held = np.full(players, -1, np.int64)
    came, waiting = np.empty(players, np.int64), np.empty(seats, np.int64)
    for begin in range(seats):
        came[:] = -1
        waiting[0], depth, count, found = begin, 0, 1, -1
        while depth < count and found < 0:
            seat = waiting[depth]
            depth += 1
            for player in range(players):
                if came[player] < 0 and masks[player] >> role_of[seat] & 1:
                    came[player] = seat
                    if held[player] < 0:
                        found = player
                        break
                    waiting[count] = held[player]
                    count += 1
        if found < 0:
            return False
        player, seat = found, -1
        while seat != begin:
            seat = came[player]
            held[player] = seat
            holder[seat], player = player, holder[seat]
    for player in range(players):
        out[player] = role_of[held[player]] if held[player] >= 0 else -1
    return True
