"""What holds for a ledger whatever happens to it: its ratings are those of a plain-Python replay from nothing.

A state machine does everything that a service can do to a ladder, in any order, on both databases, and asks the slow
twin (reference/ledger.py) after each step. With EVENMATCH_SOAK=1 it goes on for much longer.
"""

import itertools
import os
from datetime import timedelta

import hypothesis.strategies as st
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, assume, note, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from evenmatch import from_matches
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.errors import BadRowsError, ConflictError, InputError
from evenmatch.ladders.inactivity import DailyDecay
from evenmatch.ladders.settings import Settings
from evenmatch.match import Appearance, Match, Team
from evenmatch.operations.service import Service
from evenmatch.recording.receipts import MatchReceipt
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import START, ManualClock, everybody, micros
from postgres import postgres  # noqa: F401
from reference.ledger import NEVER, SlowLedger, System, can_rate

pytestmark = pytest.mark.slow

SOAK = os.environ.get("EVENMATCH_SOAK") == "1"
LONG = settings(
    max_examples=150 if SOAK else 15,
    stateful_step_count=40 if SOAK else 16,
    deadline=None,
    derandomize=not SOAK,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink) if SOAK else (Phase.generate,),
)

PEOPLE = 7
SYSTEMS = {
    "elo": [{}, {"k": 16.0}, {"k": 64.0, "scale": 300.0}, {"start": 1400.0}],
    "wager": [{}, {"stake": 0.2}, {"uneven": "mean"}, {"start": 20.0}],
    "glicko": [{}, {"c": 60.0}, {"start": 1200.0, "deviation": 200.0}, {"period_days": 0.1}],
    "even": [{}, {"margin": 0.3}, {"drift": 2.0, "wins_gain": True}, {"idle_drift": 5.0, "deviation": 0.5}],
}
SHAPES = [(1, 1), (1, 1), (2, 2), (2, 3), (1, 1, 1), (1, 2, 1)]
PLACES = {2: [(1, 2), (2, 1), (1, 1), (3, 7)], 3: [(1, 2, 3), (2, 1, 2), (3, 1, 1), (1, 1, 1)]}
RESETS = [("full", None, 0.0), ("none", None, 1.0), ("soft", 0.5, 0.5), ("soft", 0.1, 0.1)]

people = st.integers(0, PEOPLE - 1)
systems = st.sampled_from(sorted(SYSTEMS)).flatmap(
    lambda name: st.sampled_from(SYSTEMS[name]).map(lambda parameters: System(name, parameters))
)
hours = st.integers(0, 300)


@st.composite
def lineups(draw):
    """(hour, duration or None, teams of (place, [(player, quit, keep)]))."""
    shape = draw(st.sampled_from(SHAPES))
    chosen = iter(draw(st.permutations(range(PEOPLE))))
    places = draw(st.sampled_from(PLACES[len(shape)]))
    odd = draw(st.lists(st.sampled_from(["quit", "guest"]), max_size=2))
    teams = [
        (place, [(next(chosen), False, True) for _ in range(size)]) for place, size in zip(places, shape, strict=True)
    ]
    for what in odd:
        team = draw(st.sampled_from(teams))[1]
        at = draw(st.integers(0, len(team) - 1))
        player, left, keep = team[at]
        team[at] = (player, left or what == "quit", keep and what != "guest")
    return draw(hours), draw(st.sampled_from([None, 600.0])), teams


class Anything(RuleBasedStateMachine):
    """One ladder, its twin, and everything that may happen to both."""

    numbers = itertools.count(1)

    def __init__(self, service, clock):
        super().__init__()
        self.service, self.clock = service, clock
        self.ladder = f"ladder {next(self.numbers)}"
        self.count = itertools.count(1)
        self.matches: dict[str, tuple[Match, bool]] = {}
        self.receipts: dict[str, MatchReceipt] = {}
        self.season = 1
        self.decays = DailyDecay(service)
        self.rate, self.floor = 10.0, None
        self.began = self.decayed = clock()  # since when ratings fall, and up to when weeks were counted

    @initialize(system=systems, told=st.lists(lineups(), min_size=3, max_size=8))
    def create(self, system, told):
        self.twin = SlowLedger(system)
        falling = StandingsRules(inactivity="rating", grace_days=2.5, placement=1)
        settings = Settings(standings=falling, rating_decay=self.rate)
        self.service.create_ladder(self.ladder, system.name, system.rules, settings)
        self.called = [f"{self.ladder} p{number}" for number in range(PEOPLE)]  # what each is reported as

        self.record_many(told, rated=True)

    # what may happen

    @rule(lineup=lineups(), rated=st.sampled_from([True, True, True, False]))
    def record(self, lineup, rated):
        match = self.made(lineup)
        if rated and not can_rate(self.system, match):
            with pytest.raises(BadRowsError):
                self.service.record(match)
            return
        before = self.twin.replay()
        receipt = self.service.record(match, rated=rated)
        self.keep(match, rated, receipt)
        self.check()
        self.check_receipt(receipt, before)

    @rule(told=st.lists(lineups(), min_size=2, max_size=4), rated=st.booleans())
    def record_many(self, told, rated):
        matches = [self.made(one) for one in told]
        outcomes = self.service.record_many(self.ladder, [*matches, matches[0]], rated=rated)
        first, again = outcomes[0], outcomes[-1]
        if isinstance(first, MatchReceipt):
            assert self.nameless(again) == self.nameless(first)
        for match, outcome in zip(matches, outcomes, strict=False):
            if rated and not can_rate(self.system, match):
                assert isinstance(outcome, BadRowsError)
            else:
                assert isinstance(outcome, MatchReceipt)
                self.keep(match, rated, outcome)
        self.check()

    @rule(told=st.lists(lineups(), min_size=1, max_size=5), data=st.data())
    def bring_in(self, told, data):
        new = [self.made(one) for one in told]
        if self.matches:
            known, rated = self.matches[data.draw(st.sampled_from(sorted(self.matches)))]
            new += [known] if rated and can_rate(self.system, known) else []
        table = from_matches(new)
        bad = [match for match in new if not can_rate(self.system, match)]
        if bad:
            with pytest.raises(BadRowsError):
                self.service.import_matches(self.ladder, table)
            return
        fresh = [match for match in new if match.id not in self.matches]
        done = self.service.import_matches(self.ladder, table)
        assert (done.added, done.known) == (len(fresh), len(new) - len(fresh))
        for match in sorted(fresh, key=lambda one: one.time):
            self.keep(match, True, None)
        self.check()

    @rule(told=st.lists(lineups(), min_size=1, max_size=3))
    def insert(self, told):
        new = [match for one in told if can_rate(self.system, match := self.made(one))]
        assume(new)
        new.sort(key=lambda match: match.time)
        wish, _ = self.service.insertion(self.ladder, from_matches(new))
        if not self.twin.insert(new):
            with pytest.raises(InputError, match="report it as usual"):
                self.service.preview(self.ladder, wish)
            return
        self.matches |= {match.id: (match, True) for match in new}
        self.correct(wish)

    @precondition(lambda self: self.matches)
    @rule(data=st.data())
    def repeat(self, data):
        match, rated = self.matches[self.pick_match(data)]
        receipt = self.service.record(match, rated=rated)
        first = self.receipts.setdefault(match.id, receipt)
        assert self.nameless(receipt) == self.nameless(first)

    @precondition(lambda self: self.matches)
    @rule(data=st.data(), what=st.sampled_from(["time", "rated", "place"]))
    def contradict(self, data, what):
        match, rated = self.matches[self.pick_match(data)]
        other = {
            "time": lambda: Match(match.id, match.played_at + timedelta(seconds=1), match.teams, match.ladder),
            "place": lambda: Match(
                match.id,
                match.played_at,
                tuple(Team(team.players, team.place + at) for at, team in enumerate(match.teams)),
                match.ladder,
            ),
            "rated": lambda: match,
        }[what]()
        with pytest.raises(ConflictError):
            self.service.record(other, rated=rated != (what == "rated"))

    @precondition(lambda self: self.matches)
    @rule(data=st.data())
    def void_or_not(self, data):
        match_id = self.pick_match(data)
        is_void = self.twin.is_void(self.twin.position_of[match_id])
        right, wrong = (Unvoid, Void) if is_void else (Void, Unvoid)
        with pytest.raises(ConflictError):
            self.service.preview(self.ladder, wrong(match_id))
        (self.twin.unvoid if is_void else self.twin.void)(match_id)
        self.correct(right(match_id, "because"))

    @rule(player=people, by=st.sampled_from(["void", "refund"]), since=st.none() | hours)
    def ban_or_not(self, player, by, since):
        name = self.called[player]
        assume(name in self.twin.names)
        if self.twin.identity(self.twin.names[name]) in self.twin.bans():
            self.twin.reinstate(name)
            self.correct(Reinstate(name))
        else:
            from_then = None if since is None else micros(START + timedelta(hours=since))
            self.twin.ban(name, by, from_then)
            self.correct(Ban(name, by, from_then, "because"))

    @rule(data=st.data(), start=st.booleans())
    def change_parameters(self, data, start):
        parameters = data.draw(st.sampled_from(SYSTEMS[self.system.name]))
        self.change(System(self.system.name, parameters), start=start)

    @rule(system=systems)
    def change_system(self, system):
        self.change(system, start=True)

    def change(self, system, start):
        by = system.rules
        can = [can_rate(system, match) for match in self.twin.counting()]
        if start and not all(can):
            with pytest.raises(BadRowsError):
                self.service.change_rules(self.ladder, system.name, by, start=start)
            if not any(can):
                with pytest.raises(InputError, match="none of its"):
                    self.service.change_rules(self.ladder, system.name, by, start=start, skip_bad=True)
                return
        if system.name != self.system.name:
            self.began = self.clock()
        self.twin.change(system, start)
        self.service.change_rules(self.ladder, system.name, by, start=start, skip_bad=True)
        self.check(verify=True)

    @rule(reset=st.sampled_from(RESETS))
    def open_season(self, reset):
        how, factor, left = reset
        self.clock.move(days=1)
        before = self.twin.replay()
        self.season += 1
        assert self.service.open_season(self.ladder, reset=how, factor=factor).number == self.season
        kept = {one.player: one for one in self.service.finals(self.ladder, self.season - 1, size=100)}
        assert {name: one.matches for name, one in kept.items()} == {
            name: one.matches for name, one in before.items() if one.matches
        }
        self.twin.season(left)
        self.check(verify=True)

    @rule(chosen=st.lists(people, min_size=1, max_size=3, unique=True), value=st.floats(1.0, 3000.0))
    def start_ratings(self, chosen, value):
        told = dict.fromkeys((self.called[player] for player in chosen), round(value, 2))
        now, there = self.twin.replay(), self.twin.names
        people_now = [there.get(name, name) for name in told]
        assume(len(set(people_now)) == len(told))
        played = [name for name in told if name in there and self.played(now, name)]
        if played:
            with pytest.raises(InputError):
                self.service.start_ratings(self.ladder, told)
            return
        assert self.service.start_ratings(self.ladder, told) == len(told)
        self.twin.start(told)
        self.check(verify=True)

    @rule(rate=st.sampled_from([0.3, 25.0]), floor=st.sampled_from([None, 1.0, 1490.0]), days=st.integers(0, 40))
    def change_decay(self, rate, floor, days):
        self.rate, self.floor = rate, floor
        changes = {"rating_decay": rate, "rating_floor": floor}
        self.service.change_settings(self.ladder, changes)
        self.twin.add("settings")
        self.decay(days)

    @rule(days=st.integers(3, 40))
    def decay(self, days):
        self.clock.move(days=days)
        foreseen = {one.player: one.after for one in self.decays.preview(self.ladder).moves}
        before = everybody(self.service, self.ladder)
        result = self.decays.apply(self.ladder)
        if result is not None:
            floor = float(self.system.rules.newcomers(1)["rating"][0]) if self.floor is None else self.floor
            self.twin.decay(
                began=self.began,
                after=max(self.began, self.decayed),
                until=result.until,
                grace_days=2.5,
                rate=self.rate,
                floor=floor,
                placement=1,
            )
            self.decayed = result.until
        self.check(verify=True)
        now = everybody(self.service, self.ladder)
        assert foreseen == {name: one.rating for name, one in now.items() if one.rating != before[name].rating}

    @rule(player=people)
    def rename(self, player):
        name = self.called[player]
        assume(name in self.twin.names)
        to = f"{self.ladder} renamed {next(self.count)}"
        self.service.rename(name, to)
        is_here = self.is_here(name)
        self.twin.rename(name, to)
        if not is_here:
            del self.twin.events[-1]
        self.check(verify=True)

    @rule(one=people, other=people)
    def merge(self, one, other):
        name, into = self.called[one], self.called[other]
        names = self.twin.names
        assume(name in names and into in names and names[name] != names[into])
        banned = {self.twin.identity(player) for player in self.twin.bans()}
        if self.twin.met(name, into) or banned & {names[name], names[into]}:
            with pytest.raises(ConflictError):
                self.service.merge(name, into)
            return
        assert self.service.merge(name, into) == ([self.ladder] if self.is_here(name) else [])
        is_here = self.is_here(name)
        self.twin.merge(name, into)
        if not is_here:
            del self.twin.events[-1]
        self.check(verify=True)

    @rule()
    def rebuild(self):
        self.service.rebuild(self.ladder, whole=True)
        self.check(verify=True)

    @rule(days=st.sampled_from([0.1, 5, 40]))
    def wait(self, days):
        self.decay(days)

    # what must hold

    def teardown(self):
        if hasattr(self, "twin"):
            self.check(verify=True)
            with self.service.database.read() as store:
                told = store.connection.execute(
                    sa.text(
                        "SELECT e.position FROM event e JOIN ladder l ON l.ladder = e.ladder WHERE l.name = :name "
                        "ORDER BY e.position"
                    ),
                    {"name": self.ladder},
                )
                assert list(told.scalars()) == list(range(1, len(self.twin.events) + 1))

    def check(self, verify=False):
        """Ratings and counts are the twin's; the database is what the package's own replay makes of it."""
        wanted, board = self.twin.replay(), self.service.view(self.ladder).snapshot.board
        held = everybody(self.service, self.ladder)
        assert set(held) == set(wanted)
        for name, one in wanted.items():
            note(f"{name}: {held[name]}, twin {one}")
            assert held[name].rating == pytest.approx(one.rating, rel=1e-9, abs=1e-9)
            assert (held[name].matches, held[name].completed) == (one.matches, one.completed)
        last = dict(zip(board.player.tolist(), board.last_completed.tolist(), strict=True))
        assert {name: last[held[name].player] for name, one in wanted.items() if one.completed} == {
            name: one.last_completed for name, one in wanted.items() if one.completed
        }
        if verify:
            verified = self.service.verify(self.ladder)
            assert verified.differences == ()
            assert verified.is_equal

    def check_receipt(self, receipt, before):
        now = self.twin.replay()
        for team in receipt.teams:
            for line in team:
                name = self.twin.shown[self.twin.names[line.change.player]]
                if name in before:
                    assert line.change.before == pytest.approx(before[name].rating, rel=1e-9)
                if name in now:
                    assert line.change.after == pytest.approx(now[name].rating, rel=1e-9)

    def correct(self, wish):
        """Foretold, then done: what was foretold is what happened."""
        foretold = self.service.preview(self.ladder, wish)
        before = everybody(self.service, self.ladder)
        self.service.correct(self.ladder, wish)
        self.check(verify=True)
        now = everybody(self.service, self.ladder)
        moved = {
            name: (rating_and_matches(before, name), rating_and_matches(now, name))
            for name in before.keys() | now.keys()
        }
        assert {
            one.player: ((one.before, one.matches_before), (one.after, one.matches_after)) for one in foretold.moves
        } == {name: both for name, both in moved.items() if both[0] != both[1]}

    # small change

    @property
    def system(self):
        return self.twin.each("rules")[-1][1]["system"]

    def is_here(self, name):
        """Whether the ladder knows a player: by a match, counted or not, a starting rating or a ban."""
        who = self.twin.names[name]
        seen = {
            self.twin.identity(player) for _, told in self.twin.each("match") for team in told["who"] for player in team
        }
        started = {self.twin.identity(player) for _, told in self.twin.each("start") for player in told["ratings"]}
        banned = {self.twin.identity(told["player"]) for _, told in self.twin.each("ban")}
        return who in seen | started | banned

    def played(self, now, name):
        """Whether a player ever played a match that counts."""
        one = now.get(self.twin.shown[self.twin.names[name]])
        return one is not None and one.last_played != NEVER

    def pick_match(self, data):
        return data.draw(st.sampled_from(sorted(self.matches)))

    def made(self, lineup):
        hour, duration, teams = lineup
        names = [self.called[player] for _, team in teams for player, _, _ in team]
        assume(len({self.twin.names.get(name, name) for name in names}) == len(names))
        return Match(
            f"m{next(self.count)}",
            START + timedelta(hours=hour),
            tuple(
                Team(tuple(Appearance(self.called[player], quit=left, keep=keep) for player, left, keep in team), place)
                for place, team in teams
            ),
            self.ladder,
            duration,
        )

    def keep(self, match, rated, receipt):
        self.twin.record(match, rated)
        self.matches[match.id] = (match, rated)
        if receipt is not None:
            assert receipt.position == len(self.twin.events)
            self.receipts[match.id] = receipt

    def nameless(self, receipt):
        """A receipt without names, which may have changed."""
        lines = [
            [
                (line.change._replace(player="", factors=repr(line.change.factors)), line.percentile, line.division)
                for line in team
            ]
            for team in receipt.teams
        ]
        return receipt.match_id, receipt.position, receipt.rated, lines


def rating_and_matches(standings, name):
    """Rating and matches of a player; (None, 0) where there is none."""
    return (standings[name].rating, standings[name].matches) if name in standings else (None, 0)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_ratings_after_any_mix_of_events_equal_a_replay_from_the_start(kind, request, tmp_path):
    url = str(tmp_path / "laws.db") if kind == "sqlite" else request.getfixturevalue("postgres").fresh_database()
    clock = ManualClock(START + timedelta(days=13))
    with Service.open(url, clock) as service:
        run_state_machine_as_test(lambda: Anything(service, clock), settings=LONG)
