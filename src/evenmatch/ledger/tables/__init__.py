"""Rows of the database's tables: one module per table holds all statements that write it."""
