"""evenmatch systems: the available rating systems and their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.output import print_json, print_table

if TYPE_CHECKING:
    from evenmatch.systems.system import System


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A system, or your own .py file; if omitted: all systems.")
    ] = None,
    json: options.Json = False,
) -> None:
    """List the rating systems, or show the parameters, presets, required data and source of one.

    [bold]Examples[/bold]

    evenmatch systems

    evenmatch systems wager
    """
    from evenmatch.systems import find, names
    from evenmatch.systems.system import system_as_data

    if name is None:
        listed = [find(system_name) for system_name in names()]
        if json:
            print_json([system_as_data(system) for system in listed])
        else:
            rows = [[system.name, system.title, ", ".join(system.presets) or "–"] for system in listed]
            print_table(
                "Rating systems (evenmatch systems NAME shows details)", ("name", "what it does", "presets"), rows
            )
        return
    system = find(name)
    if json:
        print_json(system_as_data(system))
    else:
        _print(system)


def _print(system: System) -> None:
    from evenmatch.options import options_of, shown

    print(f"{system.name}: {system.title}\n")
    print(f"needs   {system.needs}\nsource  {system.source}\n")
    rows = [
        [name, shown(option.default), option.meaning, option.accepts]
        for name, option in options_of(system.parameters).items()
    ]
    print_table("Parameters (--param NAME=VALUE)", ("name", "default", "meaning", "accepted"), rows)
    presets = [
        [name, ", ".join(f"{k}={shown(v)}" for k, v in values.items())] for name, values in system.presets.items()
    ]
    print_table("Presets (--preset NAME)", ("name", "parameters"), presets)
    factors = [
        [factor.name, factor.meaning + (f": {', '.join(factor.labels)}" if factor.labels else "")]
        for factor in system.factors
    ]
    print_table("Factors of a change (--journal, evenmatch explain)", ("name", "meaning"), factors)
