"""The audit: what a behaviour earns under a rating system, against honest play by the same players in the same season.

A cell is a system and a behaviour. Its seasons come in pairs of one seed: in one the culprits behave, in the other they
play honestly. The most profitable dose is searched for on some seeds, and what it earns is measured on others, so that
the search does not flatter it. Intervals are Student's t over the seeds, at a level divided by the number of cells.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

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
from evenmatch.systems.fingerprint import fingerprint
from evenmatch.systems.system import Rules

HONEST = "honest"
LEVEL = 0.05  # that any honest cell of an audit is called a gain or a loss
LATE = 0.75  # percentiles are means over the snapshots of the last quarter of a season


class Contestant(NamedTuple):
    """A rating system with its parameters, as every process can build it. values: pairs of name and value."""

    system: str
    preset: str | None = None
    values: tuple[tuple[str, Value], ...] = ()

    @property
    def rules(self) -> Rules:
        """The rules. Raises UnknownNameError or BadParameterError."""
        return Rules.of(systems.find(self.system), self.preset, **dict(self.values))

    def __str__(self) -> str:
        changed = [f"{name}={value}" for name, value in self.values]
        name = Path(self.system).stem if systems.is_file(self.system) else self.system
        return " ".join((name, *([self.preset] if self.preset else []), *changed))


class SeasonTask(NamedTuple):
    """One season of an audit."""

    contestant: Contestant
    behaviour: str
    dose: float
    settings: SeasonSettings

    @property
    def key(self) -> str:
        """Identifies the season and the code that simulates it."""
        text = json.dumps([self.contestant, self.behaviour, self.dose, asdict(self.settings), _code(self)])
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def _code(task: SeasonTask) -> str:
    """A hash of the sources that a season depends on, and of the system's kernels."""
    own = Path(task.behaviour).read_bytes() if behaviours.is_file(task.behaviour) else b""
    digest = hashlib.sha256(sources(Path(__file__).parents[2]).encode() + own)
    return digest.hexdigest()[:16] + fingerprint(task.contestant.rules.system)[:16]


@cache
def sources(package: Path) -> str:
    """A hash of the sources that simulate and summarise a season; package: the folder of evenmatch."""
    patterns = ("lab/seasons/*.py", "lab/behaviours/*.py", "matchmaking/*.py")
    files = [file for pattern in patterns for file in sorted(package.glob(pattern))]
    files += [package / name for name in ("policy.py", "standings/distribution.py", "lab/fairness/audit.py")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class Digest(NamedTuple):
    """What an audit needs of a season; lists have one number per player, whose best account counts.

    gainers     the players who are to gain by the behaviour
    percentile  among the players' own accounts, 0..100, late in the season
    per_hour    change of the shown rating per hour in matches, in standard deviations of all ratings
    mates, rivals  mean change of rating of honest players in matches with a culprit in their own, in another team,
                minus that in all other matches; thousandths of a standard deviation
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

    judged  bool (A,)  further accounts by which their persons, who are to gain, are judged; others by their own account
    """
    players = record.settings.players
    late = [at for at in record.snapshots if at.round >= LATE * (record.rounds - 1)]
    own = np.arange(len(record.person)) < players
    shown = np.zeros(len(record.person))
    for snapshot in late:
        field = np.sort(snapshot.rating[own & (snapshot.played > 0)])
        middle = 50.0 * (field.searchsorted(snapshot.rating, "left") + field.searchsorted(snapshot.rating, "right"))
        shown += middle / max(len(field), 1) / len(late)
    spread = max(float(record.state.rating[own].std()), 1e-12)
    start = float(record.rules.newcomers(1)["rating"][0])
    per_hour = (record.state.rating - start) / spread / np.maximum(record.hours, 0.1)
    best = np.arange(players)
    for account in np.flatnonzero(judged).tolist():
        person = record.person[account]
        if not judged[best[person]] or shown[account] > shown[best[person]]:
            best[person] = account
    mates, rivals = _costs(record, spread)
    joins = len(record.waits) + record.unmatched
    return Digest(
        np.unique(record.person[judged]).tolist(),
        np.round(shown[best], 3).tolist(),
        np.round(per_hour[best], 6).tolist(),
        mates,
        rivals,
        _log_loss(record),
        float(record.waits.mean()) if len(record.waits) else 0.0,
        record.unmatched / max(joins, 1),
    )


def _costs(record: SeasonRecord, spread: float) -> tuple[float, float]:
    """What culprits cost honest team-mates and honest rivals."""
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
    """Of each team's expected score, over the second half of the matches without culprits."""
    h = record.history
    with_culprit = np.bincount(h.slot_match, record.crew[h.columns.player] >= 0, len(h)) > 0
    result = team_results(h.columns.team_start, h.columns.place)
    chance = np.clip(record.expected, 1e-6, 1.0 - 1e-6)
    loss = -(result * np.log(chance) + (1.0 - result) * np.log(1.0 - chance))
    counted = ~with_culprit & (np.arange(len(h)) >= len(h) // 2)
    counted = np.repeat(counted, np.diff(h.columns.team_start))
    return float(loss[counted].mean()) if counted.any() else nan


def play_season(task: SeasonTask) -> Digest:
    """Simulate one season of an audit, in any process."""
    behaviour = behaviours.find(task.behaviour)(task.dose)
    record = simulate_season(task.settings, task.contestant.rules, [behaviour])
    return digest(record, behaviour.judged(record))


class Kept:
    """Digests of finished seasons, one JSON line each in a file; a line that a kill cut off is dropped.

    path  None: in memory only
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._known = path, dict[str, Digest]()
        if path is None:
            return
        try:
            with path.open("a+b") as file:
                file.seek(0)
                held = file.read()
                whole = held[: held.rfind(b"\n") + 1]
                self._known = dict(map(_read, whole.splitlines()))
                _check_cut_off(held[len(whole) :])
                file.truncate(len(whole))
        except OSError as error:
            raise UsageError(f"{path}: cannot be used to keep finished seasons: {error.strerror}") from error
        except (ValueError, TypeError) as error:
            raise UsageError(
                f"{path}: is not a file of finished seasons; expected a new file or one of an audit"
            ) from error

    def get(self, task: SeasonTask) -> Digest | None:
        """The digest of a season that was finished before."""
        return self._known.get(task.key)

    def add(self, task: SeasonTask, found: Digest) -> None:
        """Keep a digest."""
        self._known[task.key] = found
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps([task.key, found]) + "\n")


def _check_cut_off(rest: bytes) -> None:
    """Raise ValueError unless this is nothing, or the beginning of a line of ours."""
    if rest and not rest.startswith(b"["):
        raise ValueError("not a line of an audit")


def _read(line: bytes) -> tuple[str, Digest]:
    key, values = json.loads(line)
    return key, Digest(*values)


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """The extent of an audit.

    settings  of every season; the game is each behaviour's own unless `game` is given
    search    seeds on which the dose is searched for;  measured  seeds on which it is measured
    doses     None: each behaviour's own
    compared  number of cells that the intervals are corrected for; None: those of this plan
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
    """A mean over seeds with its interval, corrected for the number of cells; NaN if there is a single seed."""

    mean: float
    low: float
    high: float

    @property
    def is_gain(self) -> bool:
        """Above 0 by more than chance."""
        return self.low > 0.0

    @property
    def is_loss(self) -> bool:
        """Below 0 by more than chance."""
        return self.high < 0.0

    def between(self, form: str = "+.1f") -> str:
        """The interval as text."""
        return "unknown" if isnan(self.low) else f"{self.low:{form}} to {self.high:{form}}"


@dataclass(frozen=True)
class Cell:
    """What a behaviour earns under a system at its most profitable dose.

    percentile     gained by the culprits, in percentiles
    per_hour       gained rating per hour in matches, in standard deviations of all ratings
    mates, rivals  what a match with a culprit changes for honest team-mates and rivals, against the other matches of
                   the season; thousandths of a standard deviation
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
        measures = {name: getattr(self, name)._asdict() for name in ("percentile", "per_hour", "mates", "rivals")}
        named = {"system": str(self.contestant), "behaviour": self.behaviour, "game": self.game, "dose": self.dose}
        doses = {f"{dose:g}": gain for dose, gain in self.doses.items()}
        costs = {"log_loss": self.log_loss, "wait": self.wait, "unmatched": self.unmatched}
        return named | measures | costs | {"doses": doses, "sentence": self.sentence, "command": self.command(plan)}

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
    """The cells of an audit, by contestant and behaviour; a system that cannot rate a behaviour's games has no cell."""

    plan: AuditPlan
    cells: tuple[Cell, ...]

    def cell(self, contestant: Contestant, behaviour: str) -> Cell | None:
        """The cell of a contestant and a behaviour."""
        return next((c for c in self.cells if (c.contestant, c.behaviour) == (contestant, behaviour)), None)


Progress = Callable[[int, int], None]


def audit(plan: AuditPlan, workers: Workers, kept: Kept | None = None, progress: Progress | None = None) -> Audit:
    """Simulate the seasons of a plan that are not kept yet, and measure every cell.

    progress  called with the number of finished seasons and the number of all
    Raises UsageError if there is nothing to measure, or a dose would be measured on the seeds of its search.
    """
    kept = Kept(None) if kept is None else kept
    places = [(c, name, game) for c in plan.contestants for name in plan.behaviours if (game := game_of(plan, c, name))]
    _check(plan, places)
    searched = [
        SeasonTask(c, name, dose, _settings(plan, game, seed))
        for seed in plan.search
        for c, name, game in places
        for dose in (*_doses(plan, name), 0.0)
    ]
    total = len(dict.fromkeys(map(_honest, searched))) + 2 * len(places) * len(plan.measured)
    counter = _Counter(progress, total)
    found = _digests(searched, workers, kept, counter)
    best = {place: _by_dose(plan, place, found) for place in places}
    measured = [
        SeasonTask(c, name, dose, _settings(plan, game, seed))
        for seed in plan.measured
        for c, name, game in places
        for dose in (max(best[c, name, game], key=best[c, name, game].__getitem__), 0.0)
    ]
    counter.total = counter.done + len(dict.fromkeys(map(_honest, measured)))
    found = _digests(measured, workers, kept, counter)
    plan = replace(plan, compared=len(places) if plan.compared is None else plan.compared)
    return Audit(plan, tuple(_cell(plan, place, best[place], found) for place in places))


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
    teams = contestant.rules.system.teams
    games = behaviours.find(behaviour).games if plan.game is None else (plan.game,)
    return next((game for game in games if teams is None or GAMES[game].teams == teams), None)


class _Counter:
    def __init__(self, progress: Progress | None, total: int) -> None:
        self.done, self.total, self._progress = 0, total, progress

    def add(self, count: int = 1) -> None:
        self.done += count
        if self._progress is not None:
            self._progress(self.done, max(self.total, self.done))


def _honest(task: SeasonTask) -> SeasonTask:
    """The season itself; one of dose 0 is that of every behaviour."""
    return task._replace(behaviour=HONEST) if task.dose == 0.0 else task


def _digests(
    tasks: Sequence[SeasonTask], workers: Workers, kept: Kept, counter: _Counter
) -> Mapping[SeasonTask, Digest]:
    """The digest of each season, simulated unless it is kept; honest seasons are simulated once for all behaviours."""
    found: dict[SeasonTask, Digest] = {}
    waiting: dict[Future[Digest], SeasonTask] = {}
    for task in dict.fromkeys(map(_honest, tasks)):
        known = kept.get(task)
        if known is not None:
            found[task] = known
            counter.add()
            continue
        if len(waiting) >= 2 * workers.workers:
            _collect(waiting, found, kept, counter)
        waiting[workers.submit(play_season, task)] = task
    while waiting:
        _collect(waiting, found, kept, counter)
    return found


def _collect(
    waiting: dict[Future[Digest], SeasonTask], found: dict[SeasonTask, Digest], kept: Kept, counter: _Counter
) -> None:
    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
        task = waiting.pop(future)
        found[task] = future.result()
        kept.add(task, found[task])
        counter.add()


Place = tuple[Contestant, str, str]  # of a cell: system, behaviour, game


def _settings(plan: AuditPlan, game: str, seed: int) -> SeasonSettings:
    return replace(plan.settings, game=game, seed=seed)


def _doses(plan: AuditPlan, behaviour: str) -> tuple[float, ...]:
    return behaviours.find(behaviour).doses if plan.doses is None else plan.doses


def _by_dose(plan: AuditPlan, place: Place, found: Mapping[SeasonTask, Digest]) -> dict[float, float]:
    """The mean gain in percentiles of each dose."""
    doses = _doses(plan, place[1])
    if not plan.search:
        return dict.fromkeys(doses, 0.0)
    return {dose: float(np.mean([p for p, *_ in _gains(plan, place, dose, plan.search, found)])) for dose in doses}


def _gains(
    plan: AuditPlan, place: Place, dose: float, seeds: Sequence[int], found: Mapping[SeasonTask, Digest]
) -> Iterator[tuple[float, float, float, float]]:
    """For each seed what the culprits gain in percentiles and per hour, and what others do, against honest play."""
    contestant, behaviour, game = place
    for seed in seeds:
        settings = _settings(plan, game, seed)
        bad, good = (found[_honest(SeasonTask(contestant, behaviour, d, settings))] for d in (dose, 0.0))
        own = bad.gainers
        yield (
            float(np.subtract(bad.percentile, good.percentile)[own].mean()),
            float(np.subtract(bad.per_hour, good.per_hour)[own].mean()),
            bad.mates,
            bad.rivals,
        )


def _cell(plan: AuditPlan, place: Place, by_dose: dict[float, float], found: Mapping[SeasonTask, Digest]) -> Cell:
    contestant, behaviour, game = place
    dose = max(by_dose, key=by_dose.__getitem__)
    gains = np.array(list(_gains(plan, place, dose, plan.measured, found)))
    percentile, per_hour, mates, rivals = (interval(column, LEVEL / (plan.compared or 1)) for column in gains.T)
    honest = [found[SeasonTask(contestant, HONEST, 0.0, _settings(plan, game, seed))] for seed in plan.measured]
    costs = [float(np.mean([getattr(one, name) for one in honest])) for name in ("log_loss", "wait", "unmatched")]
    doses = by_dose if plan.search else {}
    return Cell(contestant, behaviour, game, dose, percentile, per_hour, mates, rivals, doses, *costs)


def interval(values: Floats, level: float) -> Measure:
    """Mean and interval by Student's t; the interval misses with probability `level`. NaN for one value."""
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
