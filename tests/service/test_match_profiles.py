"""Matches of a ledger as they count now, asked of both databases."""

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Ban, Unvoid, Void
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.ladders.ladders import correct
from evenmatch.players.matches import END_OF_LIST
from ledger.sample_matches import after, duel, micros, ratings, team_match


@pytest.fixture
def reading(service):
    return LadderQueries(service)


def state_and_reason(reading, match_id, ladder="duel"):
    """The state of a match and why."""
    found = reading.match(ladder, match_id)[1]
    return found.state, found.reason


def test_a_team_match_is_told_with_all_that_was_reported(service, ladder, reading):
    service.record(team_match(1, (1, "ann", "bob*"), (2, "cat", "dan~", "eve"), ladder=ladder))
    found = reading.match(ladder, "m1")[1]
    assert [(side.finish.label, side.finish.place) for side in found.sides] == [("0", 1), ("1", 2)]
    parts = [[(one.player, one.quit, one.keep) for one, _ in side.parts] for side in found.sides]
    assert parts == [
        [("ann", False, True), ("bob", True, True)],
        [("cat", False, True), ("dan", False, False), ("eve", False, True)],
    ]
    changes = [[line.change.after - line.change.before for _, line in side.parts] for side in found.sides]
    assert changes == [[16, 16], [-16, 0, -16]]  # Elo by teams' means, of newcomers; a guest keeps theirs
    assert found.played_at == micros(after(1))
    assert found.sentences()[0] == "Team 0 won: an even match."


def test_three_teams_of_which_two_share_the_first_place(service, ladder, reading):
    service.record(team_match(1, (1, "ann"), (1, "bob"), (3, "cat"), ladder=ladder))
    found = reading.match(ladder, "m1")[1]
    assert found.sentences()[0] == "Team 0 and team 1 shared first place among 3 teams."


def test_a_match_that_the_system_cannot_rate_says_why(service, ladder, reading):
    service.record(team_match(1, (1, "ann"), (2, "bob"), (3, "cat"), ladder=ladder))
    service.record(duel(2, "ann", "bob", ladder))
    service.change_rules(ladder, "trophies", rules("trophies"), skip_bad=True)
    assert state_and_reason(reading, "m1") == ("unrated", "3 teams; trophies rates matches of exactly 2")
    assert state_and_reason(reading, "m2") == ("rated", None)
    assert reading.match(ladder, "m2")[0] == "trophies"


def wished(service, ladder, wish):
    """A correction in the ledger whose rebuild is still to come."""
    with service._write(ladder) as (store, head):
        made = wish(store, head)
        correct(store, head, made.change, made.change.kind, service.clock(), since=made.since)


def test_what_waits_for_a_rebuild_says_so(service, ladder, reading):
    for number in range(1, 4):
        service.record(duel(number, "ann", "bob", ladder))
    wished(service, ladder, Void("m2", "lag"))
    assert state_and_reason(reading, "m2") == ("void", "the match was voided: lag")
    sides = reading.match(ladder, "m2")[1].sides  # its ratings stand until then, and are not told
    assert [(side.finish.expected, [line for _, line in side.parts]) for side in sides] == [(None, [None])] * 2
    assert state_and_reason(reading, "m3") == ("rated", None)
    service.rebuild(ladder)
    wished(service, ladder, Unvoid("m2"))
    assert state_and_reason(reading, "m2") == ("waits", "the ladder's ratings are being recalculated")
    service.rebuild(ladder)
    assert state_and_reason(reading, "m2") == ("rated", None)


def test_a_ban_from_a_time_on_voids_later_matches_alone(service, ladder, reading):
    for number in (1, 2, 3):
        service.record(duel(number, "eve", "ann", ladder))
    service.correct(ladder, Ban("eve", since=micros(after(2)), reason="wallhack"))
    assert state_and_reason(reading, "m1") == ("rated", None)
    assert state_and_reason(reading, "m2") == state_and_reason(reading, "m3") == ("void", "eve is banned: wallhack")


def test_matches_of_two_who_became_one_are_theirs(service, ladder, reading):
    service.record(duel(1, "ann", "bob", ladder))
    service.record(duel(2, "ann2", "bob", ladder))
    service.record(duel(3, "bob", "cat", ladder))
    service.merge("ann2", "ann")
    name, found, further = reading.played(ladder, "ann2", END_OF_LIST, 10)
    assert (name, [one.match_id for one in found], further) == ("ann", ["m2", "m1"], None)
    assert [one.sides[0].parts[0][0].player for one in found] == ["ann", "ann"]
    first = reading.played(ladder, "ann", END_OF_LIST, 1)
    second = reading.played(ladder, "ann", first[2], 1)
    assert ([one.match_id for one in first[1]], first[2]) == (["m2"], (micros(after(2)), 3))
    assert ([one.match_id for one in second[1]], second[2]) == (["m1"], None)


def test_a_match_with_two_names_of_one_player_is_recorded_and_not_rated(service, ladder, reading):
    service.record(duel(1, "ann", "bob", ladder))
    service.record(duel(2, "ann2", "cat", ladder))
    service.merge("ann2", "ann")
    service.rename("bob", "rob")
    before = ratings(service, ladder)
    reports = [
        team_match(3, (1, "ann", "cat"), (2, "ann2", "eve"), ladder=ladder),
        team_match(4, (1, "ann", "ann2"), (2, "eve", "cat"), ladder=ladder),
        team_match(5, (1, "bob"), (2, "rob"), ladder=ladder),
    ]
    told = service.record_many(ladder, reports)
    assert [(receipt.rated, receipt.teams) for receipt in told] == [(False, ())] * 3
    assert service.record_many(ladder, reports) == told
    assert {name: rating for name, rating in ratings(service, ladder).items() if name in before} == before
    found = reading.match(ladder, "m3")[1]
    assert (found.state, found.reason) == (
        "unrated",
        "two of its names belong to ann, who cannot play twice in one match",
    )
    assert [part.player for side in found.sides for part, _ in side.parts] == ["ann", "cat", "ann", "eve"]
    _, listed, _ = reading.played(ladder, "ann", END_OF_LIST, 10)
    assert [match.match_id for match in listed] == ["m4", "m3", "m2", "m1"]
    assert service.verify(ladder).is_equal
    service.rebuild(ladder, whole=True)
    assert service.verify(ladder).is_equal
    assert {name: rating for name, rating in ratings(service, ladder).items() if name in before} == before
    assert service.record(duel(6, "ann2", "eve", ladder)).rated


def test_a_rating_that_began_elsewhere_is_no_match(service, ladder, reading):
    service.start_ratings(ladder, {"ann": 1800.0})
    profile = reading.profile(ladder, "ann")
    assert (profile.standing.rating, profile.standing.matches, profile.last_played) == (1800.0, 0, None)
    assert reading.played(ladder, "ann", END_OF_LIST, 10) == ("ann", [], None)
    assert reading.path(ladder, "ann", 10) == ("ann", ([], [], []))
