"""Every sentence and clause of an explanation, as format strings, so that they can be translated in one place.

Clauses name the player as {You}, {you}, {them}, {Your} and {your}, and {Side}, {side}, {its} and {was} are about the
player or, in a team of several, the team. A sentence that joins clauses names {result} ("You lost"), {outcome} ("You
lost to the favourite (your chance was about 20 %)"), {effect} ("your rating fell by 3.20") and {it}, which repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

PEOPLE = {
    "player": {"You": "You", "you": "you", "them": "you", "Your": "Your", "your": "your"},
    "others": {"You": "They", "you": "they", "them": "them", "Your": "Their", "your": "their"},
}
SIDES = {
    "player": {"Side": "{You}", "side": "{you}", "its": "{your}", "was": "were"},
    "team": {"Side": "{Your} team", "side": "{your} team", "its": "its", "was": "was"},
}
FAVOURITE = {"player": "the favourite", "team": "the favourites"}  # by the size of the rival team
ALL_TEAMS = {"player": "players", "team": "teams"}  # by the size of the largest team

RESULTS = {
    "won": "{Side} won",
    "drew": "{Side} drew",
    "lost": "{Side} lost",
    "placed": "{Side} finished {place} of {teams}",
    "tied": "{Side} tied for {place} of {teams}",
    "all tied": "All {teams} {players} tied",
    "left and won": "{You} left early and {side} won",
    "left and drew": "{You} left early and {side} drew",
    "left and lost": "{You} left early and {side} lost",
    "left and placed": "{You} left early and {side} finished {place} of {teams}",
    "left and tied": "{You} left early and {side} tied for {place} of {teams}",
    "left and all tied": "{You} left early and all {teams} {players} tied",
}
OUTCOMES = {  # by result and expectation; a result that is missing here is told without the expectation
    ("won", "favourite"): "{Side} won as the favourite ({its} chance was about {chance} %)",
    ("won", "underdog"): "{Side} beat {favourite} ({its} chance was about {chance} %)",
    ("won", "equal"): "{Side} won an even match",
    ("drew", "favourite"): "{Side} drew as the favourite ({its} chance was about {chance} %)",
    ("drew", "underdog"): "{Side} drew with {favourite} ({its} chance was about {chance} %)",
    ("drew", "nearly equal"): "{Side} drew a nearly even match ({its} chance was about {chance} %)",
    ("drew", "equal"): "{Side} drew an even match",
    ("lost", "favourite"): "{Side} lost as the favourite ({its} chance was about {chance} %)",
    ("lost", "underdog"): "{Side} lost to {favourite} ({its} chance was about {chance} %)",
    ("lost", "equal"): "{Side} lost an even match",
    ("placed", "better"): "{Side} finished {place} of {teams}, better than expected",
    ("placed", "worse"): "{Side} finished {place} of {teams}, worse than expected",
    ("tied", "better"): "{Side} tied for {place} of {teams}, better than expected",
    ("tied", "worse"): "{Side} tied for {place} of {teams}, worse than expected",
    ("all tied", "better"): "All {teams} {players} tied. As an underdog, {side} {was} expected to finish lower",
    ("all tied", "worse"): "All {teams} {players} tied. As a favourite, {side} {was} expected to finish higher",
}
RISE, FALL, NO_CHANGE = range(3)
EFFECTS = (
    ("{your} rating rose by {points}", "it rose by {points}"),
    ("{your} rating fell by {points}", "it fell by {points}"),
    ("{your} rating did not change", "it did not change"),
)
OTHER_RESULTS = {
    "win": "A win",
    "loss": "A loss",
    "first": "Finishing first",
    "last": "Finishing last",
    "first alone": "Finishing first alone",
    "last alone": "Finishing last alone",
}
OTHERWISE = {
    "earned": "{other} would have earned {points}.",
    "still": "{other} would still have brought {points}.",
    "cost": "{other} would have cost {points}.",
    "nothing": "{other} would have changed nothing.",
    "floor": "{other} would have changed nothing, because {floor} is the lowest rating there is.",
}
OTHERWISE_IN_ALL = {
    **OTHERWISE,
    "earned": "{other} would have earned {points} in all.",
    "still": "{other} would still have brought {points} in all.",
}


class Reason(NamedTuple):
    """A sentence for a change that the result and the odds alone do not explain, and the values that it names.

    otherwise  the sentences about other results
    """

    sentence: str
    values: Mapping[str, object] = MappingProxyType({})
    otherwise: Mapping[str, str] = MappingProxyType(OTHERWISE)


AS_USUAL = Reason("{outcome}, so {effect}.")
UNCHANGED = Reason("{outcome}, and {effect}.")
BY_OPPONENT = Reason("{result}, but it matters how {you} did against each single opponent, so {effect}.")
BY_HISTORY = Reason("{result}, but {your} earlier matches count as well, so {effect}.")
NOT_COUNTED = Reason("{result}, but this match does not count for {your} rating, so {it}.")
OWN_ABOVE = Reason("{result}, but {your} own rating is above {your} team's average, so more was expected and {effect}.")
OWN_BELOW = Reason("{result}, but {your} own rating is below {your} team's average, so less was expected and {effect}.")
LEFT_UNPUNISHED = Reason("{You} left early, but {side} won, and leaving is not punished here, so {effect}.")

# The reasons of the systems; a system of your own may write its own.
FLOOR_REACHED = "{outcome}, so {effect} and is now {floor}, the lowest there is."
AT_FLOOR = "{outcome}. {Your} rating is already {floor}, the lowest there is, so it did not change."
LESS_CERTAIN = (
    "{result}, but this match told us almost nothing new about {them}. We are slightly less sure of {your} rating, so "
    "we show it {points} lower."
)
MORE_CERTAIN = "{result}, but the surer we are of {your} rating, the higher we show it, so it rose by {points}."
VARIED_MORE = "{result}, but {your} results vary more now and {your} rating is shown lower for that, so {it}."
VARIED_LESS = "{result}, but {your} results vary less now and {your} rating is shown higher for that, so {it}."
NO_TIME = "{result}, but {you} have no playing time in this match, so {effect}."
FIRST_GAMES = "{result}. In the first {games} games, {your} rating follows all of {your} results so far, so {it}."
LOPSIDED = "{outcome}, and a one-sided result counts more, so {effect}."
WHOLE_POINTS = "{result}, but ratings are rounded down to whole points, so {effect}."
SCORED = (
    "{result}. This rating compares {your} own points, for the time {you} played, with every other player's: {you} "
    "scored {share} of the points between {them} and each of the others on average, where {due} % were expected, so "
    "{effect}."
)
SCORED_AT_FLOOR = (
    "{result}. {You} scored {share} of the points between {them} and each of the others, where {due} % were expected. "
    "{Your} rating is already {floor}, the lowest there is, so {it}."
)
SPARED = (
    "{result}. {You} scored {share} of the points between {them} and each of the others, where {due} % were expected, "
    "but a favourite never loses points to an outscored opponent, so {effect}."
)
LEFT_OUT = "{result}, but there was too little playing time to compare {your} score with the others', so {effect}."
ROTTED = "{result}, but {you} had lost {lost} for weeks without a match, so {effect}."
LAST_GAMES_HIGHER = (
    "{result}, {link} {your} rating follows {your} last {games} games as a whole. Those games point to a higher "
    "rating than before, so it rose by {points}."
)
LAST_GAMES_LOWER = (
    "{result}, {link} {your} rating follows {your} last {games} games as a whole. Those games point to a lower "
    "rating than before, so it fell by {points}."
)
PERFORMANCE = "{result}, but {your} own performance in the match counts as well, so {effect}."
BY_LESS = "{result} by less than expected, so {effect}."
MARGIN = "{result}, but the margin of the score counts as well, so {effect}."
SCORED_LESS = "{result}, but {you} scored less than expected compared with the others, so {effect}."
SCORED_MORE = "{result}, but {you} scored more than expected compared with the others, so {effect}."
NEWCOMERS_WEAKER = "{result}, but newcomers here turn out weaker than their first rating says, so {effect}."
NEWCOMERS_STRONGER = "{result}, but newcomers here turn out stronger than their first rating says, so {effect}."
AWAY = "{result}, but {your} older matches count less after the time without a match, so {effect}."
LOOK_WEAKER = (
    "{result}, but other matches since {your} last one make {your} old results look weaker. That outweighed this "
    "match, so {effect}."
)
LOOK_STRONGER = (
    "{result}, but other matches since {your} last one make {your} old results look stronger. That outweighed this "
    "match, so {effect}."
)
EARNED = "{result}. {You} got {earned} and {participation} for playing, so {effect}."
TOOK_PART = "{result}, but playing always brings {participation}, so {effect}."
FOR_WIN, FOR_DRAW = "{each} for the win", "{each} for the draw"
FOR_WINS = "{each} for every opponent beaten ({count})"
FOR_DRAWS = "{each} for every opponent tied with ({count})"
DRAW_MOVES_NOTHING = "{result}, and draws do not change {your} rating here."
DRAW_WITH_WEAKER = "{result}, and only a draw with a stronger team counts here, so {effect}."
DRAW_WITH_STRONGER = "{result} with a stronger team, which counts as a win here, so {effect}."
OTHERS_LEFT = "{result}, but everybody on the other team left early, which counts as a win for {side}, so {effect}."
LEFT_WON = "{You} left early, which counts as a loss even though {side} won, so {effect}."
LEFT_DREW = "{You} left early, which counts as a loss even though {side} drew, so {effect}."
LEFT_AT_FLOOR = "{You} left early and {your} rating is already {floor}, the lowest there is, so {it}."
LEFT_TO_FLOOR = "{You} left early, which counts as a loss, so {effect} and is now {floor}, the lowest there is."

# Second sentences, about the size of a change. They follow the reasons of NOTED only.
NOTED = (AS_USUAL.sentence, LEFT_UNPUNISHED.sentence, LOPSIDED, SCORED)
UNCERTAIN = "{Your} rating is still uncertain, so it moves a lot."
FEW_GAMES = "{You} have played few games here, so {your} rating moves a lot."
SURER = {  # by the direction of the change
    RISE: "It rose {part} more because we are surer of {your} rating now.",
    FALL: "It fell {part} less because we are surer of {your} rating now.",
}
OWN_NOTES = {  # by the direction of the change, and whether the own rating is above the team's average
    (RISE, True): "It rose less than the odds suggest, because {your} own rating is above {your} team's average.",
    (RISE, False): "It rose more than the odds suggest, because {your} own rating is below {your} team's average.",
    (FALL, True): "It fell more than the odds suggest, because {your} own rating is above {your} team's average.",
    (FALL, False): "It fell less than the odds suggest, because {your} own rating is below {your} team's average.",
}
PART_NOTES = ("{cause} lowered it by {part}.", "{cause} raised it by {part}.")
CAUSES = {  # by the factor that caused it
    "by_margin": "The margin of the score",
    "by_scores": "The comparison of the players' own scores",
    "by_entry": "What is known about newcomers here",
    "by_pause": "The time without a match",
    "by_weights": "What other matches have shown about old results",
}


def ordinal(number: int) -> str:
    """Format an ordinal: 1st, 2nd, 3rd, 4th … 11th … 21st."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"
