"""Simulated and replayed queues: scenarios, runs, metrics and reports."""
