"""Every sentence and clause of an explanation, as messages that a catalogue can translate.

A template names the player as {You}, {you}, {them}, {Your} and {your}; {Side}, {side}, {its} and {was} are about the
player or, in a team of several, the team; {favourite} is about the rivals and {players} about all. `message` replaces
these words, so a translator sees a message for each combination, in which only values are left in braces, and may move
those. Clauses are joined at two places: {result} ("You lost") or {outcome} ("You lost to the favourite (your chance of
winning was about 20%)") begin a sentence, and {effect} ("your rating fell by 3.20") or {it} ("it fell …") follow "so".
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
    ("won", "equal"): "{Side} won an even match",
    ("drew", "favourite"): "{Side} drew as the favourite ({its} chance of winning was about {chance}%)",
    ("drew", "underdog"): "{Side} drew with {favourite} ({its} chance of winning was about {chance}%)",
    ("drew", "favourite, less"): "{Side} drew as the favourite ({its} chance of winning was about {chance}%), which is "
    "less than expected",
    ("drew", "underdog, more"): "{Side} drew with {favourite} ({its} chance of winning was about {chance}%), which is "
    "more than expected",
    ("drew", "nearly equal"): "{Side} drew a nearly even match ({its} chance of winning was about {chance}%)",
    ("drew", "equal"): "{Side} drew an even match",
    ("lost", "favourite"): "{Side} lost as the favourite ({its} chance of winning was about {chance}%)",
    ("lost", "underdog"): "{Side} lost to {favourite} ({its} chance of winning was about {chance}%)",
    ("lost", "equal"): "{Side} lost an even match",
    ("placed", "better"): "{Side} finished {place} of {teams}, better than expected",
    ("placed", "worse"): "{Side} finished {place} of {teams}, worse than expected",
    ("tied", "better"): "{Side} tied for {place} of {teams}, better than expected",
    ("tied", "worse"): "{Side} tied for {place} of {teams}, worse than expected",
    ("all tied", "better"): "All {teams} {players} tied. {Side} {was} expected to do worse than the others",
    ("all tied", "worse"): "All {teams} {players} tied. {Side} {was} expected to do better than the others",
}
RISE, FALL, NO_CHANGE = range(3)
EFFECTS = {  # the clauses {effect} and {it}
    RISE: ("{your} rating rose by {points}", "it rose by {points}"),
    FALL: ("{your} rating fell by {points}", "it fell by {points}"),
    NO_CHANGE: ("{your} rating did not change", "it did not change"),
}
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
    earned="would have earned {points}.",
    still="would still have brought {points}.",
    cost="would have cost {points}.",
    same="would have cost just as much.",
    nothing="would have changed nothing.",
    floor="would have changed nothing, because {floor} is the lowest rating there is.",
)
OTHERWISE_IN_ALL = MappingProxyType(
    {
        **OTHERWISE,
        **_otherwise(earned="would have earned {points} in all.", still="would still have brought {points} in all."),
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
    "{outcome}, but more was expected of {them} because {your} own rating is above {your} team's average, so {effect}."
)
OWN_BELOW = Reason(
    "{outcome}, but less was expected of {them} because {your} own rating is below {your} team's average, so {effect}."
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
_COMPARED = (
    "At {your} pace, {you} would on average score {share} of 100 points against another player. We expected {due}"
)
_SPEED = f"how fast {{you}} scored while playing. {_COMPARED}, so {{effect}}."
SCORED = f"{{result}}. With more than two players, what counts is {_SPEED}"
SCORED_PLACED = f"{{result}}, but places do not count here. What counts is {_SPEED}"
SCORED_AGAINST = f"{{result}}, but with more than two players, what counts is {_SPEED}"
SCORED_AT_FLOOR = f"{{result}}. {_COMPARED}. {{Your}} rating is already {{floor}}, the lowest there is, so {{it}}."
SPARED = f"{{result}}. {_COMPARED}. But a favourite never loses points to an opponent who scored less, so {{effect}}."
LEFT_OUT = "{result}, but there was too little playing time to compare {your} score with the others', so {effect}."
ROTTED = "{result}, but {you} had lost {lost} for weeks without a match, so {effect}."
LAST_GAMES = "{result}. {Your} rating depends on {your} last {games} games together."
NOT_ALONE = "{result}, but {your} rating depends on {your} last {games} games together."
COUNTED = {  # by what the match counted for, and whether that is above the average
    (by, above): f"{start}his one counted {{own}} out of 100, {'above' if above else 'below'} {{your}} average."
    for by, start in (("result", "T"), ("share", "By its score, t"), ("performance", "With {your} own performance, t"))
    for above in (True, False)
}
STANDING = (
    "Over those games, {you} averaged {share}. With {your} rating, we expect only {due}, so {effect}.",
    "Over those games, {you} averaged only {share}. With {your} rating, we expect {due}, so {effect}.",
    "Over those games, {you} averaged {share}. With {your} rating, we expect almost the same, {due}, so {effect}.",
)
PERFORMANCE = "{result}, but {your} own performance in the match counts as well, so {effect}."
BREAKDOWN, BREAKDOWN_AGAINST = "{outcome}, so {effect}: {parts}.", "{outcome}, but {effect}: {parts}."
PARTS = "{parts}, {part}"  # a list of parts, and one more
BY_FACTOR = {
    "by_result": "{part} for the result",
    "by_margin": "{part} for the margin",
    "narrow": "{part} because the margin was smaller than expected",
    "level": "{part} for the level score",
    "by_scores": "{part} for {your} own score",
    "by_entry": "{part} for the strength of newcomers here",
    "by_pause": "{part} for the time since {your} last match",
    "by_weights": "{part} for everybody's matches since {your} last one",
}
OUTCOME, IN_ALL = "{outcome}.", "In all, {effect}."
NO_PART = "This match changed nothing."
WHOLE_PART = "This match cost {them} {part} ({parts}).", "This match earned {them} {part} ({parts})."
RESULT_PART = "This match cost {them} {part}.", "This match earned {them} {part}."
ONLY_PART = "This match cost {them} only {part}.", "This match earned {them} only {part}."
_SMALLER = {
    "by_entry": "The strength of newcomers here",
    "by_pause": "The time since {your} last match",
    "by_weights": "Everybody's matches since {your} last one",
}
REST = {
    (cause, rose): f"{what} {'earned' if rose else 'cost'} {{part}}."
    for cause, what in _SMALLER.items()
    for rose in (True, False)
}
_CAUSES = {  # by whether it raised the rating
    ("by_entry", False): "newcomers here turn out weaker than their first rating says",
    ("by_entry", True): "newcomers here turn out stronger than their first rating says",
    ("by_pause", False): "{your} older, better results count less after the time without a match",
    ("by_pause", True): "{your} older, worse results count less after the time without a match",
    ("by_weights", False): "everybody's matches since {your} last one changed how much {your} old results count",
    ("by_weights", True): "everybody's matches since {your} last one changed how much {your} old results count",
}
BUT = {key: f"But {why}, which {'earned' if key[1] else 'cost'} {{part}}." for key, why in _CAUSES.items()}
ALSO = {key: f"Also, {why}, which {'earned' if key[1] else 'cost'} {{part}}." for key, why in _CAUSES.items()}
MAINLY = {key: f"In all, {{effect}}, mainly because {why} ({{part}})." for key, why in _CAUSES.items()}
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
NOTED = (AS_USUAL.sentence, LEFT_UNPUNISHED.sentence, *BY_OWN, SCORED, SCORED_PLACED, SCORED_AGAINST)
UNCERTAIN = "{Your} rating is still uncertain, so it can move a lot."
UNCERTAIN_LEVEL = {  # after a draw or a tie of all, in place of UNCERTAIN and the sentences about other results
    "draw": "This rating is still uncertain, so a win would have earned {most} and a loss would have cost {least}.",
    "tie": "This rating is still uncertain, so finishing first alone would have earned {most} and finishing last alone "
    "would have cost {least}.",
}
PERFORMED = (
    "This result would fit a player rated about {performance}, and {your} rating moved part of the way there.",
    "This result would fit a player rated about {performance}. {Your} rating is still uncertain, so it moved far in "
    "that direction.",
)
FEW_GAMES = "{You} have played few games here, so {your} rating still moves a lot."
SHORT_TIME = "{You} did not play long, which made the change smaller."
BY_CERTAINTY = "{part} of that is because we are now more certain of {your} rating, so we show it higher."
SOFTENED = "It would have fallen by {fall}, but we are now more certain of {your} rating, so we show it {part} higher."
ONE_SIDED_NOTE = "The result was one-sided, which made the change bigger."
OWN_NOTES = {  # by the direction of the change, and whether the own rating is above the team's average
    (direction, above): f"{{Your}} own rating is {where} {{your}} team's average, so {much} was expected of {{them}}, "
    f"which made the change {'smaller' if (direction == RISE) == above else 'bigger'}."
    for direction in (RISE, FALL)
    for above, where, much in ((True, "above", "more"), (False, "below", "less"))
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
