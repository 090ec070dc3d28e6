"""The versions of the schema: scripts that Alembic runs, each of which upgrades the previous version."""
