"""evenmatch policies: presets of the matchmaker, and policy files."""

from __future__ import annotations

import dataclasses
import json as texts
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evenmatch.cli.shared import options
from evenmatch.cli.shared.options import argument
from evenmatch.cli.shared.output import print_json, print_table
from evenmatch.errors import BadParameterError, EvenmatchError, InputError, UnknownNameError, UsageError
from evenmatch.options import options_of

if TYPE_CHECKING:
    from evenmatch.policy import Policy

SUFFIXES = (".toml", ".json")
ALWAYS = ("team_size", "teams", "steps")  # listed even if all presets have the same value
LISTED_FIRST = (*ALWAYS, "even_spread")
UNITS = "Times are in seconds, widths in percentiles, costs in the equivalent seconds of waiting."
LINE = 116  # characters in a line of a TOML comment


def command(
    name: Annotated[str | None, argument("[NAME]", "A preset or a policy file. Default: all presets.")] = None,
    json: options.Json = False,
) -> None:
    """List the matchmaker's presets, or print one policy completely, as a file to edit and use with --policy.

    A policy file contains the options that differ from its preset, for example `preset = "quick"`; default: balanced.

    Examples:
    evenmatch policies
    evenmatch policies quick > mine.toml
    evenmatch simulate-queue --policy balanced --policy mine.toml
    """
    from evenmatch.policy import presets

    if name is not None:
        policy = find(name)
        if json:
            print_json(policy.to_data())
        else:
            print(as_toml(policy, name), end="")
    elif json:
        print_json([{"name": preset, "options": policy.to_data()} for preset, policy in presets().items()])
    else:
        _print(presets())


def find(named: str) -> Policy:
    """The preset with this name, or the policy in a file.

    Raises UnknownNameError for an unknown name, UsageError for an unreadable file, InputError for invalid contents.
    """
    from evenmatch.policy import Policy, presets

    if named in presets():
        return presets()[named]
    path = Path(named)
    if path.suffix.lower() not in SUFFIXES:
        if named and (path.exists() or path.suffix or len(path.parts) > 1):
            raise UsageError(f"{named}: suffix {path.suffix!r}; expected a policy in a {' or '.join(SUFFIXES)} file")
        raise UnknownNameError("policy", named, (*presets(), f"a {' or '.join(SUFFIXES)} file"))
    document = read_document(path, "a policy")
    try:
        return Policy.from_data(document)
    except EvenmatchError as error:
        raise InputError(f"{path}: {error}") from None


def policies_of(named: Sequence[str], team_size: int | None, teams: int | None) -> dict[str, Policy]:
    """Return the policies of --policy by display name, with --team-size and --teams applied.

    A policy file is displayed by its file name, or by its path if two files share a name. Raises as
    `find` does, and BadParameterError if a policy does not allow such teams.
    """
    policies: dict[str, Policy] = {}
    changes = {option: value for option, value in (("team_size", team_size), ("teams", teams)) if value is not None}
    for name in dict.fromkeys(named):
        policy = find(name)
        try:
            policy = dataclasses.replace(policy, **changes)  # type: ignore[arg-type]
        except BadParameterError as error:
            raise BadParameterError(f"policy {name} with {_as_options(changes)}: {error}") from None
        policies[_displayed(name, named)] = policy
    return policies


def read_document(path: Path, what: str) -> dict[str, object]:
    """The table in a .toml or .json file. Raises UsageError for an unreadable file, InputError for other contents."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file; expected {what} as TOML or JSON") from error
    form = path.suffix.lower().removeprefix(".").upper()
    try:
        document = tomllib.loads(text) if form == "TOML" else texts.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not readable as {form}: {error}; expected {what}") from error
    if not isinstance(document, dict):
        raise InputError(f"{path} contains {texts.dumps(document)[:40]}; expected a table of options and values")
    return document


def as_toml(policy: Policy, name: str) -> str:
    """The policy as a TOML document with comments on each option; reading it gives the same policy."""
    return document_as_toml(f"Policy {_text(name)} of evenmatch. {UNITS}", policy.to_data(), described(type(policy)))


def described(owner: type) -> dict[str, str]:
    """Return the meaning and accepted values of each option, by name."""
    return {
        name: f"{option.meaning} Accepted: {option.accepts}." if option.accepts else option.meaning
        for name, option in options_of(owner).items()
    }


def document_as_toml(head: str, data: Mapping[str, object], effects: Mapping[str, str]) -> str:
    """Write options and values as TOML, with a comment on each; tables are inline, so any order is valid."""
    lines = _comment(head)
    for name, value in data.items():
        lines += ["", *_comment(effects[name]), f"{name} = {_value(value)}"]
    return "\n".join(lines) + "\n"


def _displayed(named: str, all_named: Sequence[str]) -> str:
    """Return a unique name: a preset's name, a file's name, or its path if another file has the same name."""
    if Path(named).suffix.lower() not in SUFFIXES:
        return named
    files = [Path(name).name for name in dict.fromkeys(all_named)]
    return Path(named).name if files.count(Path(named).name) == 1 else named


def _as_options(changes: dict[str, int]) -> str:
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in changes.items())


def _print(policies: dict[str, Policy]) -> None:
    """Print the options in which the presets differ, with their effects."""
    from evenmatch.policy import INFINITE, Policy

    effects = {name: option.meaning for name, option in options_of(Policy).items()}
    data = [policy.to_data() for policy in policies.values()]
    rows = [
        [name, *(_shown(values[name]) for values in data), effects[name]]
        for name in dict.fromkeys((*LISTED_FIRST, *data[0]))
        if name in ALWAYS or any(values[name] != data[0][name] for values in data)
    ]
    print_table("Policies (evenmatch policies NAME prints all options of one)", ("option", *policies, "effect"), rows)
    print(UNITS)
    print("A loose player accepts every other loose player after this wait, in a busy queue and at most:")
    for name, policy in policies.items():
        print(f"  {name}: {policy.open_to_all_after(0.0):,.0f} s, {policy.open_to_all_after(INFINITE):,.0f} s")


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
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_text(key)} = {_value(item)}' for key, item in value.items())} }}" if value else "{}"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def _text(text: str) -> str:
    """Write a TOML string. Unprintable characters are escaped, because they could move a terminal's cursor."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"'
        + "".join(character if character.isprintable() else f"\\U{ord(character):08X}" for character in escaped)
        + '"'
    )
