"""The time of a process comes from its database and goes on steadily, whatever is done to the system clock."""

import logging
import time
from datetime import UTC, datetime, timedelta

import pytest

from databases import made_url  # noqa: F401
from evenmatch import Appearance, Match, Team, from_matches, rules
from evenmatch.corrections.corrections import Void
from evenmatch.durations import DAY, HOUR, SECOND
from evenmatch.errors import InputError, StoreError
from evenmatch.operations.clock import DatabaseClock
from evenmatch.operations.service import Service
from ledger.sample_matches import START, ManualClock
from postgres import postgres  # noqa: F401

pytestmark = pytest.mark.both_databases

DUEL = (Team((Appearance("ann"),), 1), Team((Appearance("bob"),), 2))


class Clocks:
    """A reference and an uptime that a test sets."""

    def __init__(self) -> None:
        self.reference, self.uptime = 1_800_000_000 * SECOND, 7 * SECOND
        self.clock = DatabaseClock(lambda: self.reference, lambda: self.uptime)

    def pass_by(self, duration: int, *, step: int = 0) -> None:
        self.uptime += duration
        self.reference += duration + step


def test_the_time_goes_on_by_the_uptime():
    clocks = Clocks()
    clocks.pass_by(40 * SECOND)
    assert clocks.clock() == 1_800_000_040 * SECOND
    assert clocks.clock.compare() == 0


@pytest.mark.parametrize(("step", "followed"), [(-HOUR, False), (400 * DAY, False), (HOUR, True), (SECOND // 2, False)])
def test_only_a_step_forward_of_up_to_a_day_is_followed(step: int, followed: bool):
    clocks = Clocks()
    clocks.pass_by(40 * SECOND, step=step)
    assert clocks.clock() == 1_800_000_040 * SECOND
    assert clocks.clock.compare() == step
    assert clocks.clock() == 1_800_000_040 * SECOND + (step if followed else 0)


def test_a_step_that_is_not_followed_is_logged(caplog: pytest.LogCaptureFixture):
    clocks = Clocks()
    clocks.pass_by(0, step=-HOUR)
    with caplog.at_level(logging.WARNING):
        clocks.clock.compare()
    assert "differs by -3600.0 s" in caplog.text


def test_a_process_whose_system_clock_is_set_back_goes_on(made_url: str, monkeypatch: pytest.MonkeyPatch):  # noqa: F811
    now = time.time_ns()
    with Service.open(made_url) as service:
        monkeypatch.setattr(time, "time_ns", lambda: now - 3_600_000_000_000)
        assert service.clock() >= now // 1000 - SECOND


def test_processes_on_a_server_agree_on_its_time(made_url: str, monkeypatch: pytest.MonkeyPatch):  # noqa: F811
    if "://" not in made_url:
        pytest.skip("the time of a file is that of its machine")
    before = time.time_ns() // 1000
    monkeypatch.setattr(time, "time_ns", lambda: before * 1000 + 400 * DAY * 1000)
    with Service.open(made_url) as service:
        assert before - SECOND <= service.clock() < before + HOUR
        service.create_ladder("duel", "elo", rules("elo"))
        ahead = datetime.now(UTC) + timedelta(days=400)
        with pytest.raises(InputError, match="in the future"):
            service.record(Match("m1", ahead, DUEL, ladder="duel"))


def test_times_before_1800_and_after_2099_are_refused(made_url: str):  # noqa: F811
    with Service.open(made_url) as service:
        service.create_ladder("duel", "elo", rules("elo"))
        for year in (1800, 1872):
            assert service.record(Match(f"m{year}", datetime(year, 1, 1, tzinfo=UTC), DUEL, ladder="duel")).rated
    for year in (1, 1799, 2100):
        with pytest.raises(InputError, match="expected a time in the years 1800 to 2099"):
            Match(f"m{year}", datetime(year, 1, 1, tzinfo=UTC), DUEL, ladder="duel")


def test_a_ladder_whose_last_match_is_after_the_clock_takes_no_match_until_that_one_is_void(
    service: Service, ladder: str, clock: ManualClock
):
    def played(name: str, day: float) -> Match:
        return Match(name, START + timedelta(days=day), DUEL, ladder=ladder)

    service.record(played("early", 10))
    clock.move(days=400)
    receipt = service.record(played("future", 410))
    clock.move(days=-398)
    with pytest.raises(StoreError, match="ladder 'duel' ended at 2027-02-15T00:00:00Z, but the clock says 2026-01-13T"):
        service.record(played("now", 12))
    with pytest.raises(StoreError, match="the clock says 2026-01-13T"):
        service.import_matches(ladder, from_matches([played("past", 11)]))
    assert service.record(played("future", 410)) == receipt
    service.correct(ladder, Void("future"))
    assert service.record(played("now", 12)).rated
    assert service.verify(ladder).is_equal
