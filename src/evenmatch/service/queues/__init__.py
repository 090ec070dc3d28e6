"""Matchmaking queues in the database: tickets, offers, penalties, and the matchmaker that one process runs."""
