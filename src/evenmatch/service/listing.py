"""Why standings do not list a player, or anybody, in sentences for people."""

from __future__ import annotations

from evenmatch.service.boards import View
from evenmatch.service.times import iso_time
from evenmatch.standings.activity import DAY, NEVER
from evenmatch.standings.board import Standing


def why_nobody(view: View) -> str | None:
    """Why nobody is listed; None where somebody is."""
    snapshot, rules = view.snapshot, view.settings.standings
    if len(snapshot):
        return None
    if view.head.time is None:
        return "No match was rated on this ladder yet."
    placed = int(((snapshot.board.completed >= rules.placement) & ~snapshot.board.hidden).sum())
    if not placed:
        most = int(snapshot.board.completed.max(initial=0))
        return f"Nobody is listed yet: that takes {_matches(rules.placement)}, and nobody has more than {most}."
    return (
        f"Nobody is listed: of {placed:,} player{'' if placed == 1 else 's'} with enough matches, nobody has completed "
        f"one in the last {rules.active_days:g} days. The last match was on {iso_time(view.head.time)[:10]}."
    )


def why_not(view: View, standing: Standing) -> str | None:
    """Why this player is not listed; None for one who is."""
    rules, board = view.settings.standings, view.snapshot.board
    if standing.rank is not None:
        return None
    row = int(board.find([standing.player])[0])
    if board.hidden[row]:
        return "They are banned from this ladder, or were erased."
    if not standing.placed:
        return f"That takes {_matches(rules.placement)}, and they have {standing.completed}."
    last = int(board.last_completed[row])
    days = (view.snapshot.as_of - last) // DAY if last != NEVER else 0
    return (
        f"Their last completed match was {days:,} days ago, and players are listed for {rules.active_days:g} days "
        "after one."
    )


def _matches(count: int) -> str:
    return f"{count:,} completed match{'' if count == 1 else 'es'}"
