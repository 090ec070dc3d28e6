"""What predictions were worth, one match after the other: the definitions of the metrics, slow and obvious."""

import math
from dataclasses import dataclass
from itertools import combinations

LEAST = 1e-12  # no probability counts as less


@dataclass(frozen=True)
class SlowJudged:
    """One match. `three_way` is of systems that give draws a probability, `hit` is None where no pair was decided."""

    log_loss: float
    three_way: float
    brier: float
    hit: float | None


def judged(places: list[int], foretold: dict[tuple[int, int], tuple[float, float]]) -> SlowJudged:
    """`foretold` has win and draw for each pair of teams, the lower index first; pairs are averaged."""
    losses, three_ways, squares, hits = [], [], [], []
    for pair in combinations(range(len(places)), 2):
        win, draw = foretold[pair]
        p = win + draw / 2
        first, second = places[pair[0]], places[pair[1]]
        outcome = 1.0 if first < second else 0.5 if first == second else 0.0
        losses.append(outcome * surprise(p) + (1 - outcome) * surprise(1 - p))
        three_ways.append(surprise({1.0: win, 0.5: draw, 0.0: 1 - win - draw}[outcome]))
        squares.append((p - outcome) ** 2)
        if outcome != 0.5:
            hits.append(0.5 if p == 0.5 else float((p > 0.5) == (outcome == 1.0)))
    return SlowJudged(mean(losses), mean(three_ways), mean(squares), mean(hits) if hits else None)


def surprise(p: float) -> float:
    return -math.log(min(max(p, LEAST), 1.0))


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def together(matches: list[SlowJudged]) -> dict[str, float | None]:
    """The metrics of several matches, each of which counts once."""
    hits = [one.hit for one in matches if one.hit is not None]
    return {
        "matches": len(matches),
        "log_loss": mean([one.log_loss for one in matches]),
        "three_way_log_loss": mean([one.three_way for one in matches]),
        "brier": mean([one.brier for one in matches]),
        "accuracy": mean(hits) if hits else None,
    }


def fewest_before(matches: list[list[str]]) -> list[int]:
    """For each match, told as its players, how many matches the least experienced of them had played before."""
    played: dict[str, int] = {}
    fewest = []
    for players in matches:
        fewest.append(min(played.get(name, 0) for name in players))
        for name in players:
            played[name] = played.get(name, 0) + 1
    return fewest


def experience(before: int) -> str:
    """The group of a match whose least experienced player had so many matches behind them."""
    if before == 0:
        return "0"
    if before < 10:
        return "1–9"
    if before < 30:
        return "10–29"
    return "30–99" if before < 100 else "100 or more"
