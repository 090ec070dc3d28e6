"""evenmatch simulate-queue and replay-queue: waiting times and match quality of a queue."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, TextIO

from evenmatch import __version__
from evenmatch.cli import policies
from evenmatch.cli.shared import options
from evenmatch.cli.shared.derived_options import with_options
from evenmatch.cli.shared.files import check_outputs
from evenmatch.cli.shared.options import argument, option
from evenmatch.cli.shared.output import note, print_json, print_table, printable, working
from evenmatch.errors import BadParameterError, EvenmatchError, InputError, UnknownNameError, UsageError
from evenmatch.lab.queue.scenario import KINDS, PARTY_MIXES, Scenario, party_mix
from evenmatch.options import known_values, options_of
from evenmatch.policy import WaitTarget
from evenmatch.whole_file import whole_file

if TYPE_CHECKING:
    from evenmatch.lab.queue.journal import QueueJournal
    from evenmatch.lab.queue.runs import Run
    from evenmatch.policy import Policy

COMPILING = "loading the matchmaker; the first time, it is compiled"
PARTS = 100  # steps of the progress bar
LONGEST_NAME = 40  # characters shown of a recorded name
HEADS = (
    *("name", "wait p50", "p95", "max", "spread p50", "p95", "45–55%", "true", "law", "violations", "unmatched"),
    "players per CPU s",
)
GAP = 3  # terminal cells between the columns of a table
# Flags of the options of a scenario that the command line offers; --scenario sets all of them
FLAGS = {
    "arrivals": "--arrivals, -a",
    "minutes": "--minutes, -m",
    "kind": "--kind",
    "period": "--period",
    "patience": "--patience",
    "return_share": "--returns",
    "seed": "--seed",
    "players": "--players",
    "share_strict": "--strict",
    "parties": "--parties",
    "regions": "--regions",
    "rating_error": "--rating-error",
    "share_newcomers": "--newcomers",
    "share_avoiding": "--avoiding",
}
Report = Annotated[Path | None, option("--report FILE", "Write table, charts and verdict as one .html file.")]


OFFERED = {name: options_of(Scenario)[name] for name in FLAGS}


@with_options({**OFFERED, **options_of(WaitTarget)}, flags=FLAGS, panel="Scenario")
def simulate_queue(
    *,
    policy: Annotated[list[str] | None, option("--policy, -p NAME|FILE", "A preset or file; repeatable.")] = None,
    team_size: Annotated[int | None, option("--team-size N", "Players in a team, instead of the policy's 6.")] = None,
    teams: Annotated[int | None, option("--teams N", "Teams in a match, instead of the policy's 2.")] = None,
    scenario: Annotated[Path | None, option("--scenario FILE", "A .toml or .json file that options override.")] = None,
    print_scenario: Annotated[bool, option("--print-scenario", "Print the scenario as TOML and exit.")] = False,
    report: Report = None,
    journal: Annotated[Path | None, option("--journal FILE", "Record the first run for replay-queue.")] = None,
    json: options.Json = False,
    changes: dict[str, object],
) -> None:
    """Simulate a queue: how long players wait, and how even their matches are.

    Players arrive, wait and are matched by the real matchmaker, which decides every second, under each --policy. The
    winner depends on true skill, which the matchmaker does not see. The same seed gives the same run, and all
    matchmakers get the same arrivals. The spread of a match is the number of percentiles between its best and its
    weakest player.

    With --within or --share, the first policy is also fitted to these players, so that the share waits at most that
    long. --parties is none, some, many, or weights of the party sizes 1, 2, …, such as 6,3,1. --regions is none, four,
    or weights by name, such as eu=6,us=4.

    Examples:
    evenmatch simulate-queue
    evenmatch simulate-queue --policy balanced --policy quick --policy fair --report queue.html
    evenmatch simulate-queue --team-size 5 --arrivals 0.5 --parties many --minutes 60
    evenmatch simulate-queue --arrivals 1 --within 90 --share 0.9
    """
    _check_files(report, journal, scenario, policy or [])
    target = {name: changes.pop(name) for name in options_of(WaitTarget) if name in changes}
    chosen = policies.policies_of(policy or ["balanced"], team_size, teams)
    if "regions" in changes:
        changes["regions"] = read_regions(str(changes["regions"]))
    if "parties" in changes:
        smallest = min(candidate.team_size for candidate in chosen.values())
        changes["parties"] = read_parties(str(changes["parties"]), smallest)
    full_scenario = find_scenario(scenario, changes)
    if print_scenario:
        print(as_toml(full_scenario), end="")
        return
    explanation: list[str] = []
    if target:
        chosen["auto"], explanation = _fit(full_scenario, next(iter(chosen.values())), target_of(target, WaitTarget()))
    runs = _simulate(full_scenario, chosen, journal)
    more = [] if "seed" in changes or scenario is not None else ["--seed", str(full_scenario.seed)]
    title, command = title_of(full_scenario, chosen), repeat_command(*more)
    tell(runs, title, report=report, json=json, command=command, notes=explanation, more={})


def _simulate(scenario: Scenario, chosen: dict[str, Policy], journal: Path | None) -> list[Run]:
    """Run the matchmaker under each policy."""
    with working(COMPILING):  # the imports load or compile the kernels
        from evenmatch.lab.queue.simulation import simulate
        from evenmatch.matchmaking.propose import propose

    runs = []
    with watching(len(chosen), scenario.minutes) as watch, whole(journal) as file:
        for index, (name, policy) in enumerate(chosen.items()):
            recorded = file if index == 0 else None
            runs.append(simulate(scenario, propose, policy, name=name, progress=watch(index), journal=recorded))
    return runs


def _fit(scenario: Scenario, policy: Policy, target: WaitTarget) -> tuple[Policy, list[str]]:
    """A policy fitted to the players of the scenario, and its explanation."""
    if scenario.kind == "recorded":
        raise UsageError("--within: a policy is fitted to arrivals by a rate; this scenario has recorded times")
    with working(COMPILING, PARTS) as progress:
        from evenmatch.lab.queue.policy_fit import explain, fit_policy, scenario_arrivals

        arrivals = scenario_arrivals(scenario, target)
        fit = fit_policy(policy, arrivals, target, lambda done: progress(int(done * PARTS), "fitting"))
    return fit.policy, explain(fit)


def target_of(changes: Mapping[str, object], default: WaitTarget) -> WaitTarget:
    """The default target with the values that were given."""
    return WaitTarget(**known_values(WaitTarget, "part of a target", asdict(default) | dict(changes)))


def _check_files(report: Path | None, journal: Path | None, scenario: Path | None, named: list[str]) -> None:
    from evenmatch.tables.files import check_folder

    read = [scenario, *(Path(name) for name in named)]
    check_files(report, journal, *read)
    if journal is not None:
        if journal.suffix.lower() != ".jsonl":
            raise UsageError(f"{journal}: suffix {journal.suffix!r}; expected a journal in a .jsonl file")
        check_folder(journal)


def find_scenario(path: Path | None, given: Mapping[str, object]) -> Scenario:
    """The scenario of a file or the default one, changed by options; errors name the option that caused them."""
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
            raise BadParameterError(f"{FLAGS[name].partition(',')[0]} {rest}") from None
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
    if kind == "recorded" and "times" not in document:
        expected = (
            f"{', '.join(KINDS[:2])} or {KINDS[2]}; recorded arrivals are `kind` and `times` of a --scenario file"
        )
        raise UsageError(f"--kind recorded: expected {expected}")
    if "period" in given and kind != "daily":
        raise UsageError(f"--period {given['period']:g}: only allowed with --kind daily")
    if "arrivals" in given and kind == "recorded":
        raise UsageError("--arrivals: not allowed for a scenario with recorded arrivals")


def read_parties(text: str, team_size: int) -> tuple[float, ...]:
    """The shares of party sizes from --parties: a named mix without parties larger than a team, or weights by size."""
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
    head = "A scenario for evenmatch simulate-queue --scenario. Times are in seconds, widths in percentiles."
    return policies.document_as_toml(head, scenario.to_data(), policies.described(Scenario))


def replay_queue(
    journal: Annotated[Path, argument("JOURNAL", "A queue journal, written by simulate-queue --journal.")],
    policy: Annotated[
        list[str] | None, option("--policy, -p NAME|FILE", "Also replay with this policy; repeatable.")
    ] = None,
    report: Report = None,
    json: options.Json = False,
) -> None:
    """Replay a recorded queue, to compare what other policies would have done with the same players.

    Players join and leave as recorded. Under the recorded policy, all decisions should be the same. The output confirms
    this or names the first tick that differs, for example because the matchmaker has changed.

    Examples:
    evenmatch simulate-queue --journal queue.jsonl
    evenmatch replay-queue queue.jsonl --policy quick --policy mine.toml
    """
    check_files(report, journal, *(Path(name) for name in policy or []))
    others = policies.policies_of(policy or [], None, None)
    with working(f"reading {journal.name}"):
        from evenmatch.lab.queue.journal import load_journal
        from evenmatch.lab.queue.simulation import first_difference, replay

        recorded = load_journal(journal)
    name = recorded.name[:LONGEST_NAME] if recorded.name.strip() else "recorded"
    if name in others:
        name = f"{name} (recorded)"
    plan = {name: recorded.policy} | others
    minutes = len(recorded.ticks) / 60.0
    with watching(len(plan), minutes) as watch:
        runs = [
            replay(recorded, current, name=called, progress=watch(index))
            for index, (called, current) in enumerate(plan.items())
        ]
    title = f"{journal.name}: {len(recorded.ticks):,} recorded ticks"
    differs = first_difference(recorded, runs[0])
    tell(
        *(runs, title),
        report=report,
        json=json,
        command=repeat_command(),
        notes=[_comparison(recorded, differs)],
        more={"first_differing_tick": None if differs is None else differs + 1},
    )


def _comparison(journal: QueueJournal, tick: int | None) -> str:
    if tick is None:
        return f"Under its own policy all decisions are the same, in {len(journal.ticks):,} ticks."
    since = (journal.ticks[tick].now - journal.ticks[0].now) / 1e6
    by = "" if journal.version == __version__ else f"by evenmatch {journal.version}, not {__version__}, or "
    return (
        f"Under its own policy the decisions differ from tick {tick + 1:,} on, {since:,.0f} s after the first: it was "
        f"recorded {by}with another matchmaker, or was changed since."
    )


def repeat_command(*more: str) -> str:
    """The command as it was typed, followed by `more` arguments."""
    return shlex.join(["evenmatch", *sys.argv[1:], *more])


def check_files(report: Path | None, *others: Path | None) -> None:
    """Raise UsageError before a long run if the report cannot be written, or is one of `others`."""
    check_outputs(report=report, others=others)
    if report is not None:
        import_module("evenmatch.lab.queue.report")  # raises now if a library is missing


@contextmanager
def whole(path: Path | None) -> Iterator[TextIO | None]:
    """A text file that replaces `path` when the block ends without error. Raises UsageError if it cannot be written."""
    if path is None:
        yield None
        return
    with whole_file(path) as draft, draft.open("w", encoding="utf-8") as file:
        yield file


@contextmanager
def watching(runs: int, ticks_each: float) -> Iterator[Callable[[int], Callable[[str, float], None]]]:
    """A progress bar over several runs of equal length; yields a function from a run's index to its callback."""
    each = max(1, math.ceil(ticks_each))
    with working(COMPILING, runs * each) as progress:

        def callback(index: int) -> Callable[[str, float], None]:
            return lambda name, share: progress(int((index + share) * each), printable(name))

        yield callback


def tell(
    runs: Sequence[Run],
    title: str,
    *,
    report: Path | None,
    json: bool,
    command: str,
    notes: Sequence[str],
    more: Mapping[str, object],
) -> None:
    """Print the runs as one JSON list (the first one with `more`) or as table and verdict; write the report."""
    from evenmatch.lab.queue.verdict import verdict

    if report is not None:
        from evenmatch.lab.queue.report import write_queue_report

        with working("writing the report"):
            write_queue_report(runs, report, title=title, command=command, notes=notes)
    if json:
        from evenmatch.lab.queue.run_metrics import summary_of

        first, *others = (summary_of(run) for run in runs)
        print_json([first | dict(more), *others])
        return
    _print(runs, title)
    for sentence in (*notes, *verdict(runs)):
        print(printable(sentence))
    if report is not None:
        note(f"{report}: written")
    note(f"to repeat it with evenmatch {__version__}: {command}")


def _print(runs: Sequence[Run], title: str) -> None:
    from evenmatch.lab.queue.run_metrics import summary_of
    from evenmatch.lab.queue.verdict import habits, meanings, percent

    rows: list[list[object]] = []
    for run in runs:
        summary: dict[str, object] = summary_of(run)
        waits = [_rounded(summary[f"wait_{name}"], 1) for name in ("p50", "p95", "max")]
        spreads = [_rounded(summary[f"spread_{name}"], 1) for name in ("p50", "p95")]
        shares = [percent(_known(summary[name])) for name in ("share_45_55", "realised_45_55")]
        law = _rounded(summary["law"], 1)
        counts = [f"{summary[name]:,}" for name in ("violations", "unmatched")]
        speed = _rounded(summary["players_per_cpu_second"], 0)
        rows.append([summary["name"], *waits, *spreads, *shares, law, *counts, speed])
    title = f"{title} (waits in seconds, spreads in percentiles)"
    for part in _parts(rows, get_terminal_size().columns if sys.stdout.isatty() else None):
        print_table(
            title,
            [HEADS[column] for column in part],
            [[row[column] for column in part] for row in rows],
            right=HEADS[1:],
        )
        title = "The same, continued"
    if runs[0].scenario is not None and (scenario_facts := habits(runs[0].scenario)):
        print(printable("; ".join(f"{what}: {value}" for what, value in scenario_facts) + "."))
    print(meanings(runs[0].policy.teams))
    print()


def _parts(rows: Sequence[Sequence[object]], width: int | None) -> list[list[int]]:
    """The columns of each table: one table, or several with the name column if one would exceed `width`."""
    sizes = [max(len(str(row[column])) for row in [HEADS, *rows]) + GAP for column in range(len(HEADS))]
    parts: list[list[int]] = [[0]]
    for column in range(1, len(HEADS)):
        if width is not None and len(parts[-1]) > 1 and sum(sizes[index] for index in [*parts[-1], column]) > width:
            parts.append([0])
        parts[-1].append(column)
    return parts


def _rounded(value: object, digits: int) -> str | None:
    return None if value is None else f"{value:,.{digits}f}"


def _known(value: object) -> float | None:
    assert value is None or isinstance(value, float)
    return value
