"""One cell of `benchmarks.fronts`: its policy, its scenario and its figures for one matchmaker and seed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from benchmarks.rivals import RivalMatchmaker, others
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.scenario import REGION_MIXES, Scenario, party_mix
from evenmatch.lab.queue.simulation import simulate
from evenmatch.matchmaking import Policy, propose

SHORTEST, LONGEST = 20.0, 360.0  # minutes
CLOSED_MINUTES = 120.0  # of populations that return after each match
NIGHT = 7200.0  # seconds: the period of the population `night`


class Cell(NamedTuple):
    """A shape of match, arrivals in players a second, a population and a preset."""

    shape: str
    rate: float
    population: str
    preset: str

    @property
    def name(self) -> str:
        """The cell in a table."""
        return f"{self.shape} {self.rate:g}/s {self.population} {self.preset}"


class Task(NamedTuple):
    """A run to measure. players: arrivals that it is long enough for;  options: of the policy, to replace"""

    cell: Cell
    matchmaker: str
    seed: int
    players: int
    options: dict[str, object]


def default(scenario: dict[str, object], _: Policy) -> None:
    """The default scenario, a quarter strict."""
    scenario["share_strict"] = 0.25


def parties(scenario: dict[str, object], policy: Policy) -> None:
    """Some parties, none larger than a team."""
    scenario["parties"] = party_mix("some", policy.team_size)


def regions(scenario: dict[str, object], _: Policy) -> None:
    """Four regions."""
    scenario["regions"] = REGION_MIXES["four"]


def strict(scenario: dict[str, object], _: Policy) -> None:
    """Three of five players strict."""
    scenario["share_strict"] = 0.6


def bursts(scenario: dict[str, object], _: Policy) -> None:
    """Arrivals in bursts."""
    scenario["kind"] = "bursts"


def night(scenario: dict[str, object], _: Policy) -> None:
    """At least one day of two hours, with a quiet and a busy half."""
    scenario |= {"kind": "daily", "period": NIGHT}
    scenario["minutes"] = max(_minutes(scenario), NIGHT / 60.0)


def returning(scenario: dict[str, object], _: Policy) -> None:
    """400 players who come in the first minutes and return after each match."""
    scenario |= {"players": 400, "return_share": 1.0, "minutes": CLOSED_MINUTES}


def closed(scenario: dict[str, object], _: Policy) -> None:
    """60 loose players who come in the first minutes and return after each match."""
    scenario |= {"players": 60, "return_share": 1.0, "share_strict": 0.0, "minutes": CLOSED_MINUTES}


POPULATIONS: dict[str, Callable[[dict[str, object], Policy], None]] = {
    population.__name__: population
    for population in (default, parties, regions, strict, bursts, night, returning, closed)
}
FIXED_RATES = {"returning": 400 / 300, "closed": 0.2}  # all 400 come in five minutes, all 60 in as many


def read_shape(text: str) -> dict[str, int]:
    """Team size and teams of `duel`, `5v5`, `3x4` (four teams of three) and `ffa8`. Raises SystemExit for others."""
    if text == "duel":
        return {"team_size": 1, "teams": 2}
    if (versus := re.fullmatch(r"(\d+)v(\d+)", text)) and versus[1] == versus[2]:
        return {"team_size": int(versus[1]), "teams": 2}
    if several := re.fullmatch(r"(\d+)x(\d+)", text):
        return {"team_size": int(several[1]), "teams": int(several[2])}
    if alone := re.fullmatch(r"ffa(\d+)", text):
        return {"team_size": 1, "teams": int(alone[1])}
    raise SystemExit(f"shape {text!r}: expected duel, 5v5, 3x4 (four teams of three) or ffa8")


def policy_of(cell: Cell, options: Mapping[str, object]) -> Policy:
    """The preset with the cell's teams and the replaced options; no cost of rematches where all players return."""
    returns = {"rematch_wait": 0.0} if cell.population in FIXED_RATES else {}
    return Policy.from_data({"preset": cell.preset, **read_shape(cell.shape), **returns, **options})


def scenario_of(cell: Cell, policy: Policy, seed: int, players: int) -> Scenario:
    """The scenario of a cell, long enough for this many arrivals, from 20 minutes to 6 hours."""
    values: dict[str, object] = {"arrivals": cell.rate, "seed": seed}
    values["minutes"] = min(max(SHORTEST, players / cell.rate / 60.0), LONGEST)
    POPULATIONS[cell.population](values, policy)
    return Scenario.from_data(values)


def _minutes(scenario: Mapping[str, object]) -> float:
    minutes = scenario["minutes"]
    assert isinstance(minutes, float)
    return minutes


def matchmakers() -> dict[str, RivalMatchmaker]:
    """evenmatch and all comparison matchmakers by name."""
    return {"evenmatch": RivalMatchmaker(propose, "The matchmaker of evenmatch.", keeps_filters=True), **others()}


def measure(task: Task) -> dict[str, float | None]:
    """Figures of one run. longest: of all waits, including those of players still waiting at the end"""
    policy = policy_of(task.cell, task.options)
    scenario = scenario_of(task.cell, policy, task.seed, task.players)
    run = simulate(scenario, matchmakers()[task.matchmaker].propose, policy, name=task.matchmaker)
    figures = {key: float(value) for key, value in summary_of(run).items() if isinstance(value, int | float)}
    names = ("wait_p50", "wait_p95", "spread_p50", "spread_p95", "law", "unmatched", "violations", "matches")
    longest = max(figures.get("wait_max", 0.0), figures.get("longest_unmatched", 0.0))
    return {name: figures.get(name) for name in names} | {"longest": longest}
