"""Effects of corrections as JSON values, rounded as they are shown, and effects read back from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from evenmatch.service.queries.match_explanations import RATING_DECIMALS, ShownRatingChange
from evenmatch.service.replay.effect import Effect, RatingMove

MOVES_LISTED = 200


def correction_result(effect: Effect, *, preview: bool) -> dict[str, object]:
    """The result of a correction or of its preview; its effect is None if the correction was already applied."""
    return {
        "told": effect.told,
        "there_already": effect.done,
        "preview": preview,
        "effect": None if effect.done else effect_document(effect),
    }


def effect_document(effect: Effect) -> dict[str, object]:
    """The effect of a correction, with the largest rating moves."""
    return {
        "players": effect.players,
        "matches": effect.matches,
        "left_out": effect.left_out,
        "moved": effect.moved,
        "moves": [_move(move) for move in effect.moves[:MOVES_LISTED]],
        "position": effect.position,
    }


def _move(move: RatingMove) -> dict[str, object]:
    before, after = (None if rating is None else round(rating, RATING_DECIMALS) for rating in (move.before, move.after))
    change = None if before is None or after is None else ShownRatingChange.of(before, after).change
    return {**move._replace(before=before, after=after)._asdict(), "change": change}


def effect_of(result: Mapping[str, object]) -> Effect:
    """The effect that `correction_result` was made of, with the moves that it lists."""
    told, document = str(result["told"]), result["effect"]
    if document is None:
        return Effect(told, [], 0, 0, 0, 0, done=True)
    counts = cast("dict[str, int]", document)
    listed = cast("list[dict[str, object]]", cast("dict[str, object]", document)["moves"])
    moves = [RatingMove(**{name: move[name] for name in RatingMove._fields}) for move in listed]  # type: ignore[arg-type]
    players, matches, left_out, position = (counts[name] for name in ("players", "matches", "left_out", "position"))
    return Effect(told, moves, players, matches, left_out, position, unlisted=counts["moved"] - len(moves))
