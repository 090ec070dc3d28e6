"""What players say of their tickets: they leave, accept or decline."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.errors import ConflictError, InputError, UnknownNameError
from evenmatch.service.queueing import tickets
from evenmatch.service.queueing.tickets import TicketRow
from evenmatch.service.queueing.turns import Turn
from evenmatch.service.queueing.wishes import Accept, Answer, Decline, Leave, Told


def answer(turn: Turn, wish: Answer, ids: Mapping[str, int]) -> Told:
    """Do what a wish says, of a ticket that the turn has read. What was done already may be said again.

    Raises UnknownNameError, InputError or ConflictError where it cannot be; then nothing has changed.
    """
    row = turn.tickets.get(wish.ticket)
    if row is None:
        raise UnknownNameError("ticket", str(wish.ticket), ())
    who = _speaks(row, wish.player, ids)
    if isinstance(wish, Leave):
        _leave(turn, row, who)
    elif isinstance(wish, Accept):
        _accept(turn, row, who, wish)
    else:
        _decline(turn, row, who, wish)
    return Told(row.ticket, row.change, row.state, row.offer, row.match_id)


def _speaks(row: TicketRow, player: str | None, ids: Mapping[str, int]) -> set[int] | None:
    """The id of the player who speaks; None: who speaks for all of them."""
    if player is None:
        return None
    if ids.get(player) not in row.party.players:
        raise InputError(
            f"player {player!r} is not in ticket {row.ticket}; accepted are {', '.join(map(repr, row.party.names))}"
        )
    return {ids[player]}


def _leave(turn: Turn, row: TicketRow, who: set[int] | None) -> None:
    if row.state == tickets.GONE:
        return
    _refuse_matched(row)
    if row.state == tickets.WAITING:
        turn.leave(row, set(), "left the queue")
    else:
        letting_down = who or _unsaid(turn, row)
        turn.leave(row, letting_down, f"{_named(row, letting_down)} left while a match was offered")


def _accept(turn: Turn, row: TicketRow, who: set[int] | None, wish: Accept) -> None:
    if row.state == tickets.MATCHED:
        return
    if row.state == tickets.GONE:
        raise ConflictError(f"ticket {row.ticket} is gone ({row.ended}); accepted is one that is asked about a match")
    _check_offer(row, wish)
    turn.accept(row, who or set(row.party.players))


def _decline(turn: Turn, row: TicketRow, who: set[int] | None, wish: Decline) -> None:
    if row.state == tickets.GONE:
        return
    _refuse_matched(row)
    _check_offer(row, wish)
    letting_down = who or _unsaid(turn, row)
    turn.leave(row, letting_down, f"{_named(row, letting_down)} declined an offered match")


def _refuse_matched(row: TicketRow) -> None:
    if row.state == tickets.MATCHED:
        raise ConflictError(
            f"ticket {row.ticket} has its match, {row.match_id!r}; accepted is a ticket that waits or is asked"
        )


def _check_offer(row: TicketRow, wish: Accept | Decline) -> None:
    """Raise ConflictError where the ticket is not asked, or about another match."""
    if row.state != tickets.OFFERED:
        off = "" if wish.offer is None else f": offer {wish.offer} is off"
        raise ConflictError(
            f"ticket {row.ticket} waits, and is not asked about a match{off}; accepted is an answer to an open offer"
        )
    if wish.offer not in (None, row.offer):
        raise ConflictError(
            f"ticket {row.ticket} is asked about offer {row.offer}, not {wish.offer}; accepted is an answer to that one"
        )


def _unsaid(turn: Turn, row: TicketRow) -> set[int]:
    """The players of an asked ticket who have not accepted; all of them where everybody has."""
    assert row.offer is not None
    everybody = set(row.party.players)
    return everybody - turn.offers[row.offer].said or everybody


def _named(row: TicketRow, who: set[int]) -> str:
    return ", ".join(one["name"] for one in row.party.members if one["id"] in who)
