"""Export a ladder as Arrow tables and as files."""
