"""Ladders, their settings, seasons and standings."""
