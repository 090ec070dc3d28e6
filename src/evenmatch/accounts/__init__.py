"""Who may do what: keys, tokens, sessions, signatures and the audit trail."""
