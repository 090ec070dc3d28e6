"""A ladder on which every table of the site has rows, with long names and large numbers in them."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from evenmatch import from_matches, rules
from evenmatch.accounts.keys import Keys
from evenmatch.corrections.corrections import Ban, Void
from evenmatch.ladders.settings import Settings
from evenmatch.live.live_matches import Running
from evenmatch.match import Match, Team
from evenmatch.operations.service import Service
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.requests import Accept, Decline, Join, Leave, QueuedPlayer
from evenmatch.standings.rules import StandingsRules
from evenmatch.webhooks.subscriptions import Webhooks
from ledger.sample_matches import ManualClock, micros

FILLED, LEARNING = "filled", "learning"
TITLE = "Donaudampfschifffahrtsgesellschaft Invitational"
LONG = (
    "Wolfeschlegelsteinhausenbergerdorff",
    "Nebuchadnezzar the Magnificent",
    "Quân Echo",
    "Anna-Lena_Katharina.Maximiliane",
    "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
    "ムスタファ・ケマル・アタテュルク",
)
NAMES = (*LONG, *(f"Bartholomäus-Maximilian {number:02}" for number in range(1, 23)))
WHY = "Unsportsmanlike conduct in the quarter-finals, reported by several spectators"
MAPS = ("Lighthouse of the Northern Archipelago", "Abandoned Underground Observatory")
ANYBODY = {"team_size": 1, "max_odds": "none", "even_spread": 100.0, "steps": [[0, 100]], "rematch_wait": 0.0}
DUEL = {**ANYBODY, "party_wait": 0.0, "maps": list(MAPS)}
APART = {**DUEL, "steps": [[0, 1]]}
PATIENT = QueueRules(accept_within=3600, heartbeat=None, penalty=0)
OFFERED = 48  # matches
DECLINED = 7  # every seventh offer is declined


class Filled(NamedTuple):
    """The last match of the ladder and one of its players, a ticket with an open offer, and keys: a text, and an id."""

    match: str
    winner: str
    ticket: int
    admin: str
    other_key: str


def fill(path):
    """Make a database with the ladder, and one whose system learns."""
    clock = ManualClock(datetime.now(UTC) - timedelta(days=40))
    with Service.open(str(path), clock) as service:
        settings = Settings(title=TITLE, standings=StandingsRules(placement=3), team_size=1, stomp_margin=8.0)
        service.create_ladder(FILLED, "elo", rules("elo", start=12_000.0, scale=4000.0, k=320.0), settings)
        clock.move(days=20)
        service.import_matches(FILLED, from_matches(list(duels("early", clock.now, days=20))))
        service.open_season(FILLED, title="The second season, whose title is long enough to wrap")
        clock.move(days=19.9)
        service.import_matches(FILLED, from_matches(list(duels("late", clock.now, days=19))))
        service.import_matches(FILLED, from_matches(list(traded(clock.now))))
        for number in (5, 9):
            service.correct(FILLED, Void(f"late-{number}-of-the-regular-season", reason=WHY))
        service.correct(FILLED, Ban(NAMES[-1], reason=WHY))
        last, winner, ticket = fill_queue(service, clock)
        service.create_ladder(LEARNING, "even", rules("even"))
        service.import_matches(LEARNING, from_matches(list(duels("even", clock.now, days=19))))
        keys = Keys(service.database, service.clock)
        admin = keys.create("The operators of the championship", ["admin"])[1]
        other, _ = keys.create("Reading for the statistics of the newspapers", ["read"])
        Webhooks(service, allow_private=True).add(f"http://127.0.0.1:9/{'a-long-path/' * 6}", ["match.rated"])
    return Filled(last, winner, ticket, admin, other.key)


def duels(what, until, *, days):
    """Duels over so many days until a time; the stronger player wins three of four."""
    count = 120
    for number in range(count):
        one, other = NAMES[number % len(NAMES)], NAMES[(number * 5 + 2) % len(NAMES)]
        if one == other:
            other = NAMES[(number * 5 + 3) % len(NAMES)]
        end = until / 1e6 - days * 86_400 * (1 - (number + 1) / count)
        strong = NAMES.index(one) < NAMES.index(other)
        score = (11.0, float(number % 10)) if strong != (number % 4 == 0) else (float(number % 9), 11.0)
        teams = tuple(Team.of(name, score=points) for name, points in zip((one, other), score, strict=True))
        yield Match(f"{what}-{number}-of-the-regular-season", datetime.fromtimestamp(end, UTC), teams, FILLED)


def traded(until):
    """Forty duels within an hour before a time, which two players win by turns and without resistance."""
    for number in range(40):
        teams = tuple(Team.of(name, score=11.0 * ((number + at) % 2)) for at, name in enumerate(NAMES[8:10]))
        yield Match(f"traded-{number}", datetime.fromtimestamp(until / 1e6 - 60 * (40 - number), UTC), teams, FILLED)


def fill_queue(service, clock):
    """Matches that were offered, accepted and played, others that were called off, one that is open, and a crowd."""
    queues, running = QueueService(service), Running(service)
    queues.set_queue(FILLED, "duels of the evening", DUEL, PATIENT)
    queues.set_queue(FILLED, "patient", APART, PATIENT)
    maker = Matchmaker(queues)
    queues.start_experiment(
        FILLED, "duels of the evening", {**DUEL, "even_spread": 50.0}, {"slice_seconds": 60, "washout": 0}
    )
    played = NAMES[:-1]
    for number in range(OFFERED):
        pair = [played[(2 * number + side) % len(played)] for side in range(2)]
        tickets = ask(queues, maker, clock, pair, wait=3.0 + 11 * (number % 12))
        answers = (Accept, Decline if number % DECLINED == 3 else Accept)
        queues.apply(FILLED, [answer(ticket) for answer, ticket in zip(answers, tickets, strict=True)])
        match = queues.status(FILLED, tickets[0]).match
        if match is None:
            queues.apply(FILLED, [Leave(tickets[0])])
        else:
            teams = tuple(
                Team.of(one.player, score=11.0 - 7 * at * (number % 3 > 0)) for at, (one,) in enumerate(match.teams)
            )
            clock.move(seconds=20)
            last, winner = match.match_id, match.teams[0][0].player
            service.record(Match(last, datetime.fromtimestamp(clock.now / 1e6, UTC), teams, FILLED))
            running.settle_reported(FILLED, [last], {})
    clock.now = micros(datetime.now(UTC) - timedelta(seconds=100))
    ticket, _ = ask(queues, maker, clock, played[:2], wait=100.0)
    for number, name in enumerate(played[6:22]):
        join(queues, name, "patient", {"europe-central-1": 20.0 + number, "asia-southeast-2": 180.0})
    return last, winner, ticket


def ask(queues, maker, clock, names, wait):
    """Let these players wait until they are offered a match; return the numbers of their tickets."""
    tickets = [join(queues, name, "duels of the evening", {"europe-central-1": 25.0}) for name in names]
    clock.move(seconds=wait)
    maker.step(FILLED)
    return tickets


def join(queues, name, queue, ping):
    """Return the number of the ticket of a player who joins a queue."""
    (joined,) = queues.apply(FILLED, [Join(members=(QueuedPlayer(name=name, ping=ping),), queues=(queue,))])
    if isinstance(joined, Exception):
        raise joined
    return joined.ticket
