"""Messages between processes: the reports of a ladder, and what became of them, in MessagePack.

Only what both sides can make again exactly is sent. `None` in the place of an outcome means: record it yourself, and
you will get the same answer as everybody else, for a match that is known is recorded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgspec
import numpy as np
from msgspec import Struct

from evenmatch import systems
from evenmatch.errors import (
    BadRowsError,
    ConflictError,
    EvenmatchError,
    InputError,
    RatingRangeError,
    RowProblem,
    UsageError,
)
from evenmatch.history import Columns
from evenmatch.ledger.block_rating import Block
from evenmatch.service.recording.receipts import MatchReceipt, RatedBlock
from evenmatch.service.recording.recorder import Outcome
from evenmatch.service.recording.report_batch import ReportBatch
from evenmatch.systems.system import System

LARGEST = 32 * 2**20  # bytes of a message
ROWS = {"source", "problems", "all_bad"}  # the fields of a BadRowsError that no caller has changed
PLAIN = {kind.__name__: kind for kind in (InputError, ConflictError, RatingRangeError)}  # made of their text alone


class HandOverRequest(Struct, array_like=True, frozen=True):
    """Reports of a ladder, in the order in which they came. number: of the request on its connection, from 1"""

    number: int
    ladder: str
    reports: ReportBatch


class PackedReceipt(Struct, array_like=True, frozen=True, gc=False):
    """A recorded match. source: index of its source; lines: its packed lines; empty: not rated

    names  the present names of its players where they are not those of the report
    """

    source: int
    position: int
    lines: bytes
    names: list[str] | None


class PackedProblem(Struct, array_like=True, frozen=True):
    """A fault of a row: the fields of RowProblem."""

    line: int | None
    match_id: str | None
    reason: str
    unit: str


class PackedRefusal(Struct, array_like=True, frozen=True):
    """An error of a class in PLAIN by its text, or a BadRowsError by its source and problems."""

    kind: str
    text: str
    problems: list[PackedProblem]


class ReceiptSource(Struct, array_like=True, frozen=True):
    """The parts that receipts share: the name of the rating system, and the names of the divisions."""

    system: str
    divisions: list[str]


class HandOverReply(Struct, array_like=True, frozen=True):
    """The outcomes of a request, by its number; of number 0, which is none, only a sign of life.

    done      the request was carried out; False: nothing is known of any of its reports
    receipts  per report; None: it is refused, or to be recorded by who asks
    refusals  the errors of refused reports, by index
    """

    number: int
    done: bool
    sources: list[ReceiptSource]
    receipts: list[PackedReceipt | None]
    refusals: dict[int, PackedRefusal]


ALIVE = HandOverReply(0, False, [], [], {})
encode = msgspec.msgpack.Encoder().encode
_REQUESTS = msgspec.msgpack.Decoder(HandOverRequest)
decode_reply = msgspec.msgpack.Decoder(HandOverReply).decode


def read_request(message: bytes) -> HandOverRequest:
    """Decode a request. Raises ValueError if it is none, or its columns do not fit together."""
    request = _REQUESTS.decode(message)
    if not _is_consistent(request.reports):
        raise ValueError("reports that are not whole")
    return request


def _is_consistent(reports: ReportBatch) -> bool:
    """Whether the columns of a batch fit together."""
    matches, teams, players = len(reports.ids), sum(reports.teams), sum(reports.sizes)
    per_match = (reports.played_at, reports.rated, reports.duration, reports.teams)
    per_team = (reports.place, reports.team_score, reports.sizes)
    per_player = (reports.player, reports.score, reports.seconds, reports.performance, reports.quit, reports.keep)
    return (
        min(reports.teams, default=0) > 0
        and min(reports.sizes, default=0) > 0
        and all(len(column) == matches for column in per_match)
        and all(len(column) == teams for column in per_team)
        and all(len(column) == players for column in per_player)
    )


def reply_to(request: HandOverRequest, outcomes: Sequence[Outcome]) -> HandOverReply:
    """The reply with the outcomes of a request."""
    names = _names_of_matches(request.reports)
    sources: dict[int, int] = {}  # by identity
    listed: list[ReceiptSource] = []
    receipts: list[PackedReceipt | None] = []
    refusals: dict[int, PackedRefusal] = {}
    for index, (outcome, reported) in enumerate(zip(outcomes, names, strict=True)):
        receipts.append(None)
        if isinstance(outcome, EvenmatchError):
            refusal = _refusal_of(outcome)
            if refusal is not None:
                refusals[index] = refusal
        elif _is_known(outcome.source.system):
            source = outcome.source
            if id(source) not in sources:
                sources[id(source)] = len(listed)
                listed.append(ReceiptSource(source.system.name, list(source.divisions)))
            receipts[-1] = _receipt_of(outcome, sources[id(source)], reported)
    return HandOverReply(request.number, True, listed, receipts, refusals)


def outcomes_of(ladder: str, reports: ReportBatch, reply: HandOverReply) -> list[Outcome | None]:
    """The outcome of each report of a request, None where it is to be recorded here.

    Raises ValueError for a reply that does not fit the request, UsageError for an unknown rating system.
    """
    if len(reply.receipts) != len(reports):
        raise ValueError("a reply of another length than its request")
    outcomes: list[Outcome | None] = [None] * len(reports)
    for number, source in enumerate(reply.sources):
        chosen = [
            index for index, receipt in enumerate(reply.receipts) if receipt is not None and receipt.source == number
        ]
        for index, receipt in zip(chosen, _receipts(ladder, reports, reply, chosen, source), strict=True):
            outcomes[index] = receipt
    for index, refusal in reply.refusals.items():
        outcomes[index] = _error_of(refusal)
    return outcomes


def _names_of_matches(reports: ReportBatch) -> list[list[str]]:
    """The names of the players of each match."""
    return [reports.player[first:end] for first, end in pairwise([0, *accumulate(reports.players())])]


def _is_known(system: System) -> bool:
    """Whether who reads the system's name finds the same system: not so for one that a file defines."""
    try:
        return systems.find(system.name) is system
    except UsageError:
        return False


def _receipt_of(receipt: MatchReceipt, source: int, reported: list[str]) -> PackedReceipt:
    block, rated = receipt.source.block, receipt.source
    index = int(np.searchsorted(block.positions, receipt.position))
    lines = bytes(rated.told[index])
    if not lines:
        return PackedReceipt(source, receipt.position, b"", None)
    names = [rated.names[player] for player in block.ids[receipt.starts[0] : receipt.starts[-1]].tolist()]
    return PackedReceipt(source, receipt.position, lines, None if names == reported else names)


def _receipts(
    ladder: str, reports: ReportBatch, reply: HandOverReply, chosen: Sequence[int], source: ReceiptSource
) -> list[MatchReceipt]:
    """The receipts of these matches, which share a source."""
    kept = [reply.receipts[index] for index in chosen]
    parts = [reports.part(index, index + 1) for index in chosen] if len(chosen) < len(reports) else [reports]
    own = ReportBatch.joined(parts)
    reported = _names_of_matches(own)
    names = [
        name
        for receipt, names_sent in zip(kept, reported, strict=True)
        if receipt
        for name in (receipt.names or names_sent)
    ]
    if len(names) != len(own.player):
        raise ValueError("a receipt of another length than its match")
    team_start, slot_start = _starts(own.teams), _starts(own.sizes)
    empty = np.empty(0)
    columns = Columns(
        time=np.empty(0, np.int64),
        team_start=team_start,
        place=np.array(own.place, np.int32),
        team_score=empty,
        slot_start=slot_start,
        player=np.empty(0, np.int32),
        score=empty,
        seconds=empty,
        performance=empty,
        quit=np.empty(0, np.bool_),
        duration=empty,
        keep=np.empty(0, np.bool_),
    )
    positions = np.array([receipt.position for receipt in kept if receipt], np.int64)
    block = Block(
        positions,
        np.array(own.played_at, np.int64),
        columns,
        np.arange(len(names), dtype=np.int64),
        np.array(own.rated, np.bool_),
    )
    lines = [receipt.lines for receipt in kept if receipt]
    rated = RatedBlock(systems.find(source.system), block, lines, dict(enumerate(names)), source.divisions)
    len(rated.records)  # raises ValueError for lines of another length
    starts, teams = slot_start.tolist(), team_start.tolist()
    return [
        MatchReceipt(match_id, ladder, position, bool(packed), rated, tuple(starts[a : b + 1]) if packed else ())
        for match_id, position, packed, (a, b) in zip(own.ids, positions.tolist(), lines, pairwise(teams), strict=True)
    ]


def _starts(sizes: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array([0, *accumulate(sizes)], np.int32)


def _refusal_of(error: EvenmatchError) -> PackedRefusal | None:
    """The error as it is sent; None if it is of a class that is not."""
    kind = type(error)
    if isinstance(error, BadRowsError) and error.__dict__.keys() == ROWS and not error.all_bad:
        problems = [PackedProblem(row.line, row.match_id, row.reason, row.unit) for row in error.problems]
        return PackedRefusal(kind.__name__, error.source, problems)
    if PLAIN.get(kind.__name__) is kind and not error.__dict__:
        return PackedRefusal(kind.__name__, str(error), [])
    return None


def _error_of(refusal: PackedRefusal) -> EvenmatchError | None:
    """The error that was sent; None: of a class that this version does not know."""
    if refusal.kind == BadRowsError.__name__:
        return BadRowsError(
            refusal.text, [RowProblem(row.line, row.match_id, row.reason, row.unit) for row in refusal.problems]
        )
    kind = PLAIN.get(refusal.kind)
    return None if kind is None else kind(refusal.text)
