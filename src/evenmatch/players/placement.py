"""The placement rule, a player's progress, and why the standings do not list a player, in words."""

from __future__ import annotations

from evenmatch.durations import DAY
from evenmatch.ladders.standings import View
from evenmatch.sentences import Sentence
from evenmatch.standings.activity import NEVER
from evenmatch.standings.board import Standing
from evenmatch.standings.rules import AUTO, StandingsRules
from evenmatch.times import iso_time


def placement_rule(rules: StandingsRules) -> Sentence:
    """The rule in words: "10 completed matches"."""
    fewest = _matches(rules.fewest_matches)
    if rules.placement != AUTO:
        return fewest
    return Sentence(
        "{matches} once the next one is expected to move the percentile by less than {bound}, and after {most} at the "
        "latest",
        {"matches": fewest, "bound": f"{rules.placement_bound:g}", "most": f"{rules.placement_most:,}"},
    )


def placement_progress(standing: Standing, rules: StandingsRules) -> Sentence:
    """The progress of a player who is not placed: "3 of 10 matches completed"."""
    completed, fewest = standing.completed, rules.fewest_matches
    both = {"completed": completed, "fewest": fewest}
    if rules.placement != AUTO:
        return Sentence("{completed} of {fewest} matches completed", both)
    if completed < fewest:
        return Sentence("{completed} of at least {fewest} matches completed", both)
    most = f"{rules.placement_most:,}"
    if standing.expected_move is None:
        return Sentence(
            "{completed} matches completed; the percentile is shown once it is steady, after {most} matches at the "
            "latest",
            {"completed": completed, "most": most},
        )
    move, bound = f"{max(standing.expected_move, 1):.0f}", f"{rules.placement_bound:g}"
    return Sentence(
        "the percentile still moves by about {move} per match; it is shown once that is below {bound}, after {most} "
        "matches at the latest ({completed} completed)",
        {"move": move, "bound": bound, "most": most, "completed": completed},
    )


def _matches(count: int) -> Sentence:
    return Sentence("{n} completed match" if count == 1 else "{n} completed matches", {"n": f"{count:,}"})


def why_nobody(view: View) -> Sentence | None:
    """Why the standings are empty; None if they are not."""
    snapshot, rules = view.snapshot, view.settings.standings
    if len(snapshot):
        return None
    if view.head.time is None:
        return Sentence("No match has been rated on this ladder yet.")
    placed = int((snapshot.placed & ~snapshot.board.hidden).sum())
    if not placed:
        most = int(snapshot.board.completed.max(initial=0))
        return Sentence(
            "No player is listed yet: it takes {rule}, and no player has more than {most}.",
            {"rule": placement_rule(rules), "most": most},
        )
    players = Sentence("{n} player" if placed == 1 else "{n} players", {"n": f"{placed:,}"})
    return Sentence(
        "No player is listed: of {players} with enough matches, none has completed a match in the last {days} days. "
        "The last match was on {day}.",
        {"players": players, "days": f"{rules.active_days:g}", "day": iso_time(view.head.time)[:10]},
    )


def why_not(view: View, standing: Standing) -> Sentence | None:
    """Why the standings do not list this player; None if they do."""
    rules, board = view.settings.standings, view.snapshot.board
    if standing.rank is not None:
        return None
    row = int(board.find([standing.player])[0])
    if board.hidden[row]:
        return Sentence("This player is banned from the ladder or was erased.")
    if not standing.placed:
        if rules.placement == AUTO:
            return Sentence("In placement: {progress}.", {"progress": placement_progress(standing, rules)})
        return Sentence(
            "Players are listed after {rule}, and this player has {completed}.",
            {"rule": placement_rule(rules), "completed": standing.completed},
        )
    last = int(board.last_completed[row])
    days = (view.snapshot.as_of - last) // DAY if last != NEVER else 0
    return Sentence(
        "The last completed match was {days} days ago, and players are listed for {active_days} days after a match.",
        {"days": f"{days:,}", "active_days": f"{rules.active_days:g}"},
    )
