"""Webhooks: who is told of what, and the deliveries."""
