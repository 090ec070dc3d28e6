"""Use cases over the ledger: the only place that reads a clock or opens a transaction."""
