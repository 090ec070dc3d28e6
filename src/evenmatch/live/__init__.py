"""Live matches: announce, track attendance, fill open slots, close, cancel, expire."""
