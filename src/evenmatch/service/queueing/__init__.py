"""Queues in the database: tickets, offers, penalties, and the matchmaker in whichever process holds its lease."""
