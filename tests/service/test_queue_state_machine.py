"""Anything that players, two processes and time may do to the queues, in any order; checked by plain SQL."""

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from evenmatch import rules
from evenmatch.live.live_matches import Running
from evenmatch.operations.service import Service
from evenmatch.queues.leases import Leases
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from ledger.sample_matches import ManualClock
from service.sample_queues import DUEL, PAIRS, Accept, Decline, Leave, check_everything, party, select_rows

pytestmark = pytest.mark.both_databases

NAMES = "abcdefg"
LADDERS = ("duel", "arena")
NUMBER = itertools.count()


class QueueMachine(RuleBasedStateMachine):
    """Two processes over one SQLite file; both believe that they hold every lease."""

    folder = ""

    def __init__(self):
        super().__init__()
        self.clock = ManualClock()
        path = str(Path(self.folder) / f"{next(NUMBER)}.db")
        self.services = [Service.open(path, self.clock) for _ in range(2)]
        self.desks = [QueueService(service) for service in self.services]
        self.makers = []
        for queue_service in self.desks:
            leases = Leases(queue_service.service.database, "always")
            leases.hold = lambda _: True
            self.makers.append(Matchmaker(queue_service, leases))
        for ladder in LADDERS:
            self.services[0].create_ladder(ladder, "elo", rules("elo"))
            self.desks[0].set_queue(ladder, "pairs", PAIRS, QueueRules(penalty=5, penalty_fades=60))
            self.desks[0].set_queue(ladder, "duels", DUEL, QueueRules(accept_within=5, penalty=5))
        self.tickets = []

    def teardown(self):
        for service in self.services:
            service.close()

    @rule(
        where=st.sampled_from(LADDERS),
        at=st.integers(0, 1),
        parties=st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True), min_size=1, max_size=4),
        queues=st.sampled_from([("pairs",), ("duels",), ("pairs", "duels")]),
        is_playlist=st.booleans(),
    )
    def join(self, where, at, parties, queues, is_playlist):
        playlist = {ladder: ("pairs",) for ladder in LADDERS if ladder != where and is_playlist}
        joins = [party(*names, queues=queues, playlist=playlist) for names in parties]
        for told in self.desks[at].apply(where, joins):
            if not isinstance(told, Exception):
                self.tickets.append((where, told.ticket))
                self.tickets += told.playlist.items()

    @rule(
        at=st.integers(0, 1),
        kinds=st.lists(
            st.tuples(st.sampled_from([Accept, Accept, Accept, Decline, Leave]), st.integers(0, 9)), max_size=5
        ),
    )
    def answer(self, at, kinds):
        for where in LADDERS:
            mine = [ticket for ladder, ticket in self.tickets if ladder == where][-10:]
            if mine:
                self.desks[at].apply(where, [kind(mine[number % len(mine)]) for kind, number in kinds])

    @rule(where=st.sampled_from(LADDERS), at=st.integers(0, 1))
    def accept_all(self, where, at):
        mine = [ticket for ladder, ticket in self.tickets if ladder == where]
        self.desks[at].apply(where, [Accept(ticket) for ticket in mine[-10:]])

    @rule(where=st.sampled_from(LADDERS), at=st.integers(0, 1))
    def step(self, where, at):
        self.makers[at].step(where)

    @rule(seconds=st.sampled_from([1, 6, 21, 31]))
    def wait(self, seconds):
        self.clock.move(seconds=seconds)

    @rule(at=st.integers(0, 1), look=st.integers(0, 9))
    def look(self, at, look):
        for where, ticket in self.tickets[-10:][look : look + 3]:
            status = self.desks[at].status(where, ticket)
            assert status.ticket == ticket
            self.desks[at].heartbeats.note(where, status)
        self.desks[at].heartbeats.write()

    @rule(where=st.sampled_from(LADDERS), at=st.integers(0, 1))
    def replace_queue(self, where, at):
        self.desks[at].remove_queue(where, "pairs", force=True)
        self.desks[at].set_queue(where, "pairs", PAIRS, QueueRules(penalty=5, penalty_fades=60))

    @rule(where=st.sampled_from(LADDERS))
    def end_matches(self, where):
        ladder = {"duel": 1, "arena": 2}[where]
        sql = "SELECT match_id FROM live WHERE ladder = :ladder AND state = 'open'"
        for (match_id,) in select_rows(self.services[0], sql, ladder=ladder):
            Running(self.services[0]).cancel(where, match_id, "over")

    @rule(at=st.integers(0, 1))
    def restart(self, at):
        self.desks[at] = QueueService(self.services[at])
        self.makers[at] = Matchmaker(self.desks[at], self.makers[at].leases)

    @invariant()
    def holds(self):
        check_everything(self.services[0])


@pytest.mark.parametrize("steps", [20])
def test_nothing_that_happens_breaks_the_queues(steps):
    with tempfile.TemporaryDirectory() as folder:
        QueueMachine.folder = folder
        wanted = settings(
            max_examples=8,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        run_state_machine_as_test(QueueMachine, settings=wanted)
