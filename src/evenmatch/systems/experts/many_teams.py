"""Matches of three or more teams: one parallel sweep of expectation propagation over the pairs of teams."""

from __future__ import annotations

import math

from evenmatch.history import Columns, Floats, Integers
from evenmatch.systems.compiled import kernel, rarely
from evenmatch.systems.experts.mixing import (
    TRIANGLE,
    calibrated_weight,
    calibration_of,
    learn_calibration,
    learn_weights_of_many,
    scale_of,
)
from evenmatch.systems.experts.players import (
    SLOT_COLUMNS,
    begin_slot,
    belief,
    experience_of,
    finish_slot,
    in_deviations,
    is_unknown,
    learn,
    learn_gain,
    learn_offsets,
    note_slot,
    pool_of,
    share_of,
    team_sums,
    watch_number,
    watch_values,
)
from evenmatch.systems.experts.records import CONTEXTS, EXPERTS, LEARNING, SLOPE, Even, Record
from evenmatch.systems.experts.scores import learn_scores, watch_scores
from evenmatch.systems.experts.two_teams import ENTRY_STEP, learn_entry_slope
from evenmatch.systems.finish_order import rank_teams
from evenmatch.systems.ladder_records import LadderRecords, Records
from evenmatch.systems.maths import logistic, score_of

# Columns of scratch after those of a slot. Up to RANK, rows are teams: mean and noise by each expert, experience, sums
# of the messages of rivals (gradient and precision), and the rank that equal teams share. In ORDER, rows are ranks: the
# team that finished there. After that, in row 0: the log-odds of a pair, what `learn_weights_of_many` works on, and the
# gradient and the curvature by the calibration.
MEAN = SLOT_COLUMNS
NOISE = MEAN + EXPERTS
KNOWN = NOISE + EXPERTS
PUSH = KNOWN + 1
PULL = PUSH + EXPERTS
RANK = PULL + EXPERTS
ORDER = RANK + 1
PAIR = ORDER + 1
WORK = PAIR + EXPERTS
WORK_COLUMNS = EXPERTS + TRIANGLE + 2 * EXPERTS
CALIBRATION = WORK + WORK_COLUMNS
COLUMNS = CALIBRATION + 2

OWN_NOISE = 0.5  # variance of a team's performance: that of a difference is 1
CERTAIN = 0.6  # the share of a contest's curvature that makes ratings more certain, since its rivals err together
WORTH = 20.0  # a large contest counts for the weights as at most this many two-team results


@rarely
def many_team_odds(
    a: Integers, b: Integers, now: int, state: Records, ladder: LadderRecords, params: Even
) -> tuple[float, float]:
    """The mixture's probability that team a finishes ahead of team b. Draws count half and are not predicted."""
    pool = pool_of(ladder, params)
    mixed = 0.0
    known = experience_of(a, state) - experience_of(b, state)
    for expert in range(params.experts):
        _, mean, variance = team_sums(a, ladder.first, ladder.first_entry, expert, now, state, ladder, params)
        sums = team_sums(b, ladder.second, ladder.second_entry, expert, now, state, ladder, params)
        _, rival_mean, rival_variance = sums
        slope = SLOPE / math.sqrt(variance + rival_variance + 2.0 * OWN_NOISE)
        lead = mean - rival_mean + known * ladder.records[pool].experience[expert]
        mixed += ladder.records[pool].weight[expert] * slope * lead
    return logistic(calibration_of(ladder, pool) * mixed), 0.0


@kernel
def compare(scratch: Floats, i: int, j: int, score: float, record: Record, calibration: float, params: Even) -> None:
    """Add the messages of a pair of teams to each other, and the pair's information about the weights."""
    mixed = 0.0
    for expert in range(params.experts):
        noise, rival_noise = scratch[i, NOISE + expert], scratch[j, NOISE + expert]
        slope = SLOPE / math.sqrt(noise + rival_noise)
        x = slope * (scratch[i, MEAN + expert] - scratch[j, MEAN + expert])
        scratch[0, PAIR + expert] = x
        mixed += record.weight[expert] * x
        chance = logistic(x)
        push, pull = slope * (score - chance), slope * slope * chance * (1.0 - chance)
        to_own = pull / (1.0 - min(noise * pull, 0.99))
        to_rival = pull / (1.0 - min(rival_noise * pull, 0.99))
        scratch[i, PUSH + expert] += push * (1.0 + noise * to_own)
        scratch[i, PULL + expert] += to_own
        scratch[j, PUSH + expert] -= push * (1.0 + rival_noise * to_rival)
        scratch[j, PULL + expert] += to_rival
    calibrated = logistic(calibration * mixed)
    scratch[0, CALIBRATION] += mixed * (score - calibrated)
    scratch[0, CALIBRATION + 1] += mixed * mixed * calibrated * (1.0 - calibrated)
    chance = logistic(mixed)
    surprise, information = score - chance, chance * (1.0 - chance)
    entry = WORK + EXPERTS
    for row in range(params.experts):
        x = scratch[0, PAIR + row]
        scratch[0, WORK + row] += x * surprise
        for column in range(row + 1):
            scratch[0, entry] += x * scratch[0, PAIR + column] * information
            entry += 1


@rarely
def update_many_teams(
    h: Columns, m: int, state: Records, ladder: LadderRecords, params: Even, factors: Records, scratch: Floats
) -> None:
    """Send messages between all pairs of teams. Experts learn from the sums, the weights from the mean over pairs."""
    first, end = h.team_start[m], h.team_start[m + 1]
    low, high = h.slot_start[first], h.slot_start[end]
    numbers = h.entry[low:high] if len(ladder.first_entry) > 0 else h.entry[:0]
    pool, teams = pool_of(ladder, params), int(end - first)
    shared = ladder.records[pool]
    average = read_teams(h, m, teams, state, ladder, pool, params, scratch)
    pairs = compare_teams(h, first, teams, ladder, pool, params, scratch)
    times = (teams - 1.0) * teams / (2.0 * pairs)  # rivals that each compared one stands for
    scale = scale_of(shared, params)
    for slot in range(low, high):
        begin_slot(scratch, slot - low)
    for expert in range(params.experts):
        learn_expert(h, m, teams, expert, times, average, state, ladder, pool, params, scratch, len(factors) > 0)
    if params.scores >= 0:
        learn_scores(h, low, high, state, ladder, pool, params, scratch)
        watch_scores(h, low, high, ladder)
    for column in range(WORK, COLUMNS):
        scratch[0, column] /= pairs
    worth = min(0.5 * teams, WORTH)
    learn_calibration(ladder, pool, worth * scratch[0, CALIBRATION], worth * scratch[0, CALIBRATION + 1], worth)
    learn_weights_of_many(shared, scratch[:1, WORK:], worth, params)
    ladder.records[ladder.own].matches += 1.0
    watch_values(ladder, pool)
    for slot in range(low, high):
        if len(factors):
            note = factors[slot]
            note.side = note.line_up = 0.0
            note_slot(state, h.player[slot], params, scratch, slot - low, note)
        if h.keep[slot]:
            watch_number(numbers, slot - low, state[h.player[slot]], shared, params)
        finish_slot(state, h.player[slot], scale, h.time[m], params, scratch, slot - low)


@kernel
def read_teams(
    h: Columns, m: int, teams: int, state: Records, ladder: LadderRecords, pool: int, params: Even, scratch: Floats
) -> float:
    """Write each team's mean and noise by each expert into scratch; return the teams' average experience."""
    first, average = h.team_start[m], 0.0
    shared, contexts, numbers = ladder.records[pool], len(ladder.values), min(len(ladder.first_entry), 1)
    for column in range(WORK, COLUMNS):
        scratch[0, column] = 0.0
    for team in range(teams):
        start, stop = h.slot_start[first + team], h.slot_start[first + team + 1]
        members, offset = h.player[start:stop], h.offset[start * contexts : stop * contexts]
        known_numbers = h.entry[start * numbers : stop * numbers]
        known = experience_of(members, state)
        for column in range(MEAN, RANK):
            scratch[team, column] = 0.0
        scratch[team, KNOWN] = known
        average += known / teams
        for expert in range(params.experts):
            sums = team_sums(members, offset, known_numbers, expert, h.time[m], state, ladder, params)
            _, mean, variance = sums
            scratch[team, MEAN + expert] = mean + known * shared.experience[expert]
            scratch[team, NOISE + expert] = variance + OWN_NOISE
    return average


@kernel
def compare_teams(
    h: Columns, first: int, teams: int, ladder: LadderRecords, pool: int, params: Even, scratch: Floats
) -> float:
    """Compare all pairs of teams, or a sample; return how many.

    With more than `rivals` + 1 teams, each is compared with rivals evenly spaced around the order of finish.
    """
    pairs, shared, calibration = 0.0, ladder.records[pool], calibration_of(ladder, pool)
    whole = teams - 1 <= params.rivals
    steps = teams // 2 if whole else params.rivals // 2
    if not whole:
        rank_teams(h, first, teams, MEAN, PUSH, scratch, ORDER, RANK)
    for step in range(1, steps + 1):
        apart = step if whole else max(step * (teams // 2) // (steps + 1), 1)
        for rank in range(apart if 2 * apart == teams else teams):
            other = (rank + apart) % teams
            i = rank if whole else int(scratch[rank, ORDER])
            j = other if whole else int(scratch[other, ORDER])
            score = score_of(int(h.place[first + j]) - int(h.place[first + i]))
            compare(scratch, i, j, score, shared, calibration, params)
            pairs += 1.0
    if not whole:
        share_messages(teams, scratch)
    return pairs


@rarely
def share_messages(teams: int, scratch: Floats) -> None:
    """Give equal teams the mean of their messages, since each of them was compared with other rivals."""
    begin = 0
    while begin < teams:
        end = begin + 1
        while end < teams and scratch[int(scratch[end, ORDER]), RANK] == begin:
            end += 1
        for column in range(PUSH, RANK):
            total = 0.0
            for rank in range(begin, end):
                total += scratch[int(scratch[rank, ORDER]), column]
            for rank in range(begin, end):
                scratch[int(scratch[rank, ORDER]), column] = total / (end - begin)
        begin = end


@rarely
def learn_expert(
    h: Columns,
    m: int,
    teams: int,
    expert: int,
    times: float,
    average: float,
    state: Records,
    ladder: LadderRecords,
    pool: int,
    params: Even,
    scratch: Floats,
    noted: bool,
) -> None:
    """Update one expert's players and newcomers from the messages to their teams."""
    first, now = h.team_start[m], h.time[m]
    low, shared = h.slot_start[first], ladder.records[pool]
    weight, numbers = calibrated_weight(shared, expert), min(len(ladder.first_entry), 1)
    newcomers_push = newcomers_pull = slope_push = slope_pull = experience_push = experience_pull = 0.0
    for team in range(teams):
        start, stop = h.slot_start[first + team], h.slot_start[first + team + 1]
        push, pull = message_to(team, expert, times, scratch)
        share = share_of(int(stop - start), expert, params)
        known_numbers = h.entry[start * numbers : stop * numbers]
        learning = by_number = 0.0
        for slot in range(start, stop):
            player = h.player[slot]
            begun, before = belief(state, player, known_numbers, slot - start, expert, now, shared, params)
            if state[player].games < LEARNING:
                taught = share * min(before / params.variance[expert], 1.0)
                learning += taught
                if is_unknown(state[player], params):
                    unit = in_deviations(known_numbers, slot - start, shared)
                    by_number += 0.0 if math.isnan(unit) else taught * unit
            learn(
                state,
                player,
                expert,
                weight,
                begun,
                before,
                push,
                push,
                CERTAIN * pull,
                0.0,
                share,
                0.0,
                0.0,
                params,
                scratch,
                slot - low,
                noted,
            )
        newcomers_push += learning * push
        newcomers_pull += learning * learning * pull
        slope_push += by_number * push
        slope_pull += by_number * by_number * pull
        known = scratch[team, KNOWN] - average
        experience_push += known * push
        experience_pull += known * known * pull
    for column in range(len(ladder.values)):
        if shared.values[column] > 1.0:
            learn_context(h, first, teams, expert, column, times, ladder, shared, params, scratch)
    learn_entry_of_many(shared, expert, newcomers_push, newcomers_pull, params)
    learn_entry_slope(shared, expert, slope_push, slope_pull)
    learn_experience_of_many(shared, expert, experience_push, experience_pull)


@kernel
def message_to(team: int, expert: int, times: float, scratch: Floats) -> tuple[float, float]:
    """The gradient and the curvature of a team's result, from the messages of its rivals."""
    noise, pull = scratch[team, NOISE + expert], times * scratch[team, PULL + expert]
    return times * scratch[team, PUSH + expert] / (1.0 + noise * pull), pull / (1.0 + noise * pull)


@kernel
def learn_context(
    h: Columns,
    first: int,
    teams: int,
    expert: int,
    column: int,
    times: float,
    ladder: LadderRecords,
    shared: Record,
    params: Even,
    scratch: Floats,
) -> None:
    """Learn about the players under the match's value in a context column, and how much the column counts."""
    contexts, gain = len(ladder.values), shared.gain[expert * CONTEXTS + column]
    average = pushes = pulls = by_lead = pulls_by_lead = pulls_by_square = 0.0
    for team in range(teams):
        start, stop = h.slot_start[first + team], h.slot_start[first + team + 1]
        push, pull = message_to(team, expert, times, scratch)
        size, offset = int(stop - start), h.offset[start * contexts : stop * contexts]
        share = share_of(size, expert, params)
        lead = learn_offsets(offset, size, column, ladder, expert, gain, push, CERTAIN * pull, share, 0.0, 0.0)
        average += lead / teams
        pushes += push
        pulls += pull
        by_lead += lead * push
        pulls_by_lead += lead * pull
        pulls_by_square += lead * lead * pull
    learn_gain(
        shared,
        expert,
        column,
        by_lead - average * pushes,
        max(pulls_by_square - 2.0 * average * pulls_by_lead + average * average * pulls, 0.0),
    )


@kernel
def learn_entry_of_many(shared: Record, expert: int, push: float, pull: float, params: Even) -> None:
    """Learn the newcomers' mean from all teams at once; `push` is the gradient, `pull` the curvature."""
    variance = shared.entry_variance[expert] / (1.0 + shared.entry_variance[expert] * pull)
    most = 3.0 * math.sqrt(params.variance[expert])
    shared.entry[expert] = min(max(shared.entry[expert] + variance * push, -most), most)
    shared.entry_variance[expert] = variance + ENTRY_STEP


@kernel
def learn_experience_of_many(shared: Record, expert: int, push: float, pull: float) -> None:
    """Learn the value of experience from all teams at once; `push` is the gradient, `pull` the curvature."""
    variance = shared.experience_variance[expert] / (1.0 + shared.experience_variance[expert] * pull)
    shared.experience[expert] += variance * push
    shared.experience_variance[expert] = variance
