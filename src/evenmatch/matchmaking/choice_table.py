"""The choices of a queue's tickets, each different one kept once."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from evenmatch.matchmaking.ticket_choice import TicketChoice
from evenmatch.matchmaking.tickets import Tickets, Whole

FEWEST = 64  # choices that are kept although no waiting ticket makes them any more


class ChoiceTable:
    """The choices of a queue's tickets.

    known  the different choices; the first is that of tickets that accept everything
    row    int64  by slot of the queue: the number of its choice in `known`
    """

    def __init__(self, slots: int) -> None:
        self.known = [TicketChoice()]
        self.row: Whole = np.zeros(slots, np.int64)
        self._number = {TicketChoice(): 0}

    def grow(self, slots: int) -> None:
        """Make room for this number of slots."""
        self.row = np.concatenate((self.row, np.zeros(slots - len(self.row), np.int64)))

    def add(self, slots: Whole, tickets: Tickets, waiting: Collection[int]) -> None:
        """Keep the choices of tickets that join in these slots; `waiting`: the slots of the others, or negative."""
        if not len(tickets.choice):
            self.row[slots] = 0
            return
        used, place = np.unique(tickets.choice, return_inverse=True)
        chosen = [tickets.choices[number] for number in used.tolist()]
        if len(self.known) > max(2 * len(waiting), FEWEST):
            self._forget(np.fromiter((slot for slot in waiting if slot >= 0), np.int64))
        for choice in chosen:
            if choice not in self._number:
                self._number[choice] = len(self.known)
                self.known.append(choice)
        self.row[slots] = np.array([self._number[choice] for choice in chosen], np.int64)[place]

    def _forget(self, waiting: Whole) -> None:
        """Drop the choices that no waiting ticket makes."""
        used, number = np.unique(np.concatenate((np.zeros(1, np.int64), self.row[waiting])), return_inverse=True)
        self.known = [self.known[row] for row in used.tolist()]
        self._number = {choice: row for row, choice in enumerate(self.known)}
        self.row[waiting] = number[1:]
