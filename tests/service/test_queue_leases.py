"""One process at a time holds a lease; when it is gone, another takes over."""

import pytest

from evenmatch.queues.leases import Leases

pytestmark = pytest.mark.both_databases


class Seconds:
    """A process's own clock."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def processes(service, other_service):
    """Two processes, whose clocks have nothing in common."""
    clocks = Seconds(1000.0), Seconds(-5.0)
    leases = Leases(service.database, "one", clock=clocks[0]), Leases(other_service.database, "two", clock=clocks[1])

    def pass_time(seconds):
        for clock in clocks:
            clock.now += seconds

    return *leases, pass_time


def test_who_comes_first_holds_it_as_long_as_it_goes_on(processes):
    one, two, pass_time = processes
    assert one.hold("a")
    for _ in range(40):
        pass_time(0.5)
        assert one.hold("a")
        assert not two.hold("a")
    assert two.hold("b")
    assert not one.hold("b")


def test_who_stopped_is_followed_after_the_patience_and_within_five_seconds(processes):
    one, two, pass_time = processes
    assert one.hold("a")
    waited = 0.0
    while not two.hold("a"):
        pass_time(0.1)
        waited += 0.1
    assert 3.0 <= waited < 4.5
    assert not one.hold("a")  # it comes back, and finds that it is no longer the one
    pass_time(0.6)
    assert not one.hold("a")
    assert two.hold("a")


def test_what_is_let_go_is_taken_at_once(processes):
    one, two, pass_time = processes
    assert one.hold("a")
    assert not two.hold("a")
    one.release("a")
    two.release("a")  # not its own: nothing happens
    pass_time(0.5)
    assert two.hold("a")
    assert not one.hold("a")


def test_only_one_of_two_takes_over(processes, service):
    one, two, pass_time = processes
    gone = Leases(service.database, "gone", clock=Seconds(0.0))
    assert gone.hold("a")
    assert [one.hold("a"), two.hold("a")] == [False, False]
    pass_time(3.1)
    assert [one.hold("a"), two.hold("a")] == [True, False]


def test_who_watched_before_it_was_ready_takes_over_as_soon_as_it_is(processes):
    one, two, pass_time = processes
    assert one.hold("a")
    for _ in range(7):
        two.watch("a")
        pass_time(0.5)
    assert two.hold("a")
