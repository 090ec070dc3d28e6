"""Record finished matches: reports, imports, late matches and receipts."""
