"""Access control: keys, tokens, sessions, signatures and the audit trail."""
