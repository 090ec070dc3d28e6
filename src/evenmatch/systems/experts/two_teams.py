"""Matches of two teams: odds with first-side advantage and extra players, and what each expert learns."""

from __future__ import annotations

import math

from evenmatch.history import Columns, Floats, Integers
from evenmatch.systems.compiled import kernel, rarely
from evenmatch.systems.experts.margins import (
    HALF,
    OUTLIER,
    margin_of,
    margin_scale,
    watch_margin,
    watch_worth,
)
from evenmatch.systems.experts.mixing import (
    calibrated_weight,
    calibration_of,
    learn_calibration,
    learn_weights,
    log_odds,
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
    team_sums,
    watch_number,
    watch_values,
)
from evenmatch.systems.experts.records import CONTEXTS, DRAW, FADE, LEARNING, POINTS, SLOPE, Even, Record
from evenmatch.systems.experts.scores import learn_scores, watch_scores
from evenmatch.systems.ladder_records import LadderRecords, Records
from evenmatch.systems.maths import logistic, play_share, score_of

# Columns of scratch after those of a slot: in row 0 the experts' log-odds and room for five numbers, in row 1 the
# chances of side and sizes.
ODDS = SLOT_COLUMNS

ENTRY_STEP = 1e-6  # variance that a match adds to that of newcomers
VALUE_SIDE = 0.3  # how much the first side's advantage under a context value may differ, compared with ladders
VALUE_DRAWS = 20.0  # further prior draws under a context value, both seen and predicted
FEWEST = 0.5  # players: the size of a team that everybody has left


@kernel
def advantage_of(ladder: LadderRecords, pool: int, expert: int) -> tuple[float, float]:
    """The advantage of the first side on a ladder, and its variance."""
    shared, own = ladder.records[pool], ladder.records[ladder.own]
    side = shared.side[expert] + own.own_side[expert]
    variance = shared.side_variance[expert] + own.own_side_variance[expert]
    for column in range(len(ladder.values)):
        if ladder.values[column] != ladder.own and shared.values[column] > 1.0:
            value = ladder.records[ladder.values[column]]
            side += VALUE_SIDE * value.own_side[expert]
            variance += VALUE_SIDE * VALUE_SIDE * value.own_side_variance[expert]
    return side, variance


@kernel
def log_ratio(size: int, rival_size: int) -> float:
    """The log size ratio of two teams."""
    return 0.0 if size == rival_size else math.log(float(size) / float(rival_size))


@kernel
def left_by_leavers(h: Columns, m: int) -> float:
    """Change in the log size ratio caused by players who left; each counts for the part of the match they played."""
    first = h.team_start[m]
    low, middle, high = h.slot_start[first], h.slot_start[first + 1], h.slot_start[first + 2]
    own, rivals, left = 0.0, 0.0, False
    for slot in range(low, high):
        part = 1.0
        if h.quit[slot]:
            part, left = play_share(h, m, slot), True
        own += part if slot < middle else 0.0
        rivals += part if slot >= middle else 0.0
    if not left:
        return 0.0
    return math.log(max(own, FEWEST) / max(rivals, FEWEST)) - log_ratio(middle - low, high - middle)


@kernel
def prediction(
    a: Integers,
    b: Integers,
    expert: int,
    home: bool,
    known: float,
    more: float,
    now: int,
    state: Records,
    ladder: LadderRecords,
    params: Even,
) -> tuple[float, float, float, float, float, float, float]:
    """An expert's prediction: the lead of team a, its variance including noise, then each team's member weight and
    variance, and the part of the lead that comes from the side.

    known  how much more experienced team a is;  more: the log size ratio
    """
    pool = pool_of(ladder, params)
    share, mean, variance = team_sums(a, ladder.first, ladder.first_entry, expert, now, state, ladder, params)
    sums = team_sums(b, ladder.second, ladder.second_entry, expert, now, state, ladder, params)
    rival_share, rival_mean, rival_variance = sums
    lead, spread = mean - rival_mean, variance + rival_variance + 1.0
    lead += known * ladder.records[pool].experience[expert]
    spread += known * known * ladder.records[pool].experience_variance[expert]
    side, side_variance = advantage_of(ladder, pool, expert) if home else (0.0, 0.0)
    lead += side
    spread += side_variance
    lead += more * ladder.records[pool].body[expert]
    spread += more * more * ladder.records[pool].body_variance[expert]
    return lead, spread, share, variance, rival_share, rival_variance, side


@kernel
def chances(lead: float, spread: float) -> tuple[float, float]:
    """The probabilities that the performance difference is above −DRAW, and above DRAW."""
    slope = SLOPE / math.sqrt(spread)
    return logistic(slope * (lead + DRAW)), logistic(slope * (lead - DRAW))


@rarely
def two_team_odds(
    a: Integers, b: Integers, home: bool, now: int, state: Records, ladder: LadderRecords, params: Even
) -> tuple[float, float]:
    """The mixture's probabilities that team a wins, and that they draw."""
    pool = pool_of(ladder, params)
    mixed, drawn, total = 0.0, 0.0, 0.0
    known = experience_of(a, state) - experience_of(b, state)
    more = log_ratio(len(a), len(b))
    for expert in range(params.experts):
        lead, spread, _, _, _, _, _ = prediction(a, b, expert, home, known, more, now, state, ladder, params)
        above, over = chances(lead, spread)
        weight = ladder.records[pool].weight[expert]
        mixed += weight * log_odds(0.5 * (above + over))
        drawn += weight * (above - over)
        total += weight
    score = logistic(calibration_of(ladder, pool) * mixed)
    draw = min(drawn / total * draw_rate(ladder, pool), 2.0 * score, 2.0 * (1.0 - score))
    return score - 0.5 * draw, draw


@kernel
def draw_rate(ladder: LadderRecords, pool: int) -> float:
    """Draws seen over draws predicted: on the ladder, then under each of the match's context values."""
    shared, own = ladder.records[pool], ladder.records[ladder.own]
    rate = own.draws / own.predicted_draws
    for column in range(len(ladder.values)):
        if ladder.values[column] != ladder.own and shared.values[column] > 1.0:
            rate *= value_draw_rate(ladder.records[ladder.values[column]])
    return rate


@kernel
def value_draw_rate(value: Record) -> float:
    """Draws seen under a context value over draws predicted without it."""
    return (value.draws + VALUE_DRAWS) / (value.predicted_draws + VALUE_DRAWS)


@kernel
def watch_draws(ladder: LadderRecords, pool: int, predicted: float, drawn: bool) -> None:
    """Count a match and its predicted probability of a draw, on the ladder and under each of its context values."""
    corrected, shared, own = predicted * draw_rate(ladder, pool), ladder.records[pool], ladder.records[ladder.own]
    own.draws += 1.0 if drawn else 0.0
    own.predicted_draws += predicted
    for column in range(len(ladder.values)):
        if ladder.values[column] != ladder.own:
            value = ladder.records[ladder.values[column]]
            rate = value_draw_rate(value) if shared.values[column] > 1.0 else 1.0
            value.draws += 1.0 if drawn else 0.0
            value.predicted_draws += corrected / rate


@kernel
def result_gradient(above: float, over: float, slope: float, lead: int) -> tuple[float, float]:
    """The gradient of a result's log-likelihood with respect to the lead, and its curvature.

    lead  the place of the second team minus that of the first
    """
    fall, rise = over * (1.0 - over), above * (1.0 - above)
    if lead > 0:
        return slope * (1.0 - over), slope * slope * fall
    if lead < 0:
        return -slope * above, slope * slope * rise
    return slope * (1.0 - above - over), slope * slope * (rise + fall)


@kernel
def update_two_teams(
    h: Columns,
    m: int,
    state: Records,
    ladder: LadderRecords,
    params: Even,
    expected: Floats,
    factors: Records,
    scratch: Floats,
) -> None:
    """Update each expert separately, then the weights of the mixture, then the shown ratings."""
    first = h.team_start[m]
    low, middle, high = h.slot_start[first], h.slot_start[first + 1], h.slot_start[first + 2]
    ahead = h.place[first + 1] - h.place[first]
    pool = pool_of(ladder, params)
    shared, own = ladder.records[pool], ladder.records[ladder.own]
    margin = margin_of(h, first, ahead)
    scale = scale_of(shared, params)
    left = left_by_leavers(h, m)
    known = experience_of(h.player[low:middle], state) - experience_of(h.player[middle:high], state)
    more = log_ratio(middle - low, high - middle)
    mixed, drawn, by_side, by_sizes = 0.0, 0.0, 0.0, 0.0  # the first is not calibrated
    turned = 0.0
    for slot in range(low, high):
        begin_slot(scratch, slot - low)
        turned += state[h.player[slot]].by_margins if slot < middle else -state[h.player[slot]].by_margins
    noted = len(factors) > 0
    for expert in range(params.experts):
        weight = calibrated_weight(shared, expert)
        x, draw, side, sizes = rate_by_expert(
            h, m, expert, margin, left, known, more, turned / scale, state, ladder, pool, params, scratch, noted
        )
        scratch[0, ODDS + expert] = x
        mixed += shared.weight[expert] * x
        drawn += weight * draw
        by_side += weight * side
        by_sizes += weight * sizes
    if params.scores >= 0:
        learn_scores(h, low, high, state, ladder, pool, params, scratch)
        watch_scores(h, low, high, ladder)
    score, odds = score_of(ahead), calibration_of(ladder, pool) * mixed
    chance = logistic(odds)
    expected[first], expected[first + 1] = chance, 1.0 - chance
    learn_calibration(ladder, pool, mixed * (score - chance), mixed * mixed * chance * (1.0 - chance), 1.0)
    learn_trust(own, SLOPE * turned, odds, score)
    learn_weights(shared, scratch, 0, ODDS, logistic(mixed), score, params)
    watch_draws(ladder, pool, drawn / scale, ahead == 0)
    if not math.isnan(margin):
        own.margins += 1.0
        if ahead != 0:
            watch_worth(ladder, abs(margin), mixed if ahead > 0 else -mixed)
    own.matches += 1.0
    watch_values(ladder, pool)
    for slot in range(low, high):
        if len(factors):
            note = factors[slot]
            sign = POINTS if slot < middle else -POINTS
            note.side = sign * by_side
            note.line_up = sign * by_sizes
            note_slot(state, h.player[slot], params, scratch, slot - low, note)
        numbers, member = (ladder.first_entry, slot - low) if slot < middle else (ladder.second_entry, slot - middle)
        if h.keep[slot]:
            watch_number(numbers, member, state[h.player[slot]], shared, params)
        finish_slot(state, h.player[slot], scale, h.time[m], params, scratch, slot - low)


@kernel
def rate_by_expert(
    h: Columns,
    m: int,
    expert: int,
    margin: float,
    left: float,
    known: float,
    more: float,
    turned: float,
    state: Records,
    ladder: LadderRecords,
    pool: int,
    params: Even,
    scratch: Floats,
    noted: bool,
) -> tuple[float, float, float, float]:
    """Predict a match with one expert, then update the expert, which now knows who left.

    Returns its log-odds, its probability of a draw, and the parts of the log-odds from side and team sizes.
    """
    first = h.team_start[m]
    low, middle, high = h.slot_start[first], h.slot_start[first + 1], h.slot_start[first + 2]
    now, ahead = h.time[m], h.place[first + 1] - h.place[first]
    a, b = h.player[low:middle], h.player[middle:high]
    shared, own = ladder.records[pool], ladder.records[ladder.own]
    predicted = prediction(a, b, expert, True, known, more, now, state, ladder, params)
    lead, spread, share, variance, rival_share, rival_variance, side = predicted
    above, over = chances(lead, spread)
    slope = SLOPE / math.sqrt(spread)
    parts = slope * side, slope * more * shared.body[expert]
    odds, draw = log_odds(0.5 * (above + over)), above - over
    if left != 0.0:
        lead += left * shared.leavers[expert]
        above, over = chances(lead, spread)
    result_push, result_pull = result_gradient(above, over, slope, ahead)
    push, pull, turn = result_push, result_pull, 0.0
    if not math.isnan(margin):
        unit = margin_scale(ladder, expert)
        if unit > 0.0:
            whole = params.margin[expert] * own.margin_worth * own.margins / (own.margins + HALF)
            part = whole * min(own.margin_trust, 1.0)
            limit = OUTLIER * math.sqrt(spread)
            surprise = min(max(unit * margin - lead, -limit), limit)
            turn = whole * (surprise / spread - result_push)
            result_push *= 1.0 - part
            push = part * surprise / spread + result_push
            pull = part / spread + (1.0 - part) * result_pull
            if params.never_down and ahead != 0:
                push = max(push, 0.0) if ahead > 0 else min(push, 0.0)
        watch_margin(ladder, expert, margin, lead, spread)
    sums = share, variance, rival_share, rival_variance
    pushes = push, result_push, pull, turn - pull * turned
    learn_teams(h, low, middle, high, expert, sums, pushes, now, state, ladder, pool, params, scratch, noted)
    learn_contexts(ladder, pool, expert, (int(middle - low), int(high - middle)), sums, push, pull, params)
    learn_ladder(ladder, pool, expert, more, left, known, push, pull)
    return odds, draw, parts[0], parts[1]


@kernel
def learn_teams(
    h: Columns,
    low: int,
    middle: int,
    high: int,
    expert: int,
    sums: tuple[float, float, float, float],
    pushes: tuple[float, float, float, float],
    now: int,
    state: Records,
    ladder: LadderRecords,
    pool: int,
    params: Even,
    scratch: Floats,
    noted: bool,
) -> None:
    """Update one expert's players and newcomers.

    sums    each team's member weight and variance
    pushes  the gradient by the lead, that of the result alone, and the curvature
    """
    push, result_push, pull, turn = pushes
    shared = ladder.records[pool]
    weight = calibrated_weight(shared, expert)
    share, variance, rival_share, rival_variance = sums
    learning = by_number = 0.0
    rho = params.shared[expert]
    for slot in range(low, high):
        player, own = h.player[slot], slot < middle
        sign, part = (1.0, share) if own else (-1.0, rival_share)
        numbers, member = (ladder.first_entry, slot - low) if own else (ladder.second_entry, slot - middle)
        begun, before = belief(state, player, numbers, member, expert, now, shared, params)
        if state[player].games < LEARNING:
            taught = sign * part * min(before / params.variance[expert], 1.0)
            learning += taught
            if is_unknown(state[player], params):
                unit = in_deviations(numbers, member, shared)
                by_number += 0.0 if math.isnan(unit) else taught * unit
        learn(
            state,
            player,
            expert,
            weight,
            begun,
            before,
            sign * push,
            sign * result_push,
            pull,
            sign * turn,
            part,
            rho,
            variance if own else rival_variance,
            params,
            scratch,
            slot - low,
            noted,
        )
    learn_entry(shared, expert, learning, push, pull, params)
    learn_entry_slope(shared, expert, by_number * push, by_number * by_number * pull)


@kernel
def learn_entry(shared: Record, expert: int, learning: float, push: float, pull: float, params: Even) -> None:
    """Learn the newcomers' mean; `learning` is its weight in the lead."""
    before = shared.entry_variance[expert]
    most = 3.0 * math.sqrt(params.variance[expert])
    shared.entry[expert] = min(max(shared.entry[expert] + before * learning * push, -most), most)
    shared.entry_variance[expert] = before * max(0.2, 1.0 - before * learning * learning * pull) + ENTRY_STEP


@kernel
def learn_entry_slope(shared: Record, expert: int, push: float, pull: float) -> None:
    """Learn what a number known about newcomers says; `push` is the gradient, `pull` the curvature."""
    variance = shared.entry_slope_variance[expert] / (1.0 + shared.entry_slope_variance[expert] * pull)
    shared.entry_slope[expert] += variance * push
    shared.entry_slope_variance[expert] = variance


@kernel
def learn_experience(shared: Record, expert: int, known: float, push: float, pull: float) -> None:
    """Learn the value of experience; `known` is how much more experienced a team is."""
    before = shared.experience_variance[expert]
    shared.experience[expert] += before * known * push
    shared.experience_variance[expert] = before * max(FADE, 1.0 - before * known * known * pull)


@kernel
def learn_contexts(
    ladder: LadderRecords,
    pool: int,
    expert: int,
    sizes: tuple[int, int],
    sums: tuple[float, float, float, float],
    push: float,
    pull: float,
    params: Even,
) -> None:
    """Learn about the players under the match's context values, and how much each column counts.

    sizes  of the teams;  sums: each team's member weight and variance
    """
    shared, rho = ladder.records[pool], params.shared[expert]
    share, variance, rival_share, rival_variance = sums
    for column in range(len(ladder.values)):
        if shared.values[column] > 1.0:
            gain = shared.gain[expert * CONTEXTS + column]
            lead = learn_offsets(ladder.first, sizes[0], column, ladder, expert, gain, push, pull, share, rho, variance)
            lead -= learn_offsets(
                ladder.second, sizes[1], column, ladder, expert, gain, -push, pull, rival_share, rho, rival_variance
            )
            learn_gain(shared, expert, column, lead * push, lead * lead * pull)


@kernel
def learn_side(record: Record, expert: int, part: float, push: float, pull: float) -> None:
    """Learn the first side's advantage on a ladder, or under a context value, where a `part` of it counts."""
    before = record.own_side_variance[expert]
    record.own_side[expert] += before * part * push
    record.own_side_variance[expert] = before * max(FADE, 1.0 - before * part * part * pull)


@kernel
def learn_trust(own: Record, turned: float, odds: float, score: float) -> None:
    """Learn how far margins can be trusted from whether they foretold this match.

    turned  how much higher the log-odds would be if margins counted in full;  odds: as predicted;  score: of the result
    """
    chance = logistic(odds + (own.margin_trust - min(own.margin_trust, 1.0)) * turned)
    own.margin_trust_variance /= 1.0 + own.margin_trust_variance * turned * turned * chance * (1.0 - chance)
    own.margin_trust = max(own.margin_trust + own.margin_trust_variance * turned * (score - chance), 0.0)


@kernel
def learn_ladder(
    ladder: LadderRecords, pool: int, expert: int, more: float, left: float, known: float, push: float, pull: float
) -> None:
    """Learn the first side's advantage and the value of extra players, of players who stay, and of experience."""
    shared = ladder.records[pool]
    if left != 0.0:
        before = shared.leavers_variance[expert]
        shared.leavers[expert] += before * left * push
        shared.leavers_variance[expert] = before * max(FADE, 1.0 - before * left * left * pull)
    learn_experience(shared, expert, known, push, pull)
    before = shared.side_variance[expert]
    shared.side[expert] += before * push
    shared.side_variance[expert] = before * max(FADE, 1.0 - before * pull)
    learn_side(ladder.records[ladder.own], expert, 1.0, push, pull)
    for column in range(len(ladder.values)):
        if ladder.values[column] != ladder.own and shared.values[column] > 1.0:
            learn_side(ladder.records[ladder.values[column]], expert, VALUE_SIDE, push, pull)
    before = shared.body_variance[expert]
    shared.body[expert] += before * more * push
    shared.body_variance[expert] = before * max(FADE, 1.0 - before * more * more * pull)
