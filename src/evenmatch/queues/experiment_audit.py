"""The comparison of the two policies that share a queue in an experiment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import NamedTuple

import numpy as np

from evenmatch.calibration import FEWEST_BLOCKS, Blocks, Estimate, GroupDifference, Measure, difference, further
from evenmatch.durations import DAY, HOUR, SECOND
from evenmatch.experiment import ARMS, Arm
from evenmatch.history import FloatOrNaN, Floats
from evenmatch.queues.queue_sql import FormedMatch, TrialMoment
from evenmatch.queues.stored_queues import QueueExperiment

REMATCH_WITHIN = 600 * SECOND  # since the last match together
RESAMPLING_SEED = 1
SLOPE = 1.0  # the ideal calibration slope

Scores = tuple[Sequence[float], Sequence[float]]  # predicted and actual score of each team


class ExperimentFigure(NamedTuple):
    """A figure by which policies are compared. scale: factor to the unit in which it is shown.

    better  -1: less is better, 1: more is better, 0: a slope, better if nearer to SLOPE
    words   what a second policy with a smaller value is, and with a larger one
    """

    name: str
    label: str
    unit: str
    scale: float
    decimals: int
    better: int
    words: tuple[str, str]


FIGURES = (
    ExperimentFigure("wait_median", "median wait", "s", 1.0, 1, -1, ("shorter", "longer")),
    ExperimentFigure("wait_p95", "wait of 95 of 100", "s", 1.0, 1, -1, ("shorter", "longer")),
    ExperimentFigure("spread", "mean spread", "percentiles", 1.0, 2, -1, ("narrower", "wider")),
    ExperimentFigure("slope", "calibration slope", "", 1.0, 2, 0, ("lower", "higher")),
    ExperimentFigure("rematches", "players in a rematch", "%", 100.0, 1, -1, ("lower", "higher")),
    ExperimentFigure("per_hour", "matches per hour", "", 1.0, 1, 1, ("lower", "higher")),
)


class Needed(NamedTuple):
    """How many more matches it takes to detect a difference of this size with a chance of 80 %.

    matches  further matches of both policies; 0: there are enough; null: unknown, or too many to count
    days     days at the rate so far; null: unknown
    """

    size: FloatOrNaN
    matches: int | None
    days: float | None


class ComparedFigure(NamedTuple):
    """A figure of two policies, with 95 % intervals.

    difference  second minus first
    better   the arm that is significantly better; null: neither is
    verdict  the difference in words
    seen     matches it takes to detect a difference of the observed size; `matches` is 0 if it is detected
    worth    matches it takes to detect the smallest difference worth detecting, see the design
    """

    figure: ExperimentFigure
    first: Measure
    second: Measure
    difference: Measure
    better: Arm | None
    verdict: str
    seen: Needed
    worth: Needed


@dataclass(frozen=True)
class ExperimentAudit:
    """The comparison of two policies that share a queue.

    slices   of each policy in the period, including the last, unfinished one
    formed   matches formed by each policy;  counted  those after the washout, the only ones compared
    figures  in the order of FIGURES;  summary  in a sentence
    """

    experiment: QueueExperiment
    slices: tuple[int, int]
    formed: tuple[int, int]
    counted: tuple[int, int]
    figures: tuple[ComparedFigure, ...]
    summary: str


class ExperimentMatch(NamedTuple):
    """A match that a queue formed, and how it was played.

    parties  ids of the players by party, after merges of players
    scores   predicted and actual score of each team; None: not played as predicted, or not predictable
    ended    microseconds; None: not reported
    """

    formed: FormedMatch
    parties: Sequence[Sequence[int]]
    scores: Scores | None
    ended: int | None


@dataclass
class _Arm:
    """The matches of one policy. Parallel lists contain a value and the block that it belongs to."""

    slices: list[int] = field(default_factory=list)  # the block of each slice
    hours: list[float] = field(default_factory=list)  # of each slice
    formed: int = 0
    matches: list[int] = field(default_factory=list)  # the block of each match
    spreads: list[float] = field(default_factory=list)
    players: list[int] = field(default_factory=list)
    again: list[int] = field(default_factory=list)  # players of each match who are in a rematch
    waits: list[tuple[float, int]] = field(default_factory=list)
    scores: list[tuple[float, float, float, int]] = field(default_factory=list)  # predicted, scored, weight, block

    def add(self, match: ExperimentMatch, block: int, again: int) -> None:
        """Count a match in a block. again: players who are in a rematch."""
        forecast = match.formed.forecast
        self.matches.append(block)
        self.spreads.append(forecast["spread"])
        self.players.append(sum(map(len, match.parties)))
        self.again.append(again)
        self.waits += [(wait, block) for wait in forecast["waits"]]
        if match.scores is not None:
            share = 1 / len(match.scores[0])
            self.scores += [(predicted, scored, share, block) for predicted, scored in zip(*match.scores, strict=True)]

    def estimates(self, blocks: Blocks) -> list[Estimate]:
        """The figures, in the order of FIGURES."""
        slices, matches = np.array(self.slices, np.int64), np.array(self.matches, np.int64)
        waits, of_wait = _columns(self.waits, 2)
        predicted, scored, weight, of_score = _columns(self.scores, 4)
        each, none = np.ones(len(matches)), np.zeros(len(slices))
        return [
            blocks.quantile(waits, of_wait.astype(np.int64), 0.5),
            blocks.quantile(waits, of_wait.astype(np.int64), 0.95),
            blocks.mean(np.array(self.spreads), matches),
            blocks.slope(predicted, scored, weight, of_score.astype(np.int64)),
            blocks.ratio(np.array(self.players, float), np.array(self.again, float), matches),
            blocks.ratio(
                np.concatenate((np.array(self.hours), 0 * each)),
                np.concatenate((none, each)),
                np.concatenate((slices, matches)),
            ),
        ]


def compare(experiment: QueueExperiment, matches: Sequence[ExperimentMatch], since: int, until: int) -> ExperimentAudit:
    """Compare the two policies of an experiment over a period, microseconds.

    matches  all that the queue formed in the period, oldest first, including those before the experiment
    until    at most the present time, because slices without a match count
    """
    design = experiment.design
    stopped = until if experiment.stopped_at is None else min(until, experiment.stopped_at)
    begin, end = max(since - experiment.started_at, 0), stopped - experiment.started_at
    arms: dict[str, _Arm] = {arm: _Arm() for arm in ARMS}
    for number in range(begin // design.slice_length, -(-end // design.slice_length)):
        arm = arms[design.arm_of(number)]
        counted = min(end, (number + 1) * design.slice_length) - max(begin, design.settled_from(number))
        arm.slices.append(design.block_of(number))
        arm.hours.append(max(counted, 0) / HOUR)
    for match, again in zip(matches, _rematches(matches), strict=True):
        trial = _trial(match, experiment)
        if trial is not None and begin <= trial["elapsed"] < end:
            number = trial["elapsed"] // design.slice_length
            arms[trial["arm"]].formed += 1
            if trial["elapsed"] >= design.settled_from(number):
                arms[trial["arm"]].add(match, design.block_of(number), again)
    first, second = arms.values()
    formed, days = first.formed + second.formed, max(end - begin, 0) / DAY
    blocks = Blocks(np.unique(np.array(first.slices + second.slices, np.int64)), RESAMPLING_SEED)
    figures = tuple(
        _compared(figure, one_arm, other_arm, design.worth, formed, days)
        for figure, one_arm, other_arm in zip(FIGURES, first.estimates(blocks), second.estimates(blocks), strict=True)
    )
    slices = len(first.slices), len(second.slices)
    return ExperimentAudit(
        experiment,
        slices,
        (first.formed, second.formed),
        (len(first.matches), len(second.matches)),
        figures,
        _summary(figures, len(blocks.numbers)),
    )


def _trial(match: ExperimentMatch, experiment: QueueExperiment) -> TrialMoment | None:
    """The moment of this experiment at which a match was offered; None: it was offered outside the experiment."""
    trial = match.formed.forecast["trial"]
    return trial if trial is not None and trial["experiment"] == experiment.number else None


def _rematches(matches: Iterable[ExperimentMatch]) -> list[int]:
    """How many players of each match meet a player of another party again within REMATCH_WITHIN. Oldest first."""
    earlier: defaultdict[int, list[tuple[int, frozenset[int]]]] = defaultdict(list)  # by player: end, players
    counts = []
    for match in matches:
        since = match.formed.formed_at - REMATCH_WITHIN
        everyone = frozenset(player for party in match.parties for player in party)
        ended = match.formed.formed_at if match.ended is None else match.ended
        again = 0
        for party in match.parties:
            others = everyone.difference(party)
            for player in party:
                recent = [(end, players) for end, players in earlier[player] if end > since]
                again += any(not others.isdisjoint(players) for _, players in recent)
                earlier[player] = [*recent, (ended, everyone)]
        counts.append(again)
    return counts


def _columns(rows: Sequence[tuple[float, ...]], width: int) -> tuple[Floats, ...]:
    return tuple(np.array(rows, np.float64).reshape(-1, width).T)


def _compared(
    figure: ExperimentFigure, first: Estimate, second: Estimate, worth: float, formed: int, days: float
) -> ComparedFigure:
    apart = difference(first, second)
    smallest = worth * abs(first.value)

    def needed(size: float, *, is_seen: bool) -> Needed:
        matches = 0 if is_seen and apart.is_known else further(apart, size, formed)
        return Needed(size, matches, None if matches is None or not formed else days * matches / formed)

    return ComparedFigure(
        figure,
        first.measure,
        second.measure,
        Measure(apart.value, apart.low, apart.high),
        _better(figure, apart, first.value, second.value),
        _verdict(figure, apart, smallest),
        needed(abs(apart.value), is_seen=True),
        needed(smallest, is_seen=False),
    )


def _better(figure: ExperimentFigure, apart: GroupDifference, first: float, second: float) -> Arm | None:
    if not apart.is_known:
        return None
    if figure.better == 0:
        return ARMS[abs(second - SLOPE) < abs(first - SLOPE)]
    return ARMS[(apart.value > 0) == (figure.better > 0)]


def _verdict(figure: ExperimentFigure, apart: GroupDifference, smallest: float) -> str:
    """The finding on a difference, in words."""
    if isnan(apart.error):
        return "not known yet: too few matches"
    low, high = sorted((abs(apart.low), abs(apart.high)))
    if apart.is_known:
        return f"{figure.label} with B: {_amount(figure, low, high)} {figure.words[apart.value > 0]}"
    if high <= smallest:
        return f"no difference worth detecting: at most {_amount(figure, high)}"
    return f"no difference known yet: it may be up to {_amount(figure, high)}"


def _amount(figure: ExperimentFigure, *values: float) -> str:
    unit = {"": "", "%": " percentage points"}.get(figure.unit, f" {figure.unit}")
    return f"{' to '.join(f'{figure.scale * value:.{figure.decimals}f}' for value in values)}{unit}"


def _summary(figures: Sequence[ComparedFigure], blocks: int) -> str:
    """Which policy does better on what, in a sentence or two."""
    if blocks < FEWEST_BLOCKS:
        return f"Nothing is known yet: at least {FEWEST_BLOCKS} blocks of slices are needed, and there are {blocks}."
    parts = [
        f"{arm.upper()} does better on {_listed(labels)}"
        for arm in ARMS
        if (labels := [compared.figure.label for compared in figures if compared.better == arm])
    ]
    return f"{'; '.join(parts)}." if parts else "No difference is known yet."


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
