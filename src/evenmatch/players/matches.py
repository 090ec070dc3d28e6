"""Matches of a ladder as they count now: the report, and the rating changes or why there are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal, NamedTuple

import numpy as np

from evenmatch.durations import HOUR
from evenmatch.errors import UnknownNameError
from evenmatch.history import Columns, History
from evenmatch.ladders.export import list_of_player
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows, player_rows, rating_rows
from evenmatch.ledger.block_rating import Block, counts
from evenmatch.ledger.event_rows import END_OF_LIST, ListKey
from evenmatch.ledger.events import MatchVoided, PlayerBanned
from evenmatch.ledger.plan import Plan, plan_of
from evenmatch.ledger.store import Head, Row, Store
from evenmatch.match import Appearance
from evenmatch.match_context import Context, read_context
from evenmatch.players.explanations import Finish, known_number, outcome, standing_of
from evenmatch.players.headlines import Explanation, explain
from evenmatch.recording.receipts import MatchReceipt, PlayerReceipt, RatedBlock, receipts
from evenmatch.systems.system import Change, Rules
from evenmatch.systems.wording import same
from evenmatch.times import Time, iso_time

__all__ = ["END_OF_LIST", "ListKey"]  # these two are defined in the ledger

PLAYERS = 10_000  # on a page of matches
LATE = HOUR  # a match is shown as recorded late if its counted end is at least this long after its real end
State = Literal["rated", "unrated", "void", "waits"]


class PlayerEffect(NamedTuple):
    """The effect of a match on a player. change: None if it is not shown; other fields: see PlayerReceipt."""

    change: Change | None
    percentile: int | None
    division: str | None


Part = tuple[Appearance, PlayerEffect | None]  # a player's part as reported, and the effect if the match is rated


@dataclass(frozen=True)
class TeamProfile:
    """A team of a recorded match."""

    finish: Finish
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class MatchProfile:
    """A recorded match as it counts now.

    position  position in the ladder's ledger
    state     unrated: it was reported as unrated or with two names of one player, or the system cannot rate it;
              void: it was voided, or a player was banned; waits: the next rebuild will rate it
    reason    why the match is not rated
    explanations  of every player's change, team by team; empty if it is not rated, or they are not shown
    late      where a match that was recorded late counts; null: it was recorded in time
    context   what it was played on, by column, as reported
    """

    match_id: str
    position: int
    played_at: Time
    duration: float | None
    state: State
    reason: str | None
    sides: tuple[TeamProfile, ...]
    explanations: tuple[tuple[Explanation, ...], ...] = ()
    late: str | None = None
    context: Context = field(default_factory=dict)

    def part_of(self, player: str) -> tuple[int, int]:
        """The indices of a player's team and of their part in it. Raises StopIteration if the player is not in it."""
        return next(
            (team, part)
            for team, side in enumerate(self.sides)
            for part, (appearance, _) in enumerate(side.parts)
            if appearance.player == player
        )

    def sentences(self) -> list[str]:
        """A summary in sentences: who won, the result of each team, and why no rating changed if none did."""
        summary = [outcome([side.finish for side in self.sides])]
        summary += [f"{standing_of(side.finish)}." for side in self.sides]
        return summary if self.reason is None else [*summary, f"It changed no rating: {self.reason}."]


@dataclass(frozen=True)
class CorrectionEffects:
    """The effect of a ladder's corrections on its matches.

    plan    of the live ratings;  latest  the same with the corrections that await a rebuild
    voided  reasons for voided matches, by position;  banned  reasons for bans, by player id
    due     a rebuild is due
    """

    plan: Plan
    latest: Plan
    voided: Mapping[int, str]
    banned: Mapping[int, str]
    due: bool

    @classmethod
    def of(cls, store: Store, head: Head) -> CorrectionEffects:
        """Read the corrections of a ladder."""
        all_corrections = event_rows.read_corrections(store, head, head.corrected)
        changes = [correction.change for correction in all_corrections]
        plan = plan_of(correction for correction in all_corrections if correction.position <= head.planned)
        return cls(
            plan,
            plan if head.planned == head.corrected else plan_of(all_corrections),
            _reasons({one.match: one.reason for one in changes if isinstance(one, MatchVoided)}),
            _reasons({one.player: one.reason for one in changes if isinstance(one, PlayerBanned)}),
            head.due is not None,
        )

    def on(
        self, block: Block, at: int, counted: bool, rated: bool, names: Mapping[int, str]
    ) -> tuple[State, str | None]:
        """The state of the match at this index of a block (merged player ids), and why it is not rated."""
        position, c = int(block.positions[at]), block.columns
        if position in self.latest.void:
            return "void", f"the match was voided{_because(self.voided.get(position))}"
        players = block.ids[c.slot_start[c.team_start[at]] : c.slot_start[c.team_start[at + 1]]].tolist()
        if not block.rated[at]:
            return "unrated", _unrated_reason(players, names)
        if not counted:
            player = next(one for one in players if one in self.latest.bans and self.latest.bans[one].rule == "void")
            return "void", f"{names[player]} is banned{_because(self.banned.get(player))}"
        if rated:
            return "rated", None
        if self.due:
            return "waits", "the ladder's ratings are being recalculated"
        rules = self.latest.rules_at(int(block.counts_at[at]))
        alone = History(c._replace(player=np.zeros(len(block.ids), np.int32))).take(slice(at, at + 1)).columns
        refused = next((reason for _, reason in rules.system.refusals(alone, rules.parameters)), "it cannot be rated")
        return "unrated", refused


def _unrated_reason(players: Sequence[int], names: Mapping[int, str]) -> str:
    """Why a match with these players was recorded as unrated."""
    twice = next((player for player in players if players.count(player) > 1), None)
    if twice is None:
        return "it was sent as an unrated match"
    return f"two of its names belong to {names[twice]}, who cannot play twice in one match"


def recorded(
    store: Store, head: Head, positions: Sequence[int], translate: Callable[[str], str] = same
) -> list[MatchProfile]:
    """The matches at these positions, the last played first. translate: see `headlines.explain`."""
    if not positions:
        return []
    verdicts = CorrectionEffects.of(store, head)
    lines = rating_rows.read_journal_lines(store, head, positions)
    counted = event_rows.read_counted_at(store, head.ladder, positions)
    profiles = [
        replace(profile, late=_late(profile.played_at, *counted.get(profile.position, (None, None))))
        for block, rows in event_rows.read_blocks_at(store, head, positions)
        for profile in _profiles(store, head, verdicts, block, rows, lines, translate)
    ]
    return sorted(profiles, key=lambda profile: (profile.played_at, profile.position), reverse=True)


def _late(played_at: int, counted_at: int | None, counts_before: int | None) -> str | None:
    if counts_before is not None:
        return "recorded late, and rated as of the time it was played"
    if counted_at is None or counted_at - played_at < LATE:
        return None
    return f"recorded late, and rated as if it had ended at {iso_time(counted_at)}"


def position_of(store: Store, head: Head, match_id: str) -> int:
    """The position of the match with this id. Raises UnknownNameError."""
    position = event_rows.find_match(store, head.ladder, match_id)
    if position is None:
        raise UnknownNameError(f"match of ladder {head.name!r}", match_id, ())
    return position


def page_of(
    store: Store,
    head: Head,
    *,
    before: ListKey,
    limit: int,
    player: int | None = None,
    since: int | None = None,
    until: int | None = None,
) -> tuple[list[int], ListKey | None]:
    """The positions of up to `limit` matches, last played first, and where the next page begins (None: no more).

    The matches of a page have at most PLAYERS players, unless the page has a single match.
    player  only this player's matches;  since, until  only matches that ended from `since` up to `until`, microseconds
    """
    if player is None:
        listed = event_rows.read_match_list(store, head.ladder, before, limit + 1, since, until)
    else:
        plan = event_rows.read_plan(store, head, head.corrected)
        listed = list_of_player(store, head, plan, player, before=before, limit=limit + 1, since=since, until=until)
    end = _page_end(store, head, [key.position for key in listed[:limit]])
    positions = [key.position for key in listed[:end]]
    return positions, listed[end - 1] if len(listed) > end else None


def _page_end(store: Store, head: Head, positions: Sequence[int]) -> int:
    """How many of these matches fit on a page."""
    counts = event_rows.player_counts(store, head.ladder, positions)
    totals = accumulate(counts[position] for position in positions)
    return max(1, sum(total <= PLAYERS for total in totals))


def _profiles(
    store: Store,
    head: Head,
    verdicts: CorrectionEffects,
    block: Block,
    rows: list[Row],
    lines: Mapping[int, tuple[bytes, int]],
    translate: Callable[[str], str],
) -> Iterator[MatchProfile]:
    match_lines = [lines.get(position, (b"", 0))[0] for position in block.positions.tolist()]
    now = replace(block, ids=verdicts.latest.identity(block.ids))
    names = player_rows.names_of(store, np.unique(now.ids).tolist())
    counted = counts(verdicts.latest, now).tolist()
    states = [verdicts.on(now, match, counted[match], bool(match_lines[match]), names) for match in range(len(block))]
    shown = [line if state == "rated" else b"" for line, (state, _) in zip(match_lines, states, strict=True)]
    ids = [row[0] for row in rows]
    divisions = [division.name for division in Settings.read(head.settings).standings.divisions]
    block_receipts = receipts(head.name, ids, RatedBlock(verdicts.plan.last_rules.system, now, shown, names, divisions))
    slot_names = [names[player] for player in now.ids.tolist()]
    whole = History(now.columns._replace(player=np.zeros(len(now.ids), np.int32)))
    for match, (receipt, (state, reason)) in enumerate(zip(block_receipts, states, strict=True)):
        sides = _sides(now.columns, match, slot_names, rows[match][3], receipt)
        yield MatchProfile(
            receipt.match_id,
            receipt.position,
            int(block.played_at[match]),
            known_number(float(block.columns.duration[match])),
            state,
            reason,
            sides,
            _explanations(
                verdicts.plan.rules_at(int(block.counts_at[match])),
                whole.take(slice(match, match + 1)),
                receipt,
                translate,
            ),
            context=read_context(block.context[match]),
        )


def _sides(
    c: Columns, match: int, names: list[str], labels: str | None, receipt: MatchReceipt
) -> tuple[TeamProfile, ...]:
    first, end = c.team_start[match : match + 2].tolist()
    team_labels = [str(number) for number in range(end - first)] if labels is None else json.loads(labels)
    profiles = []
    for number, team in enumerate(range(first, end)):
        slots = range(*c.slot_start[team : team + 2].tolist())
        lines = receipt.teams[number] if receipt.teams else (None,) * len(slots)
        expected = receipt.teams[number][0].change.expected if receipt.teams else None
        finish = Finish(team_labels[number], int(c.place[team]), known_number(float(c.team_score[team])), expected)
        effects = map(_effect, lines)
        parts = tuple((_appearance(c, slot, names[slot]), effect) for slot, effect in zip(slots, effects, strict=True))
        profiles.append(TeamProfile(finish, parts))
    return tuple(profiles)


def _effect(line: PlayerReceipt | None) -> PlayerEffect | None:
    return None if line is None else PlayerEffect(line.change, line.percentile, line.division)


def _appearance(c: Columns, slot: int, name: str) -> Appearance:
    score, seconds, performance = (known_number(float(column[slot])) for column in (c.score, c.seconds, c.performance))
    entry = known_number(float(str(c.entry[slot]))) if len(c.entry) else None  # the digits reported
    return Appearance(name, score, seconds, bool(c.quit[slot]), performance, bool(c.keep[slot]), entry)


def _explanations(
    by: Rules, match: History, receipt: MatchReceipt, translate: Callable[[str], str]
) -> tuple[tuple[Explanation, ...], ...]:
    """The explanations of a match by the rules that applied to it; empty if it was not rated."""
    if not receipt.teams:
        return ()
    changes = [[line.change for line in team] for team in receipt.teams]
    return explain(by, match, changes, translate)


def _reasons(given: Mapping[int, str | None]) -> dict[int, str]:
    """The corrections for which a reason was given."""
    return {subject: reason for subject, reason in given.items() if reason}


def _because(reason: str | None) -> str:
    return "" if reason is None else f": {reason}"
