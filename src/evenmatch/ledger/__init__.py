"""The ledger: every match and every correction, for ever, and what follows from them. The only place that knows SQL."""
