"""One expert's view of the players of a match: current means and variances, team sums, and updates."""

from __future__ import annotations

import math

from evenmatch.history import Entries, Floats, Integers
from evenmatch.systems.compiled import kernel, rarely
from evenmatch.systems.experts.records import CONTEXTS, EXPERTS, FADE, FARTHEST, MOST_GAIN, WIDEST, Even, Record
from evenmatch.systems.ladder_records import LadderRecords, Records

# Columns of scratch that a slot's numbers are in: the new rating, its deviation, and, where factors are wanted, the
# parts of their change in points. From BY_EXPERT on, a column for each expert.
RATING, DEVIATION, BY_MARGINS, OLD, ENTRY, PAUSE, RESULT, MARGIN, SCORES, SHARED, BY_EXPERT = range(11)
SLOT_COLUMNS = BY_EXPERT + EXPERTS


@kernel
def pool_of(ladder: LadderRecords, params: Even) -> int:
    """The index of the record that ladders share; the ladder's own record if they do not share one."""
    return ladder.pool if params.pooled else ladder.own


@kernel
def watch_values(ladder: LadderRecords, pool: int) -> None:
    """Count the match for its context values. A column does not count before its second value was seen."""
    shared = ladder.records[pool]
    for column in range(len(ladder.values)):
        value = ladder.records[ladder.values[column]]
        if value.seen == 0.0:
            shared.values[column] += 1.0
        value.seen += 1.0
        if not math.isnan(value.length):
            shared.lengths[column] += 1.0
            shared.usual_length[column] += (value.length - shared.usual_length[column]) / shared.lengths[column]


@kernel
def grown(record: Record, expert: int, now: int, step: float, params: Even) -> tuple[float, float]:
    """Mean and variance, at a time, of a player who has played: the mean drifts towards 0, the variance grows.

    step  variance that a match adds
    """
    elapsed = max(now - record.last_played, 0)
    variance = record.variance[expert] + params.drift[expert] * elapsed + step
    return record.mean[expert] / (1.0 + params.pull[expert] * elapsed), min(variance, WIDEST * params.variance[expert])


@kernel
def in_deviations(numbers: Entries, member: int, shared: Record) -> float:
    """The number known about a player, in deviations from the newcomers' mean; NaN if there is none to compare with."""
    if len(numbers) == 0 or math.isnan(numbers[member]) or shared.number_square <= 0.0:
        return math.nan
    unit = (numbers[member] - shared.number_mean) / math.sqrt(shared.number_square / shared.numbers)
    return min(max(unit, -FARTHEST), FARTHEST)


@kernel
def is_unknown(record: Record, params: Even) -> bool:
    """Whether a player has neither played nor a rating to start from, such as that of the last season."""
    return record.games == 0 and record.rating == params.start


@kernel
def belief(
    state: Records, player: int, numbers: Entries, member: int, expert: int, now: int, shared: Record, params: Even
) -> tuple[float, float]:
    """A player's mean and variance in a match. Newcomers start where others did; unknown ones, where a number says.

    numbers  (n,) of the player's team, or empty;  member  the player's index in it
    """
    record = state[player]
    if record.games > 0:
        return grown(record, expert, now, params.step[expert], params)
    mean, variance = record.mean[expert] + shared.entry[expert], record.variance[expert]
    unit = in_deviations(numbers, member, shared)
    if math.isnan(unit) or not is_unknown(record, params):
        return mean, variance
    slope = shared.entry_slope[expert]
    return mean + slope * unit, variance / (1.0 + slope * slope / params.variance[expert])


@kernel
def watch_number(numbers: Entries, member: int, record: Record, shared: Record, params: Even) -> None:
    """Include an unknown player's number in the mean and the spread of newcomers' numbers."""
    if len(numbers) > 0 and is_unknown(record, params) and not math.isnan(numbers[member]):
        shared.numbers += 1.0
        before = numbers[member] - shared.number_mean
        shared.number_mean += before / shared.numbers
        shared.number_square += before * (numbers[member] - shared.number_mean)


@kernel
def share_of(size: int, expert: int, params: Even) -> float:
    """The weight of a member in a team of this size."""
    if size == 1:
        return 1.0
    power = params.share[expert]
    if power == 0.5:
        return 1.0 / math.sqrt(size)
    return 1.0 / size if power == 1.0 else size**-power


@kernel
def team_sums(
    team: Integers,
    offset: Integers,
    numbers: Entries,
    expert: int,
    now: int,
    state: Records,
    ladder: LadderRecords,
    params: Even,
) -> tuple[float, float, float]:
    """(w, w · the sum of a team's means, w² · the sum of its variances), where w is the weight of a member.

    offset   indices into `ladder.offsets`, which count, too
    numbers  what is known about newcomers, see `belief`
    """
    mean, variance = 0.0, 0.0
    pool = ladder.records[pool_of(ladder, params)]
    for member in range(len(team)):
        own_mean, own_variance = belief(state, team[member], numbers, member, expert, now, pool, params)
        mean += own_mean
        variance += own_variance
    contexts = len(ladder.values)
    for column in range(contexts):
        if pool.values[column] > 1.0:
            gain, moved, unsure = pool.gain[expert * CONTEXTS + column], 0.0, 0.0
            for member in range(len(team)):
                known = ladder.offsets[offset[member * contexts + column]].by_expert[expert]
                moved += known.mean
                unsure += known.variance
            mean += gain * moved
            variance += gain * gain * unsure
    share = share_of(len(team), expert, params)
    return share, share * mean, share * share * variance


@kernel
def experience_of(team: Integers, state: Records) -> float:
    """The mean over a team of log2(1 + matches before)."""
    total = 0.0
    for member in range(len(team)):
        total += math.log2(1.0 + state[team[member]].games)
    return total / len(team)


@rarely
def age(state: Records, now: int, params: Even) -> None:
    """Advance means and variances of everyone who has played to this time; shown ratings do not change."""
    for player in range(len(state)):
        record = state[player]
        if record.games > 0 and record.last_played < now:
            deviation = 0.0
            for expert in range(params.experts):
                mean, variance = grown(record, expert, now, 0.0, params)
                record.mean[expert] = mean
                record.variance[expert] = variance
                deviation += params.points[expert] * math.sqrt(variance)
            record.deviation = deviation / params.experts


@kernel
def begin_slot(scratch: Floats, row: int) -> None:
    """Reset the sums of a slot."""
    for column in range(BY_EXPERT):
        scratch[row, column] = 0.0


@kernel
def learn(
    state: Records,
    player: int,
    expert: int,
    weight: float,
    begun: float,
    before: float,
    push: float,
    result_push: float,
    pull: float,
    turn: float,
    share: float,
    rho: float,
    team_variance: float,
    params: Even,
    scratch: Floats,
    row: int,
    noted: bool,
) -> None:
    """Move a player's mean, shrink the variance, and record the effect on the shown rating.

    weight           of the expert in the mixture, calibrated
    begun, before    the player's mean and variance in the match, see `belief`
    push             gradient of the log-likelihood by the lead, towards the player;  result_push: that of the result
    pull             its curvature
    turn             how much `push` grows with the trust in margins, less what its own effect would take back
    share            the weight of a member in the team
    rho              the part of team-mates' errors that is shared;  team_variance: w² · Σ v of the team
    noted            whether to record the parts of the change
    """
    record = state[player]
    old, newcomer = record.mean[expert], record.games == 0
    points = weight * params.points[expert]
    moved = share * before * push
    own = share * share * before
    mean = begun + moved
    factor = max(FADE, 1.0 - (own + rho * (team_variance - own)) * pull)
    record.mean[expert] = mean
    record.variance[expert] = before * factor
    scratch[row, RATING] += points * mean
    scratch[row, DEVIATION] += params.points[expert] * math.sqrt(before * factor)
    scratch[row, BY_MARGINS] += weight * own * turn
    if noted:
        alone = before * max(FADE, 1.0 - own * pull)
        scratch[row, OLD] += points * old
        scratch[row, ENTRY if newcomer else PAUSE] += points * (begun - old)
        scratch[row, RESULT] += points * share * before * result_push
        scratch[row, MARGIN] += points * share * before * (push - result_push)
        scratch[row, SHARED] += params.points[expert] * (math.sqrt(alone) - math.sqrt(before * factor))
        scratch[row, BY_EXPERT + expert] = points * (mean - old)


@kernel
def learn_offsets(
    offset: Integers,
    size: int,
    column: int,
    ladder: LadderRecords,
    expert: int,
    gain: float,
    push: float,
    pull: float,
    share: float,
    rho: float,
    team_variance: float,
) -> float:
    """Move what is known about a team's players under the match's value in a context column, as `learn` moves means.

    Returns w · the sum of it before, without the gain.
    """
    weight, common, total = share * gain, rho * team_variance, 0.0
    for member in range(size):
        known = ladder.offsets[offset[member * len(ladder.values) + column]].by_expert[expert]
        before, mean = known.variance, known.mean
        own = (1.0 - rho) * weight * weight * before
        known.mean = mean + weight * before * push
        known.variance = before * max(FADE, 1.0 - (own + common) * pull)
        total += mean
    return share * total


@kernel
def learn_gain(pool: Record, expert: int, column: int, push: float, pull: float) -> None:
    """Learn how much a context column counts; `push` is the gradient, `pull` the curvature."""
    at = expert * CONTEXTS + column
    variance = pool.gain_variance[at] / (1.0 + pool.gain_variance[at] * pull)
    pool.gain[at] = min(max(pool.gain[at] + variance * push, 0.0), MOST_GAIN)
    pool.gain_variance[at] = variance


@kernel
def finish_slot(state: Records, player: int, scale: float, now: int, params: Even, scratch: Floats, row: int) -> None:
    """Write the shown rating and its deviation, and count the match; scale: the sum of the calibrated weights."""
    record = state[player]
    record.rating = params.start + scratch[row, RATING]
    record.deviation = scratch[row, DEVIATION] / params.experts
    record.scale = scale
    record.by_margins += scratch[row, BY_MARGINS]
    record.games += 1
    record.last_played = now


@kernel
def note_slot(state: Records, player: int, params: Even, scratch: Floats, row: int, note: Record) -> None:
    """Fill the factors that all matches have; called before `finish_slot`."""
    record = state[player]
    note.by_result = scratch[row, RESULT]
    note.by_margin = scratch[row, MARGIN]
    note.by_scores = scratch[row, SCORES]
    note.by_entry = scratch[row, ENTRY]
    note.by_pause = scratch[row, PAUSE]
    note.by_weights = params.start + scratch[row, OLD] - record.rating
    note.from_steady = scratch[row, BY_EXPERT]
    note.from_quick = note.from_wide = note.from_results = 0.0
    if params.experts > 2:  # else there is one expert, or one and that of the scores
        note.from_quick = scratch[row, BY_EXPERT + 1]
        note.from_wide = scratch[row, BY_EXPERT + 2]
        note.from_results = scratch[row, BY_EXPERT + 3]
    note.from_scores = scratch[row, BY_EXPERT + params.scores] if params.scores >= 0 else 0.0
    note.shared_error = scratch[row, SHARED] / params.experts
    note.deviation_before = record.deviation
    note.deviation_after = scratch[row, DEVIATION] / params.experts
