"""Replay the ledger: rebuild ratings after corrections, verify them, provide the history to the lab."""
