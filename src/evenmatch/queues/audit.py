"""The audit of a queue: the predicted results and waits of its matches, compared with the recorded ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from math import nan
from typing import NamedTuple

import numpy as np

from evenmatch.calibration import Blocks, Measure, Point, Whole
from evenmatch.durations import SECOND
from evenmatch.history import Floats
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows
from evenmatch.ledger.block_rating import Block
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Head, Store
from evenmatch.queues import queue_sql
from evenmatch.queues.experiment_audit import ExperimentAudit, ExperimentMatch, compare
from evenmatch.queues.queue_sql import FormedMatch
from evenmatch.queues.stored_queues import QueueExperiment

BLOCKS = 100  # groups of consecutive matches that are resampled
RESAMPLING_SEED = 1
UNKNOWN = Measure(nan, nan, nan)


@dataclass(frozen=True)
class WaitAccuracy:
    """The waits of parties, compared with the estimates at joining.

    parties  parties with an estimate; of the parties that join in the same second, only some get one
    within_estimate  share of them that waited less than `estimate`; ideal: 0.5
    within_upper     share of them that waited less than `upper`; ideal: 0.9
    """

    parties: int
    within_estimate: Measure
    within_upper: Measure


def measure_waits(formed: Sequence[FormedMatch]) -> WaitAccuracy:
    """Compare the waits of matches, oldest first, with the estimates that their parties were shown."""
    rows = np.array(
        [
            (index, waited < quantiles[0], waited < quantiles[1])
            for index, match in enumerate(formed)
            for waited, quantiles in zip(match.forecast["waits"], match.forecast["estimates"], strict=True)
            if quantiles is not None
        ],
        np.float64,
    ).reshape(-1, 3)
    if not len(rows):
        return WaitAccuracy(0, UNKNOWN, UNKNOWN)
    matches, place = np.unique(rows[:, 0], return_inverse=True)
    blocks, block = _blocks(len(matches))
    within, upper = (blocks.mean(column, block[place]).share for column in rows[:, 1:].T)
    return WaitAccuracy(len(rows), within, upper)


def _blocks(matches: int) -> tuple[Blocks, Whole]:
    """The resampled groups of consecutive matches, and the group of each match."""
    count = min(BLOCKS, matches)
    return Blocks(np.arange(count), RESAMPLING_SEED), np.arange(matches) * count // matches


AUDITED_AT_MOST = 200_000  # the latest matches
CALIBRATED = (0.9, 1.1)  # a slope whose interval lies outside gives a warning
RIGHT = (0.7, 1.3)  # an interval of the slope within these bounds means that the odds are right
SPREADS = (5.0, 10.0, 20.0)  # bounds between classes, percentiles
WAITS = (10.0, 30.0, 60.0, 120.0)  # bounds between classes, seconds
DECILE = 10.0


class AuditedMatch(NamedTuple):
    """A match that was played by the line-up with which it was formed.

    predicted, scored  predicted and actual score of each team; a draw counts half
    stomp      whether the lead exceeded the ladder's margin; None: no scores, or no margin
    """

    formed: FormedMatch
    predicted: Sequence[float]
    scored: Sequence[float]
    stomp: bool | None
    quit: bool


class AuditedGroup(NamedTuple):
    """How good the predictions of some matches were, with 95 % intervals.

    slope   calibration slope: 1 is calibrated; below 1 the odds were too extreme, above 1 too close to even
    brier   mean squared error of the predicted scores; 0.25 for even odds without draws
    stomps  share of matches whose lead exceeded the ladder's `stomp_margin`
    quits   share of matches with a quitter
    """

    label: str
    matches: int
    slope: Measure
    brier: Measure
    stomps: Measure
    quits: Measure


@dataclass(frozen=True)
class QueueAudit:
    """The predictions of a queue in a period, compared with the results.

    formed       matches that the queue formed
    unpredicted  matches that the ladder's system could not predict
    unplayed     matches that were not reported, or were voided
    changed      matches that were not played by the predicted line-up
    overall      all other matches
    groups       the same matches in classes, by the property that divides them
    reliability  predicted and observed score of favourites
    warning      a sentence if the odds are significantly miscalibrated; null: they are not
    experiments  experiments that ran in the period, latest first
    """

    ladder: str
    queue: str
    formed: int
    unpredicted: int
    unplayed: int
    changed: int
    overall: AuditedGroup
    groups: dict[str, tuple[AuditedGroup, ...]]
    reliability: tuple[Point, ...]
    warning: str | None
    waits: WaitAccuracy
    experiments: tuple[ExperimentAudit, ...] = ()

    @property
    def verdict(self) -> str:
        """Whether the predictions are right, in one sentence. "Right" requires a narrow interval of the slope."""
        slope = self.overall.slope
        if slope.high < CALIBRATED[0]:
            return "Favourites win less often than predicted."
        if slope.low > CALIBRATED[1]:
            return "Favourites win more often than predicted."
        is_narrow = slope.low >= RIGHT[0] and slope.high <= RIGHT[1]
        return "The predictions are right." if is_narrow else "Too few matches to tell."


def audit(
    store: Store, head: Head, queue: str, since: int, until: int, most: int = AUDITED_AT_MOST, *, now: int | None = None
) -> QueueAudit:
    """Compare the latest matches, at most `most`, that a queue formed in a period (microseconds) with the ledger.

    now  the present time; None: the period ends before it
    """
    formed = queue_sql.read_formed_matches(store, head.ladder, queue, since, until, most)
    plan = event_rows.read_plan(store, head, head.corrected)
    margin = Settings.read(head.settings).stomp_margin
    played = {
        row[0]: block
        for block, row in event_rows.read_matches(store, head.ladder, [match.match_id for match in formed])
        if not plan.voided(block.positions)[0]
    }
    orders = {
        match.match_id: order
        for match in formed
        if match.match_id in played and (order := _team_order(match, played[match.match_id], plan)) is not None
    }
    audited = [
        _audited(match, played[match.match_id], [odds[team] for team in orders[match.match_id]], margin)
        for match in formed
        if match.match_id in orders and (odds := match.forecast["odds"]) is not None
    ]
    overall = _group("all matches", audited)
    begin, end = since if len(formed) < most else formed[0].formed_at, until if now is None else min(until, now)
    return QueueAudit(
        ladder=head.name,
        queue=queue,
        formed=len(formed),
        unpredicted=sum(match.forecast["odds"] is None for match in formed),
        unplayed=len(formed) - len(played),
        changed=len(played) - len(orders),
        overall=overall,
        groups=_groups(audited),
        reliability=tuple(_curve(audited)),
        warning=_warning(overall.slope),
        waits=measure_waits(formed),
        experiments=_experiments(store, head, queue, (begin, end), _PlayedMatches(formed, played, audited, plan)),
    )


class _PlayedMatches(NamedTuple):
    """The matches of an audit: all formed ones, the reported ones by id, and the ones played as predicted."""

    formed: Sequence[FormedMatch]
    played: Mapping[str, Block]
    audited: Sequence[AuditedMatch]
    plan: Plan

    def read(self) -> list[ExperimentMatch]:
        """The matches as an experiment compares them."""
        scores = {match.formed.match_id: (match.predicted, match.scored) for match in self.audited}
        return [
            ExperimentMatch(
                match,
                _parties(match, self.plan),
                scores.get(match.match_id),
                int(self.played[match.match_id].columns.time[0]) if match.match_id in self.played else None,
            )
            for match in self.formed
        ]


def _experiments(
    store: Store, head: Head, queue: str, period: tuple[int, int], matches: _PlayedMatches
) -> tuple[ExperimentAudit, ...]:
    """The comparisons of the experiments that ran in a period."""
    ran = [QueueExperiment.of(row) for row in queue_sql.read_experiments(store, head.ladder, queue, *period)]
    if not ran:
        return ()
    read, (since, until) = matches.read(), period
    return tuple(compare(experiment, read, since, until) for experiment in ran)


def _parties(match: FormedMatch, plan: Plan) -> list[list[int]]:
    """The present ids of a match's players by party. They are stored in this order, team by team."""
    parties = []
    for team, sizes in zip(match.forecast["teams"], match.forecast["parties"], strict=True):
        players = iter(plan.identity(np.array(team, np.int64)).tolist())
        parties += [list(islice(players, size)) for size in sizes]
    return parties


def _team_order(match: FormedMatch, block: Block, plan: Plan) -> list[int] | None:
    """The index of each recorded team among the predicted ones; None: another line-up played the match."""
    ids, bounds = plan.identity(block.ids).tolist(), block.columns.slot_start.tolist()
    recorded = [set(ids[first:end]) for first, end in pairwise(bounds)]
    predicted = [set(plan.identity(np.array(team, np.int64)).tolist()) for team in match.forecast["teams"]]
    if len(recorded) != len(predicted) or not all(team in predicted for team in recorded):
        return None
    return [predicted.index(team) for team in recorded]


def _audited(match: FormedMatch, block: Block, odds: Sequence[float], margin: float | None) -> AuditedMatch:
    place, score = block.columns.place, block.columns.team_score
    ahead = place[None, :] - place[:, None]
    scored = (np.where(ahead > 0, 1.0, np.where(ahead == 0, 0.5, 0.0)).sum(axis=1) - 0.5) / (len(place) - 1)
    stomp = None
    if margin is not None and not np.isnan(score).any():
        best, second = np.sort(score)[::-1][:2].tolist()
        stomp = best - second > margin
    return AuditedMatch(match, odds, scored.tolist(), stomp, bool(block.columns.quit.any()))


def _groups(audited: Sequence[AuditedMatch]) -> dict[str, tuple[AuditedGroup, ...]]:
    classes: dict[str, Callable[[AuditedMatch], str]] = {
        "spread in percentiles": lambda match: _class(match.formed.forecast["spread"], SPREADS),
        "longest wait in seconds": lambda match: _class(max(match.formed.forecast["waits"]), WAITS),
        "parties": _party_mix,
        "percentile": lambda match: _decile(match.formed.forecast["percentile"]),
        "policy": _policy,
    }
    groups = {}
    for name, label_of in classes.items():
        by_label: dict[str, list[AuditedMatch]] = {}
        for match in audited:
            by_label.setdefault(label_of(match), []).append(match)
        groups[name] = tuple(_group(label, by_label[label]) for label in sorted(by_label, key=_natural))
    return groups


def _class(value: float, bounds: Sequence[float]) -> str:
    lower = [bound for bound in bounds if value > bound]
    upper = [bound for bound in bounds if value <= bound]
    if not lower:
        return f"0 to {upper[0]:g}"
    return f"{lower[-1]:g} to {upper[0]:g}" if upper else f"{lower[-1]:g} and more"


def _decile(percentile: float) -> str:
    low = min(int(percentile // DECILE), 9) * int(DECILE)
    return f"{low} to {low + int(DECILE)}"


def _party_mix(match: AuditedMatch) -> str:
    largest = [max(sizes) for sizes in match.formed.forecast["parties"]]
    if max(largest) == 1:
        return "single players only"
    return "parties of one size in each team" if len(set(largest)) == 1 else "parties of different sizes"


def _policy(match: AuditedMatch) -> str:
    trial = match.formed.forecast["trial"]
    tried = "" if trial is None or trial["arm"] == "a" else ", policy B of the experiment"
    return f"version {match.formed.policy}{tried}"


def _natural(label: str) -> tuple[int, str]:
    digits = "".join(character if character.isdigit() else " " for character in label).split()
    return (int(digits[0]) if digits else -1, label)


class _Scores(NamedTuple):
    """The predicted and the actual scores of N teams, their weights, and their matches; float64 (N,), int64 (N,)."""

    predicted: Floats
    scored: Floats
    weight: Floats
    match: Whole

    @classmethod
    def of(cls, audited: Sequence[AuditedMatch]) -> _Scores:
        """The scores of some matches. All matches have the same weight."""
        teams = np.array([len(match.predicted) for match in audited])
        return cls(
            np.array([score for match in audited for score in match.predicted]),
            np.array([score for match in audited for score in match.scored]),
            np.repeat(1 / teams, teams),
            np.repeat(np.arange(len(audited)), teams),
        )


def _group(label: str, audited: Sequence[AuditedMatch]) -> AuditedGroup:
    if not audited:
        return AuditedGroup(label, 0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
    blocks, block = _blocks(len(audited))
    predicted, scored, weight, match = _Scores.of(audited)
    has_score = np.array([match.stomp is not None for match in audited], np.float64)
    return AuditedGroup(
        label,
        len(audited),
        blocks.slope(predicted, scored, weight, block[match]).measure,
        blocks.ratio(weight, weight * (predicted - scored) ** 2, block[match]).share,
        blocks.ratio(has_score, np.array([bool(match.stomp) for match in audited], np.float64), block).share,
        blocks.mean(np.array([match.quit for match in audited], np.float64), block).share,
    )


def _curve(audited: Sequence[AuditedMatch]) -> list[Point]:
    if not audited:
        return []
    blocks, block = _blocks(len(audited))
    predicted, scored, weight, match = _Scores.of(audited)
    return blocks.reliability(predicted, scored, weight, block[match])


def _warning(slope: Measure) -> str | None:
    """A sentence if the interval of the slope lies outside CALIBRATED."""
    interval = f"the calibration slope is {slope.value:.2f} (95 % between {slope.low:.2f} and {slope.high:.2f})"
    if slope.high < CALIBRATED[0]:
        return f"The odds are too extreme: {interval}. Favourites win less often than predicted."
    if slope.low > CALIBRATED[1]:
        return f"The odds are too close to even: {interval}. Favourites win more often than predicted."
    return None


class RecentOffer(NamedTuple):
    """An offer at the time it was made.

    state        open, allocating (a game server is wanted), made (the match began) or off (cancelled)
    odds         predicted score of each team; None: the ladder's system cannot predict such a match
    spread       percentiles between the lowest and the highest player
    players      number of players who received it; in a backfill, only the new ones
    waits        wait in seconds of each ticket that is still stored, in the order of the teams
    map          None: the queue has none
    percentiles  mean percentile of the players of each of these tickets, at the time of joining
    """

    offer: int
    queue: str
    state: str
    made_at: int
    odds: tuple[float, ...] | None
    spread: float
    region: str | None
    players: int
    waits: tuple[float, ...]
    percentiles: tuple[float, ...]
    map: str | None = None


def recent(store: Store, ladder: int, limit: int) -> list[RecentOffer]:
    """A ladder's latest offers, newest first, at most `limit`."""
    latest = queue_sql.read_latest_offers(store, ladder, limit)
    numbers = sorted({slot["ticket"] for offer in latest for slot in offer.chairs})
    stored = queue_sql.read_tickets(store, ladder, numbers)
    return [_recent(offer, stored) for offer in latest]


def _recent(offer: queue_sql.OfferRow, stored: dict[int, queue_sql.TicketRow]) -> RecentOffer:
    numbers = dict.fromkeys(slot["ticket"] for slot in offer.chairs)
    own = [stored[number] for number in numbers if number in stored]
    return RecentOffer(
        offer=offer.offer,
        queue=offer.queue,
        state=offer.state,
        made_at=offer.made_at,
        odds=None if offer.body["odds"] is None else tuple(offer.body["odds"]),
        spread=offer.body["spread"],
        region=offer.body["region"],
        map=offer.body["map"],
        players=len(offer.chairs),
        waits=tuple(max(offer.made_at - ticket.queued_at, 0) / SECOND for ticket in own),
        percentiles=tuple(float(np.mean([member["percentile"] for member in ticket.party.members])) for ticket in own),
    )
