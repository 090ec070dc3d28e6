"""Operators on one ladder: its rules and settings, corrections with what they would do, and work that goes on."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime

from starlette.responses import Response

from evenmatch.errors import ConflictError, UsageError
from evenmatch.service import rulings
from evenmatch.service.callers.deeds import Correcting, correcting
from evenmatch.service.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.service.ladders import ChangeRules, Ladder
from evenmatch.service.replaying import Progress
from evenmatch.service.settings import Settings, reset_factor
from evenmatch.systems.system import Rules
from evenmatch.web.choosing import base_rules, chosen_rules, rules_form
from evenmatch.web.forms import CONFIRM, about
from evenmatch.web.shown import LadderShown
from evenmatch.web.visit import Visit, address

JOBS = 6
RULINGS = 25
MOVES = 30  # that a preview lists
LEADERS = 3
LONGEST_ID = 200
WHATS = ("void", "unvoid", "ban", "reinstate")


async def ladder(visit: Visit) -> Response:
    """What operators see of a ladder."""
    return await visit.show("operate_ladder", lambda: _ladder(visit))


def _ladder(visit: Visit) -> Mapping[str, object]:
    site, name = visit.site, visit.ladder
    with site.service.reading(name) as (store, head):
        found = {
            "voids": rulings.voids(store, head)[:RULINGS],
            "bans": rulings.bans(store, head)[:RULINGS],
            "rulings": rulings.rulings(store, head, None, RULINGS),
        }
    jobs = site.jobs.page(name, None, JOBS)
    view = visit.reading.view(name)
    return found | {
        "ladder": LadderShown.of(view),
        "view": view,
        "told": visit.reading.described(name),
        "jobs": jobs,
        "runs": any(one.state == "running" for one in jobs),
        "queues": site.desk.queues(name),
        "form": visit.form_at("ladders", name, "operate", "settings"),
    }


def _new_id() -> str:
    """By which a form that is sent twice is known to be the same."""
    return f"page:{secrets.token_hex(8)}"


# corrections


async def correction(visit: Visit) -> Response:
    """Ask for a correction: what it would do to whom, before it is done."""
    return await visit.show("correct", lambda: _correction(visit))


def _correction(visit: Visit) -> Mapping[str, object]:
    asked, seen = visit.typed, None
    what = asked.get("what", "void")
    if what not in WHATS:
        raise UsageError(f"what is {what[:20]!r}; expected {', '.join(WHATS)}")
    if visit.refused is None:
        with visit.previewing():
            wish = _wish(asked)
            with about("match" if what in ("void", "unvoid") else "player"):
                seen = None if wish is None else visit.site.service.preview(visit.ladder, wish)
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "form": visit.form_here(),
        "what": what,
        "seen": seen,
        "moves": [] if seen is None else seen.moves[:MOVES],
        "id": _new_id(),
    }


async def correct(visit: Visit) -> Response:
    """Apply the correction."""
    form = await visit.form()
    caller, wish = visit.check("admin", visit.ladder), _wish(form)
    field = "match" if form.get("what", "void") in ("void", "unvoid") else "player"
    with about(field):
        if wish is None:
            raise UsageError(f"name a {field}")
        service = visit.site.service.noting(correcting(caller, visit.ladder, wish, visit.request_id))
        made = await visit.site.work(service.correct, visit.ladder, wish, None, _event_id(form))
    said = "It was done already." if made is None else f"Done: {made.told}."
    return visit.go(address("ladders", visit.ladder, "operate"), said)


def _event_id(form: Mapping[str, str]) -> str | None:
    text = form.get("id", "")
    if len(text) > LONGEST_ID:
        raise UsageError(f"the id has {len(text)} letters; accepted are {LONGEST_ID}")
    return text or None


def _wish(asked: Mapping[str, str]) -> Correcting | None:
    """The correction that a form says; None where it names nothing yet."""
    what, reason = asked.get("what", "void"), asked.get("reason", "").strip() or None
    match_id, player = asked.get("match", "").strip(), asked.get("player", "").strip()
    match what:
        case "void":
            return Void(match_id, reason) if match_id else None
        case "unvoid":
            return Unvoid(match_id, reason) if match_id else None
        case "ban":
            with about("since"):
                since = _since(asked.get("since", ""))
            return Ban(player, asked.get("rule") or "void", since, reason) if player else None
        case "reinstate":
            return Reinstate(player, reason) if player else None
    raise UsageError(f"what is {what[:20]!r}; expected {', '.join(WHATS)}")


def _since(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        day = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"expected a day such as 2026-11-21, or nothing for all, got {text[:40]!r}") from None
    return int((day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp() * 1e6)


# rules and settings


async def rules(visit: Visit) -> Response:
    """Choose other rules, and see who would move."""
    return await visit.show("operate_rules", lambda: _rules(visit, visit.typed))


def _rules(visit: Visit, sent: Mapping[str, str]) -> Mapping[str, object]:
    there = visit.reading.described(visit.ladder)
    chosen, seen = base_rules(sent, there.rules), None
    with visit.previewing():
        chosen = chosen_rules(sent, there.rules)
    start = sent.get("begin", "start") == "start" or chosen.system.name != there.rules.system.name
    skip_bad = bool(sent.get("skip_bad"))
    is_same = (chosen.system.name, chosen.preset, chosen.values()) == (
        there.rules.system.name,
        there.rules.preset,
        there.rules.values(),
    )
    if not is_same and start and sent.get("look") and visit.refused is None:
        with visit.previewing():
            wish = ChangeRules(_found_by(there, chosen), chosen, start, skip_bad)
            seen = visit.site.service.preview(visit.ladder, wish)
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "form": visit.form_here(),
        "rules": rules_form(chosen, sent),
        "start": start,
        "skip_bad": skip_bad,
        "is_same": is_same,
        "seen": seen,
        "moves": [] if seen is None else seen.moves[:MOVES],
        "id": _new_id(),
    }


def _found_by(there: Ladder, chosen: Rules) -> str:
    """What the chosen system is found by: its name, or the file of the ladder's own."""
    return there.system if chosen.system.name == there.rules.system.name else chosen.system.name


async def change_rules(visit: Visit) -> Response:
    """Rate by other rules, as a job."""
    form, caller = await visit.form(), visit.check("admin", visit.ladder)

    def begin() -> str:
        there = visit.reading.described(visit.ladder)
        chosen = chosen_rules(form, there.rules)
        start = form.get("begin", "start") == "start"
        wish = ChangeRules(_found_by(there, chosen), chosen, start, bool(form.get("skip_bad")))
        service = visit.site.service.noting(correcting(caller, visit.ladder, wish, visit.request_id))

        def change(progress: Progress) -> Mapping[str, object]:
            made = service.change_rules(
                *(visit.ladder, wish.system, wish.rules),
                start=wish.start,
                skip_bad=wish.skip_bad,
                progress=progress,
                event_id=_event_id(form),
            )
            return {} if made is None else {"since": made.since, "matches": made.matches, "changed": made.changed}

        job, begun = visit.site.jobs.begin("rules", visit.ladder, change)
        if not begun:
            raise ConflictError(f"{job.job} changes the rules already; accepted is another change once it has ended")
        return job.job

    await visit.site.work(begin)
    return visit.go(
        address("ladders", visit.ladder, "operate"), "The rules are being changed; see below how far it is."
    )


async def settings(visit: Visit) -> Response:
    """Change title, placement and the like; ratings stay."""
    form = await visit.form()
    changes = _settings(form)

    def change() -> str:
        before = visit.site.service.ladder(visit.ladder).settings
        if before.changed(changes) == before:
            return "All of it is so already."
        done = visit.deed("settings.changed", visit.ladder, body=changes)
        visit.site.service.noting(done).change_settings(visit.ladder, changes)
        return "The settings are changed."

    return visit.go(address("ladders", visit.ladder, "operate"), await visit.site.work(change))


def _settings(form: Mapping[str, str]) -> dict[str, object]:
    """The settings of a form. Raises UsageError for what is no number."""
    changes: dict[str, object] = {"title": form.get("title", "").strip(), "reset": form.get("reset", "soft")}
    for name, read in (("placement", int), ("division_margin", int), ("active_days", float), ("factor", float)):
        text = form.get(name, "").strip()
        with about(name):
            try:
                changes[name] = read(text)
            except ValueError:
                kind = "a whole number" if read is int else "a number"
                raise UsageError(f"expected {kind}, got {text[:20]!r}") from None
            Settings().changed({name: changes[name]})
    size = form.get("team_size", "").strip()
    with about("team_size"):
        if size and not size.isdecimal():
            raise UsageError(f"expected a whole number, or nothing for any, got {size[:20]!r}")
        changes["team_size"] = int(size[:6]) if size else None
        Settings().changed({"team_size": changes["team_size"]})
    Settings().changed(changes)
    return changes


async def season_to_open(visit: Visit) -> Response:
    """What the end of the season would do, before it is confirmed."""
    return await visit.show("operate_season", lambda: _season_to_open(visit))


def _season_to_open(visit: Visit) -> Mapping[str, object]:
    view, title = visit.reading.view(visit.ladder), visit.typed.get("title", "").strip() or None
    seen = visit.site.service.preview_season(visit.ladder, title=title)
    settings = view.settings
    return {
        "ladder": LadderShown.of(view),
        "view": view,
        "form": visit.form_here(),
        "present": visit.site.service.seasons(visit.ladder)[-1],
        "leaders": visit.site.service.named(view.snapshot.page(1, LEADERS)),
        "seen": seen,
        "moves": seen.moves[:MOVES],
        "settings": settings,
        "empties": reset_factor(settings.reset, settings.factor) != 1,
        "id": _new_id(),
    }


async def season(visit: Visit) -> Response:
    """End the season, keep its standings, and open the next."""
    form = await visit.form()
    _confirm(form, visit.ladder)
    title = form.get("title", "").strip() or None
    done = visit.deed("season.opened", visit.ladder, body={"title": title})
    made = await visit.site.work(
        lambda: visit.site.service.noting(done).open_season(visit.ladder, title=title, event_id=_event_id(form))
    )
    return visit.go(address("ladders", visit.ladder, "operate"), f"{made.title} is open.")


def _confirm(form: Mapping[str, str], name: str) -> None:
    """Raise where the name was not typed as a confirmation."""
    with about(CONFIRM):
        if form.get(CONFIRM, "").split() != name.split():  # what spaces are alike cannot be seen
            raise UsageError(f"type {name} to confirm")


async def ladder_to_archive(visit: Visit) -> Response:
    """What it means to archive a ladder, or to reopen it."""

    def make() -> Mapping[str, object]:
        view = visit.reading.view(visit.ladder)
        counts = visit.site.desk.counts(visit.ladder)
        waiting = sum(one.players for one in counts.values())
        return {
            "ladder": LadderShown.of(view),
            "form": visit.form_here(),
            "view": view,
            "waiting": waiting,
            "running": len(visit.site.running.on(visit.ladder)),
        }

    return await visit.show("operate_archive", make)


async def archive(visit: Visit) -> Response:
    """Archive a ladder, or reopen it."""
    form = await visit.form()
    wanted = form.get("do", "archive") == "archive"
    if wanted:
        _confirm(form, visit.ladder)
    changes: dict[str, object] = {"archived": wanted}
    service = visit.site.service.noting(visit.deed("settings.changed", visit.ladder, body=changes))
    await visit.site.work(service.change_settings, visit.ladder, changes)
    said = "The ladder is archived." if wanted else "The ladder is open again."
    return visit.go(address("ladders", visit.ladder, "operate"), said)


async def job(visit: Visit) -> Response:
    """Have ratings made anew, or verified, as a job."""
    form = await visit.form()
    kind = form.get("kind", "")
    service, name = visit.site.service, visit.ladder

    def rebuild(progress: Progress) -> Mapping[str, object]:
        made = service.rebuild(name, whole=True, progress=progress)
        return {} if made is None else {"matches": made.matches, "changed": made.changed}

    def verify(progress: Progress) -> Mapping[str, object]:
        found = service.verify(name, progress)
        return {"equal": found.is_equal, "matches": found.matches, "players": found.players}

    works = {"rebuild": (rebuild, "ladder.rebuilt"), "verify": (verify, "ladder.verified")}
    if kind not in works:
        raise UsageError(f"kind is {kind[:20]!r}; accepted are {', '.join(works)}")
    work, action = works[kind]
    _, begun = await visit.site.work(visit.site.jobs.begin, kind, name, work, visit.deed(action, name))
    return visit.go(address("ladders", name, "operate"), f"The {kind} {'has begun' if begun else 'goes on already'}.")
