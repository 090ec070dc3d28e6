"""Results of corrections and previews as JSON values, rounded as they are shown, and previews read back from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from evenmatch.service.corrections import Preview, RatingMove
from evenmatch.service.ladders import PlannedCorrection
from evenmatch.service.queries.match_explanations import RATING_DECIMALS, ShownRatingChange

MOST = 200  # rating moves listed in a preview


def correction_result(planned: PlannedCorrection | None, event_id: str | None) -> dict[str, object]:
    """The result of a correction; None: it was already there under this id."""
    summary = f"{event_id!r} was already applied" if planned is None else planned.told
    return {"told": summary, "there_already": planned is None, "preview": False, "foreseen": None}


def preview_result(preview: Preview) -> dict[str, object]:
    """The result of the preview of a correction."""
    return {"told": preview.told, "there_already": preview.done, "preview": True, "foreseen": foreseen(preview)}


def foreseen(preview: Preview) -> dict[str, object]:
    """The effect of a correction, with the largest rating moves."""
    return {
        "players": preview.players,
        "matches": preview.matches,
        "left_out": preview.left_out,
        "moved": preview.moved,
        "moves": [_move(move) for move in preview.moves[:MOST]],
    }


def _move(move: RatingMove) -> dict[str, object]:
    before, after = (None if rating is None else round(rating, RATING_DECIMALS) for rating in (move.before, move.after))
    change = None if before is None or after is None else ShownRatingChange.of(before, after).change
    return {**move._replace(before=before, after=after)._asdict(), "change": change}


def preview_of(result: Mapping[str, object]) -> Preview:
    """The preview that `preview_result` was made of, with the moves that it lists."""
    effect = cast("dict[str, int]", result["foreseen"])
    listed = cast("list[dict[str, object]]", cast("dict[str, object]", result["foreseen"])["moves"])
    moves = [RatingMove(**{name: move[name] for name in RatingMove._fields}) for move in listed]  # type: ignore[arg-type]
    return Preview(
        str(result["told"]),
        moves,
        effect["players"],
        effect["matches"],
        effect["left_out"],
        result["there_already"] is True,
        effect["moved"] - len(moves),
    )
