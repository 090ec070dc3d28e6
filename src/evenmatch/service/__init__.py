"""Use cases over the ledger: the only package that reads the clock or opens transactions."""
