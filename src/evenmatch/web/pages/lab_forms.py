"""What designers ask the lab: backtests, tuning and what-ifs, each a job whose result stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from starlette.responses import Response

from evenmatch import systems
from evenmatch.errors import AccessError, UsageError
from evenmatch.rating import rules
from evenmatch.service.choosing import check_installed
from evenmatch.service.jobs import Job, Work
from evenmatch.web.choosing import base_rules, chosen_rules, rules_form
from evenmatch.web.forms import about
from evenmatch.web.pages.lab import KINDS, result_address
from evenmatch.web.shown import LadderShown
from evenmatch.web.visit import Visit

LEAST, MOST = 5, 120  # seconds of tuning
WARM_UP = (10, 90)  # percent
Say = Callable[[str], None]


async def backtest_form(visit: Visit) -> Response:
    """Choose the systems."""
    return await visit.show("lab_backtest", lambda: _shared(visit))


async def backtest(visit: Visit) -> Response:
    """Begin a backtest of the ladder's history."""
    sent = await visit.fields()
    form = dict(sent)
    chosen = [value for name, value in sent if name == "system"]
    with about("system"):
        if not chosen:
            raise UsageError("choose at least one system")
    own = (await visit.site.work(visit.reading.described, visit.ladder)).rules.system.name
    for one in chosen:
        _check(one, own)
    warm_up = _whole(form.get("warm_up", "50"), "warm_up", *WARM_UP) / 100

    def work(say: Say) -> Work:
        from evenmatch.web import experiments  # noqa: PLC0415 - the lab is loaded where somebody looks into it

        return experiments.backtest_work(visit.site.service, visit.ladder, chosen, warm_up, say)

    return await _begin(visit, "backtest", work)


async def tuning_form(visit: Visit) -> Response:
    """Choose the system and the time."""
    return await visit.show("lab_tuning", lambda: _shared(visit))


async def tuning(visit: Visit) -> Response:
    """Begin a search for parameters that predict better."""
    form = await visit.form()
    system, seconds = form.get("system", ""), _whole(form.get("seconds", "20"), "seconds", LEAST, MOST)
    present = (await visit.site.work(visit.reading.described, visit.ladder)).rules
    _check(system, present.system.name)

    def work(say: Say) -> Work:
        from evenmatch.web import experiments  # noqa: PLC0415

        before = present if present.system.name == system else rules(system)
        return experiments.tuning_work(visit.site.service, visit.ladder, before, float(seconds), say)

    return await _begin(visit, "tuning", work)


async def what_if_form(visit: Visit) -> Response:
    """Choose other rules."""

    def make() -> Mapping[str, object]:
        present = visit.reading.described(visit.ladder).rules
        chosen = base_rules(visit.typed, present)
        return _shared(visit) | {"rules": rules_form(chosen, visit.typed)}

    return await visit.show("lab_what_if", make)


async def what_if(visit: Visit) -> Response:
    """Begin a comparison of the standings by other rules with the present ones."""
    form = await visit.form()
    if form.get("look"):  # where no script does so as soon as another system is chosen
        return visit.go(f"{visit.here}?{urlencode({name: form.get(name, '') for name in ('system', 'preset')})}")
    chosen = chosen_rules(form, (await visit.site.work(visit.reading.described, visit.ladder)).rules)

    def work(say: Say) -> Work:
        from evenmatch.web import experiments  # noqa: PLC0415

        return experiments.what_if_work(visit.site.service, visit.ladder, chosen, say)

    return await _begin(visit, "what-if", work)


def _check(system: str, own: str) -> None:
    """Raise UnknownNameError for a system that is neither installed nor the ladder's own, out of a file."""
    if system != own:
        check_installed(system)


def _shared(visit: Visit) -> dict[str, object]:
    present = visit.reading.described(visit.ladder).rules
    return {
        "ladder": LadderShown.of(visit.reading.view(visit.ladder)),
        "present": present,
        "systems": list(dict.fromkeys([*systems.names(), present.system.name])),
        "bounds": {"seconds": (LEAST, MOST), "warm_up": WARM_UP},
        "form": visit.form_here(),
    }


async def _begin(visit: Visit, kind: str, work: Callable[[Say], Work]) -> Response:
    """Begin a job, or go to the one of this kind that is at it. Raises AccessError for who is not logged in."""
    if visit.session is None:
        raise AccessError("the lab works for those who log in with a key")
    words, key = visit.shared.bench.words, (visit.ladder, kind)

    def say(what: str) -> None:
        words[key] = what

    def begin() -> tuple[Job, bool]:
        say("waiting for its turn")
        return visit.site.jobs.begin(kind, visit.ladder, work(say), sort="lab")

    job, begun = await visit.site.work(begin)
    if not begun:
        return visit.go(result_address(job), f"A job of this kind is at work: {KINDS[kind]}.", is_good=False)
    return visit.go(result_address(job))


def _whole(text: str, field: str, low: int, high: int) -> int:
    with about(field):
        if not text.isdecimal() or not low <= int(text[:9]) <= high:
            raise UsageError(f"expected a whole number from {low} to {high}, got {text[:20]!r}")
    return int(text)
