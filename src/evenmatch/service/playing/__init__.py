"""Matches that are on: announced, left, joined, closed, cancelled, expired."""
