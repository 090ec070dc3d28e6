"""One of several processes that `evenmatch serve --workers` starts; the supervisor says what to do."""

from __future__ import annotations

import signal
import socket
from functools import partial

from evenmatch.cli import exit_with_errors
from evenmatch.cli.serve import serve_here


def main() -> None:
    """Serve as the supervisor says."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the supervisor's alone
    exit_with_errors(_serve)


def _serve() -> None:
    from evenmatch.http.options import read_options
    from evenmatch.http.processes.group import SERVING, ProcessGroup, Supervision

    supervision = Supervision()
    start = supervision.start
    with socket.socket(fileno=start.listening) as listening:
        tell = partial(supervision.tell, SERVING)
        group = ProcessGroup.join(supervision)
        serve_here(start.database, read_options(start.given), listening, tell, group)


if __name__ == "__main__":
    main()
