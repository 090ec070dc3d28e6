"""The line of jobs: few run at a time, one of each ladder, in order; a full line refuses others."""

import threading
import time

import pytest

from evenmatch.errors import BusyError, ConflictError
from evenmatch.jobs.jobs import JobLine, JobSlots

SLOWEST = 10.0


class Turns:
    """Jobs that hold their turn until they are released; `begun` has their names in the order in which they began."""

    def __init__(self, line):
        self.line, self.begun, self.release = line, [], {}
        self._threads = []

    def start(self, job, ladder):
        self.line.join(job, ladder)
        self.release[job] = threading.Event()
        thread = threading.Thread(target=self._run, args=(job,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self, job):
        with self.line.turn(job, lambda: None):
            self.begun.append(job)
            self.release[job].wait(SLOWEST)

    def end(self, job):
        self.release[job].set()

    def wait_for(self, begun):
        deadline = time.monotonic() + SLOWEST
        while self.begun != begun and time.monotonic() < deadline:
            time.sleep(0.005)
        assert self.begun == begun

    def close(self):
        for event in self.release.values():
            event.set()
        for thread in self._threads:
            thread.join(SLOWEST)


@pytest.fixture
def line():
    return JobLine(2, longest=4, of_ladder=3)


@pytest.fixture
def turns(line):
    made = Turns(line)
    yield made
    made.close()


def test_jobs_of_one_ladder_run_one_after_the_other_and_others_beside_them(line, turns):
    turns.start("a1", "a")
    turns.wait_for(["a1"])
    turns.start("a2", "a")
    turns.start("b1", "b")
    turns.wait_for(["a1", "b1"])
    turns.start("c1", "c")
    assert [line.ahead(job) for job in ("a1", "b1", "a2", "c1")] == [0, 0, 2, 3]
    turns.end("b1")
    turns.wait_for(["a1", "b1", "c1"])
    turns.end("a1")
    turns.wait_for(["a1", "b1", "c1", "a2"])


def test_a_job_that_is_called_off_while_it_waits_leaves_the_line(line, turns):
    turns.start("a1", "a")
    turns.wait_for(["a1"])
    line.join("a2", "a")

    def check():
        raise ConflictError("called off")

    with pytest.raises(ConflictError, match="called off"), line.turn("a2", check):
        pass
    turns.start("a3", "a")
    assert line.ahead("a3") == 1
    turns.end("a1")
    turns.wait_for(["a1", "a3"])


def test_a_full_line_refuses_the_ladder_that_fills_it_and_then_everybody(line, turns):
    turns.start("a1", "a")
    turns.wait_for(["a1"])
    for number in range(3):
        line.check("a")
        line.join(f"a{2 + number}", "a")
    with pytest.raises(BusyError, match="3 jobs of ladder 'a'"):
        line.check("a")
    line.check("b")
    line.join("b1", "b")
    with pytest.raises(BusyError, match="4 jobs wait"):
        line.check("c")


def test_lines_of_several_processes_run_no_more_jobs_than_one(tmp_path):
    here, there = (Turns(JobLine(2, 8, 8, JobSlots(tmp_path, "operators", 2))) for _ in range(2))
    here.start("a", "duel")
    here.start("b", "arena")
    here.wait_for(["a", "b"])
    there.start("c", "crowd")
    time.sleep(0.3)
    assert there.begun == []
    assert there.line.ahead("c") == 0
    here.end("a")
    there.wait_for(["c"])
    for turns in (here, there):
        turns.close()
