"""evenmatch demo: the web site with four ladders, and simulated players who queue, play and report."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from evenmatch.cli.shared.output import note, working
from evenmatch.errors import UsageError, needing

if TYPE_CHECKING:
    import socket

    from evenmatch.http.options import Options

PORT = 8080  # default; a free port if it is in use
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def command(
    host: Annotated[
        str | None, typer.Option("--host", metavar="H", help="Address to listen on: 127.0.0.1; 0.0.0.0 for all.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="N",
            help="Port: 8080, or a free one if that is in use; 0: a free one.",
        ),
    ] = None,
    db: Annotated[
        Path | None,
        typer.Option("--db", metavar="FILE", help="Store the ladders in this SQLite file, and reuse them later."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed gives other players and matches.")] = 1,
    players: Annotated[
        bool, typer.Option("--players/--no-players", help="Whether simulated players queue and play.")
    ] = True,
) -> None:
    """Run the web site with four finished seasons and simulated players, until Ctrl-C.

    There is one ladder each for wager, scorefactor, prav and battlepoints. Simulated players queue, are matched, play,
    sometimes quit, and report through the HTTP API, as a game would; on the pages you can join their queues. All data
    is in a temporary folder that is removed at the end, unless --db names a file. The first start compiles the rating
    systems.

    [bold]Examples[/bold]

    evenmatch demo

    evenmatch demo --port 0 --no-players

    evenmatch demo --db demo.db --seed 7
    """
    try:
        _prepare_and_serve(host, port, db, seed, players=players)
    except KeyboardInterrupt:
        note("ended before it was ready")
        sys.stdout.flush()
        os._exit(0)  # sys.exit after an interrupted import would end with the exit code of the signal


def _prepare_and_serve(host: str | None, port: int | None, db: Path | None, seed: int, *, players: bool) -> None:
    with needing("serve", "the demo"):
        from evenmatch.demo.demo_server import serve_demo
        from evenmatch.demo.games import GAMES
        from evenmatch.demo.ladder_creation import make_ladder, missing, play_histories
        from evenmatch.http.options import read_options
        from evenmatch.http.server import address_of
        from evenmatch.operations.kernels import MATCHMAKER, Compilation

    given: dict[str, object] = {"open_reads": True, "guests": True, "log_level": "warning", "log_format": "text"}
    given |= {"stop_within": 3} | ({} if host is None else {"host": host})
    options = read_options(given)
    with ExitStack() as ending:
        check = ending.enter_context(_ended_by_signals())
        listening = ending.enter_context(_listening(options, port))
        if db is None:
            db = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="evenmatch-demo-"))) / "demo.db"
        systems = [game.system for game in GAMES]
        compilation = ending.enter_context(Compilation([*systems, *MATCHMAKER]))
        with working("simulating a season of each game"):
            games = missing(db)
            seasons = play_histories(seed, games)
            check()
        with working("compiling the rating systems, once per installation"):
            compilation.wait(systems)
            check()
        with working("rating the seasons", len(games)) as progress:
            for number, game in enumerate(games, 1):
                make_ladder(db, game, seasons.pop(game.ladder))
                progress(number)
                check()

        def ready(key: str) -> None:
            _print_addresses(address_of(listening), key if options.host in LOOPBACK else None, players)
            if compilation.left:
                note("the matchmaker is still being compiled, once per installation: matches start after that")

        serve_demo(db, seed, options, listening, compilation, players=players, ready=ready)


def _print_addresses(address: str, key: str | None, players: bool) -> None:
    """Print the addresses of pages and, if the server listens on this machine only, an operator's key."""
    print(f"serving at {address}", flush=True)
    note(f"  {address}/  the ladders of four games{', with players who play now' if players else ''}")
    note(f"  {address}/ladders/arena  standings; a player's name leads to their matches, each with its reasons")
    note(f"  {address}/ladders/duel/queue  the waiting players; you can join them")
    if key is not None:
        note(f"operators: log in at {address}/login with {key}")
    note("Ctrl-C ends it")


@contextmanager
def _listening(options: Options, port: int | None) -> Iterator[socket.socket]:
    """Listen on the given port; without one, on PORT or, if that is in use, on a free port."""
    from evenmatch.http.server import listen

    try:
        listening = listen(options.model_copy(update={"port": PORT if port is None else port}))
    except UsageError:
        if port is not None:
            raise
        listening = listen(options.model_copy(update={"port": 0}))
    with listening:
        yield listening


@contextmanager
def _ended_by_signals() -> Iterator[Callable[[], None]]:
    """Let SIGTERM and Ctrl-C raise KeyboardInterrupt in the block, so that its temporary files are removed.

    Yields a function that raises it again after a signal: Python swallows an exception that is raised in a destructor
    or in the callback of a weak reference, where a signal may arrive.
    """
    interrupted = False

    def interrupt(_: int, __: FrameType | None) -> NoReturn:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    def check() -> None:
        if interrupted:
            raise KeyboardInterrupt

    hook = sys.unraisablehook
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    sys.unraisablehook = lambda swallowed: None if swallowed.exc_type is KeyboardInterrupt else hook(swallowed)
    try:
        yield check
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
