"""evenmatch policies: the matchmaker's presets, and policies as files."""

from __future__ import annotations

import dataclasses
import json as texts
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.output import print_json, print_table
from evenmatch.errors import BadParameterError, EvenmatchError, InputError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from evenmatch.matchmaking.policy import Option, Policy

SUFFIXES = (".toml", ".json")
ALWAYS = ("team_size", "teams", "steps")  # listed even where all presets agree
WEIGHTIEST = (*ALWAYS, "even_spread", "spread_share")  # listed first
UNITS = "Times are in seconds, widths in percentiles, costs in seconds of waiting that they are worth."
LINE = 116  # letters of a comment


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A preset, or a .toml or .json file of yours; without: all.")
    ] = None,
    json: options.Json = False,
) -> None:
    """List the matchmaker's policies, or print one in full: a file to edit and to give to --policy.

    A policy file holds the options that differ from a preset, `preset = "quick"`, or from balanced where it names none.

    [bold]Examples[/bold]

    evenmatch policies

    evenmatch policies quick > mine.toml

    evenmatch simulate-queue --policy balanced --policy mine.toml
    """
    from evenmatch.matchmaking.policy import presets

    if name is not None:
        policy = find(name)
        if json:
            print_json(policy.to_data())
        else:
            print(as_toml(policy, name), end="")
    elif json:
        print_json([{"name": one, "options": policy.to_data()} for one, policy in presets().items()])
    else:
        _print(presets())


def find(told: str) -> Policy:
    """The preset of this name, or the policy in a file.

    Raises UnknownNameError for another name, UsageError where a file cannot be read, InputError for what stands in it.
    """
    from evenmatch.matchmaking.policy import Policy, presets

    if told in presets():
        return presets()[told]
    path = Path(told)
    if path.suffix.lower() not in SUFFIXES:
        if told and (path.exists() or path.suffix or len(path.parts) > 1):
            raise UsageError(f"{told}: suffix {path.suffix!r}; accepted is a policy in a {' or '.join(SUFFIXES)} file")
        raise UnknownNameError("policy", told, (*presets(), f"a {' or '.join(SUFFIXES)} file"))
    document = read_document(path, "a policy")
    try:
        return Policy.from_data(document)
    except EvenmatchError as error:
        raise InputError(f"{path}: {error}") from None


def gather(told: Sequence[str], team_size: int | None, teams: int | None) -> dict[str, Policy]:
    """The policies that --policy names, with --team-size and --teams where these are given, by what they are called.

    A file is called by its name with its suffix, or as it was told where another is called so. Raises as `find` does,
    and BadParameterError where a policy cannot have such teams.
    """
    policies: dict[str, Policy] = {}
    changes = {name: value for name, value in (("team_size", team_size), ("teams", teams)) if value is not None}
    for one in dict.fromkeys(told):
        policy = find(one)
        try:
            policy = dataclasses.replace(policy, **changes)  # type: ignore[arg-type]
        except BadParameterError as error:
            raise BadParameterError(f"policy {one} with {_as_options(changes)}: {error}") from None
        policies[_called(one, told)] = policy
    return policies


def read_document(path: Path, what: str) -> dict[str, object]:
    """The table in a .toml or .json file. Raises UsageError where it cannot be read, InputError where it is none."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file; accepted is {what} as TOML or JSON") from error
    form = path.suffix.lower().removeprefix(".").upper()
    try:
        document = tomllib.loads(text) if form == "TOML" else texts.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not readable as {form}: {error}; accepted is {what}") from error
    if not isinstance(document, dict):
        raise InputError(f"{path} holds {texts.dumps(document)[:40]}; accepted is a table of options and values")
    return document


def as_toml(policy: Policy, name: str) -> str:
    """The policy as a TOML document that says what each option does; read again it is the same policy."""
    from evenmatch.matchmaking.policy import OTHER_OPTIONS
    from evenmatch.matchmaking.policy import options as numbers

    return document_as_toml(
        f"Policy {_text(name)} of evenmatch. {UNITS}", policy.to_data(), described(numbers(), OTHER_OPTIONS)
    )


def described(numbers: Mapping[str, Option], others: Mapping[str, str]) -> dict[str, str]:
    """What each option does and accepts, by name."""
    return {name: f"{option.effect} Accepted: {option.accepts}." for name, option in numbers.items()} | dict(others)


def document_as_toml(head: str, data: Mapping[str, object], effects: Mapping[str, str]) -> str:
    """Options and values as TOML, each after what it does; no table is left open, so the order does not matter."""
    lines = _comment(head)
    for name, value in data.items():
        lines += ["", *_comment(effects[name]), f"{name} = {_value(value)}"]
    return "\n".join(lines) + "\n"


def _called(told: str, all_told: Sequence[str]) -> str:
    """Never as a preset, a matchmaker of --compare or another file: those have no suffix, and another's name counts."""
    if Path(told).suffix.lower() not in SUFFIXES:
        return told
    files = [Path(one).name for one in dict.fromkeys(all_told)]
    return Path(told).name if files.count(Path(told).name) == 1 else told


def _as_options(changes: dict[str, int]) -> str:
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in changes.items())


def _print(policies: dict[str, Policy]) -> None:
    """The options in which the presets differ, and what these are for."""
    from evenmatch.matchmaking.policy import OTHER_OPTIONS
    from evenmatch.matchmaking.policy import options as numbers

    effects = {name: option.effect for name, option in numbers().items()} | OTHER_OPTIONS
    data = [policy.to_data() for policy in policies.values()]
    rows = [
        [name, *(_shown(one[name]) for one in data), effects[name]]
        for name in dict.fromkeys((*WEIGHTIEST, *data[0]))
        if name in ALWAYS or any(one[name] != data[0][name] for one in data)
    ]
    print_table("Policies (evenmatch policies NAME prints all options of one)", ("option", *policies, "effect"), rows)
    print(UNITS)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " ".join(f"{after:g}s:{width:g}" for after, width in value)
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _comment(text: str) -> list[str]:
    lines = ["#"]
    for word in text.split():
        if len(lines[-1]) + len(word) >= LINE:
            lines.append("#")
        lines[-1] += f" {word}"
    return lines


def _value(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: '"none"', True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{', '.join(_value(one) for one in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_text(key)} = {_value(one)}' for key, one in value.items())} }}" if value else "{}"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def _text(text: str) -> str:
    """A TOML string; what does not print, which could move a terminal's cursor, stands as its number."""
    kept = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\U{ord(one):08X}" for one in kept) + '"'
