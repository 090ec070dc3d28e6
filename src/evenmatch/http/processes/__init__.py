"""Several serving processes at one port: their supervisor, and what they share."""
