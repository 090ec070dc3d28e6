"""Promises that a rating system should keep. A search with the real kernels finds the smallest counterexample of each.

A case is a match between a few players with given ratings and earlier results. "You" are the first player of the first
team. A check plays the case in two or more versions and compares your ratings afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from evenmatch.calibration import bins_of, calibration_slopes
from evenmatch.durations import SECOND
from evenmatch.errors import InputError
from evenmatch.history import Floats, History
from evenmatch.lab.seasons.season import START, simulate_season
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.match import Appearance, Match, Team
from evenmatch.systems import loop
from evenmatch.systems.system import Rules

Line = tuple[float, ...]  # the ratings of a team's players
SLIGHT = 0.02  # share of the largest rating change below which a difference does not count
TINY = 1e-9  # points; allows for rounding errors
UNMATCHED = 0.1  # expected score below which no matchmaker makes a match
FAVOURED = 0.7  # expected score of a favourite
LEVELS = (0.0, 1.0, 3.0, -1.0)  # units above a newcomer
PASTS = ("", "WL", "LLLLL", "WWWWW", "LLLLLLLLLW", "WL" * 18)
SCORES = {  # yours, a better one, and that of the others
    "score": ((0.0, 10.0, 20.0), (20.0, 60.0, 20.0), (-5.0, 0.0, 10.0)),
    "team_score": ((1.0, 5.0, 0.0), (4.0, 9.0, 3.0), (0.0, 2.0, 5.0), (2.0, 4.0, 5.0)),
    "performance": ((-1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
}
FEW_PASTS = ("", "WWWWW", "WL" * 18)
WIN, DRAW, LOSS = (1, 2), (1, 1), (2, 1)
RESULTS: Mapping[tuple[int, ...], str] = {WIN: "win", DRAW: "draw", LOSS: "lose"}
_PAST_PLACES = {"W": WIN, "D": DRAW, "L": LOSS}


class Case(NamedTuple):
    """A match to check, or one version of it. Each invariant uses some of the fields.

    teams    initial rating of each player, by team
    past     earlier results of each team against equal rivals, one letter of W, D and L per match
    place    place of each team
    left     share of the match after which you leave; 1: you stay
    field    the score that varies: score, team_score or performance
    scores   yours, a better one, and that of the others
    odds     which odds of winning are taken as true: the system's "own", or those of a simulated season, "true"
    matches  number of matches;  seconds  length of each
    """

    teams: tuple[Line, ...]
    past: tuple[str, ...] = ()
    place: tuple[int, ...] = WIN
    left: float = 1.0
    field: str = ""
    scores: tuple[float, float, float] = (0.0, 0.0, 0.0)
    odds: str = "own"
    matches: int = 1
    seconds: float = 600.0

    @property
    def size(self) -> tuple[int, int, float, float]:
        """Sort key: players, earlier matches, spread of the ratings, highest rating."""
        ratings = [rating for team in self.teams for rating in team]
        return len(ratings), sum(map(len, self.past)), max(ratings) - min(ratings), max(ratings)


class Scene:
    """The players of a case after their earlier matches.

    before    float64 (N,)  shown rating now; you are player 0
    players   number of players in the match, who come first in the state
    second    index of your second account, which starts with your rating
    """

    def __init__(self, rules: Rules, teams: tuple[Line, ...], past: tuple[str, ...], seconds: float) -> None:
        """Rate the earlier matches. Raises InputError if the system cannot hold a rating or rate the match."""
        self._rules, self._seconds = rules, seconds
        ratings = [rating for team in teams for rating in team]
        self.players = count = len(ratings)
        numbers = iter(range(count))
        self._teams = [[next(numbers) for _ in team] for team in teams]
        self.second = 2 * count
        self.state = rules.starting(np.array([*ratings, *ratings, ratings[0]]))
        self.ladders = rules.ladders()
        earlier = list(self._earlier(past))
        self._now = START + len(earlier) * int(seconds) * SECOND
        if earlier:
            self._replay(earlier, in_place=True)
        self.before: Floats = rules.system.as_of(self.state, self._now, rules.parameters)["rating"]

    def _earlier(self, past: tuple[str, ...]) -> Iterator[Match]:
        """Earlier matches of each team against stand-ins, who come after the players in the state."""
        time = START
        for team, results in zip(self._teams, past, strict=False):
            rivals = [player + self.players for player in team]
            for result in results:
                yield self._match((team, rivals), Case((), place=_PAST_PLACES[result]), time)
                time += int(self._seconds) * SECOND

    def _match(self, teams: Sequence[Sequence[int]], version: Case, time: int) -> Match:
        sides, length, (yours, _, others) = [], self._seconds, version.scores
        for index, (team, place) in enumerate(zip(teams, version.place, strict=True)):
            usual, slots = 20.0 + 2.0 * (len(teams) - place), []
            for number, player in enumerate(team):
                you = index == number == 0
                share, given = (version.left, yours) if you else (1.0, others)
                score = share * (given if version.field == "score" else usual)
                performance = given if version.field == "performance" else None
                slots.append(Appearance(str(player), score, share * length, share < 1.0, performance))
            points = (yours if index == 0 else others) if version.field == "team_score" else usual
            sides.append(Team(tuple(slots), place, points))
        return Match(str(time), datetime.fromtimestamp(time // SECOND, UTC), tuple(sides), duration=length)

    def _replay(self, matches: Sequence[Match], *, in_place: bool = False) -> loop.Replay:
        history = History.of(matches, lambda _, player: int(player))
        for _, reason in self._rules.system.refusals(history.columns, self._rules.parameters):
            raise InputError(reason)
        return loop.replay(self._rules, history, self.state, self.ladders, in_place=in_place)

    def rate(self, versions: Iterable[Case], accounts: int = 1) -> Floats:
        """Shown ratings after one match of each version. With two accounts, you use them in turn."""
        matches = []
        for index, version in enumerate(versions):
            teams = [list(team) for team in self._teams]
            teams[0][0] = (0, self.second)[index % accounts]
            matches.append(self._match(teams, version, self._now + index * int(self._seconds) * SECOND))
        after: Floats = self._replay(matches).state["rating"]
        return after

    def chance(self, odds: str = "own") -> float:
        """Your team's chance to win against one other team; `odds` as in `Case`."""
        result = self._replay([self._match(self._teams, Case(()), self._now)])
        own = min(max(float(result.expected[0]), 1e-9), 1.0 - 1e-9)
        return own if odds == "own" else 1.0 / (1.0 + (1.0 / own - 1.0) ** true_slope(self._rules))


_scene = lru_cache(maxsize=4)(Scene)  # neighbouring cases share their scene


def scene_of(rules: Rules, case: Case) -> Scene:
    """The players of a case. Raises InputError if the system cannot hold a rating or rate the earlier matches."""
    return _scene(rules, case.teams, case.past, case.seconds)


class Verdict(NamedTuple):
    """The outcome of a check.

    matters  whether the subject of the invariant changed any rating
    broken   the counterexample as a sentence; empty if the invariant holds
    columns, rows  its numbers, one row per player, or one for you
    """

    matters: bool
    broken: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Invariant:
    """A promise.

    name   its subject;  sentence  the promise
    cases  makes the cases from the levels of a system
    check  checks one case; raises InputError if the system cannot rate it
    """

    name: str
    sentence: str
    cases: Callable[[Line], Iterator[Case]]
    check: Callable[[Rules, Case], Verdict]


@dataclass(frozen=True)
class Finding:
    """The result of a search.

    outcome   holds, broken or not applicable;  sentence  the same in words, with the reason or the counterexample
    checked   number of cases checked
    case      the smallest counterexample;  columns, rows  its numbers, as in `Verdict`
    """

    rules: Rules
    invariant: Invariant
    outcome: str
    sentence: str
    checked: int
    case: Case | None = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[float, ...], ...] = ()

    def to_data(self) -> dict[str, object]:
        """The finding for JSON, with the program that checks the counterexample again."""
        named = {"invariant": self.invariant.name, "promise": self.invariant.sentence, "outcome": self.outcome}
        return named | {"checked": self.checked, "sentence": self.sentence, "python": self.python}

    @property
    def python(self) -> str:
        """A program that checks the counterexample again; empty without one."""
        if self.case is None:
            return ""
        usual = self.rules.system.parameters()
        changed = {name: value for name, value in self.rules.values().items() if value != getattr(usual, name)}
        return (
            "from evenmatch import rules\n"
            "from evenmatch.lab.fairness.invariants import INVARIANTS, Case\n"
            f"by = rules({self.rules.system.name!r}, **{changed!r})\n"
            f"print(INVARIANTS[{self.invariant.name!r}].check(by, {self.case!r}))\n"
        )


@cache
def true_slope(rules: Rules) -> float:
    """Share of a system's log-odds that is true, in the duels of an honest season; below 1, its odds are too sure."""
    record = simulate_season(SeasonSettings(game="duel", players=100, matches=6000), rules)
    first = record.history.columns.team_start[len(record.history) // 2 : -1]
    weight, block = np.ones(len(first)), np.zeros(len(first), np.int64)
    return float(calibration_slopes(bins_of(record.expected[first], record.truth[first], weight, block, 1))[0])


def levels(rules: Rules) -> Line:
    """Ratings for the cases: first a newcomer's, then `LEVELS` units above it.

    A unit is the smallest lead of 1, 2, 5, 10, 20 … points that makes a favourite against a newcomer; 100 without one.
    """
    start = float(rules.newcomers(1)["rating"][0])
    leads = (digit * 10.0**power for power in range(-3, 6) for digit in (1, 2, 5))
    chances = ((lead, scene_of(rules, Case(((start + lead,), (start,)))).chance()) for lead in leads)
    unit = next((lead for lead, chance in chances if chance >= FAVOURED), 100.0)
    return tuple(round(start + unit * level, 9) for level in LEVELS)


def search(rules: Rules, invariant: Invariant) -> Finding:
    """Check the cases of an invariant from small to large, up to the first counterexample."""
    checked, matters, reason = 0, False, ""
    for case in sorted(invariant.cases(levels(rules)), key=lambda case: case.size):
        try:
            verdict = invariant.check(rules, case)
        except InputError as error:
            reason = reason or str(error)
            continue
        checked, matters = checked + 1, matters or verdict.matters
        if verdict.broken:
            return Finding(rules, invariant, "broken", verdict.broken, checked, case, verdict.columns, verdict.rows)
    if matters:
        return Finding(rules, invariant, "holds", f"Holds in {checked:,} cases.", checked)
    if checked:
        reason = f"{invariant.name} made no difference to any rating in {checked:,} cases"
    return Finding(rules, invariant, "not applicable", f"Not applicable: {reason}.", checked)


Check = Callable[[Rules, Case], Verdict]
INVARIANTS: dict[str, Invariant] = {}


def _invariant(name: str, sentence: str, cases: Callable[[Line], Iterator[Case]]) -> Callable[[Check], Check]:
    """Register a check in INVARIANTS."""

    def register(check: Check) -> Check:
        INVARIANTS[name] = Invariant(name, sentence, cases, check)
        return check

    return register


def _line_ups(ratings: Line, letters: Sequence[str] = PASTS) -> Iterator[Case]:
    """Matches of two teams of 1, 2 and 5 players, and free-for-alls of 3 and 8, with several pasts."""
    pasts = [(past, past) for past in letters] + [(letters[-1], ""), ("", letters[-1])]
    for size, own, rival, past in product((1, 2, 5), ratings, ratings, pasts):
        yield Case(((own,) * size, (rival,) * size), past)
        if size == 2 and own != rival:
            yield Case(((own, rival), (rival, rival)), past)
    for count, own, rival, results in product((3, 8), ratings, ratings, letters):
        yield Case(((own,), *((rival,),) * (count - 1)), (results,) * count, tuple(range(1, count + 1)))


def _last(case: Case) -> tuple[int, ...]:
    """The places if you come last."""
    return (len(case.teams), *range(1, len(case.teams)))


def _quits(ratings: Line) -> Iterator[Case]:
    for case in _line_ups(ratings, FEW_PASTS):
        places = (LOSS,) if len(case.teams[0]) == 1 else (WIN, DRAW, LOSS)  # an empty team loses
        for (left, seconds), place in product(((0.25, 600.0), (0.5, 600.0), (0.9, 600.0), (0.5, 1800.0)), places):
            yield case._replace(left=left, seconds=seconds, place=place if len(case.teams) == 2 else _last(case))


@_invariant("quitting", "staying is never worse than quitting", _quits)
def check_quitting(rules: Rules, case: Case) -> Verdict:
    """Compare staying to the end with leaving, at the same result and the same score per second."""
    result = f"if you {_result(case.place)}"
    leave = f"{result} and leave after {case.left:.0%} of the match"
    return _in_order(rules, case, {f"{result} and stay": case._replace(left=1.0), leave: case})


@_invariant("results", "a better result never lowers my rating", _line_ups)
def check_results(rules: Rules, case: Case) -> Verdict:
    """Compare all results that you can have in one match, and a win with not playing."""
    teams = len(case.teams)
    places: tuple[tuple[int, ...], ...] = (WIN, DRAW, LOSS)
    if teams > 2:
        places = tuple((own, *(rival + (rival >= own) for rival in range(1, teams))) for own in range(1, teams + 1))
    scene, honest = scene_of(rules, case), case._replace(left=1.0, field="")
    won, lost = (scene.rate([honest._replace(place=place)]) for place in (places[0], places[-1]))
    drop = float(scene.before[0] - won[0])
    if _counts(drop, won - scene.before, lost - scene.before):
        return _verdict(scene, f"{_you(case, scene)}: you win and lose {_points(drop)}.", {"if you win": won})
    return _in_order(rules, case, {f"if you {_result(place)}": honest._replace(place=place) for place in places})


def _scored(ratings: Line) -> Iterator[Case]:
    for case, place in product(_line_ups(ratings, FEW_PASTS), (WIN, LOSS)):
        whole = place if len(case.teams) == 2 else case.place if place == WIN else _last(case)
        for field, listed in SCORES.items():
            for worse, better, others in listed:
                if field != "team_score" or (worse > others) == (place == WIN):
                    yield case._replace(place=whole, field=field, scores=(worse, better, others))


@_invariant("scores", "a better score never lowers it", _scored)
def check_scores(rules: Rules, case: Case) -> Verdict:
    """Compare a better score with a worse one, at the same result."""
    worse, better, others = case.scores
    label = f"if you {_result(case.place)} with a {case.field.replace('_', ' ')} of"
    stay = case._replace(left=1.0)
    improved = stay._replace(scores=(better, better, others))
    return _in_order(rules, case, {f"{label} {better:g}": improved, f"{label} {worse:g}": stay})


def _in_order(rules: Rules, case: Case, versions: Mapping[str, Case]) -> Verdict:
    """Check that no version of a match leaves you with more than the version before it."""
    scene = scene_of(rules, case)
    after = {label: scene.rate([version]) for label, version in versions.items()}
    for better, worse in pairwise(after):
        high, low = after[better], after[worse]
        if _counts(low[0] - high[0], high - scene.before, low - scene.before):
            broken = f"{_you(case, scene)}: you go to {_points(high[0])} {better}, but to {_points(low[0])} {worse}."
            return _verdict(scene, broken, {better: high, worse: low})
    return _verdict(scene, "", after)


def _draws(ratings: Line) -> Iterator[Case]:
    return (case._replace(place=(1,) * len(case.teams)) for case in _line_ups(ratings))


@_invariant("draws", "nobody gains in total from a draw", _draws)
def check_draws(rules: Rules, case: Case) -> Verdict:
    """Add up the gains of all players in a drawn match."""
    scene, broken = scene_of(rules, case), ""
    after = scene.rate([case._replace(left=1.0, field="")])
    change = after - scene.before
    if _counts(change.sum(), change):
        broken = f"{_you(case, scene)}: a draw raises the sum of all ratings by {_points(change.sum())}."
    return _verdict(scene, broken, {"after a draw": after})


def _hours(ratings: Line) -> Iterator[Case]:
    pasts = ("", "WL" * 5, "WL" * 18)
    for size, own, rival, past, odds in product((1, 2, 5), ratings, ratings, pasts, ("own", "true")):
        yield Case(((own,) * size, (rival,) * size), (past, past), odds=odds, matches=3, seconds=1200.0)


@_invariant("idling", "an idle hour is never better than an honest hour of a player at that level", _hours)
def check_idling(rules: Rules, case: Case) -> Verdict:
    """Compare your expected rating after an hour of matches with your rating now."""
    scene = scene_of(rules, case)
    if not UNMATCHED < scene.chance() < 1.0 - UNMATCHED:
        return Verdict(False)
    before, chance = float(scene.before[0]), scene.chance(case.odds)
    (mean, moved), broken = _on_average(scene, case, chance), ""
    if _counts(before - mean, np.array(moved)):
        whose = "the system's own odds" if case.odds == "own" else "the odds of a simulated season"
        broken = (
            f"{_you(case, scene)}: at {whose}, {chance:.1%} to win, an hour of {case.matches} matches costs "
            f"{_points(before - mean)} on average, and an idle hour costs nothing."
        )
    columns = ("before", "chance to win", "expected after an hour")
    return Verdict(moved > 0.0, broken, columns, ((before, chance, mean),))


def _splits(ratings: Line) -> Iterator[Case]:
    for size, rival, count, odds in product((1, 2, 5), ratings, (2, 4, 6), ("own", "true")):
        yield Case(((ratings[0],) * size, (rival,) * size), odds=odds, matches=count)


@_invariant("splitting", "splitting one account in two gains nothing", _splits)
def check_splitting(rules: Rules, case: Case) -> Verdict:
    """Compare a new account with the better of two that play the same number of matches in turn."""
    scene, broken = scene_of(rules, case), ""
    before, chance = float(scene.before[0]), scene.chance(case.odds)
    (single, moved), (best, _) = (_on_average(scene, case, chance, accounts) for accounts in (1, 2))
    if _counts(best - single, np.array(moved)):
        broken = (
            f"{_you(case, scene)}: {case.matches} matches with {chance:.1%} to win bring one account to "
            f"{_points(single)} on average, but the better of two that share them to {_points(best)}."
        )
    columns = ("before", "chance to win", "one account", "the better of two")
    return Verdict(moved > 0.0, broken, columns, ((before, chance, single, best),))


def _on_average(scene: Scene, case: Case, chance: float, accounts: int = 1) -> tuple[float, float]:
    """Return the expected rating of your best account after all matches, and its expected absolute change."""
    mean, moved = 0.0, 0.0
    for wins in product((True, False), repeat=case.matches):
        rated = scene.rate([case._replace(place=WIN if won else LOSS) for won in wins], accounts)
        best = float(max(rated[[0, scene.second][:accounts]]))
        weight = chance ** sum(wins) * (1.0 - chance) ** (len(wins) - sum(wins))
        mean, moved = mean + weight * best, moved + weight * abs(best - float(scene.before[0]))
    return mean, moved


def _verdict(scene: Scene, broken: str, versions: Mapping[str, Floats]) -> Verdict:
    """Make a verdict with a row per player. The subject of the invariant matters if the versions differ."""
    table = np.stack([scene.before, *versions.values()], 1)[: scene.players]
    matters = bool((table[:, 1:] != table[:, -2:-1]).any())
    return Verdict(matters, broken, ("before", *versions), tuple(map(tuple, table.tolist())))


def _counts(difference: float, *changes: Floats) -> bool:
    """True if a difference is more than a slight share of the largest change."""
    return difference > SLIGHT * max(float(np.abs(change).max()) for change in changes) + TINY


def _points(value: float) -> str:
    return f"{value:.{4 if abs(value) < 10 else 2 if abs(value) < 1000 else 1}f}"


def _result(place: tuple[int, ...]) -> str:
    return RESULTS.get(place, f"finish in place {place[0]} of {len(place)}")


def _you(case: Case, scene: Scene) -> str:
    """The beginning of a sentence: your rating and experience, and the rival."""
    size, teams = len(case.teams[0]), len(case.teams)
    game = f"a free-for-all of {teams}" if teams > 2 else f"a match of {size} against {size}"
    experience = f" after {len(case.past[0])} matches" if case.past and case.past[0] else ""
    return f"With {_points(scene.before[0])}{experience} in {game} against {_points(scene.before[size])}"
