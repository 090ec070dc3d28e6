"""Answers of players to their tickets: leave, accept or decline."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.errors import ConflictError, ForbiddenError, InputError, UnknownNameError
from evenmatch.ledger.tables import tickets
from evenmatch.ledger.tables.tickets import TicketRow
from evenmatch.service.queues.changes import QueueChanges
from evenmatch.service.queues.requests import Accept, Decline, Leave, RequestResult, TicketAnswer


def answer(changes: QueueChanges, request: TicketAnswer, ids: Mapping[str, int]) -> RequestResult:
    """Apply an answer to a ticket that `changes` has read; repeating an answer changes nothing.

    ids  player ids by name
    Raises UnknownNameError, InputError, ForbiddenError or ConflictError if impossible; then nothing has changed.
    """
    row = changes.tickets.get(request.ticket)
    if row is None:
        raise UnknownNameError("ticket", str(request.ticket), ())
    players = _answering_player(row, request, ids)
    if isinstance(request, Leave):
        _leave(changes, row, players)
    elif isinstance(request, Accept):
        _accept(changes, row, players, request)
    else:
        _decline(changes, row, players, request)
    return RequestResult(row.ticket, row.change, row.state, row.offer, row.match_id)


def _answering_player(row: TicketRow, request: TicketAnswer, ids: Mapping[str, int]) -> set[int] | None:
    """The id of the player who answers; None: the answer is for the whole party."""
    player = request.player
    if player is None:
        return None
    if ids.get(player) not in row.party.players:
        if request.only_own:
            raise of_another_party(row.ticket, player)
        raise InputError(
            f"player {player!r} is not in ticket {row.ticket}; its players are {', '.join(map(repr, row.party.names))}"
        )
    return {ids[player]}


def of_another_party(ticket: int, player: str) -> ForbiddenError:
    """The error for the token of a player who is not in a ticket; it names none of the ticket's players."""
    return ForbiddenError(f"ticket {ticket} belongs to another party; this token is only for {player!r}")


def _leave(changes: QueueChanges, row: TicketRow, players: set[int] | None) -> None:
    if row.state == tickets.GONE:
        return
    _refuse_matched(row)
    _refuse_elsewhere(row)
    if row.state == tickets.WAITING:
        changes.leave(row, set(), "left the queue")
    else:
        struck = players or _without_answer(changes, row)
        changes.leave(row, struck, f"{_names(row, struck)} left while a match was offered")


def _accept(changes: QueueChanges, row: TicketRow, players: set[int] | None, request: Accept) -> None:
    if row.state == tickets.MATCHED:
        return
    if row.state == tickets.GONE:
        raise ConflictError(f"ticket {row.ticket} is gone ({row.ended}); there is no offer to accept")
    _check_offer(row, request)
    changes.accept(row, players or set(row.party.players))


def _decline(changes: QueueChanges, row: TicketRow, players: set[int] | None, request: Decline) -> None:
    if row.state == tickets.GONE:
        return
    _refuse_matched(row)
    _check_offer(row, request)
    struck = players or _without_answer(changes, row)
    changes.leave(row, struck, f"{_names(row, struck)} declined an offered match")


def _refuse_matched(row: TicketRow) -> None:
    if row.state == tickets.MATCHED:
        raise ConflictError(f"ticket {row.ticket} already has its match, {row.match_id!r}")


def _refuse_elsewhere(row: TicketRow) -> None:
    if row.state == tickets.ELSEWHERE:
        raise ConflictError(
            f"the party of ticket {row.ticket} has an offer on another ladder of its playlist; answer it there"
        )


def _check_offer(row: TicketRow, request: Accept | Decline) -> None:
    """Raise ConflictError if the ticket has no offer, or another one than the answer names."""
    _refuse_elsewhere(row)
    if row.state != tickets.OFFERED:
        off = "" if request.offer is None else f": offer {request.offer} is off"
        raise ConflictError(f"ticket {row.ticket} still waits and has no open offer{off}")
    if request.offer not in (None, row.offer):
        raise ConflictError(f"ticket {row.ticket} has the offer {row.offer}, not {request.offer}; answer that one")


def _without_answer(changes: QueueChanges, row: TicketRow) -> set[int]:
    """The players of an offered ticket who have not accepted; all players if everyone has."""
    assert row.offer is not None
    players = set(row.party.players)
    return players - changes.offers[row.offer].said or players


def _names(row: TicketRow, players: set[int]) -> str:
    return ", ".join(member["name"] for member in row.party.members if member["id"] in players)
