"""The lab of a ladder: health, backtests, tuning, what-ifs, suspects, and the audit of a queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import urlencode

from starlette.responses import Response

from evenmatch import systems
from evenmatch.accounts.audit_trail import AuditEntry
from evenmatch.errors import AccessError, InputError, UnknownNameError, UsageError
from evenmatch.jobs.jobs import Job, Work
from evenmatch.lab import stored_results
from evenmatch.lab.ladder.health import floor_of
from evenmatch.lab.ladder.learning import shown_number
from evenmatch.ladders.descriptions import check_installed
from evenmatch.options import shown
from evenmatch.policy import Policy
from evenmatch.queues.experiment_audit import ExperimentAudit
from evenmatch.queues.stored_queues import find
from evenmatch.rating import rules
from evenmatch.web import lab_jobs
from evenmatch.web.forms import about, base_rules, chosen_rules, rules_form
from evenmatch.web.lab_cache import CachedHealth
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.view_models import LadderShown

KINDS = {"backtest": "Backtest", "tuning": "Tuning", "what-if": "What if"}
SUSPECTS = "suspects"  # the job whose result only operators see
LATEST = 50  # latest jobs of the ladder that are searched for lab jobs
RECENT = 400  # offers in the chart of waits
JSON = "application/json"


async def lab(visit: PageRequest) -> Response:
    """Show the lab's tools, the ladder's health, and the latest results."""
    view = await visit.site.work(visit.reading.view, visit.ladder)
    report = visit.shared.lab_cache.known(view)
    if report is None:
        visit.shared.lab_cache.begin(visit.site, view)

    def make() -> Mapping[str, object]:
        return {
            "ladder": LadderShown.of(view),
            "has_floor": floor_of(visit.reading.described(visit.ladder).rules) is not None,
            "has_matches": bool(len(view.snapshot.board)),
            "found": report,
            "learned": _learned(report),
            "jobs": jobs_of(visit)[:6],
            "kinds": KINDS,
            "has_queues": bool(visit.site.queue_service.queues(visit.ladder)),
        }

    return await visit.show("lab", make)


def _learned(report: CachedHealth | None) -> tuple[list[int], list[tuple[str, list[str]]]] | None:
    """The table of what was learned, with matches as columns and meanings as rows; None if nothing was."""
    if report is None or report.health is None or not report.health.learned:
        return None
    moments = report.health.learned
    rows = [
        (numbers[-1].meaning, [shown_number(number) for number in numbers])
        for numbers in zip(*(moment.numbers for moment in moments), strict=True)
    ]
    return [moment.matches for moment in moments], rows


async def health(visit: PageRequest) -> Response:
    """Return a figure of the ladder's health as JSON."""
    view = await visit.site.work(visit.reading.view, visit.ladder)
    report = await visit.shared.lab_cache.health(visit.site, view)
    if report.health is None:
        raise InputError(report.findings[0])
    figure = await visit.site.work(lab_jobs.health_figure, report.health, visit.asked("of", "levels"))
    return Response(figure, media_type=JSON)


async def waits(visit: PageRequest) -> Response:
    """Return the chart of waits as JSON."""
    return Response(await visit.site.work(_waits, visit), media_type=JSON)


def _waits(visit: PageRequest) -> str:
    return lab_jobs.waits_figure(visit.site.queue_service.recent(visit.ladder, RECENT))


async def results(visit: PageRequest) -> Response:
    """Show the result or the progress of a lab job; without a job id, list all lab jobs."""
    return await visit.show("lab_results", lambda: _results(visit))


def _results(visit: PageRequest) -> Mapping[str, object]:
    shared: dict[str, object] = {"ladder": LadderShown.of(visit.reading.view(visit.ladder)), "kinds": KINDS}
    if not visit.asked("job"):
        return shared | {"job": None, "jobs": jobs_of(visit)}
    job = visit.site.jobs.find(visit.asked("job"), visit.ladder)
    if job.kind not in KINDS:
        raise UnknownNameError("result of the lab", job.job, [known.job for known in jobs_of(visit)])
    figures: Mapping[str, object] = {}
    if job.result is not None:
        figures = lab_jobs.figures_of(job.kind, job.result)
    words = visit.shared.lab_cache.words.get((job.ladder, job.kind), "")
    shared |= {"looked": None, "missing": None}
    if job.kind == "what-if" and job.result is not None and visit.asked("player"):
        shared |= _looked_up(visit, job.result)
    return shared | {"job": job, "found": job.result, "figures": figures, "words": words if job.result is None else ""}


def _looked_up(visit: PageRequest, found: Mapping[str, object]) -> dict[str, object]:
    """The named player's place in a what-if, or why there is none."""
    text = visit.asked("player").strip()
    try:
        name = visit.reading.known_as(visit.ladder, text)
    except UnknownNameError:
        return {"looked": None, "missing": _missing(visit, text)}
    looked = stored_results.look_up(found, name)
    return {
        "looked": looked,
        "missing": None if looked else visit.text("%(name)s is not in both standings.", name=name),
    }


def _missing(visit: PageRequest, name: str) -> str:
    """Why the standings do not have a player of this name."""
    try:
        found = visit.reading.whereabouts(name, visit.readable())
    except UnknownNameError:
        return visit.text("No player called %(name)s.", name=name)
    elsewhere = ", ".join(LadderShown.of(visit.reading.view(ladder)).title for ladder in found.ladders)
    return visit.text("%(name)s does not play on this ladder, but on: %(ladders)s.", name=name, ladders=elsewhere)


def jobs_of(visit: PageRequest) -> list[Job]:
    """Return the lab jobs of this ladder, latest first."""
    return [job for job in visit.site.jobs.page(visit.ladder, None, LATEST) if job.kind in KINDS]


def result_address(job: Job) -> str:
    """Return the URL of the page that shows a job's result."""
    return address("ladders", job.ladder, "lab", "results", job=job.job)


TUNING_LEAST, TUNING_MOST = 5, 120  # seconds
WARM_UP = (10, 90)  # percent


async def backtest_form(visit: PageRequest) -> Response:
    """Show the form of a backtest."""
    return await visit.show("lab_backtest", lambda: _shared(visit))


async def backtest(visit: PageRequest) -> Response:
    """Start a backtest of the ladder's history."""
    sent = await visit.fields()
    form = dict(sent)
    chosen = [value for name, value in sent if name == "system"]
    with about("system"):
        if not chosen:
            raise UsageError(visit.text("choose at least one system"))
    own = (await visit.site.work(visit.reading.described, visit.ladder)).rules.system.name
    for system in chosen:
        _check(system, own)
    warm_up = _whole(form.get("warm_up", "50"), "warm_up", *WARM_UP) / 100

    work = partial(lab_jobs.backtest_work, visit.site.service, visit.ladder, chosen, warm_up)
    return await _begin(visit, "backtest", work)


async def tuning_form(visit: PageRequest) -> Response:
    """Show the form of a tuning."""
    return await visit.show("lab_tuning", lambda: _shared(visit))


async def tuning(visit: PageRequest) -> Response:
    """Start a search for parameters that predict better."""
    form = await visit.form()
    system, seconds = form.get("system", ""), _whole(form.get("seconds", "20"), "seconds", TUNING_LEAST, TUNING_MOST)
    present = (await visit.site.work(visit.reading.described, visit.ladder)).rules
    _check(system, present.system.name)

    before = present if present.system.name == system else rules(system)
    work = partial(lab_jobs.tuning_work, visit.site.service, visit.ladder, before, float(seconds))
    return await _begin(visit, "tuning", work)


async def what_if_form(visit: PageRequest) -> Response:
    """Show the form of a comparison with other rules."""

    def make() -> Mapping[str, object]:
        present = visit.reading.described(visit.ladder).rules
        chosen = base_rules(visit.typed, present)
        return _shared(visit) | {"rules": rules_form(chosen, visit.typed)}

    return await visit.show("lab_what_if", make)


async def what_if(visit: PageRequest) -> Response:
    """Start a comparison of the current standings with those under other rules."""
    form = await visit.form()
    if form.get("look"):  # the button of browsers without JavaScript: show the parameters of the selected system
        return visit.go(f"{visit.here}?{urlencode({name: form.get(name, '') for name in ('system', 'preset')})}")
    chosen = chosen_rules(form, (await visit.site.work(visit.reading.described, visit.ladder)).rules)

    work = partial(lab_jobs.what_if_work, visit.site.service, visit.ladder, chosen)
    return await _begin(visit, "what-if", work)


def _check(system: str, own: str) -> None:
    """Raise UnknownNameError if the system is neither installed nor the ladder's own, which may come from a file."""
    if system != own:
        check_installed(system)


def _shared(visit: PageRequest) -> dict[str, object]:
    present = visit.reading.described(visit.ladder).rules
    titles = {name: systems.find(name).title for name in systems.names()} | {present.system.name: present.system.title}
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "present": present,
        "systems": list(titles),
        "titles": titles,
        "bounds": {"seconds": (TUNING_LEAST, TUNING_MOST), "warm_up": WARM_UP},
        "form": visit.form_here(),
    }


async def _begin(visit: PageRequest, kind: str, work: Callable[[lab_jobs.Say], Work]) -> Response:
    """Start a job, or redirect to the running one of this kind. Raises AccessError if not logged in with a key."""
    if visit.session is None or visit.is_player:  # a job takes minutes of processor time
        raise AccessError(visit.text("starting a job in the lab requires a login with a key"))
    job, begun = await _begun(visit, kind, work)
    if not begun:
        return visit.go(
            result_address(job),
            visit.text("A job of this kind is already running: %(kind)s.", kind=visit.texts.translated(KINDS[kind])),
            is_good=False,
        )
    return visit.go(result_address(job))


async def _begun(
    visit: PageRequest, kind: str, work: Callable[[lab_jobs.Say], Work], entry: AuditEntry | None = None
) -> tuple[Job, bool]:
    """Start a job, and return it with True; False if it was already running."""
    words, key = visit.shared.lab_cache.words, (visit.ladder, kind)

    def say(message: str) -> None:
        words[key] = message

    def begin() -> tuple[Job, bool]:
        say("waiting for its turn")
        return visit.site.jobs.begin(kind, visit.ladder, work(say), entry, sort="lab")

    return await visit.site.work(begin)


async def suspects(visit: PageRequest) -> Response:
    """Show the accounts to look into as the latest search found them, or the progress of the search."""
    return await visit.show("operate_suspects", lambda: _suspects(visit))


def _suspects(visit: PageRequest) -> Mapping[str, object]:
    view = visit.reading.view(visit.ladder)
    return {
        "ladder": LadderShown.of(view),
        "has_matches": bool(len(view.snapshot.board)),
        "job": visit.site.jobs.latest(visit.ladder, SUSPECTS),
        "words": visit.shared.lab_cache.words.get((visit.ladder, SUSPECTS), ""),
    }


async def find_suspects(visit: PageRequest) -> Response:
    """Start a search for suspicious accounts."""
    await visit.form()
    work = partial(lab_jobs.suspects_work, visit.site.service, visit.ladder)
    _, begun = await _begun(visit, SUSPECTS, work, visit.audit_entry("suspects.listed", visit.ladder))
    notice = None if begun else visit.text("The search is already running.")
    return visit.go(address("ladders", visit.ladder, "operate", "suspects"), notice, is_good=False)


def _whole(text: str, field: str, low: int, high: int) -> int:
    with about(field):
        if not text.isdecimal() or not low <= int(text[:9]) <= high:
            raise UsageError(f"expected a whole number from {low} to {high}, got {text[:20]!r}")
    return int(text)


PERIODS = {"day": 1, "week": 7, "month": 30, "all": None}  # days
DAY = 86_400_000_000  # microseconds


async def queue_audit(visit: PageRequest) -> Response:
    """Show the audit of a queue, the first one by name unless another is asked for."""
    return await visit.show("lab_audit", lambda: _audit(visit))


def _audit(visit: PageRequest) -> Mapping[str, object]:
    setups = {setup.name: setup for setup in visit.site.queue_service.queues(visit.ladder)}
    values = {"ladder": LadderShown.of(visit.reading.view(visit.ladder)), "queues": list(setups), "periods": PERIODS}
    if not setups:
        return values | {"queue": None, "audit": None}
    name = visit.asked("queue", next(iter(setups)))
    find(setups, name)
    period = visit.asked("period", "week")
    days = PERIODS.get(period, PERIODS["week"])
    now = visit.site.service.clock()
    audited = visit.reading.queue_audit(visit.ladder, name, 0 if days is None else now - days * DAY, now)
    return values | {
        "queue": name,
        "period": period,
        "audit": audited,
        "figure": lab_jobs.calibration_figure(audited.reliability),
        "experiments": [_experiment(compared) for compared in audited.experiments],
    }


def _experiment(audited: ExperimentAudit) -> Mapping[str, object]:
    """An experiment with its chart, and the options in which the policies differ: name, first and second value."""
    changed = differing_options(audited.experiment.first, audited.experiment.second)
    return {"audit": audited, "figure": lab_jobs.experiment_figure(audited), "changed": changed}


def differing_options(before: Policy, after: Policy) -> list[tuple[str, str, str]]:
    """Return the options in which two policies differ: name, value before and after."""
    old, new = before.to_data(), after.to_data()
    return [(name, _shown(value), _shown(new[name])) for name, value in old.items() if value != new[name]]


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(f"{after:g} s: {width:g}" for after, width in value)
    return shown(value)
