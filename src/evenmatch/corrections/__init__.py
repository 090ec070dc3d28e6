"""Correct a ladder's history by replay, and verify it."""
