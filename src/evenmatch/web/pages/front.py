"""The way in: all ladders, a ladder at a glance, and the three questions that players ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.errors import EvenmatchError, UnknownNameError, UsageError
from evenmatch.service.boards import View
from evenmatch.service.listing import why_nobody
from evenmatch.standings.board import Standing
from evenmatch.web.shown import LadderShown
from evenmatch.web.visit import LONGEST_NAME, Visit, address

TOP = 10
LATEST = 8
WANTS = ("standing", "why", "wait")


async def front(visit: Visit) -> Response:
    """All ladders that the visitor may see."""
    return await visit.show("front", lambda: _front(visit))


def _front(visit: Visit) -> Mapping[str, object]:
    caller = visit.caller
    assert caller is not None
    cards = [_card(visit, name) for name in visit.site.service.names() if caller.may("read", name)]
    return {"cards": sorted(cards, key=lambda card: card.ladder.archived)}


class Card(NamedTuple):
    """A ladder on the list of all; `best`: the first three players with their standings."""

    ladder: LadderShown
    players: int
    listed: int
    matches: int
    best: Sequence[tuple[str, Standing]]
    why_nobody: str | None
    waiting: int | None


def _card(visit: Visit, name: str) -> Card:
    view = visit.reading.view(name)
    best = visit.site.service.named(view.snapshot.page(1, 3)) if len(view.snapshot) else []
    return Card(
        LadderShown.of(view),
        len(view.snapshot.board),
        len(view.snapshot),
        visit.reading.described(name).matches,
        best,
        why_nobody(view),
        waiting_in(visit, name),
    )


def waiting_in(visit: Visit, ladder: str) -> int | None:
    """Players who wait in the queues of a ladder; None where it has none."""
    counts = visit.site.desk.counts(ladder)
    return sum(one.players for one in counts.values()) if counts else None


async def overview(visit: Visit) -> Response:
    """A ladder at a glance."""
    return await visit.show("overview", lambda: _overview(visit))


def _overview(visit: Visit) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    _, matches, _ = visit.reading.matches(visit.ladder, before=None, limit=LATEST)
    return {
        "ladder": LadderShown.of(view),
        "view": view,
        "top": visit.site.service.named(view.snapshot.page(1, TOP)),
        "why_nobody": why_nobody(view),
        "matches": matches,
        "waiting": waiting_in(visit, visit.ladder),
        "mine": own_standing(visit, view),
    }


def own_standing(visit: Visit, view: View) -> object:
    """Where the visitor stands; None where they did not say who they are, or are not known here."""
    if visit.me is None:
        return None
    try:
        player = visit.site.service.player(visit.me)
    except UnknownNameError:
        return None
    return view.snapshot.standing(player)


async def me(visit: Visit) -> Response:
    """A visitor says who they are, and what they want to know; it is kept for the next time."""
    name, want, ladder = visit.asked("player").strip() or visit.me or "", visit.asked("want", "standing"), visit.ladder
    if want not in WANTS:
        raise UsageError(f"want is {want[:40]!r}; accepted are {', '.join(WANTS)}")
    if not name or len(name) > LONGEST_NAME:
        raise UsageError(f"the name has {len(name)} letters; accepted are 1 to {LONGEST_NAME}")
    try:
        found = await visit.site.work(visit.reading.known_as, ladder, name)
    except UnknownNameError:
        if want == "wait":  # newcomers wait, too
            answer = visit.go(address("ladders", ladder, "queue"))
            visit.remember(answer, name)
            return answer
        return visit.go(address("ladders", ladder, "standings", search=name))
    answer = visit.go(await visit.site.work(_answer, visit, want, found))
    visit.remember(answer, found)
    return answer


def _answer(visit: Visit, want: str, name: str) -> str:
    """The page that answers the question."""
    ladder = visit.ladder
    if want == "wait":
        return address("ladders", ladder, "queue")
    if want == "standing":
        view = visit.reading.view(ladder)
        board = view.snapshot.board
        row = int(board.find([visit.site.service.player(name)])[0])
        if row < 0 or board.hidden[row]:  # no rating yet, or banned: their page says so
            return address("ladders", ladder, "players", name)
        return address("ladders", ladder, "standings", around=name)
    try:
        lost = visit.reading.last_loss(ladder, name)
    except EvenmatchError:
        lost = None
    return (
        address("ladders", ladder, "players", name)
        if lost is None
        else address("ladders", ladder, "matches", lost, player=name)
    )


async def forget_me(visit: Visit) -> Response:
    """Let the visitor be nobody again."""
    await visit.form()
    answer = visit.go("/", "You are nobody in particular again.")
    answer.delete_cookie("evenmatch-me", httponly=True, samesite="lax")
    return answer
