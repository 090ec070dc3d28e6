"""How many connections the limit of open files allows, since each is an open file."""

from __future__ import annotations

import sys

from evenmatch.errors import UsageError
from evenmatch.http.connections import ConnectionLimits
from evenmatch.http.options import Options
from evenmatch.http.shares import share

if sys.platform != "win32":
    import resource

RESERVED = 128  # files for the database (33 connections, or 18 of two files each), webhooks, logs and copies
FEWEST, MOST = 64, 50_000  # connections by default
RAISE = "raise it with `ulimit -n`, LimitNOFILE= of systemd, or ulimits of a container"


def choose_limits(options: Options) -> ConnectionLimits:
    """The limits of connections that the options name, or that the limit of open files allows, of one process.

    Limits that the options name are of all serving processes at the port: each has its share of them, since new
    connections go to the process with the fewest.

    Raises UsageError where that is too low for the process, or for the connections that the options name.
    """
    open_files = _open_files()
    room = open_files - RESERVED
    if room < FEWEST:
        expected = f"expected at least {RESERVED + FEWEST}: {RESERVED} are kept for the database and files"
        raise UsageError(f"this process may open {open_files} files; {expected}: {RAISE}")
    if options.connections is not None and options.connections > room * options.workers:
        expected = f"expected at most {room * options.workers:,}, since a process may open {open_files:,} files"
        raise UsageError(f"EVENMATCH_CONNECTIONS is {options.connections:,}; {expected}: {RAISE}")
    count = options.workers
    total = min(room, MOST) if options.connections is None else share(options.connections, count)
    named = options.address_connections
    each = max(FEWEST // 2, total // 4) if named is None else share(named, count)
    return ConnectionLimits(total, each, total // 8)


def _open_files() -> int:
    """The limit of open files of this process; where the system has none, one that is never reached."""
    if sys.platform == "win32":
        return 2 * MOST
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2 * MOST if soft == resource.RLIM_INFINITY else soft
