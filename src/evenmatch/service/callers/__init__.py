"""Authentication and authorization of callers (API keys, player tokens, sessions, signed requests); the audit trail."""
