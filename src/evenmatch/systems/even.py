"""Even: several small filters that watch the same matches, mixed online into one calibrated forecast.

Definition: docs/even.md. It learns the first side's advantage, the value of extra players, the level of newcomers, the
scale of margins and which of its experts to trust, so a ladder needs no tuning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenmatch.systems.experts.learned import learned, offset_points
from evenmatch.systems.experts.many_teams import COLUMNS, many_team_odds, update_many_teams
from evenmatch.systems.experts.players import age
from evenmatch.systems.experts.records import (
    EXPERTS,
    LADDER,
    PLAIN,
    PLAYER_OFFSET,
    QUICK,
    RESULTS,
    SCORES,
    STATE,
    STEADY,
    WIDE,
    Even,
    Expert,
    new_ladder,
    new_offset,
    points_per_mean,
)
from evenmatch.systems.experts.two_teams import two_team_odds, update_two_teams
from evenmatch.systems.ladder_records import LadderRecords, Learned
from evenmatch.systems.maths import DAY
from evenmatch.systems.system import (
    Change,
    Columns,
    Factor,
    Floats,
    Integers,
    Parameters,
    Reason,
    Records,
    System,
    fields,
    flag,
    in_time,
    kernel,
    number,
    starting_rating,
    uncertain_note,
    whole,
    wording,
)

CAUSES = ("by_weights", "by_pause", "by_entry")  # of a change, besides the match itself; the first is explained first
LOWEST, HIGHEST = -1e6, 1e6


@dataclass(frozen=True)
class EvenParameters(Parameters):
    """The last five multiply the experts' own values; 1 suits nearly every game."""

    start: float = number(1500.0, LOWEST, HIGHEST, "rating of a newcomer")
    single: bool = flag(False, "one expert instead of four: faster and slightly less accurate", search=True)
    performance: bool = flag(False, "add an expert that reads players' scores; players can then play for score")
    wins_gain: bool = flag(False, "a win never lowers a rating, even by a margin smaller than expected")
    pooled: bool = flag(True, "the ladders of a table share what they learn about sides, sizes, newcomers and experts")
    rivals: int = whole(500, 2, 100_000, "the most rivals that a team in a large contest is compared with")
    margin: float = number(1.0, 0, 1, "how much margins count; 0: only results count", search=(0.2, 1.0))
    deviation: float = number(1.0, 0.1, 10, "deviations of newcomers", search=(0.5, 2.0))
    drift: float = number(1.0, 0, 10, "how much skills change from match to match", search=(0.3, 3.0))
    idle_drift: float = number(1.0, 0, 10, "how much skills change from day to day", search=(0.1, 10.0))


def _experts(p: EvenParameters) -> list[Expert]:
    listed = [PLAIN] if p.single else [STEADY, QUICK, WIDE, RESULTS]
    return [*listed, SCORES] if p.performance else listed


def _compile(p: EvenParameters) -> Even:
    experts = _experts(p)
    padded = experts + [STEADY] * (EXPERTS - len(experts))

    def each(value: str, factor: float = 1.0) -> Floats:
        return np.array([factor * float(getattr(expert, value)) for expert in padded])

    return Even(
        start=p.start,
        experts=len(experts),
        variance=each("variance", p.deviation**2),
        step=each("step", p.drift**2),
        drift=each("drift", p.idle_drift**2 / DAY),
        pull=each("pull", p.idle_drift**2 / DAY),
        share=each("share"),
        margin=each("margin", p.margin),
        shared=each("shared"),
        points=np.array([points_per_mean(expert) for expert in padded]),
        scores=len(experts) - 1 if p.performance else -1,
        score_gain=3.0,
        score_reach=1.5,
        pooled=p.pooled,
        never_down=p.wins_gain,
        rivals=p.rivals,
    )


@kernel
def pair(
    a: Integers, b: Integers, home: bool, two: bool, now: int, state: Records, ladder: LadderRecords, params: Even
) -> tuple[float, float]:
    """The mixture of the experts' odds."""
    if two:
        return two_team_odds(a, b, home, now, state, ladder, params)
    return many_team_odds(a, b, now, state, ladder, params)


@kernel
def update(
    h: Columns,
    m: int,
    state: Records,
    ladder: LadderRecords,
    params: Even,
    expected: Floats,
    factors: Records,
    scratch: Floats,
) -> None:
    """Update each expert separately, then the weights of the mixture."""
    if h.team_start[m + 1] - h.team_start[m] == 2:
        update_two_teams(h, m, state, ladder, params, expected, factors, scratch)
    else:
        update_many_teams(h, m, state, ladder, params, factors, scratch)


FACTORS = (
    Factor("by_result", "points by the result alone"),
    Factor("by_margin", "points by the margin of the scores, beyond the result"),
    Factor("by_scores", "points for the player's own score, compared with the others'"),
    Factor("by_entry", "points by what is known about newcomers to this ladder, in the first match"),
    Factor("by_pause", "points by the time without a match, after which two experts rely less on what they knew"),
    Factor("by_weights", "points because other matches have shown since which experts to trust"),
    Factor("from_steady", "points of the change from the steady expert; with `single`, from the only one"),
    Factor("from_quick", "points of the change from the quick expert"),
    Factor("from_wide", "points of the change from the expert that gives newcomers much room"),
    Factor("from_results", "points of the change from the expert that counts only results"),
    Factor("from_scores", "points of the change from the expert that reads players' scores"),
    Factor("side", "points that playing on its side was expected to be worth to the team"),
    Factor("line_up", "points that its number of players was expected to be worth to the team"),
    Factor("deviation_before", "deviation before the match"),
    Factor("deviation_after", "deviation after it"),
    Factor("shared_error", "the part of its fall that comes from team-mates' shared errors"),
)


def _because(change: Change, p: EvenParameters) -> Reason | None:
    """The match's own parts of the change and its other causes, if one besides the result is a quarter of it.

    A cause is explained from a tenth of the change; smaller ones are added up. What rounding leaves is added to the
    result's part.
    """
    parts = {name: round(float(change.factors[name]), 2) for name in ("by_margin", "by_scores", *CAUSES)}
    moved, margin = abs(change.moved), parts["by_margin"]
    if not moved or max(map(abs, parts.values())) < moved / 4:
        return None
    by_result = round(change.moved - sum(parts.values()), 2)
    kind = "win" if change.result > 0.5 else "loss"
    narrow = "narrow " if margin * (change.result - 0.5) < 0 else ""
    told_margin = "level" if change.result == 0.5 else narrow + kind
    own = {"by_result": by_result, told_margin: margin, "by_scores": parts["by_scores"]}
    main = next((name for name in CAUSES if abs(parts[name]) >= moved / 10), None)
    if main is None:
        small = round(parts["by_pause"] + parts["by_weights"], 2)
        against = change.is_against_result or change.moved * by_result < 0
        listed = _listed({**own, "by_entry": parts["by_entry"], "small": small})
        return Reason(wording.BREAKDOWN_AGAINST if against else wording.BREAKDOWN, parts=listed)
    whole = round(sum(own.values()), 2)
    sentences = wording.WHOLE_PART if margin or parts["by_scores"] else wording.RESULT_PART
    sentence = sentences[whole > 0] if whole else wording.NO_PART
    by_match = Reason(sentence, _part(whole), parts=_listed(own))
    others = [name for name in CAUSES if name != main and parts[name]]
    causes = [wording.CAUSE[main, parts[main] > 0], *(wording.REST[name, parts[name] > 0] for name in others)]
    told = [Reason(cause, _part(parts[name])) for cause, name in zip(causes, (main, *others), strict=True)]
    return Reason(wording.TOTAL_AGAINST if change.is_against_result else wording.TOTAL, then=(by_match, *told))


def _listed(parts: Mapping[str, float]) -> tuple[tuple[str, Mapping[str, object]], ...]:
    return tuple((wording.BY_FACTOR[name], _part(part, signed=True)) for name, part in parts.items() if part)


def _part(part: float, *, signed: bool = False) -> Mapping[str, object]:
    return {"part": f"{part:+,.2f}".replace("-", "−") if signed else f"{abs(part):,.2f}"}


def _newcomer(p: EvenParameters) -> tuple[object, ...]:
    return _start_at(p.start, p)


def _start_at(rating: float, p: EvenParameters) -> tuple[object, ...]:
    rating = starting_rating(rating, LOWEST, HIGHEST)
    params = _compile(p)
    used = range(params.experts)
    unused = (0.0,) * (EXPERTS - params.experts)
    mean = tuple((rating - p.start) / params.points[expert] for expert in used) + unused
    variance = tuple(params.variance[expert] for expert in used) + unused
    deviation = 0.0
    for expert in used:
        deviation += params.points[expert] * params.variance[expert] ** 0.5
    return (rating, deviation / params.experts, 1.0, 0, 0, 0.0, mean, variance)


def _move(state: Records, rating: Floats, p: EvenParameters) -> Records:
    params = _compile(p)
    moved = state.copy()
    moved["rating"] = np.maximum(rating, LOWEST)
    change = (moved["rating"] - state["rating"]) / state["scale"]
    for expert in range(params.experts):
        moved["mean"][:, expert] += change / params.points[expert]
    return moved


def _learned(records: Records, p: EvenParameters) -> tuple[Learned, ...]:
    names = ["single"] if p.single else ["steady", "quick", "wide", "results"]
    return learned(records, _compile(p), [*names, "scores"] if p.performance else names)


SYSTEM = System(
    name="even",
    title="predicts best without tuning: it learns sides, line-ups, newcomers and margins from your matches",
    source="docs/even.md",
    needs="any matches; better with team scores",
    parameters=EvenParameters,
    presets={"plain": {"single": True}, "performance": {"performance": True}, "results": {"margin": 0.0}},
    compile=_compile,
    state=STATE,
    newcomer=_newcomer,
    start_at=_start_at,
    as_of=in_time(age, _compile),
    move=_move,
    columns=fields("deviation"),
    factors=FACTORS,
    pair=pair,
    update=update,
    scratch_columns=COLUMNS,
    from_start=("start", "single", "performance", "pooled"),
    predicts=True,
    because=_because,
    note=lambda change, p: uncertain_note(change, float(str(_newcomer(p)[1])) / 2, 0.1),
    ladder=LADDER,
    new_ladder=lambda p: new_ladder(len(_experts(p))),
    offset=PLAYER_OFFSET,
    new_offset=lambda p: new_offset(_compile(p)),
    learned=_learned,
    offset_points=lambda records, column, offsets, p: offset_points(records, column, offsets, _compile(p)),
)
