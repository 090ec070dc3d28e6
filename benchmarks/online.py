"""Microseconds to rate one match as it ends, receipt with factors included."""

from __future__ import annotations

import itertools
import tempfile
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np

import evenmatch
from benchmarks.figure import Figure, Section, seconds_in_turn
from benchmarks.matches import Season, play
from evenmatch import Appearance, Match, Rater, Team
from evenmatch.history import History
from evenmatch.operations.service import Service
from evenmatch.systems import loop
from evenmatch.systems.system import Rules

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START = datetime(2026, 1, 1, tzinfo=UTC)
SEASONS = (Season(2_000, 500, 1), Season(500, 500, 5))
SYSTEMS = ("wager", "battlepoints", "scorefactor", "prav", "even")
IN_SERVICE = ("trueskill", "even")
FIRST_MATCHES = 200  # through a service, each of two new players
ROUNDS = 15
AIM, AIM_OF_EVEN = 50.0, 70.0  # microseconds: 1v1; 1v1 and 5v5


def run() -> Section:
    """Every system, 1v1 and 5v5."""
    figures = []
    for season in SEASONS:
        history = play(season)
        matches = as_matches(history)
        alone = [one_match(history, at) for at in range(len(history))]
        for name in SYSTEMS:
            aim = AIM_OF_EVEN if name == "even" else AIM if season.team == 1 else None
            rules = evenmatch.rules(name)
            runs = (partial(rate_all, Rater(rules), matches), partial(replay_all, rules, alone))
            seconds_in_turn(runs, 1)
            ours, bare = (1e6 * seconds / season.matches for seconds in seconds_in_turn(runs, ROUNDS))
            figures.append(Figure(f"{name} {season.form}: Rater.rate", ours, "µs", aim, False, bare, "loop.replay"))
        (elo,) = (
            1e6 * seconds / season.matches for seconds in seconds_in_turn([partial(plain_elo, matches, {})], ROUNDS)
        )
        figures.append(Figure(f"Elo in plain Python, {season.form}", elo, "µs", None, False, None, ""))
    figures += first_matches()
    notes = [
        "One match through `evenmatch.Rater(…).rate(match)`: checks, ratings, and a receipt with every player's change "
        f"and its factors. Mean over a season whose `Match` objects are made beforehand, {ROUNDS} times. "
        "`loop.replay` rates the same match from arrays of numbers, journal and copies of the records included, "
        "without names, checks and receipt. Elo in plain Python is ten lines that update a dict from the same "
        "`Match` objects and report nothing.",
        f"First matches: {FIRST_MATCHES} duels of two new players each, recorded one by one by a `Service` on SQLite, "
        f"every commit durable; the reference is {IN_SERVICE[0]}.",
    ]
    return Section("Rating one match as it ends", figures, notes)


def first_matches() -> list[Figure]:
    """Milliseconds to record a match of two new players, by each system of IN_SERVICE in turn."""
    numbers = itertools.count()

    def record(service: Service, ladder: str) -> None:
        for number in itertools.islice(numbers, FIRST_MATCHES):
            teams = (Team.of(f"a{number}", place=1), Team.of(f"b{number}", place=2))
            service.record(Match(str(number), START + timedelta(seconds=number), teams, ladder=ladder))

    with tempfile.TemporaryDirectory() as folder, Service.open(str(Path(folder, "ledger.db"))) as service:
        for name in IN_SERVICE:
            service.create_ladder(name, name, evenmatch.rules(name))
        runs = [partial(record, service, name) for name in IN_SERVICE]
        seconds_in_turn(runs, 1)
        reference, *others = (1e3 * seconds / FIRST_MATCHES for seconds in seconds_in_turn(runs, 5))
    return [
        Figure(f"{name}: first match of two players in a service", value, "ms", None, False, reference, IN_SERVICE[0])
        for name, value in zip(IN_SERVICE[1:], others, strict=True)
    ]


def as_matches(history: History) -> list[Match]:
    """The history as records, players named p0, p1 …"""
    c = history.columns
    player = [f"p{at}" for at in c.player.tolist()]
    score, seconds, left = c.score.tolist(), c.seconds.tolist(), c.quit.tolist()
    slots = [Appearance(*told) for told in zip(player, score, seconds, left, strict=True)]
    starts, places, scores = c.slot_start.tolist(), c.place.tolist(), c.team_score.tolist()
    teams = [
        Team(tuple(slots[starts[at] : starts[at + 1]]), place, score)
        for at, (place, score) in enumerate(zip(places, scores, strict=True))
    ]
    return [
        Match(str(at), EPOCH + timedelta(microseconds=time), tuple(teams[2 * at : 2 * at + 2]))
        for at, time in enumerate(c.time.tolist())
    ]


def rate_all(rater: Rater, matches: list[Match]) -> None:
    """What a running game does, match by match."""
    for match in matches:
        rater.rate(match)


def one_match(history: History, at: int) -> History:
    """A match of the history, its players numbered from 0."""
    columns = history.take(slice(at, at + 1)).columns
    return History(columns._replace(player=np.arange(len(columns.player), dtype=np.int32)))


def replay_all(rules: Rules, histories: list[History]) -> None:
    """The compiled loop called once per match, always from newcomers."""
    state, ladders = rules.newcomers(len(histories[0].columns.player)), rules.ladders()
    for history in histories:
        loop.replay(rules, history, state, ladders, journal=True)


def plain_elo(matches: list[Match], ratings: dict[str, float]) -> None:
    """Elo as a short script would have it, a team's rating being its players' mean."""
    for match in matches:
        one, two = ([slot.player for slot in team.players] for team in match.teams)
        a = sum(ratings.setdefault(player, 1500.0) for player in one) / len(one)
        b = sum(ratings.setdefault(player, 1500.0) for player in two) / len(two)
        places = match.places
        won = 1.0 if places[0] < places[1] else 0.5 if places[0] == places[1] else 0.0
        change = 32 * (won - 1 / (1 + 10 ** ((b - a) / 400)))
        for player in one:
            ratings[player] += change
        for player in two:
            ratings[player] -= change
