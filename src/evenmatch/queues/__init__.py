"""Matchmaking queues: tickets, offers, playlists, and the matchmaker that serves them."""
