"""evenmatch demo: four ladders with a past, and a crowd that queues, plays and reports while one watches."""

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

from evenmatch.cli.output import note, working
from evenmatch.errors import UsageError, needing

if TYPE_CHECKING:
    import socket

    from evenmatch.http.options import Options

PORT = 8080  # the usual one; another where it is taken
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
            help="Port: 8080, or a free one where that is taken; 0 takes one.",
        ),
    ] = None,
    db: Annotated[
        Path | None,
        typer.Option("--db", metavar="FILE", help="Keep the ladders in this SQLite file, and use them again from it."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed is another season of other players.")] = 1,
    players: Annotated[
        bool, typer.Option("--players/--no-players", help="Whether simulated players queue and play meanwhile.")
    ] = True,
) -> None:
    """Show the web site at work: four games with a season behind them, and a crowd that plays, until Ctrl-C.

    A ladder each for wager, scorefactor, prav and battlepoints. Simulated players queue, are matched, play, sometimes
    quit, and report through the HTTP API, as a game would; on the pages you can queue up among them. All of it is in a
    temporary folder that is removed at the end, unless --db names a file. The first start compiles what ladders are
    rated by.

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
        os._exit(0)  # an interrupt that came during an import would make an exit code of the signal out of this


def _prepare_and_serve(host: str | None, port: int | None, db: Path | None, seed: int, *, players: bool) -> None:
    with needing("serve", "the demo"):
        from evenmatch.demo.games import GAMES
        from evenmatch.demo.running import serve_demo
        from evenmatch.demo.seeding import make_ladder, missing, play_seasons
        from evenmatch.http.options import read_options
        from evenmatch.http.serving import address_of
        from evenmatch.service.kernels import MATCHMAKER, Compilation

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
        with working("playing a season of each game"):
            games = missing(db)
            seasons = play_seasons(seed, games)
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
            _tell(address_of(listening), key if options.host in LOOPBACK else None, players)
            if compilation.left:
                note("the matchmaker is still being compiled, once per installation: matches begin after that")

        serve_demo(db, seed, options, listening, compilation, players=players, ready=ready)


def _tell(address: str, key: str | None, players: bool) -> None:
    """What there is to see, and for whoever sits at this machine the key of an operator."""
    print(f"serving at {address}", flush=True)
    note(f"  {address}/  the ladders of four games{', played while you look' if players else ''}")
    note(f"  {address}/ladders/arena  who stands where; a player's name leads to their matches, each with its reasons")
    note(f"  {address}/ladders/duel/queue  who waits, and a place among them for you")
    if key is not None:
        note(f"operators: log in at {address}/login with {key}")
    note("Ctrl-C ends it")


@contextmanager
def _listening(options: Options, port: int | None) -> Iterator[socket.socket]:
    """A socket at the port that was asked for, else at the usual one, else at a free one."""
    from evenmatch.http.serving import listen

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
    """Have SIGTERM and Ctrl-C end the block by KeyboardInterrupt, so that what it made is removed.

    Gives a function that raises it again: Python swallows an exception that is raised in a destructor or the callback
    of a weak reference, which is where a signal may come.
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
