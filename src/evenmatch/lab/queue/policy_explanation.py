"""A fitted policy explained in sentences."""

from __future__ import annotations

from math import isfinite

from evenmatch.lab.queue.policy_fit import PolicyFit
from evenmatch.lab.queue.policy_prediction import QueuePrediction

LONG = "longer than was simulated"


def explain(fit: PolicyFit) -> list[str]:
    """Explain in sentences who plays, what the fitted policy would change, and whether it keeps the target."""
    return [_crowd(fit.fitted), *(_kept(fit) if fit.is_kept else _missed(fit)), *_strict(fit), *_verdict(fit)]


def _crowd(seen: QueuePrediction) -> str:
    strict = (
        "none of them is strict" if seen.share_strict == 0 else f"{seen.share_strict * 100:.0f} % of them are strict"
    )
    players = f"the {seen.policy.players} players of a match"
    return f"Players join at {_rate(seen.arrivals)}, {strict}; {players} take {_filling(seen)} to arrive."


def _kept(fit: PolicyFit) -> list[str]:
    now, then, share = fit.present, fit.fitted, fit.target.share_in_words
    return [
        f"With matches of up to {then.policy.even_spread:.3g} percentiles at once, {share} wait {_wait(then)} "
        f"({_now(now.wait)}).",
        f"Half of the matches span {_spread(then)} (now {now.spread:.1f}), 95 of 100 {then.widest:.1f} or less "
        f"(now {now.widest:.1f}).",
    ]


def _missed(fit: PolicyFit) -> list[str]:
    nearest, share = fit.fitted, fit.target.share_in_words
    return [
        f"{fit.target.in_words[0].upper()}{fit.target.in_words[1:]} cannot be kept by any width.",
        f"The nearest is matches of up to {nearest.policy.even_spread:.3g} percentiles at once: {share} wait "
        f"{_wait(nearest)} ({_now(fit.present.wait)}), and half of the matches span {_spread(nearest)} (now "
        f"{fit.present.spread:.1f}).",
        "Allow a longer wait or a smaller share, or choose smaller teams.",
    ]


def _strict(fit: PolicyFit) -> list[str]:
    then, now = fit.fitted.strict_wait, fit.present.strict_wait
    if then is None or now is None:
        return []
    return [
        f"These are players with loose filters. Strict filters never widen: of the strict players "
        f"{fit.target.share_in_words} wait {_seconds(then)} ({_now(now)})."
    ]


def _verdict(fit: PolicyFit) -> list[str]:
    if not fit.is_kept or fit.is_better:
        return []
    if fit.present.keeps(fit.target):
        return ["The present policy keeps the target with matches that are as close, or nearly so."]
    return ["The wait would hardly be shorter than with the present policy."]


def _rate(arrivals: float) -> str:
    if arrivals >= 0.1:
        return f"{arrivals:.2g} a second"
    return f"{arrivals * 3600:.0f} an hour"


def _filling(seen: QueuePrediction) -> str:
    return f"{seen.policy.players / seen.arrivals:.0f} s" if seen.arrivals > 0 else "a long time"


def _wait(seen: QueuePrediction) -> str:
    return _seconds(seen.wait)


def _seconds(wait: float) -> str:
    return f"{wait:.0f} s or less" if isfinite(wait) else LONG


def _now(wait: float) -> str:
    return f"now {wait:.0f} s" if isfinite(wait) else f"now {LONG}"


def _spread(seen: QueuePrediction) -> str:
    return f"{seen.spread:.1f} percentiles or less"
