"""The web site in a real browser."""
