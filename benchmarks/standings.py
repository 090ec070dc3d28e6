"""A ladder of a million players: a snapshot of its standings, and queries; pages with the records of their players."""

from __future__ import annotations

import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from benchmarks.figure import Figure, Section, seconds_in_turn
from benchmarks.ledger import table_of
from benchmarks.matches import SEED, START, Season
from evenmatch.durations import DAY
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.ladders.settings import Settings
from evenmatch.operations.service import Service
from evenmatch.rating import rules
from evenmatch.standings.board import Board, Snapshot, snapshot
from evenmatch.standings.placement import UNKNOWN
from evenmatch.standings.rules import StandingsRules

PLAYERS = 1_000_000
NOW = START
RULES = StandingsRules()
ROUNDS = 5
ASKED = 200  # questions in a round
REPEATED = 25  # times that a single question is asked
SIZE = 50  # of a page
SIDE = 10  # around a player
PAGES = 20  # pages with records in a round
AIM = 0.5  # seconds
QUICK = 1000.0  # microseconds
PLAYED = Season(300_000, 30_000, 1)  # the matches of players whose records are read
SIZES = (SIZE, 1000)  # players on a page with records

T = TypeVar("T")


class Place(NamedTuple):
    """What the reference tells of a listed player."""

    player: int
    rank: int
    rating: float
    percentile: int
    division: str


class Plain:
    """The obvious way: lists of tuples, sorted, and `bisect`."""

    def __init__(self, board: Board) -> None:
        self.rating = dict(zip(board.player.tolist(), board.rating.tolist(), strict=True))
        self.recorded = dict(zip(board.player.tolist(), board.division.tolist(), strict=True))
        completed, last = board.completed.tolist(), board.last_completed.tolist()
        oldest = NOW - int(RULES.active_days * DAY)
        active = [
            (-rating, player, done >= RULES.placement)
            for (player, rating), done, at in zip(self.rating.items(), completed, last, strict=True)
            if oldest <= at <= NOW
        ]
        active.sort()
        self.against = [-rating for rating, _, _ in reversed(active)]
        self.listed = [(rating, player) for rating, player, placed in active if placed]
        self.ratings = [-rating for rating, _ in reversed(self.listed)]
        self.place = {player: self.ranked(player) for _, player in self.listed}

    def percentile(self, rating: float) -> int:
        below = bisect_left(self.against, rating)
        others = below + len(self.against) - bisect_right(self.against, rating)
        return min(100, 1 + 100 * below // others) if others else 1

    def ranked(self, player: int) -> Place:
        rating, own = self.rating[player], self.recorded[player]
        percentile = self.percentile(rating)
        plain = bisect_right([division.lowest for division in RULES.divisions], percentile) - 1
        if own < plain or percentile < RULES.divisions[own].lowest - RULES.division_margin:
            own = plain
        rank = 1 + len(self.ratings) - bisect_right(self.ratings, rating)
        return Place(player, rank, rating, percentile, RULES.divisions[own].name)

    def standing(self, player: int) -> Place | None:
        return self.place.get(player)

    def page(self, number: int) -> list[Place]:
        return [self.place[player] for _, player in self.listed[(number - 1) * SIZE : number * SIZE]]

    def around(self, player: int) -> list[Place]:
        at = bisect_left(self.listed, (-self.rating[player], player))
        return [self.place[other] for _, other in self.listed[max(0, at - SIDE) : at + SIDE + 1]]


def ladder(players: int = PLAYERS) -> Board:
    """All active, five in six of them placed; nine in a hundred share their rating."""
    rng = np.random.default_rng(SEED)
    completed = rng.geometric(0.02, players)
    return Board(
        player=np.cumsum(rng.integers(1, 5, players)),
        rating=np.round(rng.normal(1500, 300, players), 4),
        matches=completed + rng.poisson(completed / 100),
        completed=completed,
        last_completed=NOW - rng.integers(0, 30 * DAY, players),
        expected_move=np.full(players, UNKNOWN),
        division=rng.integers(-1, len(RULES.divisions), players).astype(np.int16),
        hidden=np.zeros(players, bool),
    )


def run() -> Section:
    """The snapshot, then single questions, beside plain Python."""
    board = ladder()
    taken, plain = snapshot(board, RULES, NOW), Plain(board)
    compare(taken, plain)
    ours, theirs = seconds_in_turn([lambda: snapshot(board, RULES, NOW), lambda: Plain(board)], ROUNDS)
    figures = [Figure(f"snapshot of {PLAYERS:,} players", ours, "s", AIM, False, theirs, "plain Python")]
    rng = np.random.default_rng(SEED)
    ratings = rng.normal(1500, 300, ASKED).tolist()
    players = rng.choice(board.player[taken.order], ASKED).tolist()
    pages = rng.integers(1, taken.pages(SIZE) + 1, ASKED).tolist()
    for name, told, plainly, asked in (
        ("percentile of a rating", taken.percentile, plain.percentile, ratings),
        ("standing of a player", taken.standing, plain.standing, players),
        (f"page of {SIZE}", partial(taken.page, size=SIZE), plain.page, pages),
        (f"{SIDE} on each side of a player", partial(taken.around, each_side=SIDE), plain.around, players),
    ):
        runs = [partial(ask, question, asked) for question in (told, plainly)]
        ours, theirs = (1e6 * seconds / ASKED for seconds in seconds_in_turn(runs, ROUNDS))
        figures.append(Figure(name, ours, "µs", QUICK, False, theirs, "plain Python"))
    figures += [
        Figure(name, 1e6 * seconds_in_turn([question], REPEATED)[0], "µs", QUICK, False, None, "")
        for name, question in (
            (f"{SIZE} friends among themselves", partial(taken.among, players[:SIZE])),
            ("distribution of all ratings", taken.distribution),
        )
    ]
    notes = [
        f"`snapshot` of {taken.population:,} active players, {len(taken):,} of them listed, from columns to ranks, "
        "percentiles and divisions; nothing is deferred to the first query. One core. Plain Python does the same with "
        "lists of tuples, `sort` and `bisect`, from columns to a dict of finished standings; its results are "
        f"compared with every standing. {ROUNDS} runs, in turn; queries are the mean of {ASKED} different ones.",
        f"Records are each player's share of wins, change in seven days and last match, read from an SQLite file of "
        f"{PLAYED.matches:,} matches of {PLAYED.players:,} players. The reference is the same page with names alone; "
        f"the mean of {PAGES} different pages.",
    ]
    figures += figures_of_records()
    return Section("Standings of a million players", figures, notes)


def figures_of_records() -> list[Figure]:
    """Pages of players with their records, beside the same pages without them."""
    with tempfile.TemporaryDirectory() as folder, Service.open(str(Path(folder) / "evenmatch.db")) as service:
        service.create_ladder("crowd", "elo", rules("elo"), Settings(standings=StandingsRules(1, active_days=36_500.0)))
        service.import_matches("crowd", table_of(PLAYED))
        view = service.view("crowd")
        last = view.head.time
        assert last is not None
        service.clock = lambda: last  # so that the season's last days are within a week
        view = service.view("crowd")
        queries = LadderQueries(service, lambda _: view)

        def plain(size: int, number: int) -> None:
            service.named(view.snapshot.page(number, size))

        def whole(size: int, number: int) -> None:
            plain(size, number)
            queries.records(view, view.snapshot.page(number, size))

        figures = []
        for size in SIZES:
            numbers = range(1, PAGES + 1)
            runs = [partial(ask, partial(page, size), numbers) for page in (whole, plain)]
            ours, theirs = (1e3 * seconds / PAGES for seconds in seconds_in_turn(runs, ROUNDS))
            figures.append(Figure(f"page of {size:,} with records", ours, "ms", None, False, theirs, "without records"))
    return figures


def compare(taken: Snapshot, plain: Plain) -> None:
    """Both say the same of everybody who is listed, in the same order."""
    listed = taken.page(1, len(taken))
    found = [(one.player, one.rank, one.rating, one.percentile, one.division) for one in listed]
    if found != [tuple(plain.place[player]) for _, player in plain.listed]:
        raise AssertionError("the snapshot and plain Python differ")
    middle = listed[len(listed) // 2].player
    if [one.player for one in taken.around(middle, SIDE)] != [one.player for one in plain.around(middle)]:
        raise AssertionError("the snapshot and plain Python differ around a player")


def ask(question: Callable[[T], object], asked: Sequence[T]) -> None:
    """One question after another."""
    for one in asked:
        question(one)
