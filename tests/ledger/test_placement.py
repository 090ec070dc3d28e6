"""Automatic placement, in the ledger: the same by play, batches, import, restart, rebuild and correction."""

from itertools import pairwise
from random import Random

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows, rating_rows
from evenmatch.match import Appearance, Match, Team
from evenmatch.operations.service import Service
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import after, everybody
from reference.placement import SlowPlacement

RULE = {"placement": "auto", "active_days": 365, "placement_bound": 6, "placement_most": 25}
NAMES = [f"p{number}" for number in range(45)]


@pytest.fixture(autouse=True)
def _late(clock):
    clock.move(days=20)  # after the last match


def season(first, last, ladder="default", seed=5):
    """Matches of one to three against one or two, and of three sides; some quit, some are guests."""
    for number in range(first, last + 1):
        chance = Random(1000 * seed + number)
        sizes = chance.choice([(1, 1), (1, 1), (1, 2), (3, 2), (1, 1, 2)])
        names = iter(chance.sample(NAMES, sum(sizes)))
        teams = [[next(names) for _ in range(size)] for size in sizes]
        teams.sort(key=lambda team: chance.random() * 20 + sum(int(name[1:]) for name in team) / len(team))
        yield Match(
            f"m{number}",
            after(number),
            tuple(
                Team(
                    tuple(Appearance(name, quit=chance.random() < 0.05, keep=chance.random() > 0.03) for name in team),
                    place,
                )
                for place, team in enumerate(teams, 1)
            ),
            ladder,
        )


def made(service, ladder="default", system="elo", **changes):
    settings = Settings(standings=StandingsRules(**RULE)).changed(changes)
    service.create_ladder(ladder, system, rules(system), settings)


def states(service, ladder="default"):
    """Recent change and lowest expected move of every player by name."""
    with service.database.read() as store:
        head = store.head(ladder)
        plan = event_rows.read_plan(store, head, head.planned)
        roster = rating_rows.read_roster(store, head, plan.last_rules)
        tally = roster.tally[["completed", "recent_change", "expected_move"]].tolist()
    names = {one.player: name for name, one in everybody(service, ladder).items()}
    return {names[player]: values for player, values in zip(roster.ids.tolist(), tally, strict=True)}


def placed(service, ladder="default"):
    return {name for name, one in everybody(service, ladder).items() if one.placed}


def lines_of(match, receipt):
    """What the slow twin wants to know of a rated match."""
    appears = {one.player: one for team in match.teams for one in team.players}
    return [
        (line.change.player, line.change.before, line.change.after, part.keep, part.quit)
        for team in receipt.teams
        for line in team
        for part in [appears[line.change.player]]
    ]


def check_equal(service, twin):
    wanted = {name: (one.completed, one.change, one.move) for name, one in twin.players.items()}
    assert states(service) == wanted
    assert service.verify("default").is_equal


def test_all_ways_lead_to_the_states_of_a_slow_twin(made_url, clock):
    twin, found = SlowPlacement(), []
    with Service.open(made_url, clock) as service:
        made(service)
        for match in season(1, 200):
            receipt = service.record(match)
            twin.match(receipt.position, lines_of(match, receipt))
            found.append(placed(service))
        assert all(before <= now for before, now in pairwise(found))  # nobody is unplaced again
        assert len(found[-1]) > 5
        assert len(found[-1]) < len(NAMES)
        check_equal(service, twin)
        assert len({one.move for one in twin.players.values()}) > 10
    with Service.open(made_url, clock) as service:  # after a restart
        assert placed(service) == found[-1]
        for first in range(201, 400, 33):
            matches = list(season(first, min(first + 32, 400)))
            for match, receipt in zip(matches, service.record_many("default", matches), strict=True):
                twin.match(receipt.position, lines_of(match, receipt))
        check_equal(service, twin)
        now = states(service), placed(service)
        service.rebuild("default", whole=True)
        assert (states(service), placed(service)) == now
        made(service, "other")
        listed = list(season(1, 400, "other"))
        assert all(not isinstance(outcome, Exception) for outcome in service.record_many("other", listed))
        assert (states(service, "other"), placed(service, "other")) == now


@pytest.mark.parametrize("system", ["wager", "prav", "trueskill"])
def test_corrections_are_as_if_it_had_always_been_so(service, system):
    made(service, system=system)
    matches = [match for match in season(1, 330) if len(match.teams) == 2]
    service.record_many("default", matches)
    before = states(service), placed(service)
    service.correct("default", Void(matches[20].id))
    assert states(service) != before[0]
    assert service.verify("default").is_equal
    service.correct("default", Ban("p3"))
    assert service.verify("default").is_equal
    service.correct("default", Reinstate("p3"))
    service.correct("default", Unvoid(matches[20].id))
    assert (states(service), placed(service)) == before
    assert service.verify("default").is_equal


def test_a_season_begins_placement_again(service):
    twin = SlowPlacement()
    made(service, reset="soft")
    matches = list(season(1, 250))
    for match, receipt in zip(matches, service.record_many("default", matches), strict=True):
        twin.match(receipt.position, lines_of(match, receipt))
    assert placed(service)
    service.open_season("default")
    assert not placed(service)
    opened = {name: one.rating for name, one in everybody(service).items()}
    twin.open_season(252, opened)
    matches = list(season(300, 420))
    for match, receipt in zip(matches, service.record_many("default", matches), strict=True):
        twin.match(receipt.position, lines_of(match, receipt))
    check_equal(service, twin)
    assert placed(service)
    service.rebuild("default", whole=True)
    check_equal(service, twin)


def test_the_bound_may_change_at_any_time(service):
    made(service)
    service.record_many("default", list(season(1, 200)))
    known = {name: values for name, values in states(service).items() if values[0] >= 8}
    for bound, most in ((2, 200), (8, 200), (20, 200), (2, 12)):
        service.change_settings("default", {"placement_bound": bound, "placement_most": most})
        assert placed(service) == {name for name, (done, _, move) in known.items() if move < bound or done >= most}
    service.change_settings("default", {"placement": 12})
    assert placed(service) == {name for name, (done, _, _) in known.items() if done >= 12}


def test_receipts_show_a_percentile_from_the_match_that_ends_placement(service):
    made(service)
    seen = set()
    for match in season(1, 220):
        receipt = service.record(match)
        now = placed(service)
        for team in receipt.teams:
            for line in team:
                assert (line.percentile is not None) == (line.change.player in now)
                seen.add(line.percentile is not None)
    assert seen == {True, False}
