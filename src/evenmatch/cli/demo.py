"""evenmatch demo: the web site with four ladders and simulated players."""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

from evenmatch.cli.shared.options import option
from evenmatch.cli.shared.output import note, working
from evenmatch.errors import UsageError, needing

if TYPE_CHECKING:
    import socket

    from evenmatch.http.options import Options

PORT = 8080  # default; a free port if it is in use
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def command(
    host: Annotated[str | None, option("--host H", "Address to listen on: 127.0.0.1; 0.0.0.0 for all.")] = None,
    port: Annotated[
        int | None, option("--port N", "Default: 8080, or a free port if it is in use.", low=0, high=65535)
    ] = None,
    db: Annotated[Path | None, option("--db FILE", "Keep the ladders in this SQLite file for later runs.")] = None,
    seed: Annotated[int, option("--seed", "Seed of the random players and matches.", low=0)] = 1,
    players: Annotated[bool, option("--players/--no-players", "Whether simulated players queue and play.")] = True,
) -> None:
    """Run the web site with four finished seasons and simulated players, until Ctrl-C.

    There is one ladder each for wager, scorefactor, prav and battlepoints. Simulated players queue, are matched, play,
    sometimes quit, and report through the HTTP API, as a game would; on the pages you can join their queues. All data
    is in a temporary folder that is removed at the end, unless --db names a file. The first start compiles the rating
    systems.

    Examples:
    evenmatch demo
    evenmatch demo --port 0 --no-players
    evenmatch demo --db demo.db --seed 7
    """
    with ExitStack() as ending:

        def end(_: int, __: FrameType | None) -> None:
            note("ended before it was ready")
            ending.close()
            os._exit(0)  # an exception from a handler could be lost in a destructor

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        with needing("serve", "the demo"):
            from evenmatch.demo.demo_server import serve_demo
            from evenmatch.demo.games import GAMES
            from evenmatch.demo.ladder_creation import make_ladder, missing, play_histories
            from evenmatch.http.options import read_options
            from evenmatch.http.server import address_of
            from evenmatch.operations.kernels import MATCHMAKER, Compilation
        given: dict[str, object] = {"open_reads": True, "guests": True, "log_level": "warning", "log_format": "text"}
        options = read_options(given | {"stop_within": 3} | ({} if host is None else {"host": host}))
        listening = ending.enter_context(_listen(options, port))
        if db is None:
            db = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="evenmatch-demo-"))) / "demo.db"
        systems = [game.system for game in GAMES]
        compilation = ending.enter_context(Compilation([*systems, *MATCHMAKER]))
        with working("simulating a season of each game"):
            games = missing(db)
            seasons = play_histories(seed, games)
        with working("compiling the rating systems, once per installation"):
            compilation.wait(systems)
        with working("rating the seasons", len(games)) as progress:
            for done, game in enumerate(games, 1):
                make_ladder(db, game, seasons.pop(game.name))
                progress(done)

        def ready(key: str) -> None:
            _print_addresses(address_of(listening), key if options.host in LOOPBACK else None, players)
            if compilation.left:
                note("the matchmaker is still being compiled, once per installation; matches will start after that")

        signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on, the server cleans up
        serve_demo(db, seed, options, listening, compilation, players=players, ready=ready)


def _print_addresses(address: str, key: str | None, players: bool) -> None:
    """Print the addresses of pages and, if the server listens on this machine only, an operator's key."""
    print(f"serving at {address}", flush=True)
    note(f"  {address}/  the ladders of four games{', with simulated players' if players else ''}")
    note(f"  {address}/ladders/arena  standings; a player's name leads to their matches, each with its reasons")
    note(f"  {address}/ladders/duel/queue  the waiting players; you can join them")
    if key is not None:
        note(f"operators: log in at {address}/login with {key}")
    note("Press Ctrl-C to stop.")


def _listen(options: Options, port: int | None) -> socket.socket:
    """Listen on the given port; without one, on PORT or, if that is in use, on a free port."""
    from evenmatch.http.server import listen

    try:
        return listen(options.model_copy(update={"port": PORT if port is None else port}))
    except UsageError:
        if port is not None:
            raise
    return listen(options.model_copy(update={"port": 0}))
