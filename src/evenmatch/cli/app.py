"""The command line application: all commands and their order in the help."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated

import typer

from evenmatch import __version__
from evenmatch.cli import (
    backtest,
    backup,
    compilation,
    copy,
    corrections,
    demo,
    explain,
    export,
    importing,
    key,
    ladder,
    learned,
    odds,
    player,
    policies,
    queue,
    rate,
    record,
    replay_queue,
    sample,
    season,
    secret,
    serve,
    simulate_queue,
    standings,
    systems,
    verify,
)
from evenmatch.cli.shared import options
from evenmatch.errors import UsageError

FILES = "From a file"
MATCHMAKING = "Matchmaking"
LADDERS = "Ladders in a database"
KEEPING = "Care of the database"
SERVICE = "A service"


class OrderedCommands(typer.core.TyperGroup):
    """Command group that lists its commands in the order of use instead of alphabetically."""

    def list_commands(self, ctx: object) -> list[str]:
        """File commands first, then groups, so that `ladder create` comes before commands that need a ladder."""
        files = [name for name in self.commands if name in panels[FILES] or name in panels[MATCHMAKING]]
        groups = [name for name in groups_of_commands if name in self.commands]
        return [*files, *groups, *(name for name in self.commands if name not in {*files, *groups})]

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Refuse arguments that are not UTF-8, which neither a database nor most readers of files could take."""
        for argument in args:
            try:
                argument.encode()
            except UnicodeEncodeError:
                raise UsageError(f"the argument {argument!r} is not valid UTF-8; expected text in UTF-8") from None
        return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]  # the class that typer declares is private
        """Run a command; messages about a wrong option value include this value."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = options.naming_value(error)
            raise


app = typer.Typer(
    name="evenmatch",
    cls=OrderedCommands,
    help="Rate players from recorded matches, run ladders, explain every change, show which system fits a game.",
    epilog="Begin with: evenmatch rate matches.csv --system wager, or: evenmatch ladder create NAME --system wager",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
panels: dict[str, dict[str, Callable[..., None]]] = {
    FILES: {
        "rate": rate.command,
        "explain": explain.command,
        "odds": odds.command,
        "learned": learned.command,
        "backtest": backtest.command,
        "systems": systems.command,
        "sample": sample.command,
    },
    MATCHMAKING: {
        "simulate-queue": simulate_queue.command_simulate_queue,
        "policies": policies.command,
        "replay-queue": replay_queue.command,
    },
    LADDERS: {
        "import": importing.command,
        "record": record.command,
        "standings": standings.command,
        "export": export.command,
        "void": corrections.command_void,
        "ban": corrections.command_ban,
        "reinstate": corrections.command_reinstate,
    },
    KEEPING: {
        "rebuild": verify.command_rebuild,
        "verify": verify.command_verify,
        "head": verify.command_head,
        "backup": backup.command_backup,
        "drill": backup.command_drill,
        "copy": copy.command,
    },
    SERVICE: {"serve": serve.command, "demo": demo.command, "compile": compilation.command},
}
for panel, commands in panels.items():
    for name, command in commands.items():
        app.command(name=name, rich_help_panel=panel)(command)
groups_of_commands = {
    "ladder": ladder.app,
    "season": season.app,
    "player": player.app,
    "key": key.app,
    "secret": secret.app,
    "queue": queue.app,
}
of_service = {"key", "secret", "queue"}
for name, group in groups_of_commands.items():
    app.add_typer(group, name=name, rich_help_panel=SERVICE if name in of_service else LADDERS)


def flowing(text: str) -> str:
    """Join the lines of each paragraph of a docstring, so that the help wraps at the width of the terminal."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))


for registered in (app, *groups_of_commands.values()):
    for registered_command in registered.registered_commands:
        callback = registered_command.callback
        registered_command.help = flowing(callback.__doc__ or "") if callback else None


def _version(requested: bool) -> None:
    if requested:
        print(f"evenmatch {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
