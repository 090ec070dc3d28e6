"""Matches whose teams have other sizes than the ladder's team_size: recorded in silence, with a warning, or refused."""

from datetime import UTC, datetime, timedelta

import pytest

from evenmatch import Appearance, Match, Service, Team, from_matches, rules
from evenmatch.errors import BadRowsError
from evenmatch.ladders.settings import Settings
from evenmatch.recording.receipts import OtherSizes

START = datetime(2026, 1, 1, tzinfo=UTC)


def match(name, *sizes, quits=(), ladder="arena"):
    """A match of teams of these sizes; of each team as many players quit as `quits` says."""
    teams = []
    for team, size in enumerate(sizes):
        left = quits[team] if team < len(quits) else 0
        players = [Appearance(f"{team}-{seat}", quit=seat < left) for seat in range(size)]
        teams.append(Team(tuple(players), place=team + 1))
    return Match(name, START + timedelta(minutes=len(name)), tuple(teams), ladder)


@pytest.fixture
def service(tmp_path):
    with Service.open(str(tmp_path / "sizes.db")) as opened:
        yield opened


def ladder_of(service, **settings):
    return service.create_ladder("arena", "elo", rules("elo"), Settings().changed(settings))


# The teams, who quit of each, and the sizes that a warning of a ladder of teams of six names
TEAMS = [
    ((6, 6), (), None),
    ((5, 6), (), "5 against 6"),
    ((7, 6), (), "6 against 7"),
    ((7, 6), (1, 0), None),
    ((8, 6), (1, 0), "6 against 8"),
    ((5, 6), (1, 0), "5 against 6"),
    ((6, 6, 6), (), None),
    ((6, 6, 4), (), "3 teams of 4 to 6"),
]


@pytest.mark.parametrize(("sizes", "quits", "named"), TEAMS)
def test_a_receipt_says_which_teams_are_not_of_the_size_of_the_ladder(sizes, quits, named, service):
    ladder_of(service, team_size=6)
    receipt = service.record(match("m", *sizes, quits=quits))
    assert receipt.rated
    assert receipt.other_sizes == (None if named is None else OtherSizes(named, 6))
    if named is not None:
        assert str(receipt.other_sizes) == f"{named} players; expected teams of 6, the ladder's team_size"


@pytest.mark.parametrize("settings", [{}, {"team_size": 6, "other_sizes": "any"}])
def test_a_ladder_without_a_team_size_or_with_any_says_nothing(settings, service):
    ladder_of(service, **settings)
    assert service.record(match("m", 5, 6)).other_sizes is None
    assert service.import_matches("arena", from_matches([match("old", 5, 6)])).warnings == ()


def test_a_ladder_that_refuses_takes_the_other_matches_of_a_call(service):
    ladder_of(service, team_size=6, other_sizes="refuse")
    good, bad = service.record_many("arena", [match("m", 6, 6), match("bad", 5, 6)])
    assert good.rated
    assert isinstance(bad, BadRowsError)
    assert bad.problems[0].reason == (
        "5 against 6 players; expected teams of 6, the ladder's team_size (the ladder has other_sizes=refuse)"
    )
    assert service.ladder("arena").matches == 1


@pytest.mark.parametrize("other_sizes", ["warn", "refuse"])
def test_a_match_that_is_not_rated_may_have_any_sizes(other_sizes, service):
    ladder_of(service, team_size=6, other_sizes=other_sizes)
    assert service.record(match("m", 3, 3), rated=False).other_sizes is None
    done = service.import_matches("arena", from_matches([match("old", 3, 2)]), rated=False)
    assert (done.added, done.warnings) == (1, ())


def test_a_match_that_is_reported_again_gets_its_first_receipt_whatever_the_setting_is_now(service):
    ladder_of(service, team_size=6)
    first = service.record(match("m", 5, 6))
    service.change_settings("arena", {"other_sizes": "refuse"})
    again = service.record(match("m", 5, 6))
    assert (again, again.other_sizes) == (first, OtherSizes("5 against 6", 6))


def test_an_import_counts_the_sizes_of_the_matches_that_it_adds(service):
    ladder_of(service, team_size=6)
    shapes = [(6, 6), *[(5, 6)] * 8, *[(4, 6)] * 3, (2, 2)]
    matches = [match("m" * (at + 1), *shape) for at, shape in enumerate(shapes)]
    done = service.import_matches("arena", from_matches(matches[:7]))
    assert done.warnings == ("6 matches have teams of other sizes than 6 (5 against 6: 6)",)
    done = service.import_matches("arena", from_matches(matches))
    assert (done.added, done.known) == (6, 7)
    assert done.warnings == (
        "6 matches have teams of other sizes than 6 (4 against 6: 3, 5 against 6: 2, 2 against 2: 1)",
    )


def test_an_import_into_a_ladder_that_refuses_adds_nothing_or_leaves_them_out(service):
    ladder_of(service, team_size=6, other_sizes="refuse")
    matches = from_matches([match("m", 6, 6), match("mm", 5, 6), match("mmm", 7, 6)])
    with pytest.raises(BadRowsError) as caught:
        service.import_matches("arena", matches)
    assert [problem.match_id for problem in caught.value.problems] == ["mm", "mmm"]
    assert service.ladder("arena").matches == 0
    done = service.import_matches("arena", matches, skip_bad=True)
    assert (done.added, [problem.match_id for problem in done.left_out], done.warnings) == (1, ["mm", "mmm"], ())
