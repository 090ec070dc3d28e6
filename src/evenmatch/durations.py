"""Durations in microseconds, the unit of every stored time."""

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
