"""The audit: what a behaviour earns under a rating system, compared with honest play by the same players.

A cell is a system and a behaviour. Its seasons come in pairs with the same seed: the culprits misbehave in one and play
honestly in the other. One set of seeds selects the most profitable dose; other seeds measure it, so the selection does
not flatter the result. Intervals are Student's t over the seeds, corrected for the number of cells.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from math import isnan, nan
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from evenmatch import systems
from evenmatch.errors import UsageError
from evenmatch.history import Flags, Floats, team_results
from evenmatch.lab import behaviours
from evenmatch.lab.backtests.workers import Workers
from evenmatch.lab.seasons.games import GAMES
from evenmatch.lab.seasons.season import SeasonRecord, simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.options import Value
from evenmatch.standings.distribution import queue_percentiles
from evenmatch.systems.fingerprint import fingerprint
from evenmatch.systems.system import Rules

HONEST = "honest"
LEVEL = 0.05  # probability that an audit of honest cells calls any of them a gain or a loss
LATE = 0.75  # percentiles are means over the snapshots of the last quarter of a season
T = TypeVar("T", bound=tuple[Any, ...])
R = TypeVar("R")


class Contestant(NamedTuple):
    """A rating system with its parameters, in a form that every process can build. values: pairs of name and value."""

    system: str
    preset: str | None = None
    values: tuple[tuple[str, Value], ...] = ()

    @property
    def rules(self) -> Rules:
        """The rules. Raises UnknownNameError or BadParameterError."""
        return Rules.of(systems.find(self.system), self.preset, **dict(self.values))

    def rates(self, game: str) -> bool:
        """Whether the system rates matches with as many teams as this game has."""
        return self.rules.system.teams in {None, GAMES[game].teams}

    def __str__(self) -> str:
        changed = [f"{name}={value}" for name, value in self.values]
        name = Path(self.system).stem if systems.is_file(self.system) else self.system
        return " ".join((name, *([self.preset] if self.preset else []), *changed))


class SeasonTask(NamedTuple):
    """The arguments of `play_season`."""

    contestant: Contestant
    behaviour: str
    dose: float
    settings: SeasonSettings


def key_of(play: Callable[..., object], task: tuple[Any, ...]) -> str:
    """Identify a result by its function, its arguments, and the code of the season, the system and the behaviour.

    task  arguments of `play`: a contestant, names, numbers and settings
    """
    own = [Path(name).read_bytes() for name in task if isinstance(name, str) and behaviours.is_file(name)]
    code = [sources(Path(__file__).parents[2]), fingerprint(task[0].rules.system)]
    text = json.dumps([play.__name__, task, code], default=asdict)
    return hashlib.sha256(b"".join([text.encode(), *own])).hexdigest()[:24]


@cache
def sources(package: Path) -> str:
    """Hash the sources that simulate and measure a season. package: the folder of evenmatch."""
    listed = ("policy.py", "standings/distribution.py", "matchmaking/*.py", "lab/seasons/*.py", "lab/behaviours/*.py")
    files = [file for name in (*listed, "lab/fairness/*.py") for file in sorted(package.glob(name))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class Digest(NamedTuple):
    """Results of a season. A list has one number per player, for the best of the accounts the player is judged by.

    gainers     players who are meant to gain from the behaviour
    percentile  among the players' first accounts, 0..100, late in the season
    per_hour    change of the shown rating per hour in matches, in standard deviations of all ratings
    mates, rivals  mean rating change of honest players with a culprit in their own or in another team, minus that in
                matches without culprits; thousandths of a standard deviation
    log_loss    of the system's predictions in matches of honest players
    wait        mean seconds in the queue;  unmatched  share of the joins without a match
    """

    gainers: list[int]
    percentile: list[float]
    per_hour: list[float]
    mates: float
    rivals: float
    log_loss: float
    wait: float
    unmatched: float


def digest(record: SeasonRecord, judged: Flags) -> Digest:
    """Summarise a season.

    judged  bool (A,)  accounts that count for the gainers; other players are judged by their first account
    """
    players = record.settings.players
    late = [snapshot for snapshot in record.snapshots if snapshot.round >= LATE * (record.rounds - 1)]
    own = np.arange(len(record.person)) < players
    shown = np.zeros(len(record.person))
    for snapshot in late:
        shown += queue_percentiles(snapshot.rating, own & (snapshot.played > 0)) / len(late)
    spread = max(float(record.state.rating[own].std()), 1e-12)
    start = float(record.rules.newcomers(1)["rating"][0])
    per_hour = (record.state.rating - start) / spread / np.maximum(record.hours, 0.1)
    best = np.arange(players)
    for account in np.flatnonzero(judged).tolist():
        person = record.person[account]
        if not judged[best[person]] or shown[account] > shown[best[person]]:
            best[person] = account
    return Digest(
        np.unique(record.person[judged]).tolist(),
        np.round(shown[best], 3).tolist(),
        np.round(per_hour[best], 6).tolist(),
        *_costs(record, spread),
        _log_loss(record),
        record.mean_wait,
        record.unmatched / max(len(record.waits) + record.unmatched, 1),
    )


def _costs(record: SeasonRecord, spread: float) -> tuple[float, float]:
    """Return what culprits cost honest team-mates and honest rivals."""
    h = record.history
    culprit = record.crew[h.columns.player] >= 0
    of_team = np.bincount(h.slot_team, culprit, len(h.columns.place))
    in_match = np.bincount(h.slot_match, culprit, len(h))
    mate = ~culprit & (of_team[h.slot_team] > 0)
    rival = ~culprit & (in_match[h.slot_match] > of_team[h.slot_team])
    neither = ~culprit & ~mate & ~rival
    gain = (record.after - record.before) / spread * 1000.0
    usual = gain[neither].mean() if neither.any() else 0.0
    mates, rivals = (float(gain[who].mean() - usual) if who.any() else 0.0 for who in (mate, rival))
    return mates, rivals


def _log_loss(record: SeasonRecord) -> float:
    """Mean log loss of the teams' expected scores, over the second half of the season in matches without culprits."""
    h = record.history
    with_culprit = np.bincount(h.slot_match, record.crew[h.columns.player] >= 0, len(h)) > 0
    result = team_results(h.columns.team_start, h.columns.place)
    chance = np.clip(record.expected, 1e-6, 1.0 - 1e-6)
    loss = -(result * np.log(chance) + (1.0 - result) * np.log(1.0 - chance))
    counted = ~with_culprit & (np.arange(len(h)) >= len(h) // 2)
    counted = np.repeat(counted, np.diff(h.columns.team_start))
    return float(loss[counted].mean()) if counted.any() else nan


def play_season(contestant: Contestant, behaviour: str, dose: float, settings: SeasonSettings) -> Digest:
    """Simulate a season whose culprits follow a behaviour, in any process."""
    acting = behaviours.find(behaviour)(dose)
    record = simulate_season(settings, contestant.rules, [acting])
    return digest(record, acting.judged(record))


class Kept:
    """Results of finished seasons by key, one JSON line each in a file; a line that a kill cut off is dropped.

    path  None: in memory only
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._known = path, dict[str, Any]()
        if path is None:
            return
        try:
            with path.open("a+b") as file:
                file.seek(0)
                whole, newline, rest = file.read().rpartition(b"\n")
                self._known = dict(map(_read, whole.splitlines()))
                _check_cut_off(rest)
                file.truncate(len(whole + newline))
        except OSError as error:
            raise UsageError(f"{path}: cannot be used to keep finished seasons: {error.strerror}") from error
        except (ValueError, TypeError) as error:
            raise UsageError(
                f"{path}: is not a file of finished seasons; expected a new file or one of an audit"
            ) from error

    def get(self, key: str) -> Any:  # noqa: ANN401 - as JSON holds it
        """The fields of a result; None if it is not kept."""
        return self._known.get(key)

    def add(self, key: str, found: object) -> None:
        """Keep a result, a named tuple of numbers and arrays."""
        line = json.dumps([key, found], default=np.ndarray.tolist)
        self._known[key] = json.loads(line)[1]
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(line + "\n")


def _check_cut_off(rest: bytes) -> None:
    """Raise ValueError unless this is empty, or the beginning of a line of an audit."""
    if rest and not rest.startswith(b"["):
        raise ValueError("not a line of an audit")


def _read(line: bytes) -> tuple[str, Any]:
    key, values = json.loads(line)
    bytes.fromhex(key)  # raises for what is no key
    return key, values


Progress = Callable[[int, int], None]  # number of finished tasks, and of all


def finish(
    play: Callable[..., R],
    read: Callable[[Any], R],
    tasks: Iterable[T],
    workers: Workers,
    kept: Kept | None = None,
    progress: Progress | None = None,
) -> dict[T, R]:
    """Return the result of each task, played by the workers unless it is kept.

    play   called with the fields of a task, in any process;  read  makes its result of the fields that were kept
    tasks  as `key_of` takes them; equal tasks are played once
    """
    kept = Kept(None) if kept is None else kept
    keys = {task: key_of(play, task) for task in tasks}
    found = {task: read(known) for task, key in keys.items() if (known := kept.get(key)) is not None}
    running = {workers.submit(play, *task): task for task in keys if task not in found}
    if progress is not None and found:
        progress(len(found), len(keys))
    for future in as_completed(running):
        task = running[future]
        found[task] = future.result()
        kept.add(keys[task], found[task])
        if progress is not None:
            progress(len(found), len(keys))
    return found


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """The extent of an audit.

    settings  of every season, except for the game and the seed
    game      None: the first game of each behaviour that the system rates
    doses     None: those of each behaviour
    search    seeds that select the dose;  measured  seeds that measure it
    compared  number of cells that the intervals are corrected for; None: the cells of this plan
    """

    contestants: tuple[Contestant, ...]
    behaviours: tuple[str, ...]
    settings: SeasonSettings = field(default_factory=SeasonSettings)
    game: str | None = None
    doses: tuple[float, ...] | None = None
    search: tuple[int, ...] = tuple(range(1, 5))
    measured: tuple[int, ...] = tuple(range(101, 113))
    compared: int | None = None


class Measure(NamedTuple):
    """A mean over seeds and its interval, corrected for the number of cells; the interval is NaN for a single seed."""

    mean: float
    low: float
    high: float

    @property
    def is_gain(self) -> bool:
        """True if the mean is above 0 by more than chance."""
        return self.low > 0.0

    @property
    def is_loss(self) -> bool:
        """True if the mean is below 0 by more than chance."""
        return self.high < 0.0

    def between(self, form: str = "+.1f") -> str:
        """The interval as text."""
        return "unknown" if isnan(self.low) else f"{self.low:{form}} to {self.high:{form}}"


@dataclass(frozen=True)
class Cell:
    """What a behaviour earns under a system at its most profitable dose.

    percentile     gain of the culprits, in percentiles
    per_hour       gain in rating per hour in matches, in standard deviations of all ratings
    mates, rivals  rating change of honest team-mates and rivals in a match with a culprit, minus that in other matches
                   of the season; thousandths of a standard deviation
    doses          mean gain in percentiles by dose, on the seeds of the search; empty if the dose was given
    log_loss, wait, unmatched  of the honest seasons: of the predictions, mean seconds in the queue of those who found
                   a match, and share of the joins without one
    """

    contestant: Contestant
    behaviour: str
    game: str
    dose: float
    percentile: Measure
    per_hour: Measure
    mates: Measure
    rivals: Measure
    doses: Mapping[float, float]
    log_loss: float
    wait: float
    unmatched: float

    @property
    def sentence(self) -> str:
        """The cell in words."""
        title = behaviours.find(self.behaviour).title.lower()
        article = "an" if title.startswith((*"aeiou", "honest")) else "a"
        mean, between = self.percentile.mean, self.percentile.between()
        if self.percentile.is_gain:
            verdict = f"gains {mean:.1f} percentiles ({between})"
        elif self.percentile.is_loss:
            verdict = f"loses {-mean:.1f} percentiles ({between})"
        elif isnan(self.percentile.low):
            verdict = f"changes by {mean:+.1f} percentiles in a single pair of seasons, which may be chance"
        else:
            verdict = f"neither gains nor loses by more than chance, {mean:+.1f} percentiles ({between})"
        return f"Under {self.contestant}, {article} {title} {verdict}, at dose {self.dose:g}."

    def to_data(self, plan: AuditPlan) -> dict[str, object]:
        """All numbers, the sentence and the command, for JSON."""
        numbers = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "contestant"}
        doses = {f"{dose:g}": gain for dose, gain in self.doses.items()}
        words = {"sentence": self.sentence, "command": self.command(plan)}
        return {"system": str(self.contestant)} | numbers | {"doses": doses} | words

    def command(self, plan: AuditPlan) -> str:
        """The command that measures this cell again."""
        words = ["evenmatch", "audit", "--system", self.contestant.system]
        words += ["--preset", self.contestant.preset] if self.contestant.preset else []
        for name, value in self.contestant.values:
            words += ["--param", f"{name}={value}"]
        words += ["--behaviour", self.behaviour, "--game", self.game, "--dose", repr(self.dose).removesuffix(".0")]
        words += ["--seeds", f"{plan.measured[0]}:{plan.measured[-1]}"]
        words += ["--compared", str(plan.compared)] if plan.compared not in {None, 1} else []
        for option in fields(SeasonSettings):
            value = getattr(plan.settings, option.name)
            if option.name not in {"game", "seed"} and value != option.default:
                words += [f"--{option.name.replace('_', '-')}", str(value)]
        return shlex.join(words)


@dataclass(frozen=True)
class Audit:
    """The cells of an audit. There is none where the system rates none of the behaviour's games."""

    plan: AuditPlan
    cells: tuple[Cell, ...]

    def cell(self, contestant: Contestant, behaviour: str) -> Cell | None:
        """The cell of a contestant and a behaviour."""
        return next((c for c in self.cells if (c.contestant, c.behaviour) == (contestant, behaviour)), None)


class Place(NamedTuple):
    """Where a cell is measured: the system, the behaviour and the game."""

    contestant: Contestant
    behaviour: str
    game: str

    def task(self, plan: AuditPlan, dose: float, seed: int) -> SeasonTask:
        """One season; at dose 0 it is the honest season, which all behaviours share."""
        settings = replace(plan.settings, game=self.game, seed=seed)
        return SeasonTask(self.contestant, self.behaviour if dose else HONEST, dose, settings)

    def doses(self, plan: AuditPlan) -> tuple[float, ...]:
        """The doses to choose from."""
        return behaviours.find(self.behaviour).doses if plan.doses is None else plan.doses


def audit(plan: AuditPlan, workers: Workers, kept: Kept | None = None, progress: Progress | None = None) -> Audit:
    """Simulate the seasons of a plan that are not kept yet, and measure every cell.

    progress  called with the number of finished seasons and the number of all
    Raises UsageError if there is nothing to measure, or if the seeds that select a dose also measure it.
    """
    places = [Place(c, b, game) for c in plan.contestants for b in plan.behaviours if (game := game_of(plan, c, b))]
    _check(plan, places)
    tasks = [
        place.task(plan, dose, seed) for seed in plan.search for place in places for dose in (*place.doses(plan), 0.0)
    ]
    ahead = 2 * len(places) * len(plan.measured)
    found = finish(play_season, Digest._make, tasks, workers, kept, _offset(progress, 0, ahead))
    searched = {place: _by_dose(plan, place, found) for place in places}
    best = {place: max(gains, key=gains.__getitem__) for place, gains in searched.items()}
    tasks = [place.task(plan, dose, seed) for seed in plan.measured for place in places for dose in (best[place], 0.0)]
    found |= finish(play_season, Digest._make, tasks, workers, kept, _offset(progress, len(found), 0))
    plan = replace(plan, compared=len(places) if plan.compared is None else plan.compared)
    return Audit(plan, tuple(_cell(plan, place, best[place], searched[place], found) for place in places))


def _check(plan: AuditPlan, places: Sequence[Place]) -> None:
    if not places:
        raise UsageError("nothing to audit: none of the systems rates a game of these behaviours")
    if round(plan.settings.culprits * plan.settings.players) < 1:
        raise UsageError(
            f"culprits {plan.settings.culprits:g} of {plan.settings.players} players: expected at least one culprit"
        )
    if both := set(plan.search) & set(plan.measured):
        raise UsageError(f"seeds {sorted(both)}: expected other seeds to search for a dose than to measure it")


def game_of(plan: AuditPlan, contestant: Contestant, behaviour: str) -> str | None:
    """The game in which a cell is measured; None if the system rates none of the behaviour's games."""
    games = behaviours.find(behaviour).games if plan.game is None else (plan.game,)
    return next(filter(contestant.rates, games), None)


def _offset(progress: Progress | None, before: int, after: int) -> Progress | None:
    """Report the progress of one part of an audit, with the seasons before and after it."""
    return None if progress is None else lambda done, total: progress(before + done, before + total + after)


def _by_dose(plan: AuditPlan, place: Place, found: Mapping[SeasonTask, Digest]) -> dict[float, float]:
    """The mean gain of each dose in percentiles; 0 without a search."""
    if not plan.search:
        return dict.fromkeys(place.doses(plan), 0.0)
    return {dose: float(_gains(plan, place, dose, plan.search, found)[0].mean()) for dose in place.doses(plan)}


def _gains(
    plan: AuditPlan, place: Place, dose: float, seeds: Sequence[int], found: Mapping[SeasonTask, Digest]
) -> Floats:
    """Differences from honest play, float64 (4, seeds): percentile and rating per hour, of team-mates and of rivals."""
    rows = []
    for seed in seeds:
        bad, good = (found[place.task(plan, given, seed)] for given in (dose, 0.0))
        own = bad.gainers
        percentile, per_hour = np.subtract(bad.percentile, good.percentile), np.subtract(bad.per_hour, good.per_hour)
        rows.append((percentile[own].mean(), per_hour[own].mean(), bad.mates, bad.rivals))
    return np.array(rows).T


def _cell(
    plan: AuditPlan, place: Place, dose: float, searched: Mapping[float, float], found: Mapping[SeasonTask, Digest]
) -> Cell:
    gains = _gains(plan, place, dose, plan.measured, found)
    percentile, per_hour, mates, rivals = (interval(values, LEVEL / (plan.compared or 1)) for values in gains)
    honest = [found[place.task(plan, 0.0, seed)] for seed in plan.measured]
    costs = [float(np.mean([getattr(one, name) for one in honest])) for name in ("log_loss", "wait", "unmatched")]
    doses = searched if plan.search else {}
    return Cell(*place, dose, percentile, per_hour, mates, rivals, doses, *costs)


def interval(values: Floats, level: float) -> Measure:
    """Mean and interval by Student's t, which misses with probability `level`; NaN for a single value."""
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return Measure(mean, nan, nan)
    half = t_quantile(count - 1, 1.0 - level / 2.0) * float(values.std(ddof=1)) / count**0.5
    return Measure(mean, mean - half, mean + half)


def t_quantile(freedom: int, probability: float) -> float:
    """Quantile of Student's t, by integrating its density with t = √freedom · tan θ; relative error below 1e-4."""
    theta = np.linspace(0.0, np.pi / 2, 200_001)
    density = np.cos(theta) ** (freedom - 1.0)
    area = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2.0)))
    at = np.interp(probability - 0.5, 0.5 * area / area[-1], theta)
    return float(freedom**0.5 * np.tan(at))
