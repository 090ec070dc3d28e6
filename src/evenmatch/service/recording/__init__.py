"""Record finished matches: reports, imports and receipts."""
