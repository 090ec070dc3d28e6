"""Write docs/reference/ from the code; with --check only say what is out of date."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import typer

import endpoints
import evenmatch
from evenmatch import errors, matchmaking, systems
from evenmatch.cli.app import application
from evenmatch.options import options_of, shown
from evenmatch.policy import Policy, presets
from evenmatch.systems.system import System

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
NOTE = "<!-- Written by tools/reference.py from the code; change the code instead. -->\n\n"


def commands() -> str:
    """Every command with its arguments and options; those of a group under its heading."""
    group = typer.main.get_command(application())
    assert isinstance(group, typer.core.TyperGroup)
    parts = [
        "# Commands\n",
        "Exit codes: 0 done, 1 the contents of a file or of the ledger, 2 a wrong command, option, name or value, "
        "3 the database cannot be opened, read or written, "
        "4 a cluster cannot be reached, does not fit or lost a task too often, 130 interrupted by Ctrl-C.\n",
    ]
    listed = []
    for name in group.list_commands(typer.Context(group)):
        command = group.commands[name]
        listed.append((f"## evenmatch {name}", command))
        if isinstance(command, typer.core.TyperGroup):
            listed += [(f"### evenmatch {name} {own}", inner) for own, inner in command.commands.items()]
    for heading, command in listed:
        text, *examples = re.split(r"\[bold\]Examples?\[/bold\]", inspect.cleandoc(command.help or ""))
        lines = [line for shown in examples for line in shown.splitlines() if line]
        fence = "\n".join(["```sh", *lines, "```", ""]) if lines else ""
        parts.append(f"{heading}\n\n{text.strip()}\n\n{fence}")
        if isinstance(command, typer.core.TyperGroup):
            continue
        parts.append("| option | meaning | default |\n| --- | --- | --- |")
        for option in command.params:
            if option.name == "help":
                continue
            names = ", ".join(f"`{one}`" for one in option.opts) if option.param_type_name == "option" else ""
            value = f"`{option.metavar}`" if option.metavar else ""
            default = "" if option.default in (None, False) or option.required else f"`{option.default}`"
            parts.append(
                f"| {' '.join(filter(None, (names, value)))} | {getattr(option, 'help', '') or ''} | {default} |"
            )
        parts.append("")
    return "\n".join(parts)


def rating_systems() -> str:
    """Every system of the package with its parameters, presets and factors."""
    parts = ["# Rating systems\n", "The same as `evenmatch systems NAME` prints.\n"]
    return "\n".join(parts + [_system(systems.find(name)) for name in systems.names()])


def _system(system: System) -> str:
    parts = [f"## {system.name}\n\n{system.title}\n\nNeeds {system.needs}.\n\nSource: {system.source}.\n"]
    parts.append("| parameter | default | meaning | accepted |\n| --- | --- | --- | --- |")
    for name, option in options_of(system.parameters).items():
        parts.append(f"| `{name}` | {shown(option.default)} | {option.meaning} | {option.accepts} |")
    parts.append("\n| preset | stands for |\n| --- | --- |")
    for name, values in system.presets.items():
        parts.append(f"| `{name}` | {', '.join(f'{key}={shown(value)}' for key, value in values.items())} |")
    parts.append("\n| factor | meaning |\n| --- | --- |")
    for factor in system.factors:
        words = f": {', '.join(factor.labels)}" if factor.labels else ""
        parts.append(f"| `{factor.name}` | {factor.meaning}{words} |")
    return "\n".join(parts) + "\n"


def names() -> str:
    """The public names with their signatures and docstrings."""
    head = "# Python\n\nEverything below is imported as `evenmatch.NAME`; [the matchmaker](matchmaking.md) is apart.\n"
    own = {name: getattr(evenmatch, name) for name in sorted(set(evenmatch.__all__) - {"__version__"})}
    return "\n".join([head, *_all(own)])


def matchmaker() -> str:
    """Presets and options of a policy, and the names of the matchmaker."""
    parts = [
        "# Matchmaking\n",
        "Everything below is imported from `evenmatch.matchmaking`; [how it decides](../matchmaking.md).\n",
        "## Options of a policy\n\n| option | " + " | ".join(presets()) + " | effect | accepted |",
        "| --- |" + " --- |" * (len(presets()) + 2),
    ]
    for name, option in options_of(Policy).items():
        values = [_value(getattr(policy, name)) for policy in presets().values()]
        parts.append(f"| `{name}` | {' | '.join((*values, option.meaning, option.accepts))} |")
    own = {name: getattr(matchmaking, name) for name in matchmaking.__all__}
    return "\n".join([*parts, "", *_all(own)])


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{after:g} s: {width:g}" for after, width in value)
    return "none" if value is None or value == {} else f"{value:g}" if isinstance(value, float) else str(value)


def _all(things: dict[str, Callable[..., object]]) -> list[str]:
    """Each of these with its own methods."""
    parts = []
    for name, thing in things.items():
        parts.append(_described(name, thing))
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            for own, member in vars(thing).items():
                if own.startswith("_") or not (
                    inspect.isfunction(member) or isinstance(member, classmethod | property)
                ):
                    continue
                called = getattr(thing, own)
                doc = inspect.getdoc(called) or ""
                arguments = "" if isinstance(member, property) else _signature(called)
                parts.append(f"### {name}.{own}\n\n```text\n{own}{arguments}\n```\n\n```text\n{doc}\n```\n")
    return parts


def _described(name: str, thing: Callable[..., object]) -> str:
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return f"## {name}\n\n{inspect.getdoc(thing)} See [errors](errors.md).\n"
    signature = _signature(thing).replace("evenmatch.", "")
    return f"## {name}\n\n```text\n{name}{signature}\n```\n\n```text\n{inspect.getdoc(thing)}\n```\n"


def _signature(called: Callable[..., object]) -> str:
    """As it is written: a default that is a function by its name, and not by where it lies in memory."""
    return re.sub(r"<function ([\w.]+) at 0x[0-9a-f]+>", r"\1", str(inspect.signature(called)))


def error_tree() -> str:
    """Every error, under the one it is a kind of."""
    parts = ["# Errors\n", "All are in `evenmatch.errors`; a message names the value and what would be accepted.\n"]
    pending = [(errors.EvenmatchError, 0), (errors.EvenmatchWarning, 0)]
    while pending:
        error, depth = pending.pop(0)
        text = textwrap.indent(inspect.getdoc(error) or "", "  " * (depth + 1))  # its paragraphs are of one point
        parts.append(f"{'  ' * depth}- `{error.__name__}`: {text.lstrip()}")
        pending = [(child, depth + 1) for child in error.__subclasses__()] + pending
    return "\n".join(parts) + "\n"


def settings() -> str:
    """Every setting of `evenmatch serve`."""
    from evenmatch.http.options import Options  # noqa: PLC0415 - an extra, which other pages do without
    from evenmatch.ledger.secrets import FILE_VARIABLE, VARIABLE  # noqa: PLC0415

    parts = [
        "# Settings\n",
        "Of `evenmatch serve`, from the environment. [How to run it](../operate.md) says when to change which.\n",
        "| variable | meaning | default |\n| --- | --- | --- |",
        "| `EVENMATCH_DB` | The database: an SQLite file, or a URL as postgresql://user@host/name. | `evenmatch.db` |",
        f"| `{VARIABLE}` | The master secret, as `evenmatch secret new` prints it, the same for all processes and "
        "commands. | SQLite: the file beside the database |",
        f"| `{FILE_VARIABLE}` | A file that contains the master secret, instead of `{VARIABLE}`. | |",
    ]
    for name, field in Options.model_fields.items():
        default = field.default
        shown_ = str(default).lower() if isinstance(default, bool) else "[]" if default == () else str(default)
        parts.append(f"| `EVENMATCH_{name.upper()}` | {field.description} | `{shown_}` |")
    return "\n".join(parts) + "\n"


def web_pages() -> str:
    """Every page of the web site, and who may see it."""
    from evenmatch.web.pages import PAGES as SITE  # noqa: PLC0415 - as above

    parts = [
        "# Pages of the web site\n",
        "[What they show](../how-to/web-site.md). `read`: all visitors if reads are open, otherwise those logged in "
        "with a key that may read the ladder. `admin`: visitors logged in with a key that may operate the ladder. "
        "–: the page decides by itself what its visitor may see. POST addresses belong to the forms on these pages.\n",
        "| address | who | what |\n| --- | --- | --- |",
    ]
    for page in SITE:
        path = page.path.replace(":text", "")
        # the lab is imported on first use
        handler = getattr(import_module(page.handler.__module__), page.handler.__name__)
        told = (inspect.getdoc(handler) or "").partition("\n")[0]
        parts.append(f"| `{page.methods[0]} {path}` | {page.scope or '–'} | {told} |")
    return "\n".join(parts) + "\n"


PAGES = {
    "commands.md": commands,
    "systems.md": rating_systems,
    "python.md": names,
    "matchmaking.md": matchmaker,
    "errors.md": error_tree,
    "settings.md": settings,
    "http.md": endpoints.page,
    "pages.md": web_pages,
}


def main() -> int:
    """Write the pages, or with --check exit with 1 where one is out of date."""
    stale = []
    for name, page in PAGES.items():
        text, path = NOTE + page().rstrip() + "\n", FOLDER / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if "--check" not in sys.argv[1:]:
                path.write_text(text)
    print(f"out of date: {', '.join(stale)}" if stale else "docs/reference is up to date")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
