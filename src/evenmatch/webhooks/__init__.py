"""Webhooks: subscriptions and the deliveries sent to them."""
