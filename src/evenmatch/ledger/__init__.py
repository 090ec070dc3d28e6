"""The ledger: every match and correction, stored permanently, with the data derived from them; all SQL is here."""

from evenmatch.errors import needing

with needing("ladder", "a ladder"):
    import cryptography as cryptography
    import sqlalchemy as sqlalchemy
