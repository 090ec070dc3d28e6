"""The ledger: every match and correction, stored permanently, with the data derived from them; all SQL is here."""
