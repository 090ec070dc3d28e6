"""The forms that start backtests, tuning and what-ifs, each a job with a stored result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from starlette.responses import Response

from evenmatch import systems
from evenmatch.errors import AccessError, UsageError
from evenmatch.rating import rules
from evenmatch.service.jobs import Job, Work
from evenmatch.service.rule_overrides import check_installed
from evenmatch.web.forms import about
from evenmatch.web.page_request import PageRequest
from evenmatch.web.pages.lab_overview import KINDS, result_address
from evenmatch.web.rules_form import base_rules, chosen_rules, rules_form
from evenmatch.web.view_models import LadderShown

LEAST, MOST = 5, 120  # seconds of tuning
WARM_UP = (10, 90)  # percent
Say = Callable[[str], None]


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
            raise UsageError("choose at least one system")
    own = (await visit.site.work(visit.reading.described, visit.ladder)).rules.system.name
    for system in chosen:
        _check(system, own)
    warm_up = _whole(form.get("warm_up", "50"), "warm_up", *WARM_UP) / 100

    def work(say: Say) -> Work:
        from evenmatch.web import lab_jobs  # noqa: PLC0415 - the lab is imported on first use

        return lab_jobs.backtest_work(visit.site.service, visit.ladder, chosen, warm_up, say)

    return await _begin(visit, "backtest", work)


async def tuning_form(visit: PageRequest) -> Response:
    """Show the form of a tuning."""
    return await visit.show("lab_tuning", lambda: _shared(visit))


async def tuning(visit: PageRequest) -> Response:
    """Start a search for parameters that predict better."""
    form = await visit.form()
    system, seconds = form.get("system", ""), _whole(form.get("seconds", "20"), "seconds", LEAST, MOST)
    present = (await visit.site.work(visit.reading.described, visit.ladder)).rules
    _check(system, present.system.name)

    def work(say: Say) -> Work:
        from evenmatch.web import lab_jobs  # noqa: PLC0415

        before = present if present.system.name == system else rules(system)
        return lab_jobs.tuning_work(visit.site.service, visit.ladder, before, float(seconds), say)

    return await _begin(visit, "tuning", work)


async def what_if_form(visit: PageRequest) -> Response:
    """Show the form of a comparison with other rules."""

    def make() -> Mapping[str, object]:
        present = visit.reading.described(visit.ladder).rules
        chosen = base_rules(visit.typed, present)
        return _shared(visit) | {"rules": rules_form(chosen, visit.typed)}

    return await visit.show("lab_what_if", make)


async def what_if(visit: PageRequest) -> Response:
    """Start a comparison of the present standings with those under other rules."""
    form = await visit.form()
    if form.get("look"):  # the button of browsers without JavaScript: show the parameters of the selected system
        return visit.go(f"{visit.here}?{urlencode({name: form.get(name, '') for name in ('system', 'preset')})}")
    chosen = chosen_rules(form, (await visit.site.work(visit.reading.described, visit.ladder)).rules)

    def work(say: Say) -> Work:
        from evenmatch.web import lab_jobs  # noqa: PLC0415

        return lab_jobs.what_if_work(visit.site.service, visit.ladder, chosen, say)

    return await _begin(visit, "what-if", work)


def _check(system: str, own: str) -> None:
    """Raise UnknownNameError if the system is neither installed nor the ladder's own, which may come from a file."""
    if system != own:
        check_installed(system)


def _shared(visit: PageRequest) -> dict[str, object]:
    present = visit.reading.described(visit.ladder).rules
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "present": present,
        "systems": list(dict.fromkeys([*systems.names(), present.system.name])),
        "bounds": {"seconds": (LEAST, MOST), "warm_up": WARM_UP},
        "form": visit.form_here(),
    }


async def _begin(visit: PageRequest, kind: str, work: Callable[[Say], Work]) -> Response:
    """Start a job, or redirect to the running one of this kind. Raises AccessError if not logged in with a key."""
    if visit.session is None or visit.is_player:  # it takes minutes of a processor
        raise AccessError("starting a job in the lab requires a login with a key")
    words, key = visit.shared.lab_cache.words, (visit.ladder, kind)

    def say(message: str) -> None:
        words[key] = message

    def begin() -> tuple[Job, bool]:
        say("waiting for its turn")
        return visit.site.jobs.begin(kind, visit.ladder, work(say), sort="lab")

    job, begun = await visit.site.work(begin)
    if not begun:
        return visit.go(result_address(job), f"A job of this kind is already running: {KINDS[kind]}.", is_good=False)
    return visit.go(result_address(job))


def _whole(text: str, field: str, low: int, high: int) -> int:
    with about(field):
        if not text.isdecimal() or not low <= int(text[:9]) <= high:
            raise UsageError(f"expected a whole number from {low} to {high}, got {text[:20]!r}")
    return int(text)
