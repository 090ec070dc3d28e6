"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch import __version__
from evenmatch.cli import backtest, demo, explain, odds, rate, systems

app = typer.Typer(
    name="evenmatch",
    help="Rate players from recorded matches, explain every change, tell odds, and show which system fits a game.",
    epilog="Begin with: evenmatch rate matches.csv --system wager",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (rate, explain, odds, backtest, systems, demo):
    app.command()(module.command)
    app.registered_commands[-1].name = module.__name__.rsplit(".", 1)[-1]


def _version(asked: bool) -> None:
    if asked:
        print(f"evenmatch {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
