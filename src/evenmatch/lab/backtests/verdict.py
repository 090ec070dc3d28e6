"""Findings of a backtest as sentences: the best system, systems on a par with it, strengths of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from evenmatch.systems.system import System

if TYPE_CHECKING:
    from evenmatch.lab.backtests.backtest import Backtest
    from evenmatch.lab.backtests.scoring import Variant

COIN = 0.6931471805599453  # log loss of predicting 50 %, with or without draws
NEWCOMERS = ("0", "1–9")  # labels of experience, see match_cells
CALM = 0.1  # a calibration slope this near to 1 is not mentioned
FASTER = 3.0  # speed ratio from which it is mentioned
SLOW = 1.0  # seconds for all matches from which speed is mentioned
LEAST = 0.01  # smaller percentages are shown as 0
OFTEN = 0.005  # larger differences of accuracy are called "more often"
FEW = 50  # fewest matches with newcomers for a comparison
LONG = 4  # most names listed in a sentence
TRIFLE = 0.001  # share of the log loss: smaller differences do not matter in practice

Row = Mapping[str, Any]


def verdict(b: Backtest) -> list[str]:
    """Findings as sentences, the most important first, then the notes on how the backtest was run."""
    scores = {(row["system"], row["variant"]): row for row in b.scores.to_pylist()}
    differences = {(row["system"], row["variant"]): row for row in b.against_best.to_pylist()}
    best, *others = b.chosen
    top = scores[best[:2]]
    level = [variant for variant in others if _level(differences[variant[:2]], top)]
    behind = [variant for variant in others if variant not in level]
    named = _names(b.chosen)
    sentences = [_opening(b, top, [named[variant.system] for variant in (best, *level)])]
    sentences += [
        f"{named[variant.system]} {_behind(variant, scores[variant[:2]], top, differences[variant[:2]], b)}."
        for variant in behind
    ]
    sentences += [*_without_tuning(b, scores, named), *_tuning(b, scores)]
    row = min(scores.values(), key=itemgetter("log_loss"))
    if row["log_loss"] < top["log_loss"]:
        sentences.append(
            f"The {row['variant']} variant of {row['system']} did even better here ({row['log_loss']:.4f}), but "
            "choosing it afterwards would be hindsight."
        )
    sentences += [f"{name} was left out: {reason}." for name, reason in b.left_out]
    return sentences + [f"Note: {note}." for note in b.notes]


class Advice(NamedTuple):
    """Which system a ladder should use. is_change: not its own system as it is set;  costs: of adopting it."""

    words: str
    is_change: bool
    costs: list[str]


def advise(b: Backtest, own: str) -> Advice:
    """Advice for a ladder, in plain words. own: the ladder's system; its `given` variant has the present parameters."""
    best = b.chosen[0]
    scores = {(row["system"], row["variant"]): row for row in b.scores.to_pylist()}
    differences = {(row["system"], row["variant"]): row for row in b.against_best.to_pylist()}
    top, name = scores[best[:2]], best.system
    if best.variant not in ("given", "default"):
        name += f" with the {'tuned parameters' if best.variant == 'tuned' else f'preset {best.variant}'}"
    present = (own, "given" if (own, "given") in scores else "default")
    if best[:2] == present:
        return Advice(
            f"Keep the system {own} as it is: nothing that was tried predicts these matches better.", False, []
        )
    if present not in scores:
        words = f"The system {name} predicts best of what was tried. {own}, which this ladder uses, was not tried."
    elif _level(differences[present], top):
        return Advice(
            f"Keep the system {own} as it is: the lead of {name} may be chance, or is too small to matter.", False, []
        )
    else:
        worse = _percent(differences[present]["difference"] / top["log_loss"])
        words = f"Use the system {name}. {own}, as it is set now, predicts {worse} worse, which is more than chance."
    return Advice(words, True, _costs(b, best, top, scores.get(present)))


def _costs(b: Backtest, best: Variant, top: Row, present: Row | None) -> list[str]:
    """What adopting a variant costs, in sentences."""
    sentences = [f"All {len(b.matches):,} matches are rated again, and most players get another number."]
    if present is None or present["system"] != best.system:
        sentences.append("The new ratings have another scale, so explain the change to your players.")
    if present is not None and top["seconds"] > FASTER * present["seconds"]:
        sentences.append(f"Rating a match takes {top['seconds'] / present['seconds']:.0f} times as long.")
    if best.rules.system.needs != System.needs:
        sentences.append(f"What {best.system} needs: {best.rules.system.needs}.")
    return sentences


def _level(apart: Row, top: Row) -> bool:
    """Whether a difference may be chance or is too small to matter."""
    return bool(apart["low"] <= 0.0 or apart["difference"] < TRIFLE * top["log_loss"])


def _names(chosen: Sequence[Variant]) -> dict[str, str]:
    """Display name of each system, with the variant unless it is the same for all."""
    plain = {variant.variant for variant in chosen} in ({"default"}, {"tuned"})
    return {variant.system: variant.system if plain else f"{variant.system} ({variant.variant})" for variant in chosen}


def _opening(b: Backtest, top: Row, names: list[str]) -> str:
    best, *level = names
    tuned = all(variant.variant == "tuned" for variant in b.chosen)
    gained = (COIN - top["log_loss"]) / COIN
    sentence = f"{best} predicts this game best: log loss {top['log_loss']:.4f}, {gained:.1%} better than a coin"
    chance = max(top["log_loss"], top["log_loss_high"] or 0.0) >= COIN
    if chance:
        sentence = (
            f"no system can be distinguished from a coin on these matches; {best} comes nearest ({top['log_loss']:.4f})"
        )
    if chance:
        sentence += "."
    elif len(b.chosen) == 1:
        sentence += "; it was the only system tried."
    elif not level:
        sentence += ", and ahead of every other by more than chance."
    else:
        sentence += (
            f"; {_listed(level)} {'is' if len(level) == 1 else 'are'} indistinguishable from it on these matches."
        )
    return f"With tuned parameters, {sentence}" if tuned else sentence[0].upper() + sentence[1:] if chance else sentence


def _listed(names: list[str]) -> str:
    """Join names; of a long list only the first three."""
    if len(names) == 1:
        return names[0]
    if len(names) <= LONG:
        return ", ".join(names[:-1]) + f" and {names[-1]}"
    return ", ".join(names[: LONG - 1]) + f" and {len(names) - LONG + 1} others"


def _behind(variant: Variant, row: Row, top: Row, apart: Row, b: Backtest) -> str:
    worse = apart["difference"] / top["log_loss"]
    low, high = apart["low"] / top["log_loss"], apart["high"] / top["log_loss"]
    return f"is {_percent(worse)} worse ({_percent(low)} to {_percent(high)}){_but(variant, row, top, b)}"


def _but(variant: Variant, row: Row, top: Row, b: Backtest) -> str:
    """Strengths of a system that predicts worse; if it has none, its weakness."""
    strengths = []
    if row["accuracy"] is not None and row["accuracy"] >= top["accuracy"]:
        often = "more often" if row["accuracy"] > top["accuracy"] + OFTEN else "as often"
        strengths.append(f"picks the winner {often} ({row['accuracy']:.1%} against {top['accuracy']:.1%})")
    slope, best_slope = row["calibration_slope"], top["calibration_slope"]
    good = slope is not None and abs(slope - 1.0) < 2 * CALM
    if good and best_slope is not None and abs(slope - 1.0) < abs(best_slope - 1.0) - CALM:
        strengths.append(f"states better odds (calibration slope {slope:.2f} against {best_slope:.2f})")
    if _newcomers(b, variant) < _newcomers(b, b.chosen[0]) - TRIFLE:
        strengths.append("predicts matches with newcomers better")
    if row["seconds"] * FASTER < top["seconds"] and top["seconds"] > SLOW:
        strengths.append(f"rates {top['seconds'] / row['seconds']:.0f} times as fast")
    if strengths:
        return ", but " + " and ".join(strengths)
    if slope is not None and slope < 1.0 - 2 * CALM:
        return f", too sure of itself (calibration slope {slope:.2f})"
    if slope is not None and slope > 1.0 + 2 * CALM:
        return f", too timid (calibration slope {slope:.2f})"
    return ""


def _newcomers(b: Backtest, variant: Variant) -> float:
    """Log loss of the matches with a newcomer; infinite if there are too few."""
    rows = [
        row
        for row in b.segments.to_pylist()
        if row["by"] == "experience" and row["group"] in NEWCOMERS and (row["system"], row["variant"]) == variant[:2]
    ]
    count = sum(row["matches"] for row in rows)
    return sum(row["log_loss"] * row["matches"] for row in rows) / count if count >= FEW else float("inf")


def _without_tuning(b: Backtest, scores: Mapping[tuple[str, str], Row], named: Mapping[str, str]) -> list[str]:
    """How the best of the systems with their defaults compares with the best of the other systems as tuned."""
    defaults = [row for (_, variant), row in scores.items() if variant == "default"]
    if not defaults or not any(variant.variant == "tuned" for variant in b.chosen):
        return []
    best = min(defaults, key=itemgetter("log_loss"))
    rivals = [variant for variant in b.chosen if variant.system != best["system"]]
    if not rivals:
        return []
    rival = rivals[0]
    apart = next(
        row for row in b.against_best_default.to_pylist() if (row["system"], row["variant"]) == rival[:2]
    )  # the rival's log loss minus that of the best default
    share, low, high = (apart[name] / best["log_loss"] for name in ("difference", "low", "high"))
    start = f"Without tuning, {best['system']} predicts best (log loss {best['log_loss']:.4f})"
    other = named[rival.system] if "(" in named[rival.system] else f"tuned {rival.system}"
    if low > 0.0:
        return [f"{start}; {other} is {_percent(share)} worse ({_percent(low)} to {_percent(high)})."]
    if high < 0.0:
        return [f"{start}; {other} is {_percent(-share)} better ({_percent(-high)} to {_percent(-low)})."]
    return [f"{start} and is indistinguishable from {other}."]


def _tuning(b: Backtest, scores: Mapping[tuple[str, str], Row]) -> list[str]:
    """Effect of tuning on matches not used for tuning."""
    pairs = {
        system: (scores[system, "default"]["log_loss"], scores[system, "tuned"]["log_loss"])
        for system, variant in scores
        if variant == "tuned" and (system, "default") in scores
    }
    if not pairs:
        return []
    kept = sorted(
        system for system in pairs if scores[system, "tuned"]["parameters"] == scores[system, "default"]["parameters"]
    )
    gains = {system: (before - after) / before for system, (before, after) in pairs.items()}
    most = max(gains, key=lambda system: gains[system])
    sentences = [f"Tuning helped {most} most, by {_percent(gains[most])}."] if gains[most] > 0 else []
    if kept:
        sentences.append(f"Tuning found nothing better than the defaults of {_listed(kept)}.")
    harmed = sorted(system for system, gain in gains.items() if gain < 0)
    if harmed:
        sentences.append(
            f"For {', '.join(harmed)} the tuned parameters did worse than the defaults on the later matches."
        )
    return sentences


def _percent(share: float) -> str:
    percent = 100 * share
    if percent < LEAST:
        return "0%"
    return f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%"
