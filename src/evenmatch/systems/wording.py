"""Every sentence and clause of an explanation, as messages that a catalogue can translate.

A template names the player as {You}, {you}, {them}, {Your} and {your}; {Side}, {side}, {its} and {was} are about the
player or, in a team of several, the team; {favourite} is about the rivals and {players} about all. `message` replaces
these words, so a translator sees a message for each combination, in which only values are left in braces, and may move
those. Clauses are joined: {result} ("You lost") or {outcome} ("You lost to the favourite (your chance of winning was
about 20%)") begin a sentence, {effect} ("your rating fell by 3.20") or {it} ("it fell …") follow "so" or "but",
{Effect} ("Your rating fell by 3.20") or {kind} ("This loss") begin another sentence, {deed} ("losing") follows "for".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

_PEOPLE = {
    "player": {"You": "You", "you": "you", "them": "you", "Your": "Your", "your": "your"},
    "others": {"You": "They", "you": "they", "them": "them", "Your": "Their", "your": "their"},
}
_SIDES = {
    "player": {"Side": "{You}", "side": "{you}", "its": "{your}", "was": "were"},
    "team": {"Side": "{Your} team", "side": "{your} team", "its": "{your} team's", "was": "was"},
}
_RIVALS = {"player": {"favourite": "the favourite"}, "team": {"favourite": "the favourites"}}
_LARGEST = {"player": {"players": "players"}, "team": {"players": "teams"}}


class Voice(NamedTuple):
    """To whom a text speaks, "player" or "others"; the own, the rival and the largest team: "player" or "team"."""

    person: str
    side: str
    rivals: str
    largest: str


def message(template: str, voice: Voice) -> str:
    """Replace the words for people and teams; the names of values stay in braces."""
    words = (_SIDES[voice.side], _PEOPLE[voice.person], _RIVALS[voice.rivals], _LARGEST[voice.largest])
    for word, text in (item for table in words for item in table.items()):
        template = template.replace(f"{{{word}}}", text)
    return template


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
    ("won", "favourite"): "{Side} won as the favourite ({its} chance of winning was about {chance}%)",
    ("won", "underdog"): "{Side} beat {favourite} ({its} chance of winning was about {chance}%)",
    ("won", "equal"): "{Side} beat an evenly matched opponent",
    ("drew", "favourite"): "{Side} drew as the favourite ({its} chance of winning was about {chance}%)",
    ("drew", "underdog"): "{Side} drew with {favourite} ({its} chance of winning was about {chance}%)",
    ("drew", "favourite, less"): "{Side} drew as the favourite ({its} chance of winning was about {chance}%), which is "
    "less than expected",
    ("drew", "underdog, more"): "{Side} drew with {favourite} ({its} chance of winning was about {chance}%), which is "
    "more than expected",
    ("drew", "nearly equal"): "{Side} drew a nearly even match ({its} chance of winning was about {chance}%)",
    ("drew", "equal"): "{Side} drew with an evenly matched opponent",
    ("lost", "favourite"): "{Side} lost as the favourite ({its} chance of winning was about {chance}%)",
    ("lost", "underdog"): "{Side} lost to {favourite} ({its} chance of winning was about {chance}%)",
    ("lost", "equal"): "{Side} lost to an evenly matched opponent",
    ("placed", "better"): "{Side} finished {place} of {teams}, better than expected",
    ("placed", "worse"): "{Side} finished {place} of {teams}, worse than expected",
    ("tied", "better"): "{Side} tied for {place} of {teams}, better than expected",
    ("tied", "worse"): "{Side} tied for {place} of {teams}, worse than expected",
    ("all tied", "better"): "All {teams} {players} tied. {Side} {was} expected to do worse than the others",
    ("all tied", "worse"): "All {teams} {players} tied. {Side} {was} expected to do better than the others",
}
RISE, FALL, NO_CHANGE = range(3)
EFFECTS = {  # the clauses {effect}, {Effect} and {it}
    RISE: ("{your} rating rose by {points}", "{Your} rating rose by {points}", "it rose by {points}"),
    FALL: ("{your} rating fell by {points}", "{Your} rating fell by {points}", "it fell by {points}"),
    NO_CHANGE: ("{your} rating did not change", "{Your} rating did not change", "it did not change"),
}
KINDS = {  # the clauses {kind} and {deed}, by result
    "won": ("This win", "winning"),
    "drew": ("This draw", "drawing"),
    "lost": ("This loss", "losing"),
}
OTHER_KIND = ("This result", "the result")
_OTHER_RESULTS = {
    "win": "A win",
    "loss": "A loss",
    "first": "Finishing first",
    "last": "Finishing last",
    "first alone": "Finishing first alone",
    "last alone": "Finishing last alone",
}


def _otherwise(**effects: str) -> Mapping[tuple[str, str], str]:
    """A sentence for each other result and each effect that it would have had."""
    each = product(_OTHER_RESULTS.items(), effects.items())
    return MappingProxyType({(result, effect): f"{words} {text}" for (result, words), (effect, text) in each})


OTHERWISE = _otherwise(
    earned="would have earned {them} {points}.",
    still="would still have brought {them} {points}.",
    cost="would have cost {them} {points}.",
    same="would have cost just as much.",
    nothing="would have changed nothing.",
    floor="would have changed nothing, because {floor} is the lowest rating there is.",
)
OTHERWISE_IN_ALL = MappingProxyType(
    {
        **OTHERWISE,
        **_otherwise(
            earned="would have earned {them} {points} in all.", still="would still have brought {them} {points} in all."
        ),
    }
)


class Reason(NamedTuple):
    """A sentence for a change that the result and the odds alone do not explain, and the values that it names.

    otherwise  the sentences about other results
    parts      clauses with their values, which {parts} lists
    then       the sentences that follow
    """

    sentence: str
    values: Mapping[str, object] = MappingProxyType({})
    otherwise: Mapping[tuple[str, str], str] = OTHERWISE
    parts: tuple[tuple[str, Mapping[str, object]], ...] = ()
    then: tuple[Reason, ...] = ()


AS_USUAL = Reason("{outcome}, so {effect}.")
UNCHANGED = Reason("{outcome}, and {your} rating did not change.")
AS_EXPECTED = Reason("{result}, as everybody expected ({its} chance of winning was about {chance}%), so {effect}.")
BY_OPPONENT = Reason("{result}, but it matters how {you} did against each single opponent, so {effect}.")
BY_HISTORY = Reason("{result}, but {your} earlier matches count as well, so {effect}.")
NOT_COUNTED = Reason("{result}, but this match does not count for {your} rating, so {it}.")
OWN_ABOVE = Reason(
    "{outcome}, but we expected more of {them} because {your} rating is above {your} team's average, so {effect}."
)
OWN_BELOW = Reason(
    "{outcome}, but we expected less of {them} because {your} rating is below {your} team's average, so {effect}."
)
LEFT_UNPUNISHED = Reason("{You} left early, but {side} won, and leaving carries no penalty here, so {effect}.")

# The reasons of the systems; a system of your own may write its own.
FLOOR_REACHED = "{outcome}, so {your} rating fell by {points} and is now {floor}, the lowest there is."
AT_FLOOR = "{outcome}. {Your} rating is already {floor}, the lowest there is, so it did not change."
LESS_CERTAIN = {  # by why the match told nothing new
    why: f"{{result}}, but {told} nothing new about {{them}}. Skill can change between matches, so we are now slightly "
    "less certain of {your} rating and show it lower: {it}."
    for why, told in (
        ("time", "{you} had so little playing time in this match that it told us almost"),
        ("odds", "that was almost certain, so this match told us almost"),
        ("unknown", "this match told us almost"),
    )
}
MORE_CERTAIN = "{result}, but we are now more certain of {your} rating and show it higher: {it}."
OUTWEIGHED = (
    "{outcome}. That alone would have lowered {your} rating by {fall}. But we are now more certain of {your} rating, "
    "so we show it {part} higher, and altogether {it}."
)
VARIED_MORE = "{result}, but {your} results vary more now and {your} rating is shown lower for that, so {it}."
VARIED_LESS = "{result}, but {your} results vary less now and {your} rating is shown higher for that, so {it}."
NO_TIME = "{result}, but {you} had too little playing time in this match, so {effect}."
FIRST_GAMES = "{result}. In the first {games} games, {your} rating follows all of {your} results so far, so {it}."
ONE_SIDED = "{result}, but one-sided results count for more, so {effect}."
WHOLE_POINTS = "{result}, but ratings are rounded down to whole points, so {effect}."
_SPEED = "With more than two players, only how fast {you} score changes {your} rating, not winning or losing."
SCORED, SCORED_AGAINST = f"{{result}}. {{Effect}}. {_SPEED}", f"{{result}}, but {{effect}}. {_SPEED}"
_ONE_ON_ONE = "One on one, {your} speed would get {them} {share} of every 100 points; we expected {due}."
PACE = {
    RISE: f"{{You}} scored faster than we expected. {_ONE_ON_ONE}",
    FALL: f"{{You}} scored more slowly than we expected. {_ONE_ON_ONE}",
    NO_CHANGE: "{You} scored as fast as we expected.",
}
SCORED_AT_FLOOR = (
    "{result}. {You} scored more slowly than we expected. {Your} rating is already at the lowest possible, {floor}, so "
    "it did not go down."
)
SPARED = (
    "{result}. {You} scored more slowly than we expected, but a favourite never loses points to an opponent who scored "
    "less, so {effect}."
)
LEFT_OUT = "{result}, but there was too little playing time to compare {your} score with the others', so {effect}."
ROTTED = "{result}. {Effect}, because {you} had lost {lost} for weeks without a match."
LAST_GAMES = "{result}. {Effect}. {Your} rating follows {your} average over {your} last {games} games."
NOT_ALONE = "{result}, but {effect}, because it follows {your} average over {your} last {games} games."
COUNTED = {
    "result": "{kind} counted {own} out of 100.",
    "share": "{kind} counted {own} out of 100, for {deed} and for the final score.",
    "performance": "{kind} counted {own} out of 100, for {deed} and for how {you} played.",
}
STANDING = {
    RISE: "{Your} average is {share}. That is above the {due} we expect at {your} rating, so {you} went up.",
    FALL: "{Your} average is {share}. That is below the {due} we expect at {your} rating, so {you} went down.",
    NO_CHANGE: "{Your} average is {share}, and we expect {due} at {your} rating.",
}
PERFORMANCE = "{result}, but {your} own performance in the match counts as well, so {effect}."
BREAKDOWN, BREAKDOWN_AGAINST = "{outcome}, so {effect}: {parts}.", "{outcome}, but {effect}: {parts}."
PARTS = "{parts}, {part}"  # a list of parts, and one more
BY_FACTOR = {
    "by_result": "{part} for the result",
    "win": "{part} for how big the win was",
    "loss": "{part} for how big the loss was",
    "narrow win": "{part} for a smaller win than expected",
    "narrow loss": "{part} for a smaller loss than expected",
    "level": "{part} for the level score",
    "by_scores": "{part} for {your} own score",
    "by_entry": "{part} for what we know about newcomers here",
    "small": "{part} for small changes since {your} last match",
}
TOTAL, TOTAL_AGAINST = "{outcome}. {Effect}.", "{outcome}, but {effect}."
NO_PART = "None of that is from this match."
WHOLE_PART = "This match took off {part} ({parts}).", "This match added {part} ({parts})."
RESULT_PART = "This match took off {part}.", "This match added {part}."


def _causes(**causes: str) -> Mapping[tuple[str, bool], str]:
    """A sentence for each cause, and whether it raised the rating."""
    verbs = {True: "added", False: "took off"}
    return {(name, rose): f"{text} {verb} {{part}}." for name, text in causes.items() for rose, verb in verbs.items()}


CAUSE = {
    ("by_entry", True): "What we know about newcomers here says that the first rating was too low: that added {part}.",
    (
        "by_entry",
        False,
    ): "What we know about newcomers here says that the first rating was too high: that took off {part}.",
    **_causes(
        by_pause="{Your} older results count less over time: that",
        by_weights="Newer matches made us weigh {your} older results again: that",
    ),
}
REST = {
    **CAUSE,
    **_causes(by_pause="The time since {your} last match", by_weights="Small changes since {your} last match"),
}
EARNED_WIN = "{result}. {You} got {win} for the win and {participation} for playing, so {effect}."
EARNED_DRAW = "{result}. {You} got {draw} for the draw and {participation} for playing, so {effect}."
EARNED_WINS = (
    "{result}. {You} got {win} for each opponent {you} beat ({wins} in total) and {participation} for playing, so "
    "{effect}."
)
EARNED_DRAWS = (
    "{result}. {You} got {draw} for each opponent {you} tied with ({draws} in total) and {participation} for playing, "
    "so {effect}."
)
EARNED_BOTH = (
    "{result}. {You} got {win} for each opponent {you} beat ({wins} in total), {draw} for each opponent {you} tied "
    "with ({draws} in total) and {participation} for playing, so {effect}."
)
TOOK_PART = "{result}, but playing always brings {participation}, so {effect}."
DRAW_MOVES_NOTHING = "{result}, and draws do not change {your} rating here."
DRAW_WITH_WEAKER = "{result}, and only a draw with a stronger team counts here, so {effect}."
DRAW_WITH_STRONGER = "{Side} drew with a stronger team, which counts as a win here, so {effect}."
OTHERS_LEFT = {  # by the result, twice
    0: "{Side} finished behind, but everyone on the other team left early, so this counts as a win. {Your} rating "
    "rose by {points}.",
    1: "{Side} drew, but everyone on the other team left early, so this counts as a win. {Your} rating rose by "
    "{points}.",
    2: "{Side} won after everyone on the other team left early, so {effect}.",
}
LEFT_WON = "{You} left early, which counts as a loss even though {side} won, so {effect}."
LEFT_DREW = "{You} left early, which counts as a loss even though {side} drew, so {effect}."
LEFT_AT_FLOOR = "{You} left early and {your} rating is already {floor}, the lowest there is, so {it}."
LEFT_TO_FLOOR = (
    "{You} left early, which counts as a loss, so {your} rating fell by {points} and is now {floor}, the lowest there "
    "is."
)

# Second sentences, about the size of a change. They follow the reasons of NOTED only.
BY_OWN = (OWN_ABOVE.sentence, OWN_BELOW.sentence)
NOTED = (AS_USUAL.sentence, LEFT_UNPUNISHED.sentence, *BY_OWN, SCORED, SCORED_AGAINST)
UNCERTAIN = "We are not sure of {your} level yet, so {your} rating can still move a lot."
UNCERTAIN_LEVEL = {  # after a draw or a tie of all, in place of UNCERTAIN and the sentences about other results
    "draw": "We are not sure of {your} level yet, so a win would have earned {them} {most} and a loss would have cost "
    "{them} {least}.",
    "tie": "We are not sure of {your} level yet, so finishing first alone would have earned {them} {most} and "
    "finishing last alone would have cost {them} {least}.",
}
PERFORMED = (
    "This result would fit a player rated about {performance}, and {your} rating moved part of the way there.",
    "This result would fit a player rated about {performance}. We are not sure of {your} level yet, so {your} rating "
    "moved far in that direction.",
)
FEW_GAMES = "{You} are still new, so {your} rating moves a lot."
SHORT_TIME = "{You} did not play for long, so {your} rating moved less."
BY_CERTAINTY = "{part} of that is because we are now more certain of {your} rating, so we show it higher."
SOFTENED = "It would have fallen by {fall}, but we are now more certain of {your} rating, so we show it {part} higher."
ONE_SIDED_NOTE = "The result was one-sided, which made the change bigger."
OWN_NOTES = {  # by the direction of the change, and whether the own rating is above the team's average
    (direction, above): f"{{You}} are rated {'above' if above else 'below'} {{your}} team's average, so {{you}} {verb} "
    f"{'less' if (direction == RISE) == above else 'more'} than a player at the average would."
    for direction, verb in ((RISE, "gain"), (FALL, "lose"))
    for above in (True, False)
}
_ENDINGS = {1: "{number}st", 2: "{number}nd", 3: "{number}rd"}
ORDINALS = (*_ENDINGS.values(), "{number}th")


def same(text: str) -> str:
    """Return a message as it is: the translation into English."""
    return text


def ordinal(number: int, translate: Callable[[str], str] = same) -> str:
    """Format an ordinal: 1st, 2nd, 3rd, 4th … 11th … 21st."""
    ending = ORDINALS[-1] if number % 100 in (11, 12, 13) else _ENDINGS.get(number % 10, ORDINALS[-1])
    return translate(ending).format(number=f"{number:,}")


def percentages(one: float, other: float) -> tuple[str, str]:
    """Two shares from 0 to 1 in percent, with as many decimals, up to three, as it takes to tell them apart."""
    for decimals in range(4):
        texts = f"{100 * one:.{decimals}f}", f"{100 * other:.{decimals}f}"
        if texts[0] != texts[1]:
            break
    return texts


def messages() -> tuple[str, ...]:
    """Every message that explanations are made of, for catalogues."""
    sizes = ("player", "team")
    voices = [Voice(*keys) for keys in product(_PEOPLE, sizes, sizes, sizes)]
    public = [value for name, value in globals().items() if name.isupper() and not name.startswith("_")]
    return tuple(dict.fromkeys(message(text, voice) for text in _texts(public) for voice in voices))


def _texts(value: object) -> Iterator[str]:
    """The templates in a constant of this module."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Reason):
        yield value.sentence
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)
