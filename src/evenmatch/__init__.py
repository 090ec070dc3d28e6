"""evenmatch: rate players from recorded matches, and explain every change.

    matches = evenmatch.read("season.csv")
    ratings = evenmatch.rate(matches, evenmatch.rules("wager"))
    ratings.standings()

Names are imported on first use, so that `import evenmatch` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenmatch.errors import EvenmatchError as EvenmatchError
    from evenmatch.lab.backtests.backtest import Backtest as Backtest
    from evenmatch.lab.backtests.backtest import backtest as backtest
    from evenmatch.lab.backtests.report import write_report as write_report
    from evenmatch.lab.backtests.verdict import verdict as verdict
    from evenmatch.ladders.settings import Settings as Settings
    from evenmatch.match import Appearance as Appearance
    from evenmatch.match import Match as Match
    from evenmatch.match import Team as Team
    from evenmatch.online import Rater as Rater
    from evenmatch.operations.service import Service as Service
    from evenmatch.options import number as number
    from evenmatch.rating import Ratings as Ratings
    from evenmatch.rating import explain as explain
    from evenmatch.rating import rate as rate
    from evenmatch.rating import rules as rules
    from evenmatch.stake_assumptions import StakeAssumptions as StakeAssumptions
    from evenmatch.systems.duel import DuelSystem as DuelSystem
    from evenmatch.tables import MatchTable as MatchTable
    from evenmatch.tables import from_frame as from_frame
    from evenmatch.tables import from_matches as from_matches
    from evenmatch.tables import from_wide as from_wide
    from evenmatch.tables import join as join
    from evenmatch.tables import read as read
    from evenmatch.tables import write as write

__version__ = "0.1.0"

_HOME = {
    "DuelSystem": "systems.duel",
    "EvenmatchError": "errors",
    "Backtest": "lab.backtests.backtest",
    "backtest": "lab.backtests.backtest",
    "Appearance": "match",
    "Match": "match",
    "Team": "match",
    "Rater": "online",
    "Ratings": "rating",
    "explain": "rating",
    "rate": "rating",
    "rules": "rating",
    "Service": "operations.service",
    "Settings": "ladders.settings",
    "StakeAssumptions": "stake_assumptions",
    "MatchTable": "tables",
    "from_frame": "tables",
    "from_matches": "tables",
    "from_wide": "tables",
    "join": "tables",
    "number": "options",
    "read": "tables",
    "verdict": "lab.backtests.verdict",
    "write": "tables",
    "write_report": "lab.backtests.report",
}
__all__ = [*_HOME, "__version__"]  # noqa: PLE0604 - the names are strings


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'evenmatch' has no attribute {name!r}")
    return getattr(importlib.import_module(f"evenmatch.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
