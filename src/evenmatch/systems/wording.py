"""Every sentence and clause of an explanation, as format strings, so that they can be translated in one place.

Clauses name the player as {You}, {you} and {your}; PEOPLE fills these in for the player and for everybody else. A
sentence that joins clauses names {result} ("You lost"), {outcome} ("You lost to the favourite (you win 2 of 10 such
games)"), {effect} ("your rating fell by 3.20") and {it} ("it fell by 3.20").
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

PEOPLE = {
    "player": {"You": "You", "you": "you", "your": "your"},
    "others": {"You": "They", "you": "they", "your": "their"},
}

RESULTS = {
    "won": "{You} won",
    "drew": "{You} drew",
    "lost": "{You} lost",
    "placed": "{You} finished {place} of {teams}",
    "shared": "{You} shared places {place} to {last} of {teams}",
    "left and won": "{You} left early, and the match was won",
    "left and drew": "{You} left early, and the match was a draw",
    "left and lost": "{You} left early, and the match was lost",
    "left and placed": "{You} left early and finished {place} of {teams}",
    "left and shared": "{You} left early and shared places {place} to {last} of {teams}",
}
OUTCOMES = {  # by result and expectation; a result that is missing here is told without the expectation
    ("won", "favourite"): "{You} won as the favourite ({you} win {wins} of {of} such games)",
    ("won", "underdog"): "{You} won against the favourite ({you} win {wins} of {of} such games)",
    ("won", "equal"): "{You} won an even match",
    ("drew", "favourite"): "{You} drew as the favourite ({you} win {wins} of {of} such games)",
    ("drew", "underdog"): "{You} drew with the favourite ({you} win {wins} of {of} such games)",
    ("drew", "equal"): "{You} drew an even match",
    ("lost", "favourite"): "{You} lost as the favourite ({you} win {wins} of {of} such games)",
    ("lost", "underdog"): "{You} lost to the favourite ({you} win {wins} of {of} such games)",
    ("lost", "equal"): "{You} lost an even match",
    ("placed", "different"): "{You} finished {place} of {teams}, where {due} was expected",
    ("placed", "same"): "{You} finished {place} of {teams}, about as expected",
    ("shared", "different"): "{You} shared places {place} to {last} of {teams}, where {due} was expected",
    ("shared", "same"): "{You} shared places {place} to {last} of {teams}, about as expected",
}
RISE, FALL, NO_CHANGE = range(3)
EFFECTS = (
    ("{your} rating rose by {points}", "it rose by {points}"),
    ("{your} rating fell by {points}", "it fell by {points}"),
    ("{your} rating did not change", "it did not change"),
)
OTHER_RESULTS = {"win": "A win", "loss": "A loss", "first": "First place", "last": "Last place"}
OTHERWISE = (
    "{other} would have brought {points}.",
    "{other} would have cost {points}.",
    "{other} would have changed nothing.",
)


class Reason(NamedTuple):
    """A sentence for a change that the result and the odds alone do not explain, and the values that it names."""

    sentence: str
    values: Mapping[str, object] = MappingProxyType({})


AS_USUAL = Reason("{outcome}, so {effect}.")
UNCHANGED = Reason("{outcome}, and {effect}.")
BY_OPPONENT = Reason("{result}, but it matters how {you} did against each single opponent, so {effect}.")
BY_HISTORY = Reason("{result}, but {your} earlier matches count as well, so {effect}.")
NOT_COUNTED = Reason("{result}, but this match does not count for {your} rating, so {it}.")

# The reasons of the systems; a system of your own may write its own.
FLOOR_REACHED = "{outcome}, so {effect} and is now {floor}, the lowest there is."
AT_FLOOR = "{outcome}; {your} rating is already {floor}, the lowest there is, so {it}."
OWN_ABOVE = "{result}, but {your} own rating is above the average of {your} opponents, so {it}."
OWN_BELOW = "{result}, but {your} own rating is below the average of {your} opponents, so {it}."
LESS_CERTAIN = "{result}, but {your} rating is less certain now and is shown lower for that, so {it}."
MORE_CERTAIN = "{result}, but {your} rating is more certain now and is shown higher for that, so {it}."
NO_TIME = "{result}, but {you} have no playing time in this match, so {effect}."
FIRST_GAMES = "{result}; in the first {games} games, the rating follows all of {your} results so far, so {it}."
LOPSIDED = "{outcome}, and a one-sided result counts more, so {effect}."
WHOLE_POINTS = "{result}, but ratings are rounded down to whole points, so {effect}."
SCORED = (
    "{result}; against each other player, {you} scored {share} of every 100 points where {due} were expected, so "
    "{effect}."
)
SCORED_AT_FLOOR = (
    "{result}; against each other player, {you} scored {share} of every 100 points where {due} were expected, but "
    "{your} rating is already {floor}, the lowest there is, so {it}."
)
SPARED = (
    "{result}; against each other player, {you} scored {share} of every 100 points where {due} were expected, but "
    "favourites who outscore somebody lose nothing to them, so {effect}."
)
LEFT_OUT = "{result}, but there was too little playing time to compare {your} score with the others', so {effect}."
ROTTED = "{result}, but {you} had lost {lost} for weeks without a match, so {effect}."
LAST_GAMES_BELOW = "{result}, but {your} last {games} games together are still below {your} rating, so {it}."
LAST_GAMES_ABOVE = "{result}, but {your} last {games} games together are still above {your} rating, so {it}."
PERFORMANCE = "{result}, but {your} own performance in the match counts as well, so {effect}."
BY_LESS = "{result} by less than expected, so {effect}."
MARGIN = "{result}, but the margin of the score counts as well, so {effect}."
SCORED_LESS = "{result}, but {you} scored less than expected compared with the others, so {effect}."
SCORED_MORE = "{result}, but {you} scored more than expected compared with the others, so {effect}."
NEWCOMERS_WEAKER = "{result}, but newcomers here turn out weaker than their first rating says, so {effect}."
NEWCOMERS_STRONGER = "{result}, but newcomers here turn out stronger than their first rating says, so {effect}."
AWAY = "{result}, but {your} older matches count less after the time without a match, so {effect}."
RELEARNED = "{result}, but other matches have shown what {your} earlier results were really worth, so {effect}."
EARNED = "{result}, which brings {earned}, and taking part brings {participation}, so {effect}."
TOOK_PART = "{result}, but taking part always brings {participation}, so {effect}."
DRAW_MOVES_NOTHING = "{result}, and a draw moves nothing here, so {effect}."
DRAW_WITH_WEAKER = "{result}, and only a draw with a stronger team counts here, so {effect}."
DRAW_WITH_STRONGER = "{result} with a stronger team, which counts as a win here, so {effect}."
OTHERS_LEFT = "{result}, and everybody on the other team left early, which counts as a win for {you}, so {effect}."
LEFT = "{You} left early, which counts as a loss whatever the result, so {effect}."


def ordinal(number: int) -> str:
    """Format an ordinal: 1st, 2nd, 3rd, 4th … 11th … 21st."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"
