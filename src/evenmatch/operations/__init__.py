"""Databases: open, back up, move, and compile kernels for."""
