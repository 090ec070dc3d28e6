"""A process killed by SIGKILL while it writes loses nothing that it acknowledged, and leaves nothing to repair."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest

from crash.child_tasks import (
    SYSTEM,
    Corrected,
    Kept,
    Plain,
    TaskBegun,
    ban_or_reinstate,
    die_at_commit,
    in_small_steps,
    load_more,
    open_soft_season,
    receipt_values,
    write_for_ever,
)
from crash.children import PATIENCE, Child
from crash.numbered_matches import LADDER, numbered_match, numbered_matches
from crash.plain_sql import check_events, dead_rows
from evenmatch import rules, tables
from evenmatch.operations.service import Service

pytestmark = pytest.mark.slow

KILLS = 200 if os.environ.get("EVENMATCH_SOAK") == "1" else 20
SEED = int(os.environ.get("EVENMATCH_SEED", "1"))
# What the process is at when it is killed, and at most how many seconds after it began that.
AIMS = (("correct", 0.1), ("load", 0.06), ("single", 0.3), ("correct", 0.05), ("season", 0.03), ("together", 0.1))
AIMS += (("many", 0.2), ("retune", 0.15))


@dataclass
class Told:
    """What processes acknowledged before they were killed."""

    receipts: dict[int, Plain | None] = field(default_factory=dict)
    corrections: list[str] = field(default_factory=list)

    def hear(self, said: object) -> None:
        if isinstance(said, Kept):
            for number, receipt in said.receipts.items():
                before = self.receipts.get(number)
                assert before is None or receipt is None or receipt == before, "a repeated report has another receipt"
                self.receipts[number] = before if receipt is None else receipt
        elif isinstance(said, Corrected):
            self.corrections.append(said.kind)

    @property
    def ids(self) -> set[str]:
        return {f"m{number}" for number in self.receipts}

    @property
    def first_missing(self) -> int:
        return next(number for number in range(len(self.receipts) + 1) if number not in self.receipts)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_kills(url: str):
    chance, told = Random(SEED), Told()
    with Service.open(url) as service:
        service.create_ladder(LADDER, SYSTEM, rules(SYSTEM))
        service.import_matches(LADDER, tables.from_matches(numbered_matches(0, 400)))
    told.receipts = dict.fromkeys(range(400))
    for kill in range(KILLS):
        task, longest = AIMS[kill % len(AIMS)]
        run_and_kill(url, told, chance, task, longest)
        check_ledger(url, told, chance, rebuild=kill % 3 == 0)
    assert len(told.receipts) > 400 + 10 * KILLS
    with Service.open(url) as service:
        check_leftovers(url, service)
        assert service.verify(LADDER).is_equal


@pytest.mark.parametrize(("act", "least"), [(ban_or_reinstate, 10), (open_soft_season, 2), (load_more, 4)])
def test_a_kill_before_any_of_its_commits_leaves_nothing_to_repair(
    url: str, act: Callable[[Service], object], least: int
):
    """Killed before the first commit, then before the second … until it comes to its end."""
    with Service.open(url) as service:
        service.create_ladder(LADDER, SYSTEM, rules(SYSTEM))
        service.record_many(LADDER, numbered_matches(0, 400))
    kept = {f"m{number}" for number in range(400)}
    for number in range(1, 60):
        with Child(die_at_commit, url, act, number) as child:
            try:
                ended = child.next() == "done"
            except EOFError:
                ended = False
            child.process.join(PATIENCE)
            assert child.process.exitcode == (0 if ended else -signal.SIGKILL)
        check_events(url, kept)
        with Service.open(url) as service:
            assert service.verify(LADDER).differences == ()
        if ended:
            break
    assert ended
    assert number > least
    with in_small_steps(), Service.open(url) as service:
        service.rebuild(LADDER)
        assert service.verify(LADDER).is_equal
        check_leftovers(url, service)


def check_leftovers(url: str, service: Service) -> None:
    """A kill after a swap leaves the old generation's rows there, unread; the next rebuild takes them away."""
    service.rebuild(LADDER, whole=True)
    assert dead_rows(url) == {"state": 0, "journal": 0, "checkpoint": 0}


def run_and_kill(url: str, told: Told, chance: Random, task: str, longest: float) -> None:
    """A process that goes on a few matches before the end, killed some moment after it began a task."""
    again = max(0, told.first_missing - 5)
    with Child(write_for_ever, url, chance.randrange(2**32), again, task) as child:
        while True:
            said = child.next()
            told.hear(said)
            if said == TaskBegun(task):
                break
        time.sleep(chance.uniform(0, longest))
        for one in child.kill():
            told.hear(one)


def check_ledger(url: str, told: Told, chance: Random, *, rebuild: bool) -> None:
    kinds = check_events(url, told.ids)
    for kind in set(told.corrections):
        assert kinds.count(kind) >= told.corrections.count(kind)
    with Service.open(url) as service:
        found = service.verify(LADDER)
        assert found.differences == ()
        assert found.same_engine
        if rebuild:
            made = service.rebuild(LADDER)
            assert (made is None) == (found.due is None)
            assert service.verify(LADDER).is_equal
            if made is not None:
                assert dead_rows(url) == {"state": 0, "journal": 0, "checkpoint": 0}
        with_receipt = [number for number, receipt in told.receipts.items() if receipt is not None]
        sent = chance.sample(with_receipt, min(10, len(with_receipt)))
        again = service.record_many(LADDER, [numbered_match(number) for number in sent])
        assert list(map(receipt_values, again)) == [told.receipts[number] for number in sent]
