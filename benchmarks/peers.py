"""Matches rated per second by the packages that people use, on the same matches and beside evenmatch in the same run.

None of them is needed for anything else (`uv pip install --group bench` installs them); one that is missing is named in
the report.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module, metadata
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import evenmatch
from benchmarks.figure import Figure, Section, seconds_in_turn
from benchmarks.matches import Season, play
from evenmatch.history import Floats, History
from evenmatch.systems import loop
from evenmatch.systems.system import Rules

MILLION = 1e6
ROUNDS = 5
PROCESSES = 100  # matches, each a process, where a package is a program
DUELS, TEAMS, FREE = Season(20_000, 1_000, 1), Season(5_000, 500, 5), Season(2_000, 200, 1, 8)
SIGNS = {-1: "lt", 0: "eq", 1: "gt"}  # belo's words for who won

Rated = Floats | None  # what is compared with ours, a row per player; None: another formula than ours
Run = Callable[[], Rated]


class Matches(NamedTuple):
    """The same matches as each package wants them: of each, its teams of player numbers, and their places."""

    history: History
    players: int
    matches: list[tuple[list[list[int]], list[int]]]


class Peer(NamedTuple):
    """A package's system for one form of match.

    system  of evenmatch that it is held against
    make    gets the matches and prepares what it is called with; raises ImportError where the package is not there
    most    matches that it is given, where rating all would take too long
    """

    package: str
    rates: str
    system: str
    make: Callable[[Matches], Run]
    most: int | None = None


def run() -> Section:
    """Every package on every form of match that it can rate."""
    figures: list[Figure] = []
    apart: list[str] = []
    absent: dict[str, str] = {}
    present: set[str] = set()
    for season, peers in PEERS.items():
        given = arrange(play(season), season.players)
        ours = {name: partial(rated_by_us, our_rules(name), given) for name in dict.fromkeys(p.system for p in peers)}
        found: list[tuple[Peer, Run]] = []
        for peer in peers:
            try:
                found.append((peer, peer.make(given)))
                present.add(peer.package)
            except ImportError as error:
                absent[peer.package] = str(error)
        for peer, rate in found:
            if (told := rate()) is not None:
                worst = f"{difference(ours[peer.system](), told):.1e}"
                apart.append(f"{peer.package}'s {peer.rates} {season.form} {worst}")
        speeds = iter(seconds_in_turn([*ours.values(), *(rate for _, rate in found)], ROUNDS))
        speed = {name: season.matches / MILLION / next(speeds) for name in ours}
        for peer, _ in found:
            rate_per_second = min(season.matches, peer.most or season.matches) / MILLION / next(speeds)
            name = f"{peer.package} {season.form}: {peer.rates}"
            by = f"evenmatch {peer.system}"
            figures.append(Figure(name, rate_per_second, "M matches/s", None, True, speed[peer.system], by))
    notes = [
        f"The same matches ({', '.join(f'{season.matches:,} {season.form}' for season in PEERS)}), from newcomers to "
        f"the final ratings, on one core, {ROUNDS} runs in turn: the packages as their documentation shows, match by "
        "match, from lists of players made beforehand; evenmatch with `loop.replay`, expected scores "
        f"included. {', '.join(versions())}.",
        f"Largest relative difference between a final rating, mean or deviation and evenmatch's: {', '.join(apart)}. "
        "trueskill's normal distribution is coarse, its message passing stops at changes below 1e-4, and in a "
        "free-for-all it links tied players only to those listed next to them; elote averages the changes that a "
        "tie makes to the means of the tied players. Not compared, because their formulas differ: elote's teams "
        "(player against player), glicko2 and "
        "belo (volatility added by the match, not by time).",
    ]
    notes += [
        f"**Not measured: {package} is not installed ({why}).**"
        for package, why in absent.items()
        if package not in present
    ]
    return Section("Beside the packages people use", figures, notes)


def arrange(history: History, players: int) -> Matches:
    """The matches as lists."""
    c = history.columns
    player, place, starts = c.player.tolist(), c.place.tolist(), c.slot_start.tolist()
    teams = [player[low:high] for low, high in pairwise(starts)]
    bounds = c.team_start.tolist()
    return Matches(
        history,
        players,
        [(teams[low:high], place[low:high]) for low, high in pairwise(bounds)],
    )


def our_rules(system: str) -> Rules:
    """The system as the packages know it: everybody plays to the end."""
    if system in ("trueskill", "wenglin"):
        return evenmatch.rules(system, partial_play=False)
    return evenmatch.rules(system)


def rated_by_us(rules: Rules, given: Matches) -> Floats:
    """Final means and deviations, or ratings where there are none."""
    state = loop.replay(rules, given.history, rules.newcomers(given.players)).state
    columns = ("mean", "deviation") if "mean" in (state.dtype.names or ()) else ("rating",)
    return np.stack([state[column] for column in columns], axis=1)


def difference(ours: Floats, theirs: Floats) -> float:
    """The largest, relative to ours (absolute where that is below 1)."""
    return float(np.max(np.abs(ours - theirs) / np.maximum(np.abs(ours), 1.0)))


def versions() -> Iterator[str]:
    """The packages that are installed, with their versions."""
    for package in dict.fromkeys(peer.package for peers in PEERS.values() for peer in peers):
        try:
            yield f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue


def lead(places: list[int]) -> int:
    """1 where the first of two teams won, 0 for a draw, -1 where it lost."""
    return (places[0] < places[1]) - (places[0] > places[1])


def riix_elo(given: Matches) -> Run:
    elo: Any = import_module("riix.models.elo")
    data: Any = import_module("riix.utils.data_utils")
    pairs = np.array([[one[0], two[0]] for (one, two), _ in given.matches])
    outcomes = np.array([0.5 + 0.5 * lead(places) for _, places in given.matches])
    periods = np.zeros(len(pairs), np.int64)
    names = [str(at) for at in range(given.players)]
    dataset = data.MatchupDataset.init_from_arrays(periods, pairs, outcomes, names)

    def rate() -> Rated:
        system = elo.Elo(names)
        system.fit_dataset(dataset)
        return np.array(system.ratings)[:, None]

    return rate


def elote_elo(given: Matches) -> Run:
    elote: Any = import_module("elote")

    def rate() -> Rated:
        players = [elote.EloCompetitor(initial_rating=1500) for _ in range(given.players)]
        for (one, two), places in given.matches:
            outcome = lead(places)
            if outcome == 0:
                players[one[0]].tied(players[two[0]])
            elif outcome > 0:
                players[one[0]].beat(players[two[0]])
            else:
                players[two[0]].beat(players[one[0]])
        return np.array([[player.rating] for player in players])

    return rate


def elote_teams(given: Matches) -> Run:
    elote: Any = import_module("elote")

    def rate() -> Rated:
        players = [elote.EloCompetitor(initial_rating=1500) for _ in range(given.players)]
        for teams, places in given.matches:
            one, two = (elote.TeamCompetitor([players[at] for at in team]) for team in teams)
            outcome = lead(places)
            if outcome == 0:
                one.tied(two)
            elif outcome > 0:
                one.beat(two)
            else:
                two.beat(one)
        return None

    return rate


def elote_openskill(given: Matches) -> Run:
    competitor: Any = import_module("elote").OpenSkillCompetitor

    def rate() -> Rated:
        players = [competitor() for _ in range(given.players)]
        for teams, places in given.matches:
            competitor.apply_bout([[players[at] for at in team] for team in teams], ranks=places)
        return np.array([[player.mu, player.sigma] for player in players])

    return rate


def openskill(given: Matches) -> Run:
    model: Any = import_module("openskill.models").PlackettLuce()

    def rate() -> Rated:
        players = [model.rating() for _ in range(given.players)]
        for teams, places in given.matches:
            rated = model.rate([[players[at] for at in team] for team in teams], ranks=places)
            for team, after in zip(teams, rated, strict=True):
                for at, player in zip(team, after, strict=True):
                    players[at] = player
        return np.array([[player.mu, player.sigma] for player in players])

    return rate


def trueskill(given: Matches) -> Run:
    environment: Any = import_module("trueskill").TrueSkill()

    def rate() -> Rated:
        players = [environment.create_rating() for _ in range(given.players)]
        for teams, places in given.matches:
            rated = environment.rate([[players[at] for at in team] for team in teams], ranks=places)
            for team, after in zip(teams, rated, strict=True):
                for at, player in zip(team, after, strict=True):
                    players[at] = player
        return np.array([[player.mu, player.sigma] for player in players])

    return rate


def glicko2(given: Matches) -> Run:
    player: Any = import_module("glicko2").Player

    def rate() -> Rated:
        players = [player() for _ in range(given.players)]
        for (one, two), places in given.matches:
            own, other = players[one[0]], players[two[0]]
            score = 0.5 + 0.5 * lead(places)
            rating, deviation = own.rating, own.rd
            own.update_player([other.rating], [other.rd], [score])
            other.update_player([rating], [deviation], [1.0 - score])
        return None

    return rate


def belo(given: Matches) -> Run:
    module: Any = import_module("belo")
    named = [(str(one[0]), SIGNS[lead(places)], str(two[0])) for (one, two), places in given.matches]

    def rate() -> Rated:
        module.init_state()
        for at in range(given.players):
            module.add_player(str(at))
        for match in named:
            module.record_game(*match)
        return None

    return rate


def belo_program(given: Matches) -> Run:
    beside = Path(sys.executable).with_name("belo")
    program = str(beside) if beside.exists() else shutil.which("belo")
    if program is None:
        raise ImportError("no module and no program of that name")
    named = [(str(one[0]), SIGNS[lead(places)], str(two[0])) for (one, two), places in given.matches[:PROCESSES]]
    home = tempfile.TemporaryDirectory(prefix="evenmatch-bench-")  # where it keeps its players

    def call(*arguments: str) -> None:
        env = {**os.environ, **dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), home.name)}
        subprocess.run([program, *arguments], env=env, stdout=subprocess.DEVNULL, check=True)

    call("init", "season")
    for name in dict.fromkeys(name for one, _, two in named for name in (one, two)):
        call("add", name)

    def rate() -> Rated:
        for match in named:
            call("vs", *match)
        return None

    return rate


PEERS = {
    DUELS: [
        Peer("riix", "Elo", "elo", riix_elo),
        Peer("elote", "Elo", "elo", elote_elo),
        Peer("openskill", "Plackett-Luce", "wenglin", openskill),
        Peer("trueskill", "TrueSkill", "trueskill", trueskill),
        Peer("glicko2", "Glicko-2", "glicko2", glicko2),
        Peer("belo", "Glicko-2 (called Elo)", "glicko2", belo),
        Peer("belo", "Glicko-2, a process per match", "glicko2", belo_program, PROCESSES),
    ],
    TEAMS: [
        Peer("elote", "Elo, player against player", "elo", elote_teams),
        Peer("openskill", "Plackett-Luce", "wenglin", openskill),
        Peer("trueskill", "TrueSkill", "trueskill", trueskill),
    ],
    FREE: [
        Peer("elote", "Plackett-Luce", "wenglin", elote_openskill),
        Peer("openskill", "Plackett-Luce", "wenglin", openskill),
        Peer("trueskill", "TrueSkill", "trueskill", trueskill),
    ],
}
