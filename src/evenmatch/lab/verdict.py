"""A backtest in plain words: who predicts best, who cannot be told from it, and what else is worth knowing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenmatch.lab.backtest import Backtest
    from evenmatch.lab.findings import Variant

COIN = 0.6931471805599453  # log loss of an even chance; with draws it is the same
NEWCOMERS = ("0", "1–9")  # matches behind the least experienced player
CALM = 0.1  # a calibration slope so near to 1 needs no word
FASTER = 3.0  # times
SLOW = 1.0  # seconds for all matches, below which nobody minds
LEAST = 0.01  # percent
OFTEN = 0.005  # share of matches
FEW = 50  # matches with newcomers
LONG = 4  # names in a sentence
TRIFLE = 0.001  # share of the log loss: a difference that no game would feel

Row = Mapping[str, Any]


def verdict(b: Backtest) -> list[str]:
    """Sentences, the most important first."""
    scores = {(row["system"], row["variant"]): row for row in b.scores.to_pylist()}
    apart = {(row["system"], row["variant"]): row for row in b.against_best.to_pylist()}
    best, *others = b.chosen
    top = scores[best[:2]]
    level = [one for one in others if _level(apart[one[:2]], top)]
    behind = [one for one in others if one not in level]
    named = _names(b.chosen)
    told = [_opening(b, top, [named[one.system] for one in (best, *level)])]
    told += [f"{named[one.system]} {_behind(one, scores[one[:2]], top, apart[one[:2]], b)}." for one in behind]
    told += _tuning(b, scores)
    row = min(scores.values(), key=itemgetter("log_loss"))
    if row["log_loss"] < top["log_loss"]:
        told.append(
            f"The {row['variant']} variant of {row['system']} did better still here ({row['log_loss']:.4f}), but was "
            "picked out with hindsight."
        )
    told += [f"{name} was left out: {reason}." for name, reason in b.left_out]
    return told


def _level(apart: Row, top: Row) -> bool:
    """Whether a difference may be chance, or is too small to matter."""
    return bool(apart["low"] <= 0.0 or apart["difference"] < TRIFLE * top["log_loss"])


def _names(chosen: Sequence[Variant]) -> dict[str, str]:
    """What each system is called; the variant is told where it is not the same for all."""
    plain = {one.variant for one in chosen} in ({"default"}, {"tuned"})
    return {one.system: one.system if plain else f"{one.system} ({one.variant})" for one in chosen}


def _opening(b: Backtest, top: Row, names: list[str]) -> str:
    best, *level = names
    tuned = all(one.variant == "tuned" for one in b.chosen)
    gained = (COIN - top["log_loss"]) / COIN
    says = f"{best} predicts this game best: log loss {top['log_loss']:.4f}, {gained:.1%} better than a coin"
    chance = max(top["log_loss"], top["log_loss_high"] or 0.0) >= COIN
    if chance:
        says = f"no system can be told from a coin on these matches; {best} comes nearest ({top['log_loss']:.4f})"
    if chance:
        says += "."
    elif len(b.chosen) == 1:
        says += "; it was the only system tried."
    elif not level:
        says += ", and ahead of every other by more than chance."
    else:
        says += f"; {_listed(level)} {'is' if len(level) == 1 else 'are'} indistinguishable from it on these matches."
    return f"With tuned parameters, {says}" if tuned else says[0].upper() + says[1:] if chance else says


def _listed(names: list[str]) -> str:
    """Names in a sentence; of a long list the first three."""
    if len(names) == 1:
        return names[0]
    if len(names) <= LONG:
        return ", ".join(names[:-1]) + f" and {names[-1]}"
    return ", ".join(names[: LONG - 1]) + f" and {len(names) - LONG + 1} others"


def _behind(one: Variant, row: Row, top: Row, apart: Row, b: Backtest) -> str:
    worse = apart["difference"] / top["log_loss"]
    low, high = apart["low"] / top["log_loss"], apart["high"] / top["log_loss"]
    return f"is {_percent(worse)} worse ({_percent(low)} to {_percent(high)}){_but(one, row, top, b)}"


def _but(one: Variant, row: Row, top: Row, b: Backtest) -> str:
    """What speaks for a system that predicts worse; where nothing does, what is the matter with it."""
    said = []
    if row["accuracy"] is not None and row["accuracy"] >= top["accuracy"]:
        often = "more often" if row["accuracy"] > top["accuracy"] + OFTEN else "as often"
        said.append(f"picks the winner {often} ({row['accuracy']:.1%} against {top['accuracy']:.1%})")
    slope, best_slope = row["calibration_slope"], top["calibration_slope"]
    good = slope is not None and abs(slope - 1.0) < 2 * CALM
    if good and best_slope is not None and abs(slope - 1.0) < abs(best_slope - 1.0) - CALM:
        said.append(f"states better odds (calibration slope {slope:.2f} against {best_slope:.2f})")
    if _newcomers(b, one) < _newcomers(b, b.chosen[0]) - TRIFLE:
        said.append("predicts matches with newcomers better")
    if row["seconds"] * FASTER < top["seconds"] and top["seconds"] > SLOW:
        said.append(f"rates {top['seconds'] / row['seconds']:.0f} times as fast")
    if said:
        return ", but " + " and ".join(said)
    if slope is not None and slope < 1.0 - 2 * CALM:
        return f", too sure of itself (calibration slope {slope:.2f})"
    if slope is not None and slope > 1.0 + 2 * CALM:
        return f", too timid (calibration slope {slope:.2f})"
    return ""


def _newcomers(b: Backtest, variant: Variant) -> float:
    """Log loss of the matches with a newcomer; infinite where there are none."""
    rows = [
        row
        for row in b.segments.to_pylist()
        if row["by"] == "experience" and row["group"] in NEWCOMERS and (row["system"], row["variant"]) == variant[:2]
    ]
    count = sum(row["matches"] for row in rows)
    return sum(row["log_loss"] * row["matches"] for row in rows) / count if count >= FEW else float("inf")


def _tuning(b: Backtest, scores: Mapping[tuple[str, str], Row]) -> list[str]:
    """What tuning was worth, on matches that it did not see."""
    pairs = {
        system: (scores[system, "default"]["log_loss"], scores[system, "tuned"]["log_loss"])
        for system, variant in scores
        if variant == "tuned" and (system, "default") in scores
    }
    if not pairs:
        return []
    gains = {system: (before - after) / before for system, (before, after) in pairs.items()}
    most = max(gains, key=lambda system: gains[system])
    told = [f"Tuning helped {most} most, by {_percent(gains[most])}."] if gains[most] > 0 else []
    harmed = sorted(system for system, gain in gains.items() if gain < 0)
    if harmed:
        told.append(f"What tuning found on the warm-up did worse than the defaults afterwards for {', '.join(harmed)}.")
    return told


def _percent(share: float) -> str:
    percent = 100 * share
    if percent < LEAST:
        return "0%"
    return f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%"
