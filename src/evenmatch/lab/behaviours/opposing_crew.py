"""Opposing crews play against a player on throwaway accounts and leave, so that the player wins."""

from __future__ import annotations

from evenmatch.lab.behaviours.booster_crew import BoosterCrew


class OpposingCrew(BoosterCrew):
    """A booster crew that queues at the same time as the boosted player, each alone, with filters that reach the other.

    For a duel they choose an hour when nobody else queues.
    Boosters on the other team leave at half-time. Those on the same team stay, because an honest win counts as well.
    Cost: the matches in which they meet somebody else, which they play honestly.
    """

    name = "opposing_crew"
    title = "Opposing crew"
    does = "plays against a friend on throwaway accounts, and leaves so that the friend wins"
    games = ("duel", "team")
    is_party = False
    with_at = 2.0  # never


BEHAVIOUR = OpposingCrew
