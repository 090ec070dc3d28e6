"""The operator pages about players: rename, merge, erase and link them; ban several players of a ladder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from starlette.responses import Response

from evenmatch.accounts.audit_entries import correcting
from evenmatch.accounts.linked_accounts import DISCORD, STEAM
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
                raise UsageError(visit.text("enter the new name"))
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
        return visit.go(
            AT,
            visit.text("%(player)s is now %(name)s.", player=found.player, name=to)
            if is_new
            else visit.text("%(player)s already has this name.", player=found.player),
        )
    check_confirmed(form, found.player)
    if what == "erase":
        service = visit.site.service.noting(visit.audit_entry("player.erased"))
        pseudonym = await visit.site.change("", service.erase, found.player)
        return visit.go(
            AT, visit.text("The player is erased. Their matches are now those of %(name)s.", name=pseudonym)
        )
    other = await visit.site.work(_whereabouts, visit, "to", to)
    entry = visit.audit_entry("player.merged", target=found.player, body={"into": other.player})
    service = visit.site.service.noting(entry)
    for ladder in await visit.site.change("", lambda: service.merge(found.player, other.player, rebuild=False)):
        await outcome(visit.site, DueTask(ladder))
    return visit.go(AT, visit.text("%(player)s is now part of %(other)s.", player=found.player, other=other.player))


async def accounts(visit: PageRequest) -> Response:
    """Show the form that links an account to a player, and the accounts of a player."""
    return await visit.show("operate_accounts", lambda: _accounts(visit))


def _accounts(visit: PageRequest) -> Mapping[str, object]:
    player, options = str(visit.typed.get("player", "")).strip(), visit.site.options
    return {
        "player": player,
        "linked": visit.site.accounts.of(player) if player else [],
        "issuers": [DISCORD, STEAM, *([options.player_issuer] if options.player_issuer else [])],
        "form": visit.form_here(),
    }


async def change_account(visit: PageRequest) -> Response:
    """Link an account to a player, or end its link."""
    form, caller = await visit.form(), visit.check("admin")
    player, *account = (form.get(name, "").strip() for name in ("player", "issuer", "subject"))
    accounts, values = visit.site.accounts, {"issuer": account[0], "subject": account[1], "player": player}
    if form.get("do") == "unlink":
        change, done = accounts.unlink, visit.text("%(subject)s of %(issuer)s is no longer linked.", **values)
    else:
        change, done = accounts.link, visit.text("%(subject)s of %(issuer)s now logs in as %(player)s.", **values)
    await visit.site.work(lambda: change(player, *account, by=caller, request=visit.request_id))
    return visit.go(address("operate", "accounts", player=player), done)


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
            notice = visit.texts.plural(
                "%(n)s ban was applied or is running. Ban the others when the jobs have ended.",
                "%(n)s bans were applied or are running. Ban the others when the jobs have ended.",
                done,
            )
            return visit.go(rest, notice, is_good=False)
        done += 1
    return visit.go(home, visit.texts.plural("%(n)s player was banned.", "%(n)s players were banned.", done))
