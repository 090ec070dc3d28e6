"""What each part of the matchmaker earns: `python -m benchmarks.ablation`.

A part is switched off by an option of the policy, or by an edit of the source in a temporary copy of the package. Every
variant simulates the same arrivals as the whole matchmaker. Figures are means over the seeds of the paired differences,
with a 95 % interval by Student's t, as a share of the whole matchmaker's figure; * marks those beyond noise. `--hash`
prints a hash of the proposals in 100 random queues instead, to compare two versions of the code.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import evenmatch
from evenmatch.calibration import student
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.scenario import REGION_MIXES, Scenario, party_mix
from evenmatch.lab.queue.simulation import simulate
from evenmatch.lab.queue.ticket_source import Crowd
from evenmatch.matchmaking import Policy, Queue, propose

FIGURES = ("wait_mean", "wait_p95", "longest", "spread_mean", "spread_p95", "odds_off", "unmatched", "violations")
QUEUES = 100  # of which the proposals are hashed
SECOND = 1_000_000


class Edit(NamedTuple):
    """A replacement of source text. file: within the package."""

    file: str
    old: str
    new: str


class Part(NamedTuple):
    """How to switch a part off: options of the policy, and edits of the source."""

    options: Mapping[str, object] = {}
    edits: tuple[Edit, ...] = ()


class Population(NamedTuple):
    """Values of the scenario and of the policy."""

    scenario: Mapping[str, object]
    policy: Mapping[str, object]


PASSES, OVERDUE = "matchmaking/passes.py", "matchmaking/overdue.py"
PARTS: dict[str, Part] = {
    "whole": Part(),
    "closer matches are worth more": Part({"spread_cost": 0.0}),
    "wide matches are of neighbours": Part({"even_spread": 100.0}),
    "best disjoint matches": Part(edits=(Edit(PASSES, "in pick(last, value)", "in np.flatnonzero(last >= 0)"),)),
    "oldest of the collected": Part(edits=(Edit(PASSES, "    _oldest_first(v, active, count)\n", ""),)),
    "eviction": Part(edits=(Edit(PASSES, "count, s = _evict(v, hi, t.low, rules, work, count)", "break"),)),
    "chosen filters first": Part(
        edits=(Edit(PASSES, "for level in range(1 + wider):", "for level in range(1 * wider, 1 + wider):"),)
    ),
    "home region first": Part(edits=(Edit(PASSES, "range(2 if len(places.region) > 1 else 1)", "range(1, 2)"),)),
    "equal parties first": Part(
        edits=(
            Edit(
                PASSES,
                "for mixed in range(2 if largest > 1 and patient else 1):",
                "for mixed in range(1 * (largest > 1 and patient), 1 + (largest > 1 and patient)):",
            ),
        )
    ),
    "party cost": Part({"party_wait": 0.0}),
    "retries after refused odds": Part(edits=(Edit("matchmaking/tick.py", "TRIES = 8", "TRIES = 1"),)),
    "exact division": Part(
        edits=(
            Edit("matchmaking/balance.py", "elif rules.teams == 2 and len(table)", "elif len(table) > 1 << 40"),
            Edit("matchmaking/balance.py", "elif rules.teams == 2 and len(own) <= EXACT:", "elif len(own) < 0:"),
        )
    ),
    "swaps of the heuristic division": Part(edits=(Edit("matchmaking/balance.py", "ROUNDS = 50", "ROUNDS = 0"),)),
    "overdue tickets": Part({"overdue_after": None}),
    "reservation for overdue tickets": Part(
        edits=(Edit(OVERDUE, "tick.free[later[~overdue[later]]] = False", "pass"),)
    ),
    "reservation without enough players": Part(edits=(Edit(OVERDUE, "KEPT_FOR = 8", "KEPT_FOR = 0"),)),
    "overdue relative to the mean wait": Part(
        edits=(Edit("policy.py", "OVERDUE_TIMES = 16.0", "OVERDUE_TIMES = 0.0"),)
    ),
    "nearest first for overdue tickets": Part(
        edits=(Edit(OVERDUE, "for order in (nearest, self.by_age):", "for order in (self.by_age,):"),)
    ),
    "soonest reserved first": Part(edits=(Edit(OVERDUE, "search.soonest(first), first)", "by_age, first)"),)),
    "others excluded for overdue tickets": Part(
        edits=(Edit(OVERDUE, "OTHERS = 8 ", "OTHERS = 1 "), Edit(OVERDUE, "REFUSED = 64 ", "REFUSED = 1 "))
    ),
}

PARTIES, REGIONS = {"parties": party_mix("some", 3)}, {"regions": REGION_MIXES["four"]}
STRICT = {"share_strict": 0.6}
ROLES = {"roles": {"tank": 0.3, "healer": 0.3, "damage": 0.8}}
ATTRIBUTES = {
    "attributes": {"mode": {"ranked": 6, "casual": 3, "any": 1}},
    "vetoes": {"desert": 0.3, "harbour": 0.2, "station": 0.1},
}
DECLARED = {
    "attributes": {"mode": {"kind": "meet", "values": ["ranked", "casual"], "worth": 60.0}},
    "maps": ["desert", "harbour", "station", "forest"],
    "vetoes": 2,
}


def shape(size: int, teams: int = 2) -> dict[str, object]:
    """The options of a policy for this shape of match."""
    return {"team_size": size, "teams": teams}


POPULATIONS: dict[str, Population] = {
    "4v4 .7/s": Population({"arrivals": 0.7}, shape(4)),
    "6v6 .35/s": Population({"arrivals": 0.35}, shape(6)),
    "5v5 3/s": Population({"arrivals": 3.0}, shape(5)),
    "3x3 1.3/s": Population({"arrivals": 1.3}, shape(3, 3)),
    "4v4 .7/s parties": Population({"arrivals": 0.7, **PARTIES}, shape(4)),
    "6v6 .35/s regions": Population({"arrivals": 0.35, **REGIONS}, shape(6)),
    "3x3 1.3/s parties": Population({"arrivals": 1.3, **PARTIES}, shape(3, 3)),
    "5v5 3/s all": Population({"arrivals": 3.0, **PARTIES, **REGIONS, **STRICT}, shape(5)),
    "5v5 1/s roles": Population({"arrivals": 1.0, **ROLES}, {**shape(5), "roles": {"tank": 1, "healer": 1}}),
    "5v5 2/s attributes": Population({"arrivals": 2.0, **PARTIES, **ATTRIBUTES}, {**shape(5), **DECLARED}),
    "duels .2/s strict": Population({"arrivals": 0.2, **STRICT}, shape(1)),
    "6v6 4/s bursts": Population({"arrivals": 4.0, "kind": "bursts", **PARTIES}, shape(6)),
    "3v3 60 return": Population(
        {"arrivals": 0.2, "players": 60, "return_share": 1.0, "share_strict": 0.0, "minutes": 60.0}, shape(3)
    ),
}
SIMULATED = (  # cheap ones that contain everything: measuring a part takes about 20 seconds of processor time
    "6v6 .35/s",
    "6v6 .35/s regions",
    "3x3 1.3/s parties",
    "5v5 3/s all",
    "duels .2/s strict",
    "6v6 4/s bursts",
)
MINUTES_AT_MOST = 30.0


def measure(population: Population, options: Mapping[str, object], seed: int) -> dict[str, float]:
    """The figures of one run."""
    policy = Policy.from_data({**population.policy, **options})
    values: dict[str, object] = {"seed": seed, "tick": 2.0, **population.scenario}
    values.setdefault("minutes", min(max(1800 / float(str(values["arrivals"])) / 60, 15.0), MINUTES_AT_MOST))
    run = simulate(Scenario.from_data(values), propose, policy)
    figures = {key: float(value) for key, value in summary_of(run).items() if isinstance(value, int | float)}
    off = np.abs(run.worth.true_odds - 0.5)
    figures |= {"spread_mean": float(run.worth.spread.mean()), "odds_off": float(np.nanmean(off))}
    figures["longest"] = max(figures.get("wait_max", 0.0), figures.get("longest_unmatched", 0.0))
    return {name: figures[name] for name in FIGURES}


def measured(part: str, seeds: int) -> dict[str, list[dict[str, float]]]:
    """The figures of one variant in a process of its own, by population and seed."""
    package = Path(evenmatch.__file__).parent
    command = [sys.executable, "-m", "benchmarks.ablation", "--variant", part, "--seeds", str(seeds)]
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "evenmatch"
        if PARTS[part].edits:
            shutil.copytree(package, copied)  # with the compiled kernels: numba compiles only what was edited
        for edit in PARTS[part].edits:
            path = copied / edit.file
            text = path.read_text()
            if edit.old not in text:
                raise SystemExit(f"{part}: {edit.file} does not contain {edit.old!r}")
            path.write_text(text.replace(edit.old, edit.new))
        search = os.pathsep.join((folder, str(package.parent), str(Path(__file__).parents[1])))
        environment = os.environ | {"PYTHONPATH": search}
        output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout
    found: dict[str, list[dict[str, float]]] = json.loads(output)
    return found


def compared(whole: list[float], without: list[float]) -> str:
    """The mean difference and its interval in percent of the whole matchmaker's figure."""
    apart = [other - own for own, other in zip(whole, without, strict=True)]
    if not any(apart):
        return "="
    base = statistics.fmean(whole)
    scale = 100 / base if base else 1.0
    half = student(len(apart) - 1) * statistics.stdev(apart) / len(apart) ** 0.5 * scale
    mean = statistics.fmean(apart) * scale
    return f"{mean:+.1f} ± {half:.1f}{'*' if abs(mean) > half else ''}"


def proposals_hash() -> str:
    """A hash of the proposals in QUEUES random queues of the populations."""
    digest = hashlib.sha256()
    for number in range(QUEUES):
        draw = np.random.default_rng(number)
        population = list(POPULATIONS.values())[number % len(POPULATIONS)]
        policy = Policy.from_data(population.policy)
        scenario = Scenario.from_data({**population.scenario, "seed": number, "minutes": 30.0, "share_avoiding": 0.1})
        tickets = Crowd(scenario, policy).sample()
        queue, now = Queue(), 1_000_000 * SECOND
        waited = draw.uniform(0, draw.choice((30, 120, 600)), len(tickets))
        queue.join_all(replace(tickets, queued=(now - waited * SECOND).astype(np.int64)))
        for proposal in propose(queue, now, policy):
            digest.update(repr((proposal.teams, proposal.region, proposal.roles, proposal.odds)).encode())
    return digest.hexdigest()


def main() -> None:
    """Measure all variants, or one in this process."""
    parser = argparse.ArgumentParser(description="What each part of the matchmaker earns.")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--parts", help="names of parts, separated by commas; default: all")
    parser.add_argument("--variant", help=argparse.SUPPRESS)
    parser.add_argument("--hash", action="store_true", help="only hash the proposals in 100 random queues")
    given = parser.parse_args()
    if given.hash:
        print(proposals_hash())
    elif given.variant:
        variant = {
            name: [measure(POPULATIONS[name], PARTS[given.variant].options, seed) for seed in range(1, given.seeds + 1)]
            for name in SIMULATED
        }
        print(json.dumps(variant))
    else:
        whole = measured("whole", given.seeds)
        print("whole", *FIGURES, sep=" | ")
        for name, runs in whole.items():
            print(name, *(f"{statistics.fmean(run[figure] for run in runs):.3g}" for figure in FIGURES), sep=" | ")
        for part in given.parts.split(",") if given.parts else [part for part in PARTS if part != "whole"]:
            print(f"\nwithout {part}", *FIGURES, sep=" | ", flush=True)
            for name, others in measured(part, given.seeds).items():
                pairs = (([run[f] for run in whole[name]], [run[f] for run in others]) for f in FIGURES)
                print(name, *(compared(*pair) for pair in pairs), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
