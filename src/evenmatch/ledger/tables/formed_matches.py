"""Rows of table `formed_match`: the prediction of each match that a queue formed. They are never changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple, NotRequired, TypedDict

from evenmatch.ledger import live_schema
from evenmatch.ledger.store import Store


class TrialMoment(TypedDict):
    """The moment of an experiment in which a match was offered.

    experiment  its number;  arm  "a" or "b";  elapsed  microseconds since its start
    """

    experiment: int
    arm: str
    elapsed: int


class MatchForecast(TypedDict):
    """The prediction of a match as its last player accepted; stored as JSON.

    teams       ids of the players by team;  parties  sizes of the parties by team
    odds        predicted score of each team; None: the ladder's system could not predict the match
    spread      percentiles between the lowest and the highest player;  percentile  the mean of its players
    waits       seconds from joining to the offer, of each ticket
    estimates   further wait of each ticket as estimated when it joined: half wait less, and nine of ten; None: not
                estimated; missing from matches of older versions
    attributes, map  with which it is played; missing: none
    trial       missing if no experiment ran
    """

    teams: list[list[int]]
    parties: list[list[int]]
    odds: list[float] | None
    spread: float
    percentile: float
    waits: list[float]
    estimates: NotRequired[Sequence[Sequence[float] | None]]
    attributes: NotRequired[dict[str, str]]
    map: NotRequired[str]
    trial: NotRequired[TrialMoment]


class FormedMatch(NamedTuple):
    """A match formed by a queue. policy: number of the change that set the queue's policy; microseconds."""

    match_id: str
    queue: str
    formed_at: int
    policy: int
    forecast: MatchForecast


_COLUMNS = ("match_id", "queue", "formed_at", "policy", "body")


def insert(store: Store, ladder: int, match: FormedMatch) -> None:
    """Insert a formed match."""
    row = (ladder, *match[:4], json.dumps(match.forecast, sort_keys=True))
    store.insert(live_schema.formed_match, ("ladder", *_COLUMNS), [row])


def read(store: Store, ladder: int, queue: str, since: int, until: int, limit: int) -> list[FormedMatch]:
    """The matches that a queue formed at or after `since` and before `until`: the latest `limit`, oldest first."""
    sql = f"SELECT {', '.join(_COLUMNS)} FROM formed_match WHERE ladder = ? AND queue = ?"
    period = "AND formed_at >= ? AND formed_at < ? ORDER BY formed_at DESC, match_id DESC LIMIT ?"
    rows = store.all(f"{sql} {period}", ladder, queue, since, until, limit)
    return [FormedMatch._make((*row[:4], json.loads(row[4]))) for row in reversed(rows)]
