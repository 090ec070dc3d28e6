"""The operator pages about players: rename, merge and erase on all ladders; ban several players of a ladder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.accounts.audit_entries import correcting
from evenmatch.errors import BusyError, UnknownNameError, UsageError
from evenmatch.http.routes.corrections import outcome
from evenmatch.jobs.tasks import CorrectionTask, DueTask
from evenmatch.ladders import correction_log
from evenmatch.ladders.ladder_queries import PlayerLadders
from evenmatch.web.forms import about, check_confirmed
from evenmatch.web.page_request import PageRequest, address
from evenmatch.web.pages.operate_ladder import ban_of, event_id_of, ladder_and_form, new_id, until_of

AT = "/operate/players"
WHATS = ("rename", "merge", "erase")
BANS_AT_ONCE = 100  # most names in a list of bans


async def players(visit: PageRequest) -> Response:
    """Show the form to rename, merge or erase a player, and what that would do."""
    return await visit.show("operate_players", lambda: _players(visit))


def _players(visit: PageRequest) -> Mapping[str, object]:
    typed = visit.typed
    what, to = _what(typed), typed.get("to", "").strip()
    player: PlayerLadders | None = None
    other: PlayerLadders | None = None
    with visit.previewing():
        if typed.get("look") or visit.refused is not None:
            found = _whereabouts(visit, "player", typed.get("player", ""))
            if what == "rename" and not to:
                raise UsageError("enter the new name")
            if what == "merge":
                other = _whereabouts(visit, "to", to)
                visit.site.service.foresee_merge(found.player, other.player)
            player = found
    return {"what": what, "to": to, "player": player, "other": other, "form": visit.form_here()}


def _what(form: Mapping[str, str]) -> str:
    what = form.get("what") or "rename"
    if what not in WHATS:
        raise UsageError(f"what is {what[:20]!r}; expected {', '.join(WHATS)}")
    return what


def _whereabouts(visit: PageRequest, field: str, name: str) -> PlayerLadders:
    with about(field):
        return visit.reading.whereabouts(name.strip())


async def change_player(visit: PageRequest) -> Response:
    """Rename, merge or erase a player."""
    form = await visit.form()
    what, to = _what(form), form.get("to", "").strip()
    found = await visit.site.work(_whereabouts, visit, "player", form.get("player", ""))
    if what == "rename":
        service = visit.site.service.noting(visit.audit_entry("player.renamed", target=found.player, body={"to": to}))
        with about("to"):
            is_new = await visit.site.change("", service.rename, found.player, to)
        return visit.go(AT, f"{found.player} is now {to}." if is_new else f"{found.player} already has this name.")
    check_confirmed(form, found.player)
    if what == "erase":
        service = visit.site.service.noting(visit.audit_entry("player.erased"))
        pseudonym = await visit.site.change("", service.erase, found.player)
        return visit.go(AT, f"The player is erased. Their matches are now those of {pseudonym}.")
    other = await visit.site.work(_whereabouts, visit, "to", to)
    entry = visit.audit_entry("player.merged", target=found.player, body={"into": other.player})
    service = visit.site.service.noting(entry)
    for ladder in await visit.site.change("", lambda: service.merge(found.player, other.player, rebuild=False)):
        await outcome(visit.site, DueTask(ladder))
    return visit.go(AT, f"{found.player} is now part of {other.player}.")


class Banned(NamedTuple):
    """A name in a list of bans."""

    name: str
    is_known: bool
    is_banned: bool = False
    rank: int | None = None
    matches: int = 0


async def bans(visit: PageRequest) -> Response:
    """Show the form to ban several players, and whom it would ban."""
    return await visit.show("operate_bans", lambda: _bans(visit))


def _bans(visit: PageRequest) -> Mapping[str, object]:
    found: list[Banned] = []
    until: str | None = None
    with visit.previewing():
        if visit.typed.get("look"):
            until = until_of(ban_of(visit.typed, "", visit.site.service.clock()))
            found = _found(visit, visit.typed)
    bannable = sum(one.is_known and not one.is_banned for one in found)
    return {**ladder_and_form(visit), "found": found, "bannable": bannable, "id": new_id(), "until": until}


def _found(visit: PageRequest, form: Mapping[str, str]) -> list[Banned]:
    """The players of a list, in its order, each once. Raises FieldError for an empty or long list."""
    names = list(dict.fromkeys(line.strip() for line in form.get("names", "").splitlines() if line.strip()))
    with about("names"):
        if not 1 <= len(names) <= BANS_AT_ONCE:
            raise UsageError(f"the list has {len(names)} names; expected 1 to {BANS_AT_ONCE}")
    with visit.site.service.reading(visit.ladder) as (store, head):
        banned = {one.player for one in correction_log.bans(store, head, visit.site.service.clock())}
    found: dict[str, Banned] = {}
    for name in names:
        try:
            profile = visit.reading.profile(visit.ladder, name)
        except UnknownNameError:
            found.setdefault(name, Banned(name, False))
            continue
        at = profile.standing
        counts = (None, 0) if at is None else (at.rank, at.matches)
        found.setdefault(profile.player, Banned(profile.player, True, profile.player in banned, *counts))
    return list(found.values())


async def ban_all(visit: PageRequest) -> Response:
    """Ban the players of a list, one correction each."""
    form, caller = await visit.form(), visit.check("admin", visit.ladder)
    event, terms = event_id_of(form) or new_id(), ban_of(form, "", visit.site.service.clock())
    listed = [one.name for one in await visit.site.work(_found, visit, form) if one.is_known and not one.is_banned]
    home, done = address("ladders", visit.ladder, "operate"), 0
    for name in listed:
        request = replace(terms, player=name)
        entry = correcting(caller, visit.ladder, request, visit.request_id)
        try:
            await outcome(visit.site, CorrectionTask(visit.ladder, request, f"{event}:{name}", entry))
        except BusyError:  # on a large ladder, each ban is a job, and the line of jobs is full
            asked = {name: form.get(name) or None for name in ("rule", "until", "reason")}
            rest = address("ladders", visit.ladder, "operate", "bans", names="\n".join(listed[done:]), **asked)
            notice = f"{done:,} bans were applied or are running. Ban the others when the jobs have ended."
            return visit.go(rest, notice, is_good=False)
        done += 1
    return visit.go(home, f"{done:,} {'player was' if done == 1 else 'players were'} banned.")
