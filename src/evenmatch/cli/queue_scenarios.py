"""The scenario that the options of simulate-queue and a file say together, and how it is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from evenmatch.cli import policies
from evenmatch.cli.output import note
from evenmatch.errors import BadParameterError, EvenmatchError, InputError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from evenmatch.lab.queue_scenario import Scenario
    from evenmatch.matchmaking.policy import Policy

# What a scenario calls the value of an option, and the option
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
    """The scenario of a file, or the default one, with the values of options. A wrong one is told as the option."""
    from evenmatch.lab.queue_scenario import Scenario

    document: dict[str, object] = {}
    if path is not None:
        if path.suffix.lower() not in policies.SUFFIXES:
            raise UsageError(f"{path}: suffix {path.suffix!r}; accepted is {' or '.join(policies.SUFFIXES)}")
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
    from evenmatch.matchmaking.policy import Policy

    if not isinstance(error, UnknownNameError) or error.kind != "value of a scenario":
        return str(error)
    if error.name in Policy().to_data():
        return f"{error.name} belongs to a policy, not to a scenario; accepted is it in a file for --policy"
    return f"{str(error).partition(';')[0]}; accepted are those that --print-scenario prints"


def _check_kind(kind: str, given: Mapping[str, object], document: Mapping[str, object]) -> None:
    """Raise UsageError for options that the kind of arrivals would pass over in silence."""
    from evenmatch.lab.queue_scenario import KINDS

    typed = [one for one in KINDS if one != "recorded"]
    if "kind" in given and kind not in typed and not (kind == "recorded" and "times" in document):
        more = "; recorded arrivals are `kind` and `times` of a --scenario file" if kind == "recorded" else ""
        raise UsageError(f"--kind {kind}: accepted is {', '.join(typed[:-1])} or {typed[-1]}{more}")
    if "period" in given and kind != "daily":
        raise UsageError(f"--period {given['period']:g}: accepted is it with --kind daily alone")
    if "arrivals" in given and kind == "recorded":
        raise UsageError("--arrivals: the arrivals of this scenario are recorded; accepted is it with another kind")


def read_parties(told: str, team_size: int) -> tuple[float, ...]:
    """The shares of --parties: a named mix, as far as parties fit into a team, or weights by size."""
    from evenmatch.lab.queue_scenario import PARTY_MIXES, party_mix

    if not any(letter.isdigit() for letter in told):
        shares = party_mix(told, team_size)
        if len(shares) < len(PARTY_MIXES[told]):
            note(f"--parties {told}: parties of more than {team_size} do not fit into a team and are left out")
        return shares
    try:
        weights = [float(part) for part in told.split(",")]
    except ValueError:
        weights = []
    total = sum(weights)
    if not weights or not 0 < total < float("inf") or min(weights) < 0:
        raise UsageError(f"--parties {told}: accepted is none, some, many, or weights by commas, as 6,3,1")
    return tuple(weight / total for weight in weights)


def read_regions(told: str) -> str | dict[str, float]:
    """The mix of --regions: a name, or a table of weights."""
    if "=" not in told:
        return told
    table: dict[str, float] = {}
    for part in told.split(","):
        name, _, share = part.partition("=")
        try:
            table[name.strip()] = float(share)
        except ValueError:
            raise UsageError(f"--regions {told}: accepted is none, four, or weights as eu=6,us=4") from None
    return table


def title_of(scenario: Scenario, chosen: Mapping[str, Policy]) -> str:
    """Teams, arrivals, length and seed, as the heading of a table."""
    sizes = dict.fromkeys("v".join([str(one.team_size)] * one.teams) for one in chosen.values())
    shapes = ", ".join(
        size if len(size) < 20 else f"{size.count('v') + 1} teams of {size.partition('v')[0]}" for size in sizes
    )
    length = f"{scenario.minutes:g} minute{'' if scenario.minutes == 1 else 's'}, seed {scenario.seed}"
    if scenario.kind == "recorded":
        return f"{shapes}, recorded arrivals for {length}"
    kind = "" if scenario.kind == "poisson" else f" ({scenario.kind})"
    return f"{shapes}, {scenario.arrivals:g} player{'' if scenario.arrivals == 1 else 's'} a second{kind} for {length}"


def as_toml(scenario: Scenario) -> str:
    """The scenario as a file for --scenario that says what each value does."""
    from evenmatch.lab.queue_scenario import OTHER_OPTIONS, options

    head = "A scenario for evenmatch simulate-queue --scenario. Times are in seconds, widths in percentiles."
    return policies.document_as_toml(head, scenario.to_data(), policies.described(options(), OTHER_OPTIONS))
