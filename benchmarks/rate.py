"""Matches rated per second, by each system, beside the same work in plain C."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

import evenmatch
from benchmarks.figure import Figure, Section, seconds_in_turn
from benchmarks.limit import Limit, compiled
from benchmarks.matches import DUELS, FREE, TEAMS, Season, as_table, hidden_skill, play
from evenmatch.history import History
from evenmatch.systems import loop
from evenmatch.systems.loop import Replay
from evenmatch.systems.system import Records, Rules
from evenmatch.tables import MatchTable

MILLION = 1e6
ROUNDS = 9
CLOSE = 1e-9  # of a rating, or of 1 where that is more, since shown ratings may be about 0; of 1 for expected scores
AIMS: dict[str, dict[str, float]] = {  # of a system, or of its preset: million matches a second on one core
    "wager": {"1v1": 25, "5v5": 10},
    "battlepoints": {"1v1": 15},
    "scorefactor": {"1v1": 8, "5v5": 0.5},
    "prav": {"1v1": 3, "5v5": 0.7},
    "even": {"1v1": 1, "5v5": 0.5},
    "even plain": {"1v1": 3, "5v5": 1.5},
    "elo": {"1v1": 35, "5v5": 18},
    "glicko2": {"1v1": 4},
    "trueskill": {"1v1": 10, "5v5": 5},
    "wenglin": {"1v1": 10, "5v5": 5, FREE.form: 2},
}
FREE_FOR_ALL = ("elo", "trueskill", "wenglin")  # rated in the season of that form too
ANY_TEAMS = ("wenglin",)  # whose C loop rates matches of more than two teams
WITHIN = {"wager": 2.0, "battlepoints": 2.0}  # times the seconds of C


def run() -> Section:
    """Every system on both seasons."""
    figures: list[Figure] = []
    notes = [
        "A million 1v1 matches among 50,000 players, 200,000 5v5 matches among 20,000 players and 100,000 "
        "free-for-alls of 8 among 20,000 players, on one core. "
        "`replay` is `evenmatch.systems.loop.replay` on ratings that an earlier season has spread; `rate` is "
        "`evenmatch.rate`, newcomers and checks included. "
        f"{ROUNDS} runs, alternating with the C loop after a warm-up run of each.",
        f"The C loops ({Limit.built()}) do the same work on the same arrays, expected scores and ties included; "
        "their ratings are compared with evenmatch's in the same run.",
    ]
    if compiled() is None:
        notes.append("**No gcc was found, so there is no C to compare with.**")
    for season in (DUELS, TEAMS, FREE):
        history = play(season)
        table = as_table(history, texts(season.matches), texts(season.players))
        for name, aims in AIMS.items():
            if season is FREE and name not in FREE_FOR_ALL:
                continue
            rules = evenmatch.rules(*name.split())
            state = spread(rules, season, history)
            figures += compare(name, season, table, rules, state, aims.get(season.form), notes)
    return Section("Rating a recorded season", figures, notes)


def spread(rules: Rules, season: Season, history: History) -> Records:
    """The state after a season, so that ratings differ and windows are full; wager starts players by their skill."""
    state = rules.newcomers(season.players)
    if rules.system.name == "wager":
        state["rating"] = np.maximum(1.0, np.round(20 * np.exp(0.5 * hidden_skill(season.players)), 2))
    return loop.replay(rules, history, state).state


def compare(
    name: str, season: Season, table: MatchTable, rules: Rules, state: Records, aim: float | None, notes: list[str]
) -> list[Figure]:
    """The speed of one system on one season, alone and as part of evenmatch.rate, and that of its C loop."""
    history = table.history
    library = compiled() if season.teams == 2 or name in ANY_TEAMS else None
    runs: list[Callable[[], object]] = [
        partial(loop.replay, rules, history, state),
        partial(evenmatch.rate, table, rules),
    ]
    limit = None
    if library is not None:
        limit = Limit(library, name.replace(" ", "_"), history)
        fault = difference(loop.replay(rules, history, state), limit.replay(state), limit, exact=name == "wager")
        if fault:
            notes.append(f"**{name} {season.form}: the C loop is no reference: {fault}.**")
            limit = None
        else:
            runs.append(partial(limit.replay, state))
    evenmatch.rate(table, rules)
    rates = [season.matches / MILLION / seconds for seconds in seconds_in_turn(runs, ROUNDS)]
    by_c = rates[2] if limit else None
    unit, by = "M matches/s", "C, gcc -O3"
    return [
        Figure(f"{name} {season.form}: replay", rates[0], unit, aim, True, by_c, by, WITHIN.get(name)),
        Figure(f"{name} {season.form}: rate", rates[1], unit, None, True, by_c, by),
    ]


def difference(ours: Replay, theirs: Records, limit: Limit, *, exact: bool) -> str:
    """How the C loop's numbers differ from the package's; nothing where they agree."""
    a, b = ours.state["rating"], theirs["rating"]
    if exact and (apart := int(np.count_nonzero(a != b))):
        return f"{apart} of {len(a)} ratings are other cents"
    worst = float(np.max(np.abs(a - b) / np.maximum(np.abs(a), 1.0)))
    if not worst <= CLOSE:
        return f"a rating differs by {worst:.1e} of itself"
    worst = float(np.max(np.abs(ours.expected - limit.expected)))
    return "" if worst <= CLOSE else f"an expected score differs by {worst:.1e}"


def texts(count: int) -> pa.Array:
    """So many names."""
    return pa.array(np.arange(count)).cast(pa.large_string())
