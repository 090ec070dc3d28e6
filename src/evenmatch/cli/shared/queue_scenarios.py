"""The scenario of simulate-queue from its options and a file, and its description."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from evenmatch.cli import policies
from evenmatch.cli.shared.output import note
from evenmatch.errors import BadParameterError, EvenmatchError, InputError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from evenmatch.lab.queue.scenario import Scenario
    from evenmatch.policy import Policy

# Name of a value in a scenario file: the option that sets it
OPTIONS = {
    "arrivals": "--arrivals",
    "minutes": "--minutes",
    "seed": "--seed",
    "kind": "--kind",
    "period": "--period",
    "patience": "--patience",
    "return_share": "--returns",
    "players": "--players",
    "share_strict": "--strict",
    "parties": "--parties",
    "regions": "--regions",
    "rating_error": "--rating-error",
    "share_newcomers": "--newcomers",
    "share_avoiding": "--avoiding",
}


def find_scenario(path: Path | None, given: Mapping[str, object]) -> Scenario:
    """The scenario of a file or the default one, changed by options; errors name the option that caused them."""
    from evenmatch.lab.queue.scenario import Scenario

    document: dict[str, object] = {}
    if path is not None:
        if path.suffix.lower() not in policies.SUFFIXES:
            raise UsageError(f"{path}: suffix {path.suffix!r}; expected {' or '.join(policies.SUFFIXES)}")
        document = policies.read_document(path, "a scenario")
        try:
            Scenario.from_data(document)
        except EvenmatchError as error:
            raise InputError(f"{path}: {_explained(error)}") from None
    _check_kind(str(given.get("kind", document.get("kind", "poisson"))), given, document)
    try:
        return Scenario.from_data(document | dict(given))
    except BadParameterError as error:
        name, equals, rest = str(error).partition("=")
        if equals and name in given:
            raise BadParameterError(f"{OPTIONS[name]} {rest.removesuffix(', or none')}") from None
        raise


def _explained(error: EvenmatchError) -> str:
    from evenmatch.policy import Policy

    if not isinstance(error, UnknownNameError) or error.kind != "value of a scenario":
        return str(error)
    if error.name in Policy().to_data():
        return f"{error.name} belongs to a policy, not to a scenario; put it in a file for --policy"
    return f"{str(error).partition(';')[0]}; expected a value that --print-scenario prints"


def _check_kind(kind: str, given: Mapping[str, object], document: Mapping[str, object]) -> None:
    """Raise UsageError for options that have no effect on this kind of arrivals."""
    from evenmatch.lab.queue.scenario import KINDS

    typed = [name for name in KINDS if name != "recorded"]
    if "kind" in given and kind not in typed and not (kind == "recorded" and "times" in document):
        more = "; recorded arrivals are `kind` and `times` of a --scenario file" if kind == "recorded" else ""
        raise UsageError(f"--kind {kind}: expected {', '.join(typed[:-1])} or {typed[-1]}{more}")
    if "period" in given and kind != "daily":
        raise UsageError(f"--period {given['period']:g}: only allowed with --kind daily")
    if "arrivals" in given and kind == "recorded":
        raise UsageError("--arrivals: not allowed for a scenario with recorded arrivals")


def read_parties(text: str, team_size: int) -> tuple[float, ...]:
    """The shares of party sizes from --parties: a named mix without parties larger than a team, or weights by size."""
    from evenmatch.lab.queue.scenario import PARTY_MIXES, party_mix

    if not any(character.isdigit() for character in text):
        shares = party_mix(text, team_size)
        if len(shares) < len(PARTY_MIXES[text]):
            note(f"--parties {text}: parties of more than {team_size} do not fit into a team and are left out")
        return shares
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        weights = []
    total = sum(weights)
    if not weights or not 0 < total < float("inf") or min(weights) < 0:
        raise UsageError(
            f"--parties {text}: expected none, some, many, or weights separated by commas, for example 6,3,1"
        )
    return tuple(weight / total for weight in weights)


def read_regions(text: str) -> str | dict[str, float]:
    """The value of --regions: a named mix, or weights by region."""
    if "=" not in text:
        return text
    table: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.partition("=")
        try:
            table[name.strip()] = float(share)
        except ValueError:
            raise UsageError(f"--regions {text}: expected none, four, or weights, for example eu=6,us=4") from None
    return table


def title_of(scenario: Scenario, chosen: Mapping[str, Policy]) -> str:
    """The heading of the table: teams, arrivals, length and seed."""
    sizes = dict.fromkeys("v".join([str(policy.team_size)] * policy.teams) for policy in chosen.values())
    shapes = ", ".join(
        size if len(size) < 20 else f"{size.count('v') + 1} teams of {size.partition('v')[0]}" for size in sizes
    )
    length = f"{scenario.minutes:g} minute{'' if scenario.minutes == 1 else 's'}, seed {scenario.seed}"
    if scenario.kind == "recorded":
        return f"{shapes}, recorded arrivals for {length}"
    kind = "" if scenario.kind == "poisson" else f" ({scenario.kind})"
    return f"{shapes}, {scenario.arrivals:g} player{'' if scenario.arrivals == 1 else 's'} a second{kind} for {length}"


def as_toml(scenario: Scenario) -> str:
    """The scenario as a TOML file for --scenario, with comments on each value."""
    from evenmatch.lab.queue.scenario import Scenario

    head = "A scenario for evenmatch simulate-queue --scenario. Times are in seconds, widths in percentiles."
    return policies.document_as_toml(head, scenario.to_data(), policies.described(Scenario))
