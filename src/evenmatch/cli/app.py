"""The command line application: all commands and their order in the help."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from typing import Annotated

import typer

from evenmatch import __version__
from evenmatch.cli.shared.options import naming_value
from evenmatch.errors import UsageError

FILES = "From a file"
LADDERS = "Ladders in a database"
CARE = "Database maintenance"
SERVICE = "A service"

# Each command: its panel in the help, and the module and function that carry it out. The order is that of the help.
COMMANDS = {
    "look": (FILES, "look", "command"),
    "rate": (FILES, "rate", "command"),
    "explain": (FILES, "explain", "command"),
    "odds": (FILES, "odds", "command"),
    "learned": (FILES, "systems", "learned"),
    "backtest": (FILES, "backtest", "command"),
    "audit": (FILES, "audit", "command"),
    "systems": (FILES, "systems", "systems"),
    "sample": (FILES, "sample", "command"),
    "simulate-queue": ("Matchmaking", "simulation", "simulate_queue"),
    "policies": ("Matchmaking", "policies", "command"),
    "replay-queue": ("Matchmaking", "simulation", "replay_queue"),
    "ladder": (LADDERS, "ladder", "app"),
    "season": (LADDERS, "season", "app"),
    "player": (LADDERS, "player", "app"),
    "key": (SERVICE, "key", "app"),
    "secret": (SERVICE, "secret", "app"),
    "queue": (SERVICE, "queue", "app"),
    "import": (LADDERS, "recording", "import_"),
    "record": (LADDERS, "recording", "record"),
    "standings": (LADDERS, "standings", "command"),
    "export": (LADDERS, "export", "command"),
    "void": (LADDERS, "corrections", "void"),
    "ban": (LADDERS, "corrections", "ban"),
    "reinstate": (LADDERS, "corrections", "reinstate"),
    "rebuild": (CARE, "maintenance", "rebuild"),
    "verify": (CARE, "maintenance", "verify"),
    "head": (CARE, "maintenance", "head"),
    "backup": (CARE, "maintenance", "backup"),
    "drill": (CARE, "maintenance", "drill"),
    "copy": (CARE, "copy", "command"),
    "serve": (SERVICE, "serve", "command"),
    "discord": (SERVICE, "discord", "command"),
    "demo": (SERVICE, "demo", "command"),
    "compile": (SERVICE, "systems", "compile_"),
}


class OrderedCommands(typer.core.TyperGroup):
    """Command group that lists its commands in the order of use instead of alphabetically."""

    def list_commands(self, ctx: object) -> list[str]:
        """Return the names of the commands in the order of COMMANDS."""
        return [name for name in COMMANDS if name in self.commands]

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Refuse arguments that are not valid UTF-8, which databases and most file formats cannot store."""
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
            error.message = naming_value(error)
            raise


@cache
def application(only: str | None = None) -> typer.Typer:
    """Build the application with all commands, or with only one, so that the other modules are not imported."""
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
    app.callback()(_options)
    for name, (panel, module, function) in COMMANDS.items():
        if only not in (None, name):
            continue
        command = getattr(import_module(f"evenmatch.cli.{module}"), function)
        if isinstance(command, typer.Typer):
            for registered in command.registered_commands:
                assert registered.callback is not None
                registered.help = flowing(registered.callback.__doc__ or "")
            app.add_typer(command, name=name, rich_help_panel=panel)
        else:
            app.command(name=name, rich_help_panel=panel, help=flowing(command.__doc__ or ""))(command)
    return app


def flowing(text: str) -> str:
    """A docstring as help: paragraphs that wrap at the width of the terminal, then the examples, one per line."""
    paragraphs = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        first, *lines = paragraph.splitlines()
        if first in ("Example:", "Examples:"):
            paragraphs += [f"[bold]{first.removesuffix(':')}[/bold]", *lines]
        else:
            paragraphs.append(" ".join(paragraph.split()))
    return "\n\n".join(paragraphs)


def _version(requested: bool) -> None:
    if requested:
        print(f"evenmatch {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
