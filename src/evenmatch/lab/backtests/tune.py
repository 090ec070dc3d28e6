"""Tuning: search the declared ranges of a system's parameters for those that predict given matches best.

Optuna proposes parameters; threads rate the matches (the kernels release the GIL). The first quarter of the matches
is rated but not scored. Trials are appended to a JSON-lines file, so that an interrupted search can be resumed.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from evenmatch.compile_notice import load_kernels
from evenmatch.errors import BadParameterError, UsageError, needing
from evenmatch.history import History, Integers
from evenmatch.lab.backtests import evaluation
from evenmatch.lab.backtests.evaluation import LOG_LOSS, MATCHES, refused_by, replay_and_judge, too_many, without
from evenmatch.lab.backtests.workers import Threads, Workers
from evenmatch.options import Number, Numbers, Option, options_of
from evenmatch.systems.fingerprint import fingerprint
from evenmatch.systems.system import Rules, System
from evenmatch.tables import MatchTable

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

LEARNED = 0.25  # share of the matches that is rated but not scored
DECADE = 10.0  # ranges with high/low of at least this are searched on a logarithmic scale
FLOOR = 20  # fewest trials of a search, whatever its budget; with fewer, the result carries a note
FORMAT = 1

Values = dict[str, Any]  # parameter values: numbers, words, lists of numbers
Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class TuningResult:
    """Result of tuning: best rules, all trials (rows of scoring.TRIALS), and notes for the user."""

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
    workers: int | Workers | None = None,
    most: int | None = None,
    seed: int = 1,
) -> TuningResult:
    """Search for the parameters with which a system predicts the last three quarters of these matches best.

    seconds   budget, including trials of a resumed run. Defaults and presets are always tried; above 0, the search
              continues beyond its budget until it has tried 20 sets of parameters
    trials    folder for the trials file; None: trials are not stored
    workers   number of threads (None: one per core), or Workers that replay the matches elsewhere, such as a cluster's
    most      largest number of trials, also below 20; None: limited by `seconds` only
    Raises UsageError if optuna is not installed or the folder cannot be written.
    """
    search = _Search.begin(matches, system, trials, seed)
    search.compile()
    candidates: list[Values] = [{}, *(dict(preset) for preset in system.presets.values())]
    known = {json.dumps(trial["values"], sort_keys=True) for trial in search.tried}
    untried = [values for values in candidates if json.dumps(_typed(values), sort_keys=True) not in known]
    pool = Threads(workers) if workers is None or isinstance(workers, int) else workers
    try:
        _search(search, pool, untried, seconds, most, progress or (lambda _what, _share: None))
    finally:
        if pool is not workers:
            pool.shutdown(cancel_futures=True)
    return search.result()


def _search(
    search: _Search, pool: Workers, untried: list[Values], seconds: float, most: int | None, report: Progress
) -> None:
    """Try the given parameters, then those that the search proposes, until the budget is spent."""
    begun, used = time.monotonic(), search.used
    floor, ceiling = FLOOR if seconds else 0, most or np.inf
    shared = pool.share((search.history, search.cell))
    running: dict[Future[tuple[float, float]], tuple[int, Values, optuna.Trial | None]] = {}
    while True:
        elapsed = used + time.monotonic() - begun
        while len(running) < pool.workers:
            count = len(search.tried) + len(running)
            if untried:
                values, trial = untried.pop(0), None
            elif search.space and count < ceiling and (elapsed < seconds or count < floor):
                values, trial = search.ask()
            else:
                break
            running[pool.submit(trial_loss, search.system, values, shared)] = (search.number(), values, trial)
        if not running:
            return
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            number, values, trial = running.pop(future)
            loss, took = future.result()
            search.tell(number, values, trial, loss, took, used + time.monotonic() - begun)
        share = min(elapsed / seconds, 1.0) if seconds else 1.0
        report(f"tuning {search.system.name}: {len(search.tried)} trials, best log loss {search.best[0]:.4f}", share)


def trial_loss(system: System, values: Values, over: tuple[History, Integers]) -> tuple[float, float]:
    """Return mean log loss with these parameters (infinite: invalid) and the seconds it took.

    over  the history, and the cell of each match: 0, or -1 where it is not scored
    """
    start = time.perf_counter()
    whole, cell = over
    try:
        rules = Rules.of(system, **values)
    except BadParameterError:  # the combination of values is invalid
        return np.inf, 0.0
    refused = refused_by(rules, whole)
    if too_many(len(refused), len(whole)):
        return np.inf, 0.0
    sums, _ = replay_and_judge(rules, without(whole, refused), cell, 1, with_bins=False)
    loss = float(sums[0, LOG_LOSS] / sums[0, MATCHES])
    return loss if np.isfinite(loss) else np.inf, time.perf_counter() - start


def ranges_of(system: System) -> dict[str, Option]:
    """Parameters of a system that tuning searches, those that declare a range or choices."""
    return {name: option for name, option in options_of(system.parameters).items() if option.search is not None}


class _Search:
    """State of a search: trials so far and the sampler of new ones."""

    def __init__(self, matches: MatchTable, system: System, space: Mapping[str, Option], seed: int) -> None:
        with needing("lab", "tuning"):
            import optuna
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.history, self.system, self.space = matches.history, system, space
        learned = int(len(matches) * LEARNED)
        self.cell = np.where(np.arange(len(matches)) < learned, -1, 0).astype(np.int32)
        self.tried: list[dict[str, Any]] = []
        self.used, self.notes = 0.0, list[str]()
        self.file: Path | None = None
        self.next = 0
        self.best: tuple[float, Values] = (np.inf, {})
        self._ranges = _ranges(space)
        self._study = optuna.create_study()
        self._seed = seed
        self.reseed()

    @classmethod
    def begin(cls, matches: MatchTable, system: System, folder: Path | None, seed: int) -> _Search:
        """Create a search; resume an earlier one of the same matches, kernels and ranges if its file exists."""
        space = ranges_of(system)
        search = cls(matches, system, space, seed)
        if not space:
            search.notes.append(f"{system.name} declares no ranges to tune within")
        if folder is not None:
            search.resume(folder / f"{system.name}-{_key(matches.history, system, space)}.jsonl")
        return search

    def resume(self, path: Path) -> None:
        """Load the trials of a file and append new trials to it."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file:
                file.seek(0)
                text = file.read().decode("utf-8", errors="replace")
                if text and not text.endswith("\n"):  # incomplete last line of an interrupted run
                    file.write(b"\n")
        except OSError as error:
            raise UsageError(f"{path}: trials cannot be stored there: {error.strerror}") from error
        for trial in filter(None, (_trial_in(line, self.system) for line in text.splitlines())):
            self._note(trial)
            self.used = max(self.used, trial["elapsed"])
        self.file = path
        self.next = 1 + max((trial["trial"] for trial in self.tried), default=-1)
        self.reseed()
        if self.tried:
            self.notes.append(f"tuning of {self.system.name} continued from {len(self.tried)} trials of an earlier run")

    def compile(self) -> None:
        """Compile the kernels, so that compilation does not count towards the budget."""
        load_kernels(Rules.of(self.system), in_context=self.history.contexts > 0)
        replay_and_judge(Rules.of(self.system), self.history.take(slice(0, 1)), self.cell[:1], 1, with_bins=False)

    def reseed(self) -> None:
        """Seed the sampler by the number of trials, so that a resumed search does not repeat its random start."""
        import optuna

        self._study.sampler = optuna.samplers.TPESampler(multivariate=True, seed=self._seed + len(self.tried))

    def number(self) -> int:
        """Return the number of the next trial and increment the counter."""
        self.next += 1
        return self.next - 1

    def ask(self) -> tuple[Values, optuna.Trial]:
        """Propose parameters for the next trial."""
        trial = self._study.ask(self._ranges)
        values: Values = {}
        for name, option in self.space.items():
            if isinstance(option, Numbers):
                numbers = [trial.params[f"{name}.{index}"] for index in range(option.count)]
                values[name] = sorted(numbers) if option.ascending else numbers
            elif isinstance(option, Number) and option.decimals is not None:
                values[name] = round(trial.params[name], option.decimals)
            else:
                values[name] = trial.params[name]
        return values, trial

    def tell(
        self, number: int, values: Values, trial: optuna.Trial | None, loss: float, took: float, elapsed: float
    ) -> None:
        """Record the result of a trial, also in the file."""
        from optuna.trial import TrialState

        finite = bool(np.isfinite(loss))
        if trial is not None:
            state = TrialState.COMPLETE if finite else TrialState.FAIL
            self._study.tell(trial, loss if finite else None, state)
        entry = {
            "format": FORMAT,
            "trial": number,
            "values": _typed(values),
            "log_loss": loss if finite else None,
            "seconds": round(took, 4),
            "elapsed": round(elapsed, 3),
        }
        self._note(entry, in_study=trial is not None)
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")

    def _note(self, entry: dict[str, Any], *, in_study: bool = False) -> None:
        self.tried.append(entry)
        loss = entry["log_loss"]
        if loss is None:
            return
        if loss < self.best[0]:
            self.best = (loss, entry["values"])
        if not in_study:
            self._add_to_study(entry["values"], loss)

    def _add_to_study(self, values: Values, loss: float) -> None:
        """Add a trial that the study did not propose, if all parameters are within its ranges."""
        import optuna

        if set(values) - set(self.space):
            return
        whole = Rules.of(self.system, **values).values()
        params: Values = {}
        for name, option in self.space.items():
            if isinstance(option, Numbers):
                params |= {
                    f"{name}.{index}": number for index, number in enumerate(cast("tuple[float, ...]", whole[name]))
                }
            else:
                value = whole[name]
                params[name] = str(value).lower() if isinstance(value, bool) else value
        if all(
            self._ranges[name]._contains(self._ranges[name].to_internal_repr(value)) for name, value in params.items()
        ):
            trial = optuna.trial.create_trial(params=params, distributions=dict(self._ranges), value=loss)
            self._study.add_trial(trial)

    def result(self) -> TuningResult:
        """Return the best trial and all others."""
        if self.space and len(self.tried) < FLOOR:
            self.notes.append(f"tuning of {self.system.name} tried only {len(self.tried)} sets of parameters")
        rows: list[dict[str, object]] = [
            {
                "system": self.system.name,
                "trial": trial["trial"],
                "log_loss": trial["log_loss"],
                "parameters": json.dumps(trial["values"]),
                "seconds": trial["seconds"],
            }
            for trial in sorted(self.tried, key=itemgetter("trial"))
        ]
        return TuningResult(Rules.of(self.system, **self.best[1]), self.best[0], rows, tuple(self.notes))


def _trial_in(line: str, system: System) -> dict[str, Any] | None:
    """Parse a line of the file; None if it is not a valid trial, for example truncated."""
    try:
        trial = json.loads(line)
        numbers = [trial[name] for name in ("trial", "seconds", "elapsed")]
        numbers += [] if trial["log_loss"] is None else [trial["log_loss"]]
        valid = trial["format"] == FORMAT and all(math.isfinite(number) for number in numbers)
        if trial["log_loss"] is not None or not isinstance(trial["values"], dict):
            Rules.of(system, **trial["values"])
    except (ValueError, TypeError, KeyError, UsageError):
        return None
    return trial if valid else None


def _ranges(space: Mapping[str, Option]) -> dict[str, BaseDistribution]:
    """Optuna distributions by parameter; a list of numbers has one for each element."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    ranges: dict[str, BaseDistribution] = {}
    for name, option in space.items():
        if isinstance(option, Number | Numbers):
            assert option.search is not None
            low, high = map(float, option.search)
            names = [f"{name}.{index}" for index in range(option.count)] if isinstance(option, Numbers) else [name]
            logarithmic = low > 0 and high / low >= DECADE
            ranges |= {key: FloatDistribution(low, high, log=logarithmic) for key in names}
        elif option.search is not None:
            ranges[name] = CategoricalDistribution(option.search)
    return ranges


def _typed(values: Values) -> Values:
    typed: Values = json.loads(json.dumps(values))
    return typed


def _key(history: History, system: System, space: Mapping[str, Option]) -> str:
    """Digest of everything a search depends on: matches, kernels, ranges, and the source of the scoring code."""
    inputs = f"{FORMAT} {LEARNED} {fingerprint(system)} {space}"
    inputs += inspect.getsource(evaluation)
    digest = hashlib.blake2b(inputs.encode(), digest_size=10)
    for column in history.columns:
        digest.update(column.tobytes())
    return digest.hexdigest()
