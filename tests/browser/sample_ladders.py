"""Ladders for the pages to show: the four core systems, names that try to do harm, queues, seasons and corrections."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from evenmatch import Appearance, Match, Team, from_matches, rules
from evenmatch.accounts.keys import Keys
from evenmatch.corrections.corrections import Ban, Void
from evenmatch.lab.sample import season
from evenmatch.ladders.settings import Settings
from evenmatch.operations.service import Service
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.requests import Join, QueuedPlayer
from evenmatch.standings.rules import StandingsRules
from evenmatch.webhooks.subscriptions import Webhooks
from ledger.sample_matches import ManualClock

OWNED = "document.title='owned';alert(1)"
BLANKS = ("\u200b", "\u2800", "\u3164")  # of each nothing is seen
HOSTILE = (
    f"<script>{OWNED}</script>",
    f"<img src=https://evil.example/x onerror={OWNED}>",
    f'"><svg onload="{OWNED}">',
    f"' onmouseover='{OWNED}' autofocus onfocus='{OWNED}",
    f"</title></textarea></script><script>{OWNED}</script>",
    '<a href="https://evil.example/">log in</a>',
    "</td></tr></table><h1>owned</h1>",
    "{{ 7 * 7 }} {% raw %} ${7*7} %{x}",
    "&lt;b&gt; &amp; &#60;",
    "\u202egnol drawkcab\u202c",
    "\u2067abc\u200f",
    "🏳️‍🌈 'quotes\" 👩‍👩‍👧‍👦",
    "x" * 200,
    "W" * 60 + " " + "i" * 60,
    "a/b/../c?d=e&f#g%2F%00",
    "..",
    ".",
    "javascript:alert(1)",
    "line\nbreak\u2028and more",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!",
    *BLANKS,
)
ARENA, DUELS, BRAWL, RELAY = "arena", "duels", "brawl", f'relay/1 "><b>{OWNED[:20]}</b>?#'
LADDERS = (ARENA, DUELS, BRAWL, RELAY)
MARATHON, RUNNERS = "marathon", ("Long one", "Long two")  # who played each other every hour
HOURS = 420
TITLES = {ARENA: "Arena 6v6", DUELS: "Duels", BRAWL: "Brawl", RELAY: f"<script>{OWNED}</script> \u202erelay"}
ANYBODY = {"max_odds": "none", "even_spread": 100.0, "steps": [[0, 100]], "rematch_wait": 0.0, "party_wait": 0.0}
APART = {**ANYBODY, "steps": [[0, 1]]}  # those who wait here wait on
LONG = QueueRules(accept_within=3600, heartbeat=None, tick=0.2, penalty=0)
DAYS = 60


@dataclass(frozen=True)
class World:
    """What tests know of the database.

    keys     their texts, by scope;  key  the id of one of them
    match    of each ladder the id of a match of HOSTILE[0] in which somebody quit, or of the last
    ticket   of ladders that have queues one that waits
    """

    path: Path
    keys: dict[str, str]
    players: dict[str, list[str]]
    match: dict[str, str]
    ticket: dict[str, int]
    key: str


def make(path):
    """Fill a new database at this path."""
    rng = np.random.default_rng(7)
    played = {ARENA: arena(), DUELS: duels(rng), BRAWL: brawl(rng), RELAY: relay(rng)}
    systems = {ARENA: "wager", DUELS: "battlepoints", BRAWL: "scorefactor", RELAY: "prav"}
    marathon(path, rng)
    with Service.open(str(path)) as service:
        for name, matches in played.items():
            settings = Settings(
                title=TITLES[name], standings=StandingsRules(placement=3), team_size={ARENA: 6, DUELS: 1}.get(name)
            )
            service.create_ladder(name, systems[name], rules(systems[name]), settings)
            half = len(matches) // 2
            service.import_matches(name, from_matches(matches[:half]))
            if name in (ARENA, RELAY):
                service.open_season(name, title=f"Season of <b>{OWNED}</b>")
            service.import_matches(name, from_matches(matches[half:]))
        service.correct(ARENA, Void(played[ARENA][5].id, reason=f"<b>{OWNED}</b>"))
        service.correct(ARENA, Ban(HOSTILE[1], reason="<i>cheats</i>"))
        ticket = fill_queues(service)
        Webhooks(service, allow_private=True).add("http://127.0.0.1:9/%3Cb%3E", ["match.rated", "match.made"])
        service.record(
            Match(
                "last",
                datetime.now(UTC),
                (Team.of("Duellist 01", score=11.0), Team.of("Duellist 02", score=3.0)),
                DUELS,
            )
        )
        keys = Keys(service.database, service.clock)
        granted = {
            scope: keys.create(f"<b>{scope}</b>", [scope], None, None) for scope in ("admin", "report", "queue", "read")
        }
    players = {
        name: sorted({one.player for match in matches for team in match.teams for one in team.players})
        for name, matches in played.items()
    }
    return World(
        path=path,
        keys={scope: text for scope, (_, text) in granted.items()},
        players=players,
        match={name: chosen(matches) for name, matches in played.items()},
        ticket=ticket,
        key=granted["read"][0].key,
    )


def chosen(matches):
    """The id of the last match of HOSTILE[0] in which somebody quit, or of their last."""
    line_ups = {one.id: [each for team in one.teams for each in team.players] for one in matches}
    own = [name for name, players in line_ups.items() if any(each.player == HOSTILE[0] for each in players)]
    return ([name for name in own if any(each.quit for each in line_ups[name])] or own)[-1]


def match_times(count):
    """So many ends of matches in order, the last one a moment ago."""
    end = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)
    return [end - timedelta(days=DAYS) * (count - 1 - at) / count for at in range(count)]


def arena():
    """6v6 with seconds and quitters; the most eager players have the worst names."""
    made = list(season(11, players=60, matches=240).matches.to_matches("6v6"))
    known = {one.player for match in made for team in match.teams for one in team.players}
    names = dict(zip(sorted(known), HOSTILE, strict=False))

    def renamed(team):
        players = [
            Appearance(names.get(one.player, one.player), seconds=one.seconds, quit=one.quit) for one in team.players
        ]
        return Team(tuple(players), team.place, team.score)

    return [
        Match(f"{one.id}/<b>?#" if at % 9 == 0 else one.id, end, tuple(map(renamed, one.teams)), ARENA)
        for at, (one, end) in enumerate(zip(made, match_times(len(made)), strict=True))
    ]


def duels(rng):
    """1v1, first to eleven, of twenty people with plain names and some with bad ones."""
    names = [f"Duellist {at:02}" for at in range(1, 21)] + list(HOSTILE)
    listed = []
    for number, end in enumerate(match_times(260)):
        one, other = sorted(rng.choice(len(names), 2, replace=False))
        upset = rng.random() < 0.3
        scores = (float(rng.integers(0, 10)), 11.0) if upset else (11.0, float(rng.integers(0, 10)))
        teams = [Team.of(names[who], score=score) for who, score in zip((one, other), scores, strict=True)]
        listed.append(Match(f"duel-{number}", end, tuple(teams), DUELS))
    return listed


def brawl(rng):
    """A free-for-all of eight, each with a score."""
    names = [f"Brawler {at:02}" for at in range(1, 25)] + list(HOSTILE[:8])
    listed = []
    for number, end in enumerate(match_times(90)):
        who = rng.choice(len(names), 8, replace=False)
        scores = np.round(rng.gamma(4, 25, 8) * (1.5 - who / len(names)))
        order = (-scores).argsort().argsort() + 1
        teams = [
            Team((Appearance(names[one], score=float(score), seconds=600.0),), int(place))
            for one, score, place in zip(who, scores, order, strict=True)
        ]
        listed.append(Match(f"brawl-{number}", end, tuple(teams), BRAWL))
    return listed


def relay(rng):
    """4v4 with a performance of each; the ladder's own name is a trap."""
    names = [*HOSTILE, *(f"Runner {at}" for at in range(1, 10))]
    listed = []
    for number, end in enumerate(match_times(80)):
        who = rng.choice(len(names), 8, replace=False)
        wins = bool(rng.random() < 0.5)
        sides = [
            Team(
                tuple(
                    Appearance(names[one], performance=round(float(rng.uniform(-1, 1)), 2))
                    for one in who[4 * at : 4 * at + 4]
                ),
                1 if (at == 0) == wins else 2,
            )
            for at in range(2)
        ]
        listed.append(Match(f"relay-{number} <i>&", end, tuple(sides), RELAY))
    return listed


def marathon(path, rng):
    """A ladder of many matches of two, with a season that opened half way."""
    ends = hours()
    listed = []
    for number, end in enumerate(ends):
        places = rng.permutation([1, 2]).tolist()
        teams = tuple(Team.of(who, place=place) for who, place in zip(RUNNERS, places, strict=True))
        listed.append(Match(f"run-{number}", end, teams))
    clock = ManualClock(ends[HOURS // 2])
    with Service.open(str(path), clock) as service:
        service.create_ladder(MARATHON, "elo", rules("elo"))
        service.import_matches(MARATHON, from_matches(listed[: HOURS // 2]))
        service.open_season(MARATHON, title="Second half")
        clock.move(days=HOURS)
        service.import_matches(MARATHON, from_matches(listed[HOURS // 2 :]))


def hours():
    """When the matches of the marathon ended, the last one an hour ago at most."""
    last = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return [last - timedelta(hours=HOURS - 1 - at) for at in range(HOURS)]


def fill_queues(service):
    """Some who wait, and two who are asked whether they want a match; of ladders with queues a ticket that waits."""
    queue_service = QueueService(service)
    for ladder, size in ((ARENA, 6), (DUELS, 1), (RELAY, 4)):
        queue_service.set_queue(ladder, "ranked", {**APART, "team_size": size}, LONG)
    queue_service.set_queue(DUELS, "quick", {**ANYBODY, "team_size": 1}, LONG)
    queue_service.start_experiment(DUELS, "quick", {"preset": "fair"}, {"share": 0.0})
    for at in (1, 2):
        told = join_queue(queue_service, DUELS, "quick", QueuedPlayer(name=f"Duellist {at:02}", ping={"eu": 15.0}))
    waits = {DUELS: told}
    for ladder in (ARENA, RELAY):
        for at, name in enumerate(HOSTILE[4:12]):
            ping = {"eu": 20.0 + at, "us": 120.0}
            waits[ladder] = join_queue(
                queue_service, ladder, "ranked", QueuedPlayer(name=f"{name}{ladder[0]}", loose=False, ping=ping)
            )
    return waits


def join_queue(queue_service, ladder, queue, *members):
    """The number of the ticket of a party that joins."""
    (told,) = queue_service.apply(ladder, [Join(members=members, queues=(queue,))])
    if isinstance(told, Exception):
        raise told
    return told.ticket


__all__ = [
    "ARENA",
    "BLANKS",
    "BRAWL",
    "DUELS",
    "HOSTILE",
    "HOURS",
    "LADDERS",
    "MARATHON",
    "OWNED",
    "RELAY",
    "RUNNERS",
    "World",
    "make",
]
