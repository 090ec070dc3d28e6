"""A Discord bot for one ladder and queue: an ordinary client of the HTTP API."""
