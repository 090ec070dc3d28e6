"""Standings of players: percentile, placement, activity, division. Pure functions of numeric arrays."""
