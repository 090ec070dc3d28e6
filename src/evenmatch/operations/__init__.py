"""Operate a database: open, copy, back up, and compile its kernels."""
