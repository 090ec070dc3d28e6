"""Tuning: the parameters with which a system predicts some matches best, searched within the ranges it declares.

Optuna proposes, threads rate (the loop releases the interpreter's lock). The first quarter of the matches is learned
from, the rest judged. What was tried is kept in a file, line by line, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from evenmatch.errors import BadParameterError, UsageError, needing
from evenmatch.history import History
from evenmatch.lab import judging, metrics
from evenmatch.lab.judging import refused_by, replay_and_judge, too_many, without
from evenmatch.lab.metrics import LOG_LOSS, MATCHES
from evenmatch.systems import loop
from evenmatch.systems.parameter import Number, Numbers, Spec, specs
from evenmatch.systems.system import Rules, System
from evenmatch.tables import MatchTable

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

LEARNED = 0.25  # share of the matches that is learned from but not judged
DECADE = 10.0  # a range whose ends are further apart than this factor is searched by orders of magnitude
FEW = 20  # trials, below which tuning has hardly begun
FORMAT = 1

Values = dict[str, Any]  # parameters as they are typed: numbers, words, rows of numbers
Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best rules found, everything that was tried (rows of findings.TRIALS), and what to know of it."""

    rules: Rules
    log_loss: float
    trials: list[dict[str, object]]
    notes: tuple[str, ...]


def tune(
    matches: MatchTable,
    system: System,
    seconds: float,
    *,
    trials: Path | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
    most: int | None = None,
    seed: int = 1,
) -> Tuned:
    """Search for the parameters with which a system predicts the last three quarters of these matches best.

    seconds   budget, which trials of an earlier run that is resumed have used already; the defaults and the presets are
              always tried
    trials    the folder to keep what was tried in; None: nothing is kept
    workers   threads; None: one for each core
    most      trials at the most; None: as many as the seconds allow
    Raises UsageError where optuna is not installed or the folder cannot be written.
    """
    search = _Search.begin(matches, system, trials, seed)
    search.compile()
    say = progress or (lambda _what, _share: None)
    candidates: list[Values] = [{}, *(dict(preset) for preset in system.presets.values())]
    known = {json.dumps(one["values"], sort_keys=True) for one in search.tried}
    waiting = [values for values in candidates if json.dumps(_typed(values), sort_keys=True) not in known]
    begun, used = time.monotonic(), search.used
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        running: dict[Future[tuple[float, float]], tuple[int, Values, optuna.Trial | None]] = {}
        while True:
            elapsed = used + time.monotonic() - begun
            while len(running) < (workers or os.cpu_count() or 1):
                if waiting:
                    values, trial = waiting.pop(0), None
                elif search.space and elapsed < seconds and len(search.tried) + len(running) < (most or np.inf):
                    values, trial = search.ask()
                else:
                    break
                running[pool.submit(search.loss, values)] = (search.number(), values, trial)
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                number, values, trial = running.pop(future)
                loss, took = future.result()
                search.tell(number, values, trial, loss, took, used + time.monotonic() - begun)
            share = min(elapsed / seconds, 1.0) if seconds else 1.0
            say(f"tuning {system.name}: {len(search.tried)} trials, best log loss {search.best[0]:.4f}", share)
    return search.result()


class _Search:
    """What was tried so far, and where to look next."""

    def __init__(self, matches: MatchTable, system: System, space: Mapping[str, Spec], seed: int) -> None:
        with needing("lab", "tuning"):
            import optuna
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.history, self.system, self.space = matches.history, system, space
        learned = int(len(matches) * LEARNED)
        self.cell = np.where(np.arange(len(matches)) < learned, -1, 0).astype(np.int32)
        self.tried: list[dict[str, Any]] = []
        self.used, self.notes = 0.0, list[str]()
        self.kept: Path | None = None
        self.next = 0
        self.best: tuple[float, Values] = (np.inf, {})
        self._ranges = _ranges(space)
        self._study = optuna.create_study()
        self._seed = seed
        self.reseed()

    @classmethod
    def begin(cls, matches: MatchTable, system: System, folder: Path | None, seed: int) -> _Search:
        """A search, which goes on where an earlier one of the same matches, kernels and ranges was interrupted."""
        space = {name: spec for name, (spec, _) in specs(system.parameters).items() if spec.search is not None}
        search = cls(matches, system, space, seed)
        if not space:
            search.notes.append(f"{system.name} declares no ranges to tune within")
        if folder is not None:
            search.resume(folder / f"{system.name}-{_key(matches.history, system, space)}.jsonl")
        return search

    def resume(self, path: Path) -> None:
        """Take up what a file holds, and keep what is tried from now on in it."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file:
                file.seek(0)
                told = file.read().decode("utf-8", errors="replace")
                if told and not told.endswith("\n"):  # a line that was being written when the run was interrupted
                    file.write(b"\n")
        except OSError as error:
            raise UsageError(f"{path}: trials cannot be kept there: {error.strerror}") from error
        for one in filter(None, (_trial_in(line, self.system) for line in told.splitlines())):
            self._note(one)
            self.used = max(self.used, one["elapsed"])
        self.kept = path
        self.next = 1 + max((one["trial"] for one in self.tried), default=-1)
        self.reseed()
        if self.tried:
            self.notes.append(f"tuning of {self.system.name} took up {len(self.tried)} trials of an earlier run")

    def compile(self) -> None:
        """Have the kernels ready, so that no second of the budget goes to the compiler."""
        replay_and_judge(Rules.of(self.system), self.history.take(slice(0, 1)), self.cell[:1], 1, with_bins=False)

    def reseed(self) -> None:
        """Have the search propose what it did not before: it begins with random parameters."""
        import optuna

        self._study.sampler = optuna.samplers.TPESampler(multivariate=True, seed=self._seed + len(self.tried))

    def number(self) -> int:
        """The number of the next trial."""
        self.next += 1
        return self.next - 1

    def ask(self) -> tuple[Values, optuna.Trial]:
        """Parameters to try next."""
        trial = self._study.ask(self._ranges)
        values: Values = {}
        for name, spec in self.space.items():
            if isinstance(spec, Numbers):
                row = [trial.params[f"{name}.{at}"] for at in range(spec.count)]
                values[name] = sorted(row) if spec.ascending else row
            elif isinstance(spec, Number) and spec.decimals is not None:
                values[name] = round(trial.params[name], spec.decimals)
            else:
                values[name] = trial.params[name]
        return values, trial

    def loss(self, values: Values) -> tuple[float, float]:
        """Mean log loss of the judged matches with these parameters (infinite: not acceptable), and the seconds."""
        start = time.perf_counter()
        try:
            rules = Rules.of(self.system, **values)
        except BadParameterError:  # values that do not go together
            return np.inf, 0.0
        refused = refused_by(rules, self.history)
        if too_many(refused, self.history):
            return np.inf, 0.0
        history = without(self.history, refused)
        sums, _ = replay_and_judge(rules, history, self.cell, 1, with_bins=False)
        loss = float(sums[0, LOG_LOSS] / sums[0, MATCHES])
        return loss if np.isfinite(loss) else np.inf, time.perf_counter() - start

    def tell(
        self, number: int, values: Values, trial: optuna.Trial | None, loss: float, took: float, elapsed: float
    ) -> None:
        """Note what came of a try, in the file too."""
        from optuna.trial import TrialState

        finite = bool(np.isfinite(loss))
        if trial is not None:
            state = TrialState.COMPLETE if finite else TrialState.FAIL
            self._study.tell(trial, loss if finite else None, state)
        one = {
            "format": FORMAT,
            "trial": number,
            "values": _typed(values),
            "log_loss": loss if finite else None,
            "seconds": round(took, 4),
            "elapsed": round(elapsed, 3),
        }
        self._note(one, told=trial is not None)
        if self.kept is not None:
            with self.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(one) + "\n")

    def _note(self, one: dict[str, Any], *, told: bool = False) -> None:
        self.tried.append(one)
        loss = one["log_loss"]
        if loss is None:
            return
        if loss < self.best[0]:
            self.best = (loss, one["values"])
        if not told:
            self._teach(one["values"], loss)

    def _teach(self, values: Values, loss: float) -> None:
        """Tell the search of parameters that it did not propose, where they lie within its ranges."""
        import optuna

        if set(values) - set(self.space):
            return
        whole = Rules.of(self.system, **values).values()
        params: Values = {}
        for name, spec in self.space.items():
            if isinstance(spec, Numbers):
                params |= {f"{name}.{at}": one for at, one in enumerate(cast("tuple[float, ...]", whole[name]))}
            else:
                value = whole[name]
                params[name] = str(value).lower() if isinstance(value, bool) else value
        if all(self._ranges[name]._contains(self._ranges[name].to_internal_repr(one)) for name, one in params.items()):
            made = optuna.trial.create_trial(params=params, distributions=dict(self._ranges), value=loss)
            self._study.add_trial(made)

    def result(self) -> Tuned:
        """The best of all that was tried."""
        if self.space and len(self.tried) < FEW:
            self.notes.append(f"tuning of {self.system.name} tried only {len(self.tried)} sets of parameters")
        rows: list[dict[str, object]] = [
            {
                "system": self.system.name,
                "trial": one["trial"],
                "log_loss": one["log_loss"],
                "parameters": json.dumps(one["values"]),
                "seconds": one["seconds"],
            }
            for one in sorted(self.tried, key=itemgetter("trial"))
        ]
        return Tuned(Rules.of(self.system, **self.best[1]), self.best[0], rows, tuple(self.notes))


def _trial_in(line: str, system: System) -> dict[str, Any] | None:
    """The trial that a line holds; none where it is no trial, as the end of a line that an interruption cut off."""
    try:
        one = json.loads(line)
        numbers = [one[name] for name in ("trial", "seconds", "elapsed")]
        numbers += [] if one["log_loss"] is None else [one["log_loss"]]
        whole = one["format"] == FORMAT and all(math.isfinite(number) for number in numbers)
        if one["log_loss"] is not None or not isinstance(one["values"], dict):
            Rules.of(system, **one["values"])
    except (ValueError, TypeError, KeyError, UsageError):
        return None
    return one if whole else None


def _ranges(space: Mapping[str, Spec]) -> dict[str, BaseDistribution]:
    """The ranges as optuna knows them; a row of numbers is so many numbers."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    ranges: dict[str, BaseDistribution] = {}
    for name, spec in space.items():
        if isinstance(spec, Number | Numbers):
            assert spec.search is not None
            low, high = spec.search
            names = [f"{name}.{at}" for at in range(spec.count)] if isinstance(spec, Numbers) else [name]
            wide = low > 0 and high / low >= DECADE
            ranges |= {one: FloatDistribution(low, high, log=wide) for one in names}
        elif spec.search is not None:
            ranges[name] = CategoricalDistribution(spec.search)
    return ranges


def _typed(values: Values) -> Values:
    """Parameters as JSON keeps them."""
    typed: Values = json.loads(json.dumps(values))
    return typed


def _key(history: History, system: System, space: Mapping[str, Spec]) -> str:
    """What a search depends on: the matches, the kernels, the ranges, and how losses are found."""
    found = f"{FORMAT} {LEARNED} {loop.fingerprint(system)} {space}"
    found += "".join(inspect.getsource(module) for module in (judging, metrics))
    digest = hashlib.blake2b(found.encode(), digest_size=10)
    for column in history.columns:
        digest.update(column.tobytes())
    return digest.hexdigest()
