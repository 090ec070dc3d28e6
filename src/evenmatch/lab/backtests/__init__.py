"""Backtests: measure how well rating systems predict recorded matches, and tune their parameters."""
