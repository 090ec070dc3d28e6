"""The operator pages of one ladder: corrections with preview, rules, settings, seasons, archive and jobs."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, cast

from starlette.responses import Response

from evenmatch.accounts.audit_entries import Correcting, correcting
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.corrections.effect import Effect, RatingMove
from evenmatch.durations import DAY, SECOND
from evenmatch.errors import ConflictError, UsageError
from evenmatch.http.routes.corrections import ended, outcome
from evenmatch.jobs.jobs import Job
from evenmatch.jobs.tasks import (
    CorrectionTask,
    DueTask,
    PreviewTask,
    RebuildTask,
    SeasonTask,
    Task,
    VerifyTask,
    effect_of,
)
from evenmatch.ladders import correction_log
from evenmatch.ladders.inactivity import DailyDecay
from evenmatch.ladders.ladders import ChangeRules, Ladder
from evenmatch.ladders.settings import reset_factor
from evenmatch.players.name_rule import odd_names
from evenmatch.standings.division import Division, checked, division_at
from evenmatch.standings.rules import RATING
from evenmatch.systems.system import Rules
from evenmatch.times import implausible, iso_time, likeness
from evenmatch.web.forms import (
    OFFERED,
    about,
    base_rules,
    check_confirmed,
    chosen_rules,
    option_fields,
    options_typed,
    rules_form,
)
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.texts import Texts
from evenmatch.web.view_models import LadderShown

MOVES = 20  # most rating changes in each list of a page of a preview
FOLLOWED = "job"  # the query parameter with the job of a preview
PREVIEWED = "previewed"  # the form field with the position of the preview that is confirmed


async def previewed(visit: PageRequest, request: Correcting) -> Effect | Job:
    """Return the preview of a correction, or its job if it takes longer. Raises what the correction raises.

    If the page already follows a job, no other is started, however many matches arrive meanwhile.
    """
    name = visit.asked(FOLLOWED)
    if name:
        job = await visit.site.work(visit.site.jobs.find, name)
        if (job.ladder, job.kind) != (visit.ladder, PreviewTask.kind):
            raise ConflictError(f"{name} is not a preview of ladder {visit.ladder!r}")
        done = await ended(visit.site, job, 0)
    else:
        done = await outcome(visit.site, PreviewTask(visit.ladder, request, None))
    return done if isinstance(done, Job) else effect_of(done)


class MovesPage(NamedTuple):
    """A page of a preview's rating changes, largest first: those who gain, who lose, and who enter or leave.

    before, after  the URLs of the pages around it
    """

    gains: Sequence[RatingMove]
    losses: Sequence[RatingMove]
    others: Sequence[RatingMove]
    before: str | None
    after: str | None


def moves_page(visit: PageRequest, moves: Sequence[RatingMove]) -> MovesPage:
    """Return the page of rating changes that the query asks for."""
    number = visit.number("page", 1, 1, 2**31)
    known = [(move, move.before, move.after) for move in moves]
    changes = [(move, a - b) for move, b, a in known if b is not None and a is not None]
    gains, losses = [move for move, by in changes if by > 0], [move for move, by in changes if by <= 0]
    lists = (gains, losses, [move for move, b, a in known if b is None or a is None])
    gains, losses, others = (listed[(number - 1) * MOVES : number * MOVES] for listed in lists)
    before = visit.same_page(page=number - 1) if number > 1 else None
    is_last = number * MOVES >= max(map(len, lists))
    return MovesPage(gains, losses, others, before, None if is_last else visit.same_page(page=number + 1))


def preview_values(visit: PageRequest, foreseen: Effect | Job | None) -> dict[str, object]:
    """Return the template values of a preview, or of the job to follow."""
    if isinstance(foreseen, Job):
        return {"seen": None, "moves": None, "following": foreseen}
    moves = None if foreseen is None else moves_page(visit, foreseen.moves)
    return {"seen": foreseen, "moves": moves, "following": None}


def outdated(texts: Texts, form: Mapping[str, str], position: int) -> str:
    """Return a sentence if the preview is outdated: events were recorded between it and this position."""
    previewed = form.get(PREVIEWED, "")
    later = position - int(previewed) if previewed.isascii() and previewed.isdigit() else 0
    if later <= 0:
        return ""
    return " " + texts.plural(
        "%(n)s event was recorded after the preview, so the changes can differ a little from it.",
        "%(n)s events were recorded after the preview, so the changes can differ a little from it.",
        later,
    )


LONGEST_ID = 200  # characters of an event id
WHATS = ("void", "unvoid", "ban", "reinstate")


def new_id() -> str:
    """Return a random event id, so that a form submitted twice is applied once."""
    return f"page:{secrets.token_hex(8)}"


async def correction(visit: PageRequest) -> Response:
    """Show the form of a correction and a preview of its rating changes."""
    typed = visit.typed
    what = typed.get("what", "void")
    if what not in WHATS:
        raise UsageError(f"what is {what[:20]!r}; expected {', '.join(WHATS)}")
    foreseen: Effect | Job | None = None
    request: Correcting | None = None
    if visit.refused is None:
        with visit.previewing():
            request = _correction_of(typed, visit.site.service.clock())
            with about("match" if what in ("void", "unvoid") else "player"):
                await visit.site.work(_check_known, visit, request)
                foreseen = None if request is None else await previewed(visit, request)
    if isinstance(foreseen, Job) and not visit.asked(FOLLOWED):
        return visit.go(visit.same_page(**{FOLLOWED: foreseen.job}))  # so that reloading does not start another
    values = {"what": what, **preview_values(visit, foreseen), "id": new_id(), "until": until_of(request)}
    return await visit.show("correct", lambda: ladder_and_form(visit) | values)


def ladder_and_form(visit: PageRequest) -> dict[str, object]:
    """The template values of the ladder, and of the form of this page."""
    return {"ladder": LadderShown.of(visit.reading.view(visit.ladder)), "form": visit.form_here()}


async def correct(visit: PageRequest) -> Response:
    """Apply the correction."""
    form = await visit.form()
    caller, request = visit.check("admin", visit.ladder), _correction_of(form, visit.site.service.clock())
    field = "match" if form.get("what", "void") in ("void", "unvoid") else "player"
    with about(field):
        if request is None:
            raise UsageError(visit.text("enter a match") if field == "match" else visit.text("enter a player"))
        await visit.site.work(_check_known, visit, request)
        entry = correcting(caller, visit.ladder, request, visit.request_id)
        done = await outcome(visit.site, CorrectionTask(visit.ladder, request, event_id_of(form), entry))
    if isinstance(done, Job):
        position = (await visit.site.work(visit.site.service.ladder, visit.ladder)).position
        notice = visit.text("The correction is being applied. Its progress is shown below.")
        notice += outdated(visit.texts, form, position)
    else:
        notice = _applied(visit.texts, effect_of(done), form)
    return visit.go(address("ladders", visit.ladder, "operate"), notice)


def _applied(texts: Texts, effect: Effect, form: Mapping[str, str]) -> str:
    if effect.done:
        return texts.text("This correction was already applied.")
    done = texts.text("Done: %(what)s.", what=effect.told)
    changed = texts.plural("%(n)s rating changed.", "%(n)s ratings changed.", effect.moved)
    return f"{done} {changed}{outdated(texts, form, effect.position)}"


def _check_known(visit: PageRequest, request: Correcting | None) -> None:
    """Raise UnknownNameError for a player whom the visitor may not see."""
    if isinstance(request, Ban | Reinstate):
        visit.reading.check_known(visit.ladder, request.player)


def event_id_of(form: Mapping[str, str]) -> str | None:
    """The event id in a form; None: it is empty. Raises UsageError if it is too long."""
    text = form.get("id", "")
    if len(text) > LONGEST_ID:
        raise UsageError(f"the id has {len(text)} characters; expected at most {LONGEST_ID}")
    return text or None


def _correction_of(typed: Mapping[str, str], now: int) -> Correcting | None:
    """The correction that a form describes; None if its match or player is empty. now: microseconds."""
    what, reason = typed.get("what", "void"), typed.get("reason", "").strip() or None
    match_id, player = typed.get("match", "").strip(), typed.get("player", "").strip()
    match what:
        case "void":
            return Void(match_id, reason) if match_id else None
        case "unvoid":
            return Unvoid(match_id, reason) if match_id else None
        case "ban":
            return ban_of(typed, player, now) if player else None
        case "reinstate":
            return Reinstate(player, reason) if player else None
    raise UsageError(f"what is {what[:20]!r}; expected {', '.join(WHATS)}")


SPANS = {"1": DAY, "7": 7 * DAY, "30": 30 * DAY}  # ends of bans to choose from, in days


def ban_of(typed: Mapping[str, str], player: str, now: int) -> Ban:
    """The ban of a player that a form describes. Raises FieldError. now: microseconds."""
    span = typed.get("span", "")
    with about("since"):
        since = day_typed(typed.get("since", ""))
    with about("until"):
        until = now // SECOND * SECOND + SPANS[span] if span in SPANS else day_typed(typed.get("until", ""), "good")
        if span == "date" and until is None:
            raise UsageError("expected the day on which the ban ends")
    with about("rule"):
        ban = Ban(player, typed.get("rule") or None, since, typed.get("reason", "").strip() or None, until)
    with about("until"):
        ban.check_end(now)
    return ban


def until_of(request: Correcting | None) -> str | None:
    """The end of a previewed ban for its form, which must not move when the form is sent; None: it has none."""
    return iso_time(request.until) if isinstance(request, Ban) and request.until is not None else None


def day_typed(text: str, empty: str = "all") -> int | None:
    """Return the start of a typed day, in microseconds; None: the field is empty. Raises UsageError."""
    if not text.strip():
        return None
    try:
        day = datetime.fromisoformat(text.strip())
    except ValueError:
        got = f"{text[:40]!r}{likeness(text).clause}"
        raise UsageError(f"expected a day such as 2026-11-21, or an empty field for {empty}, got {got}") from None
    micros = int((day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp() * 1e6)
    if reason := implausible("the day", micros):
        raise UsageError(reason)
    return micros


JOBS = 6  # most jobs listed
RULINGS = 25  # most voids, bans and other corrections listed
MOST_DAYS = 366  # longest preview of inactivity
LEADERS = 3  # players named on the page that ends a season


async def ladder(visit: PageRequest) -> Response:
    """Show the operator page of a ladder."""
    return await visit.show("operate_ladder", lambda: _ladder(visit))


def _ladder(visit: PageRequest) -> Mapping[str, object]:
    site, name = visit.site, visit.ladder
    with site.service.reading(name) as (store, head):
        corrections = {
            "voids": correction_log.voids(store, head)[:RULINGS],
            "bans": correction_log.bans(store, head, site.service.clock())[:RULINGS],
            "rulings": correction_log.rulings(store, head, None, RULINGS),
        }
    jobs = site.jobs.page(name, None, JOBS)
    view = visit.reading.view(name)
    odd, more = odd_names(site.service, name, "", RULINGS)
    return corrections | {
        "odd_names": odd,
        "more_odd_names": more is not None,
        "ladder": LadderShown.of(view),
        "view": view,
        "told": visit.reading.described(name),
        "jobs": jobs,
        "runs": any(job.state == "running" for job in jobs),
        "suspects": site.jobs.latest(name, "suspects"),
        "queues": site.queue_service.queues(name),
        "form": visit.form_at("ladders", name, "operate", "settings"),
        "settings": option_fields(OFFERED, view.settings.plain()),
    }


# rules and settings


async def rules(visit: PageRequest) -> Response:
    """Show the form for new rules and a preview of their rating changes."""
    sent = visit.typed
    present = await visit.site.work(visit.reading.described, visit.ladder)
    chosen = base_rules(sent, present.rules)
    foreseen: Effect | Job | None = None
    with visit.previewing():
        chosen = chosen_rules(sent, present.rules)
    start = sent.get("begin", "start") == "start" or chosen.system.name != present.rules.system.name
    skip_bad = bool(sent.get("skip_bad"))
    is_same = (chosen.system.name, chosen.preset, chosen.values()) == (
        present.rules.system.name,
        present.rules.preset,
        present.rules.values(),
    )
    if not is_same and start and sent.get("look") and visit.refused is None:
        with visit.previewing():
            request = ChangeRules(_system_reference(present, chosen), chosen, start, skip_bad)
            foreseen = await previewed(visit, request)
    if isinstance(foreseen, Job) and not visit.asked(FOLLOWED):
        return visit.go(visit.same_page(**{FOLLOWED: foreseen.job}))
    values = {
        "rules": rules_form(chosen, sent),
        "start": start,
        "skip_bad": skip_bad,
        "is_same": is_same,
        **preview_values(visit, foreseen),
        "id": new_id(),
    }
    return await visit.show("operate_rules", lambda: ladder_and_form(visit) | values)


def _system_reference(present: Ladder, chosen: Rules) -> str:
    """The name of the chosen system, or the file of the ladder's own system."""
    return present.system if chosen.system.name == present.rules.system.name else chosen.system.name


async def change_rules(visit: PageRequest) -> Response:
    """Start a job that changes the rules."""
    form, caller = await visit.form(), visit.check("admin", visit.ladder)

    def begin() -> int:
        present = visit.reading.described(visit.ladder)
        chosen = chosen_rules(form, present.rules)
        start = form.get("begin", "start") == "start"
        request = ChangeRules(_system_reference(present, chosen), chosen, start, bool(form.get("skip_bad")))
        entry = correcting(caller, visit.ladder, request, visit.request_id)
        visit.site.ladder_work.begin(CorrectionTask(visit.ladder, request, event_id_of(form), entry), alone=True)
        return present.position

    position = await visit.site.change(visit.ladder, begin)
    notice = visit.text("The rules are being changed. The progress is shown below.")
    notice += outdated(visit.texts, form, position)
    return visit.go(address("ladders", visit.ladder, "operate"), notice)


async def settings(visit: PageRequest) -> Response:
    """Change the settings of a ladder, such as title and placement; only other context columns change ratings."""
    form = await visit.form()
    changes = options_typed(form, OFFERED)

    def change() -> str:
        before = visit.site.service.ladder(visit.ladder).settings
        if before.changed(changes) == before:
            return visit.text("Nothing was changed: the settings already have these values.")
        entry = visit.audit_entry("settings.changed", visit.ladder, body=changes)
        visit.site.service.noting(entry).change_settings(visit.ladder, changes, rebuild=False)
        return visit.text("The settings were changed.")

    notice = await visit.site.change(visit.ladder, change)
    if (await visit.site.work(visit.site.service.ladder, visit.ladder)).due is not None:
        await outcome(visit.site, DueTask(visit.ladder))
    return visit.go(address("ladders", visit.ladder, "operate"), notice)


class Landing(NamedTuple):
    """A division in a preview: its percentiles (0: it is removed), and how many listed players it has now and then."""

    name: str
    lowest: int
    highest: int
    now: int | None
    then: int


BLANK = 3  # empty rows for more divisions


async def divisions(visit: PageRequest) -> Response:
    """Show the form for divisions, and how many players would land in each."""
    return await visit.show("operate_divisions", lambda: _divisions(visit))


def _divisions(visit: PageRequest) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    present, sent = view.settings.standings.divisions, visit.typed
    rows = _division_rows(sent) or [(one.name, str(one.lowest)) for one in present]
    values = {"landing": (), "moved": 0, "is_same": True}
    with visit.previewing():
        if sent.get("look"):
            wanted = _divisions_of(sent)
            view.settings.changed({"divisions": wanted})
            standings = view.snapshot.page(1, max(len(view.snapshot), 1))
            moves = [(one.division, division_at(one.percentile or 1, wanted).name) for one in standings]
            values = {
                "landing": _landing(present, wanted, moves),
                "moved": sum(now != then for now, then in moves),
                "is_same": wanted == present,
            }
    typed = [*rows, *[("", "")] * BLANK]
    return {"ladder": LadderShown.of(view), "typed": typed, "form": visit.form_here(), **values}


def _landing(
    present: Sequence[Division], wanted: Sequence[Division], moves: Sequence[tuple[str | None, str]]
) -> list[Landing]:
    now, then = Counter(before for before, _ in moves), Counter(after for _, after in moves)
    known, ends = {one.name for one in present}, [*(one.lowest - 1 for one in wanted[1:]), 100]
    kept = [
        Landing(one.name, one.lowest, end, now[one.name] if one.name in known else None, then[one.name])
        for one, end in zip(wanted, ends, strict=True)
    ]
    gone = known - {one.name for one in wanted}
    return [*(Landing(one.name, 0, 0, now[one.name], 0) for one in present if one.name in gone), *kept]


def _division_rows(form: Mapping[str, str]) -> list[tuple[str, str]]:
    """The rows of the form that have a name, as typed."""
    numbers = sorted(int(key[4:]) for key in form if key.startswith("name") and key[4:].isdecimal())
    rows = [(form[f"name{number}"].strip(), form.get(f"lowest{number}", "").strip()) for number in numbers[:100]]
    return [(name, lowest) for name, lowest in rows if name]


def _divisions_of(form: Mapping[str, str]) -> tuple[Division, ...]:
    """The divisions of a form, lowest first. Raises UsageError or InputError."""
    rows = _division_rows(form)
    for name, lowest in rows:
        if not lowest.isdecimal() or not 1 <= int(lowest[:4]) <= 100:
            raise UsageError(f"division {name[:40]!r} begins at {lowest[:20]!r}; expected a percentile from 1 to 100")
    return checked(sorted((Division(name, int(lowest)) for name, lowest in rows), key=lambda one: one.lowest))


async def set_divisions(visit: PageRequest) -> Response:
    """Change the divisions of a ladder; ratings stay the same."""
    form = await visit.form()
    changes: dict[str, object] = {"divisions": [list(one) for one in _divisions_of(form)]}
    service = visit.site.service.noting(visit.audit_entry("settings.changed", visit.ladder, body=changes))
    await visit.site.change(visit.ladder, service.change_settings, visit.ladder, changes)
    return visit.go(address("ladders", visit.ladder, "operate"), visit.text("The divisions were changed."))


async def season_to_open(visit: PageRequest) -> Response:
    """Show the effects of ending the season, and ask for confirmation."""
    return await visit.show("operate_season", lambda: _season_to_open(visit))


def _season_to_open(visit: PageRequest) -> Mapping[str, object]:
    view, title = visit.reading.view(visit.ladder), visit.typed.get("title", "").strip() or None
    preview = visit.site.service.preview_season(visit.ladder, title=title)
    settings = view.settings
    return {
        "ladder": LadderShown.of(view),
        "view": view,
        "form": visit.form_here(),
        "present": visit.site.service.seasons(visit.ladder)[-1],
        "leaders": visit.site.service.named(view.snapshot.page(1, LEADERS)),
        "seen": preview,
        "moves": moves_page(visit, preview.moves),
        "settings": settings,
        "empties": reset_factor(settings.reset, settings.factor) != 1,
        "id": new_id(),
    }


async def season(visit: PageRequest) -> Response:
    """End the season, store its standings, and open the next one."""
    form = await visit.form()
    check_confirmed(form, visit.ladder)
    title = form.get("title", "").strip() or None
    entry = visit.audit_entry("season.opened", visit.ladder, body={"title": title})
    done = await outcome(visit.site, SeasonTask(visit.ladder, title, None, None, event_id_of(form), entry))
    is_job = isinstance(done, Job)
    notice = visit.text("The season is being closed; the progress is shown below.") if is_job else None
    return visit.go(
        address("ladders", visit.ladder, "operate"),
        notice or visit.text("%(season)s is open.", season=cast("dict[str, str]", done)["title"]),
    )


async def decay_to_apply(visit: PageRequest) -> Response:
    """Show which ratings would fall by inactivity, now or after some days without matches."""

    def make() -> Mapping[str, object]:
        days = visit.number("days", 0, 0, MOST_DAYS)
        view = visit.reading.view(visit.ladder)
        shown = {"ladder": LadderShown.of(view), "settings": view.settings, "form": visit.form_here(), "days": days}
        if view.settings.standings.inactivity != RATING:
            return {**shown, "seen": None}
        preview = DailyDecay(visit.site.service).preview(visit.ladder, days)
        return {**shown, "seen": preview, "moves": moves_page(visit, preview.moves)}

    return await visit.show("operate_decay", make)


async def decay(visit: PageRequest) -> Response:
    """Lower the ratings of players who have become inactive."""
    await visit.form()
    service = visit.site.service.noting(visit.audit_entry("ratings.decayed", visit.ladder))
    result = await visit.site.change(visit.ladder, DailyDecay(service).apply, visit.ladder)
    players = 0 if result is None else result.players
    notice = visit.texts.plural("Inactivity lowered %(n)s rating.", "Inactivity lowered %(n)s ratings.", players)
    return visit.go(
        address("ladders", visit.ladder, "operate"),
        notice if players else visit.text("Inactivity lowers no rating now."),
    )


async def ladder_to_archive(visit: PageRequest) -> Response:
    """Show the effects of archiving or reopening a ladder, and ask for confirmation."""

    def make() -> Mapping[str, object]:
        view = visit.reading.view(visit.ladder)
        counts = visit.site.queue_service.counts(visit.ladder)
        waiting = sum(count.players for count in counts.values())
        return {
            "ladder": LadderShown.of(view),
            "form": visit.form_here(),
            "view": view,
            "waiting": waiting,
            "running": visit.site.running.count(visit.ladder),
        }

    return await visit.show("operate_archive", make)


async def archive(visit: PageRequest) -> Response:
    """Archive a ladder, or reopen it."""
    form = await visit.form()
    archived = form.get("do", "archive") == "archive"
    if archived:
        check_confirmed(form, visit.ladder)
    changes: dict[str, object] = {"archived": archived}
    service = visit.site.service.noting(visit.audit_entry("settings.changed", visit.ladder, body=changes))
    await visit.site.change(visit.ladder, service.change_settings, visit.ladder, changes)
    notice = visit.text("The ladder is archived.") if archived else visit.text("The ladder is open again.")
    return visit.go(address("ladders", visit.ladder, "operate"), notice)


async def job(visit: PageRequest) -> Response:
    """Start a job that rebuilds or verifies the ratings."""
    form = await visit.form()
    kind = form.get("kind", "")
    tasks: Mapping[str, tuple[Task, str]] = {
        "rebuild": (RebuildTask(visit.ladder), "ladder.rebuilt"),
        "verify": (VerifyTask(visit.ladder), "ladder.verified"),
    }
    if kind not in tasks:
        raise UsageError(f"kind is {kind[:20]!r}; expected {' or '.join(tasks)}")
    task, action = tasks[kind]
    entry = visit.audit_entry(action, visit.ladder)
    _, begun = await visit.site.change(visit.ladder, visit.site.ladder_work.begin, task, entry)
    notice = visit.text("The job has started.") if begun else visit.text("The job is already running.")
    return visit.go(address("ladders", visit.ladder, "operate"), notice)


async def cancel_job(visit: PageRequest) -> Response:
    """Cancel a running job."""
    form = await visit.form()
    name = form.get("job", "")

    def cancel() -> None:
        job = visit.site.jobs.find(name, visit.ladder)
        visit.site.jobs.cancel(job.job, visit.audit_entry("job.cancelled", visit.ladder, name))

    await visit.site.work(cancel)
    return visit.go(address("ladders", visit.ladder, "operate"), visit.text("The job is being cancelled."))
