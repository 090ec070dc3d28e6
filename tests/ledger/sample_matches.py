"""Matches, clocks and questions that the tests of the ledger share."""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from evenmatch.durations import DAY
from evenmatch.match import Appearance, Match, Team

START = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """Microseconds since the epoch, which pass only when a test says so."""

    def __init__(self, now=START + timedelta(days=10)):
        self.now = micros(now)

    def __call__(self):
        return self.now

    def move(self, *, days=0.0, seconds=0.0):
        self.now += round(days * DAY + seconds * 1e6)


def micros(moment):
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def after(hours):
    return START + timedelta(hours=hours)


def duel(number, winner, loser, ladder="default", **fields):
    """A match of two, numbered by the hour in which it ended."""
    teams = (Team.of(winner, place=1), Team.of(loser, place=2))
    return Match(f"m{number}", after(number), teams, ladder, **fields)


def team_match(number, *teams, ladder="default", at=None):
    """A match of (place, player …) each; a name with a star quit, one with a tilde is a guest."""
    made = tuple(Team(tuple(map(part, names)), place) for place, *names in teams)
    return Match(f"m{number}", after(number if at is None else at), made, ladder)


def part(name):
    return Appearance(name.strip("*~"), quit="*" in name, keep="~" not in name)


def ratings(service, ladder="default"):
    """Everybody's shown rating by name."""
    return {name: one.rating for name, one in everybody(service, ladder).items()}


def everybody(service, ladder="default"):
    """Everybody's standing by name."""
    snapshot = service.view(ladder).snapshot
    return dict(service.named(snapshot.among(snapshot.board.player)))


def run_sql(service, *statements):
    with service.database.write() as store:
        for statement in statements:
            store.connection.execute(sa.text(statement))


def positions(service, ladder="default"):
    """The positions of a ladder's events, ascending."""
    sql = "SELECT e.position FROM event e JOIN ladder l ON l.ladder = e.ladder WHERE l.name = :name ORDER BY e.position"
    with service.database.read() as store:
        return list(store.connection.execute(sa.text(sql), {"name": ladder}).scalars())


def dump(service):
    """Every row of every table, in some order that is always the same."""
    with service.database.read() as store:
        return {
            table: sorted(map(repr, store.connection.execute(sa.text(f'SELECT * FROM "{table}"')).all()))
            for table in sa.inspect(store.connection).get_table_names()
        }


def lasting_rows(service):
    """What the ledger says and what is read of it: all rows but those of generations that nobody reads."""
    rows = dump(service)
    return {table: rows[table] for table in ("event", "correction", "ladder", "appearance", "season", "player", "name")}
