"""Infer team performances from the order of finish of three or more teams, by message passing.

The teams at a place share a level. A team alone at its place performs at its level; tied teams perform near theirs. A
level is more than a draw margin above the next. Definition: docs/systems/trueskill.md.

Beliefs and messages are normal distributions, given by pi, the precision, and tau, the precision times the mean.
"""

from __future__ import annotations

import math

from evenmatch.history import Columns, Floats
from evenmatch.systems.compiled import kernel, rarely
from evenmatch.systems.finish_order import sort_teams
from evenmatch.systems.maths import draw_v_w, v_win, w_win

CLOSE = 1e-9  # in deviations: message passing ends when messages move less than this
LEAST_PART = 1 / 16  # the smallest part of the way that messages of tied teams move in a sweep
# Columns of scratch where rows are teams in listed order: the performance before the match, the number of players, the
# message to the team's level, and the message to the team, which is the result.
MEAN, VARIANCE, PLAYERS, TOLD_PI, TOLD_TAU, ANSWER_PI, ANSWER_TAU = range(7)
ORDER = 7  # where rows are ranks: the team that finished there
# Where rows are levels, the best first: the ranks of the level's teams, their mean number of players, the variance of
# their mean performance around the level, the sum of their messages, and the messages from the levels above and below.
BEGIN, END, SIZE, SPREAD, LEVEL_PI, LEVEL_TAU, ABOVE_PI, ABOVE_TAU, BELOW_PI, BELOW_TAU = range(8, 18)
COLUMNS = 18

Message = tuple[float, float]


@rarely
def pass_messages(h: Columns, first: int, count: int, margin: float, sweeps: int, scratch: Floats) -> None:
    """Write the message to each team of a match into scratch, whose first three columns hold the teams.

    margin  the draw margin of one player
    sweeps  the most passes of messages between all levels
    """
    sort_teams(h, first, count, MEAN, TOLD_PI, scratch, ORDER)
    levels = form_levels(h, first, count, margin, scratch)
    part, before = 1.0, math.inf
    for _ in range(sweeps):
        moved = 0.0
        for level in range(levels):
            if scratch[level, END] - scratch[level, BEGIN] > 1.0:
                moved = max(moved, tie_teams(level, margin, part, scratch))
        for step in range(2 * (levels - 1)):  # down the levels, then up
            upper = step if step < levels - 1 else 2 * (levels - 1) - 1 - step
            moved = max(moved, compare_levels(upper, margin, scratch))
        if moved < CLOSE:
            break
        if moved > before:  # messages oscillate when many tied teams respond to each other
            part = max(0.5 * part, LEAST_PART)
        before = moved
    for level in range(levels):
        answer_teams(level, margin, scratch)


@kernel
def slack_of(players: float, margin: float) -> float:
    """The farthest that a tied team can perform from its level: half the draw margin of two teams of its size."""
    return margin * math.sqrt(0.5 * players)


@rarely
def form_levels(h: Columns, first: int, count: int, margin: float, scratch: Floats) -> int:
    """Form a level for each place, and return the number of levels.

    The first message of a tied team is the one it would send if nothing else were known about its level.
    """
    levels, begin = 0, 0
    while begin < count:
        place, end = h.place[first + int(scratch[begin, ORDER])], begin + 1
        while end < count and h.place[first + int(scratch[end, ORDER])] == place:
            end += 1
        for column in range(SIZE, COLUMNS):
            scratch[levels, column] = 0.0
        scratch[levels, BEGIN], scratch[levels, END] = float(begin), float(end)
        share = 1.0 / (end - begin)
        for rank in range(begin, end):
            row = int(scratch[rank, ORDER])
            slack = slack_of(scratch[row, PLAYERS], margin) if share < 1.0 else 0.0
            spread = slack * slack / 3.0  # variance of a uniform distribution
            pi = 1.0 / (scratch[row, VARIANCE] + spread)
            scratch[row, TOLD_PI], scratch[row, TOLD_TAU] = pi, scratch[row, MEAN] * pi
            scratch[levels, SIZE] += share * scratch[row, PLAYERS]
            scratch[levels, SPREAD] += share * share * spread
            scratch[levels, LEVEL_PI] += scratch[row, TOLD_PI]
            scratch[levels, LEVEL_TAU] += scratch[row, TOLD_TAU]
        begin = end
        levels += 1
    return levels


@kernel
def belief_change(pi: float, tau: float, old_pi: float, old_tau: float, new_pi: float, new_tau: float) -> float:
    """How far replacing one message by another moves a mean, in deviations, and a precision, relatively."""
    before, after = (tau + old_tau) / (pi + old_pi), (tau + new_tau) / (pi + new_pi)
    return abs(after - before) * math.sqrt(pi + new_pi) + abs(new_pi - old_pi) / (pi + new_pi)


@kernel
def messages(
    left_pi: float, left_tau: float, right_pi: float, right_tau: float, margin: float, tied: bool
) -> tuple[float, float, float, float]:
    """The messages to two variables from comparing them: pi and tau for left, then for right.

    tied  whether both are within the margin of each other; otherwise left exceeds right by more than the margin
    """
    left, right = left_tau / left_pi, right_tau / right_pi
    variance = 1.0 / left_pi + 1.0 / right_pi
    deviation = math.sqrt(variance)
    lead, width = (left - right) / deviation, margin / deviation
    if tied:
        v, w = draw_v_w(lead, width)
    else:
        v = v_win(lead - width)
        w = w_win(lead - width, v)
    known = 1.0 / max(1.0 - w, 1e-12)
    # The message to the difference: the truncated normal divided by the previous one.
    pi = (known - 1.0) / variance
    tau = ((left - right + deviation * v) * known - (left - right)) / variance
    to_left, to_right = 1.0 / (1.0 + pi / right_pi), 1.0 / (1.0 + pi / left_pi)
    return pi * to_left, (tau + pi * right) * to_left, pi * to_right, (pi * left - tau) * to_right


@kernel
def share_left(pi: float, spread: float) -> float:
    """The share of a precision that is left when a variance of `spread` is added."""
    return 1.0 / (1.0 + pi * spread) if spread > 0.0 else 1.0


@rarely
def compare_levels(upper: int, margin: float, scratch: Floats) -> float:
    """Update the messages between a level and the next, and return how far they moved.

    The comparison uses the teams' mean performances, which differ from the levels if teams are tied.
    """
    lower = upper + 1
    left_pi = scratch[upper, LEVEL_PI] + scratch[upper, ABOVE_PI]
    left_tau = scratch[upper, LEVEL_TAU] + scratch[upper, ABOVE_TAU]
    right_pi = scratch[lower, LEVEL_PI] + scratch[lower, BELOW_PI]
    right_tau = scratch[lower, LEVEL_TAU] + scratch[lower, BELOW_TAU]
    left_spread, right_spread = scratch[upper, SPREAD], scratch[lower, SPREAD]
    width = margin * math.sqrt(scratch[upper, SIZE] + scratch[lower, SIZE])
    left, right = share_left(left_pi, left_spread), share_left(right_pi, right_spread)
    new = messages(left_pi * left, left_tau * left, right_pi * right, right_tau * right, width, False)
    left, right = share_left(new[0], left_spread), share_left(new[2], right_spread)
    pi, tau = new[0] * left, new[1] * left
    moved = belief_change(left_pi, left_tau, scratch[upper, BELOW_PI], scratch[upper, BELOW_TAU], pi, tau)
    scratch[upper, BELOW_PI], scratch[upper, BELOW_TAU] = pi, tau
    pi, tau = new[2] * right, new[3] * right
    moved += belief_change(right_pi, right_tau, scratch[lower, ABOVE_PI], scratch[lower, ABOVE_TAU], pi, tau)
    scratch[lower, ABOVE_PI], scratch[lower, ABOVE_TAU] = pi, tau
    return moved


@kernel
def level_without(level: int, row: int, scratch: Floats) -> Message:
    """Belief about a level from everything but one of its teams."""
    pi = scratch[level, LEVEL_PI] - scratch[row, TOLD_PI] + scratch[level, ABOVE_PI] + scratch[level, BELOW_PI]
    tau = scratch[level, LEVEL_TAU] - scratch[row, TOLD_TAU] + scratch[level, ABOVE_TAU] + scratch[level, BELOW_TAU]
    return pi, tau


@rarely
def tie(
    row: int, level_pi: float, level_tau: float, margin: float, scratch: Floats
) -> tuple[float, float, float, float]:
    """The messages to a tied team and to its level: pi and tau for the team, then for the level."""
    pi = 1.0 / scratch[row, VARIANCE]
    return messages(pi, scratch[row, MEAN] * pi, level_pi, level_tau, slack_of(scratch[row, PLAYERS], margin), True)


@rarely
def tie_teams(level: int, margin: float, part: float, scratch: Floats) -> float:
    """Move the messages of a level's teams, all at once, and return how far the largest moved.

    part  how far a message moves towards its new value, from 0 to 1
    """
    moved, pi_sum, tau_sum = 0.0, 0.0, 0.0
    for rank in range(int(scratch[level, BEGIN]), int(scratch[level, END])):
        row = int(scratch[rank, ORDER])
        pi, tau = level_without(level, row, scratch)
        _, _, new_pi, new_tau = tie(row, pi, tau, margin, scratch)
        old_pi, old_tau = scratch[row, TOLD_PI], scratch[row, TOLD_TAU]
        # If all messages vanished at once, nothing would be known about the level.
        way = part if new_pi > 0.5 * old_pi else min(part, 0.5)
        new_pi, new_tau = old_pi + way * (new_pi - old_pi), old_tau + way * (new_tau - old_tau)
        moved = max(moved, belief_change(pi, tau, old_pi, old_tau, new_pi, new_tau))
        scratch[row, TOLD_PI], scratch[row, TOLD_TAU] = new_pi, new_tau
        pi_sum += new_pi
        tau_sum += new_tau
    scratch[level, LEVEL_PI], scratch[level, LEVEL_TAU] = pi_sum, tau_sum
    return moved


@rarely
def answer_teams(level: int, margin: float, scratch: Floats) -> None:
    """Write the messages to the teams of a level."""
    begin, end = int(scratch[level, BEGIN]), int(scratch[level, END])
    for rank in range(begin, end):
        row = int(scratch[rank, ORDER])
        pi = scratch[level, ABOVE_PI] + scratch[level, BELOW_PI]
        tau = scratch[level, ABOVE_TAU] + scratch[level, BELOW_TAU]
        if end - begin > 1:
            level_pi, level_tau = level_without(level, row, scratch)
            pi, tau, _, _ = tie(row, level_pi, level_tau, margin, scratch)
        scratch[row, ANSWER_PI], scratch[row, ANSWER_TAU] = pi, tau
