"""The placement rule, a player's progress, and why the standings do not list a player, in words."""

from __future__ import annotations

from evenmatch.durations import DAY
from evenmatch.ladders.standings import View
from evenmatch.standings.activity import NEVER
from evenmatch.standings.board import Standing
from evenmatch.standings.rules import AUTO, StandingsRules
from evenmatch.times import iso_time


def placement_rule(rules: StandingsRules) -> str:
    """The rule in words: "10 completed matches"."""
    fewest = _matches(rules.fewest_matches)
    if rules.placement != AUTO:
        return fewest
    return (
        f"{fewest} once the next one is expected to move the percentile by less than {rules.placement_bound:g}, "
        f"and after {rules.placement_most:,} at the latest"
    )


def placement_progress(standing: Standing, rules: StandingsRules) -> str:
    """The progress of a player who is not placed: "3 of 10 matches completed"."""
    completed, fewest = standing.completed, rules.fewest_matches
    if rules.placement != AUTO:
        return f"{completed} of {fewest} matches completed"
    if completed < fewest:
        return f"{completed} of at least {fewest} matches completed"
    latest = f"after {rules.placement_most:,} matches at the latest"
    if standing.expected_move is None:
        return f"{completed} matches completed; the percentile is shown once it is steady, {latest}"
    return (
        f"the percentile still moves by about {max(standing.expected_move, 1):.0f} per match; it is shown once that is "
        f"below {rules.placement_bound:g}, {latest} ({completed} completed)"
    )


def _matches(count: int) -> str:
    return f"{count:,} completed match{'' if count == 1 else 'es'}"


def why_nobody(view: View) -> str | None:
    """Why the standings are empty; None if they are not."""
    snapshot, rules = view.snapshot, view.settings.standings
    if len(snapshot):
        return None
    if view.head.time is None:
        return "No match has been rated on this ladder yet."
    placed = int((snapshot.placed & ~snapshot.board.hidden).sum())
    if not placed:
        most = int(snapshot.board.completed.max(initial=0))
        return f"No player is listed yet: it takes {placement_rule(rules)}, and no player has more than {most}."
    last_day = iso_time(view.head.time)[:10]
    players = f"{placed:,} player{'' if placed == 1 else 's'}"
    return (
        f"No player is listed: of {players} with enough matches, none has completed a match in the last "
        f"{rules.active_days:g} days. The last match was on {last_day}."
    )


def why_not(view: View, standing: Standing) -> str | None:
    """Why the standings do not list this player; None if they do."""
    rules, board = view.settings.standings, view.snapshot.board
    if standing.rank is not None:
        return None
    row = int(board.find([standing.player])[0])
    if board.hidden[row]:
        return "This player is banned from the ladder or was erased."
    if not standing.placed:
        if rules.placement == AUTO:
            return f"In placement: {placement_progress(standing, rules)}."
        return f"Players are listed after {placement_rule(rules)}, and this player has {standing.completed}."
    last = int(board.last_completed[row])
    days = (view.snapshot.as_of - last) // DAY if last != NEVER else 0
    return (
        f"The last completed match was {days:,} days ago, and players are listed for {rules.active_days:g} days after "
        "a match."
    )
