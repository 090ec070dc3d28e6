"""The operator page for corrections of a ladder, with a preview."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime

from starlette.responses import Response

from evenmatch.errors import UsageError
from evenmatch.http.task_outcomes import outcome
from evenmatch.service.callers.audit_entry import Correcting, correcting
from evenmatch.service.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.service.jobs import Job
from evenmatch.service.replay.effect import Effect
from evenmatch.service.work.results import effect_of
from evenmatch.service.work.tasks import CorrectionTask
from evenmatch.times import implausible, likeness
from evenmatch.web.forms import about
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.preview_job import FOLLOWED, following_address, outdated, preview_values, previewed
from evenmatch.web.view_models import LadderShown

LONGEST_ID = 200
WHATS = ("void", "unvoid", "ban", "reinstate")


def new_id() -> str:
    """A random event id: a form that is submitted twice is applied once."""
    return f"page:{secrets.token_hex(8)}"


async def correction(visit: PageRequest) -> Response:
    """Show the form of a correction and a preview of its rating changes."""
    typed = visit.typed
    what = typed.get("what", "void")
    if what not in WHATS:
        raise UsageError(f"what is {what[:20]!r}; expected {', '.join(WHATS)}")
    foreseen: Effect | Job | None = None
    if visit.refused is None:
        with visit.previewing():
            request = _correction_of(typed)
            with about("match" if what in ("void", "unvoid") else "player"):
                await visit.site.work(_check_known, visit, request)
                foreseen = None if request is None else await previewed(visit, request)
    if isinstance(foreseen, Job) and not visit.asked(FOLLOWED):
        return visit.go(following_address(visit, foreseen))
    values = {"what": what, **preview_values(foreseen), "id": new_id()}
    return await visit.show("correct", lambda: ladder_and_form(visit) | values)


def ladder_and_form(visit: PageRequest) -> dict[str, object]:
    """The template values of the ladder, and of the form of this page."""
    return {"ladder": LadderShown.of(visit.reading.view(visit.ladder)), "form": visit.form_here()}


async def correct(visit: PageRequest) -> Response:
    """Apply the correction."""
    form = await visit.form()
    caller, request = visit.check("admin", visit.ladder), _correction_of(form)
    field = "match" if form.get("what", "void") in ("void", "unvoid") else "player"
    with about(field):
        if request is None:
            raise UsageError(f"enter a {field}")
        await visit.site.work(_check_known, visit, request)
        entry = correcting(caller, visit.ladder, request, visit.request_id)
        done = await outcome(visit.site, CorrectionTask(visit.ladder, request, event_id_of(form), entry))
    if isinstance(done, Job):
        position = (await visit.site.work(visit.site.service.ladder, visit.ladder)).position
        notice = "The correction is being applied. Its progress is shown below." + outdated(form, position)
    else:
        notice = _applied(effect_of(done), form)
    return visit.go(address("ladders", visit.ladder, "operate"), notice)


def _applied(effect: Effect, form: Mapping[str, str]) -> str:
    if effect.done:
        return "This correction was already applied."
    ratings = "rating" if effect.moved == 1 else "ratings"
    return f"Done: {effect.told}. {effect.moved:,} {ratings} changed.{outdated(form, effect.position)}"


def _check_known(visit: PageRequest, request: Correcting | None) -> None:
    """Raise UnknownNameError for a player who is unknown to those who may read this ladder alone."""
    if isinstance(request, Ban | Reinstate):
        visit.reading.check_known(visit.ladder, request.player)


def event_id_of(form: Mapping[str, str]) -> str | None:
    """The event id in a form; None: it is empty. Raises UsageError if it is too long."""
    text = form.get("id", "")
    if len(text) > LONGEST_ID:
        raise UsageError(f"the id has {len(text)} characters; it must have at most {LONGEST_ID}")
    return text or None


def _correction_of(typed: Mapping[str, str]) -> Correcting | None:
    """The correction that a form describes; None if its match or player is empty."""
    what, reason = typed.get("what", "void"), typed.get("reason", "").strip() or None
    match_id, player = typed.get("match", "").strip(), typed.get("player", "").strip()
    match what:
        case "void":
            return Void(match_id, reason) if match_id else None
        case "unvoid":
            return Unvoid(match_id, reason) if match_id else None
        case "ban":
            with about("since"):
                since = _since(typed.get("since", ""))
            return Ban(player, typed.get("rule") or "void", since, reason) if player else None
        case "reinstate":
            return Reinstate(player, reason) if player else None
    raise UsageError(f"what is {what[:20]!r}; expected {', '.join(WHATS)}")


def _since(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        day = datetime.fromisoformat(text.strip())
    except ValueError:
        got = f"{text[:40]!r}{likeness(text).clause}"
        raise UsageError(f"expected a day such as 2026-11-21, or an empty field for all, got {got}") from None
    micros = int((day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp() * 1e6)
    if reason := implausible("the day", micros):
        raise UsageError(reason)
    return micros
