"""Ladder health over time, and what-if comparisons of rules."""
