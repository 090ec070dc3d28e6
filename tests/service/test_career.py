"""The career of a player: whom they met, when they did well, streaks, peak and trends, counted by hand."""

from math import isnan

import pytest

from evenmatch.accounts.access import ANYONE
from evenmatch.errors import UnknownNameError
from evenmatch.ledger.event_rows import END_OF_LIST
from evenmatch.match import Appearance, Match, Team
from evenmatch.players.career import Tally
from evenmatch.players.rated_matches import MatchFilter
from ledger.sample_matches import after, duel, micros, team_match


def test_a_record_counts_wins_draws_and_losses_against_and_beside(service, elo_reading):
    service.record_many(
        "default",
        [
            team_match(1, (1, "ann", "bob"), (2, "joe", "zoe")),
            team_match(2, (1, "ann", "joe"), (1, "bob", "zoe")),
            team_match(3, (2, "ann"), (1, "bob")),
            team_match(4, (2, "ann"), (1, "bob"), (3, "zoe")),  # second of three: half of the rivals are behind
        ],
    )
    _, found, _ = elo_reading.career("default", "ann")
    by_name = {one.player: (one.against[:3], one.beside[:3]) for one in found.others}
    assert by_name == {"bob": ((0, 1, 2), (1, 0, 0)), "joe": ((1, 0, 0), (0, 1, 0)), "zoe": ((2, 1, 0), (0, 0, 0))}
    assert found.whole[:3] == (1, 2, 1)
    assert found.whole.score == pytest.approx(1 + 0.5 + 0 + 0.5)


def test_hours_are_those_of_the_day_in_utc_and_beside_what_was_expected(service, elo_reading):
    service.record_many("default", [duel(5, "ann", "bob"), duel(29, "ann", "bob"), duel(40, "bob", "ann")])
    hours = elo_reading.career("default", "ann")[1].hours
    second = 1 / (1 + 10 ** (-32 / 400))  # after the first, 16 points apart each
    assert hours[5][:3] == (2, 0, 0)
    assert hours[5].expected == pytest.approx(0.5 + second)
    assert hours[5].surplus == pytest.approx((2 - 0.5 - second) / 2)
    assert hours[16][:3] == (0, 0, 1)
    assert [at for at, one in enumerate(hours) if one.matches] == [5, 16]


def test_matches_that_do_not_count_are_in_no_record(service, elo_reading):
    service.record(duel(1, "ann", "bob"))
    service.record(duel(2, "ann", "bob"), rated=False)
    assert elo_reading.career("default", "ann")[1].whole == Tally(1, 0, 0, 1.0, 0.5)


def career_of(elo_reading, name):
    return elo_reading.career("default", name)[1]


def test_streaks_end_with_another_result_and_the_longest_is_of_wins(service, elo_reading):
    results = ["ann", "ann", "ann", "bob", "bob", "bob", "bob", "ann", "ann"]
    service.record_many(
        "default",
        [duel(hour, winner, "bob" if winner == "ann" else "ann") for hour, winner in enumerate(results, 1)],
    )
    ann, bob = career_of(elo_reading, "ann"), career_of(elo_reading, "bob")
    assert (ann.streak, ann.longest) == (("won", 2), 3)
    assert (bob.streak, bob.longest) == (("lost", 2), 4)


def test_the_peak_is_the_first_match_with_the_highest_rating(service, elo_reading):
    service.record_many("default", [duel(1, "ann", "bob"), duel(2, "bob", "ann"), duel(3, "ann", "bob")])
    peak = career_of(elo_reading, "ann").peak
    # won at even odds: +16; lost as the favourite by 32 points; won as the outsider by a little
    second = 1516 - 32 / (1 + 10 ** (-32 / 400))
    third = second + 32 / (1 + 10 ** ((2 * (second - 1500)) / 400))
    assert third < 1516
    assert (peak.match_id, peak.rating) == ("m1", 1516.0)


def test_a_trend_sums_the_changes_of_its_days(service, elo_reading, clock):
    clock.now = micros(after(24 * 32 + 1))
    service.record_many("default", [duel(1, "ann", "bob"), duel(24 * 25, "bob", "ann"), duel(24 * 32, "ann", "bob")])
    week, month = career_of(elo_reading, "ann").trends
    path = elo_reading.path("default", "ann", 10)[1].steps
    assert (week.days, week.matches, week.won) == (7, 1, 1)
    assert (month.days, month.matches, month.won) == (30, 2, 1)
    assert week.change == pytest.approx(path[2].after - path[2].before)
    assert month.change == pytest.approx(path[2].after - path[0].after)


def test_the_best_win_is_the_least_expected_and_names_the_rival_of_a_duel(service, elo_reading):
    service.record_many(
        "default",
        [
            *(duel(hour, "joe", "bob") for hour in range(1, 9)),  # joe becomes a favourite
            duel(20, "ann", "bob"),
            duel(21, "ann", "joe"),
            team_match(22, (1, "ann", "zoe"), (2, "joe", "bob")),
        ],
    )
    best = career_of(elo_reading, "ann").best_wins
    assert [(win.match_id, win.rival) for win in best[:1]] == [("m21", "joe")]
    assert [win.expected for win in best] == sorted(win.expected for win in best)
    assert {win.match_id: win.rival for win in best}["m22"] is None


def test_rivals_won_more_often_and_team_mates_too_if_met_three_times(service, elo_reading):
    service.record_many(
        "default",
        [
            *(duel(hour, "bob", "ann") for hour in (1, 2, 3, 4)),
            duel(5, "ann", "bob"),
            *(duel(hour, "joe", "ann") for hour in (6, 7)),  # twice only
            *(duel(hour, "ann", "zoe") for hour in (8, 9, 10)),  # easy
            *(team_match(hour, (1, "ann", "max"), (2, "eve", "kim")) for hour in (11, 12, 13)),
        ],
    )
    ann = career_of(elo_reading, "ann")
    assert [(one.player, one.against[:3]) for one in ann.rivals] == [("bob", (1, 0, 4))]
    assert [(one.player, one.beside[:3]) for one in ann.team_mates] == [("max", (3, 0, 0))]


def test_time_played_is_the_time_of_the_player_or_else_of_the_match(service, elo_reading):
    service.record(duel(1, "ann", "bob"))
    assert career_of(elo_reading, "ann").seconds is None
    early = Team((Appearance("ann", seconds=100.0),), 1), Team.of("bob", place=2)
    service.record_many(
        "default", [Match("m2", after(2), early, "default", duration=600.0), duel(3, "ann", "bob", duration=30.0)]
    )
    assert career_of(elo_reading, "ann").seconds == 130.0
    assert career_of(elo_reading, "bob").seconds == 630.0


@pytest.mark.parametrize(("show", "percentile"), [("percentile", True), ("division", False)])
def test_a_career_hides_what_the_ladder_hides(service, elo_reading, show, percentile):
    service.record_many("default", [duel(hour, "ann", "bob") for hour in range(1, 15)])
    service.change_settings("default", {"show": show})
    stranger = elo_reading.seen_by(ANYONE)
    hidden = stranger.career("default", "ann")[1]
    assert hidden.best_wins == ()
    assert {trend.change for trend in hidden.trends} == {None}
    assert isnan(hidden.whole.expected)
    assert isnan(hidden.others[0].against.expected)
    assert hidden.peak is None or hidden.peak.rating is None
    assert hidden.peak is None or percentile or hidden.peak.percentile is None
    assert hidden.streak == ("won", 14)


@pytest.fixture
def varied(service, elo_reading):
    """Matches of ann: against bob and joe, beside joe, in two seasons, and one that is not rated."""
    service.record_many(
        "default",
        [
            duel(1, "ann", "bob"),
            duel(2, "bob", "ann"),
            duel(3, "ann", "joe"),
            team_match(4, (1, "ann", "joe"), (1, "bob", "zoe")),
        ],
    )
    service.record(duel(5, "ann", "bob"), rated=False)
    service.open_season("default")
    service.record_many("default", [duel(100, "ann", "bob"), team_match(101, (2, "ann", "joe"), (1, "bob", "zoe"))])
    return elo_reading


CHOSEN = [
    (MatchFilter(opponent="bob"), ["m101", "m100", "m4", "m2", "m1"]),
    (MatchFilter(team_mate="joe"), ["m101", "m4"]),
    (MatchFilter(team_mate="ann"), []),
    (MatchFilter(result="won"), ["m100", "m3", "m1"]),
    (MatchFilter(result="drew"), ["m4"]),
    (MatchFilter(season=1), ["m4", "m3", "m2", "m1"]),
    (MatchFilter(season=2), ["m101", "m100"]),
    (MatchFilter(opponent="bob", result="lost", season=2), ["m101"]),
    (MatchFilter(since=micros(after(2)), until=micros(after(5))), ["m4", "m3", "m2"]),
    (MatchFilter(opponent="bob", since=micros(after(2)), until=micros(after(100))), ["m4", "m2"]),
    (MatchFilter(), ["m101", "m100", "m5", "m4", "m3", "m2", "m1"]),
]


@pytest.mark.parametrize(("chosen", "expected"), CHOSEN)
def test_matches_are_chosen_by_opponent_team_mate_result_season_and_time(varied, chosen, expected):
    assert [match.match_id for match in varied.played("default", "ann", END_OF_LIST, 50, chosen)[1]] == expected
    seen, before = [], END_OF_LIST
    while before is not None:
        _, matches, before = varied.played("default", "ann", before, 2, chosen)
        seen += [match.match_id for match in matches]
    assert seen == expected


def test_an_unknown_opponent_is_named(varied):
    with pytest.raises(UnknownNameError, match="nobodyx"):
        varied.played("default", "ann", END_OF_LIST, 50, MatchFilter(opponent="nobodyx"))
