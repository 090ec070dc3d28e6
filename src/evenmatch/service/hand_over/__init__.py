"""Processes over one PostgreSQL hand the reports of a ladder to one of them, so that they are committed together."""
