"""The versions of the schema, each a script that leads from the one before; run by Alembic."""
