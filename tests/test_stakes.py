"""The stakes of a line-up are what the receipt says if the match then goes as assumed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from evenmatch import Appearance, Match, Rater, StakeAssumptions, Team, rate, rules, systems
from evenmatch.errors import BadParameterError, InputError, RatingRangeError, UnknownNameError
from evenmatch.stakes import stakes
from random_matches import random_table

OWN_FILE = str(Path(__file__).parents[1] / "docs" / "how-to" / "league_points.py")
NAMES = [*systems.names(), OWN_FILE]
VARIANTS = [(name, preset, {}) for name in NAMES for preset in (None, *systems.find(name).presets)]
VARIANTS += [  # what no preset turns on: rules of time, scores of teams that count
    ("scorefactor", None, {"inactivity_rot": True, "start": 400.0}),
    ("elommr", None, {"drift": 7.5}),
    ("prav", None, {"outcome": "share"}),
    ("battlepoints", None, {"lopsided_margin": 3.0}),
    ("wager", None, {"floor": 0.5, "start": 0.5}),
]
every_variant = pytest.mark.parametrize(
    ("name", "preset", "values"),
    VARIANTS,
    ids=["-".join((Path(name).stem, *([preset] if preset else []), *values)) for name, preset, values in VARIANTS],
)
LINE_UPS = [
    [["p1"], ["p2"]],
    [["p1", "newcomer"], ["p2", "p3", "p4"]],
    [["p5", "p6", "p7"], ["another newcomer"]],
    [["p1"], ["p2", "newcomer"], ["p3"]],
    [["p4", "p5"], ["p6"], ["p7"], ["p8", "p9"]],
]
ASSUMED = [
    StakeAssumptions(),
    StakeAssumptions(seconds=None, quit_after=0.0),
    StakeAssumptions(seconds=1800.5, win_score=5.0, loss_score=0.0, quit_after=0.25, performance=-0.5),
]
WEEKS = timedelta(days=45)  # without a match: ratings rot and deviations grow


def as_assumed(places, teams, assumed, when, quitter=None):
    """The match of a line-up that ended with these places, in which one player may have quit."""
    sides = []
    for names, place in zip(teams, places, strict=True):
        score = assumed.win_score + (assumed.loss_score - assumed.win_score) * (place - 1) / (len(teams) - 1)
        players = []
        for name in names:
            part = assumed.quit_after if name == quitter else 1.0
            seconds = None if assumed.seconds is None else assumed.seconds * part
            players.append(Appearance(name, score * part, seconds, name == quitter, assumed.performance))
        sides.append(Team(tuple(players), place, score))
    return Match("next", when, tuple(sides), duration=assumed.seconds)


def places_of(team, expected, *, first):
    """This team first or last, the others in the order of their expected scores."""
    others = sorted((score, -number) for number, score in enumerate(expected) if number != team)
    order = [team, *(-number for _, number in reversed(others))] if first else []
    order = order or [*(-number for _, number in reversed(others)), team]
    return [order.index(number) + 1 for number in range(len(expected))]


@every_variant
def test_stakes_are_what_the_receipt_then_says(name, preset, values):
    by = rules(name, preset, **values)
    ratings = rate(random_table(name, 7, 250), by)
    last = datetime.fromtimestamp(ratings.matches.history.columns.time[-1] / 1e6, UTC)
    when = last + WEEKS
    for teams in [teams for teams in LINE_UPS if by.system.teams in (None, len(teams))]:
        expected = Rater.after(ratings).odds(teams, when).expected
        for assumed in ASSUMED:
            told = Rater.after(ratings).stakes(teams, assumed, at=when)
            assert [(one.player, one.team) for one in told.players] == [
                (player, number) for number, team in enumerate(teams) for player in team
            ]
            for player in told.players:
                first, last_place = (places_of(player.team, expected, first=first) for first in (True, False))
                outcomes = [(first, None), ([1] * len(teams), None), (last_place, None), (last_place, player.player)]
                for number, (places, quitter) in enumerate(outcomes):
                    receipt = Rater.after(ratings).rate(as_assumed(places, teams, assumed, when, quitter))
                    change = next(one for one in receipt.teams[player.team] if one.player == player.player)
                    assert (player.before, player.after[number]) == (change.before, change.after), outcomes[number]
                    assert player.change[number] == change.after - change.before


def by_hand(system, *teams, assumed=None, **parameters):
    """The stakes of players with these ratings, named a, b, c … team after team."""
    by = rules(system, **parameters)
    ratings = np.array([rating for team in teams for rating in team], float)
    names = [chr(ord("a") + index) for index in range(len(ratings))]
    sizes = [len(team) for team in teams]
    told = stakes(by, by.starting(ratings), names, sizes, 0, assumed or StakeAssumptions(), range(len(names)))
    return {player.player: player for player in told.players}


def test_the_match_of_the_article_on_ranking_in_team_based_games():
    """Team A's mean is 20.81 and team B's 21.20; 21.84 wagers a twentieth, 1.092, and 22.87 wagers 1.1435."""
    told = by_hand("wager", [21.84, 19.71, 19.94, 20.87, 18.43, 24.05], [22.87, 17.04, 23.39, 21.40, 20.11, 22.37])
    # × 21.20/20.81 for a win or a draw of the weaker team, × 20.81/21.20 for a loss; a quitter loses the larger of
    # the bare stake and the loss
    assert told["a"].after == (22.95, 22.95, 20.77, 20.75)
    assert told["a"].change == pytest.approx((1.11, 1.11, -1.07, -1.09))
    # turned over for the stronger team, which stays where it is after a draw
    assert told["g"].after == (23.99, 22.87, 21.71, 21.71)
    assert told["a"].before == 21.84


def test_nothing_is_lost_below_the_floor():
    told = by_hand("wager", [1.04], [1.0])
    assert told["a"].after == (1.09, 1.04, 1.0, 1.0)  # 1.04 × (1 + 0.05 × 1.00/1.04) is 1.09
    assert told["b"].after == (1.05, 1.05, 1.0, 1.0)  # 1.00 × (1 + 0.05 × 1.04/1.00) is 1.052
    assert told["b"].change == pytest.approx((0.05, 0.05, 0, 0))
    assert by_hand("battlepoints", [701], [705])["a"].after.loss == 700


def test_a_favourite_has_more_to_lose_than_to_win():
    """Elo, 1500 against 1900: 32 × (1 − 1/11), 32 × (0.5 − 1/11), −32/11."""
    told = by_hand("elo", [1500], [1900])
    assert told["a"].change == pytest.approx((320 / 11, 144 / 11, -32 / 11, -32 / 11))
    assert told["b"].change == pytest.approx((32 / 11, -144 / 11, -320 / 11, -320 / 11))


def test_a_shutout_is_assumed_only_where_it_is_asked_for():
    """Battle points: 1250 beats 1274 by 14.9656, and by half as much again to nothing."""
    assert by_hand("battlepoints", [1250], [1274])["a"].after.win == pytest.approx(1264.9656, abs=5e-5)
    shutout = StakeAssumptions(win_score=5, loss_score=0)
    assert by_hand("battlepoints", [1250], [1274], assumed=shutout)["a"].after.win == pytest.approx(1272.4483, abs=5e-5)


def test_scores_decide_where_results_do_not_count():
    """Four newcomers of scorefactor, K 200: a winner has 1/2 beside a team-mate and 2/3 beside each loser."""
    told = by_hand("scorefactor", [500, 500], [500, 500])
    share = (1 / 2 + 2 / 3 + 2 / 3) / 3
    assert told["a"].change == pytest.approx((200 * (share - 0.5), 0, 200 * (0.5 - share), 100 * (0.5 - share)))


def test_a_short_handed_team_has_less_to_lose_where_times_are_known():
    """Wager, all 10.00, two against three for 600 s: the quitter modifier is 3/2 for the smaller team's win."""
    told = by_hand("wager", [10, 10], [10, 10, 10])
    assert told["a"].after == (10.75, 10, 9.67, 9.5)  # a loss of 0.5 × 2/3; quitting costs the bare stake at least
    assert told["c"].after == (10.33, 10, 9.25, 9.25)
    untimed = by_hand("wager", [10, 10], [10, 10, 10], assumed=StakeAssumptions(seconds=None))
    assert untimed["a"].after == (10.5, 10, 9.5, 9.5)


def test_a_player_may_ask_for_themself_alone():
    rater = Rater("wager")
    whole, alone = (rater.stakes([["ann", "bob"], ["eve", "joe"]], players=players) for players in (None, ["eve"]))
    assert alone.players == (whole.players[2],)
    assert rater.stakes([["ann", "bob"], ["eve", "joe"]], players=[]).players == ()
    assert len(rater) == 0  # asking is not playing


def test_a_match_cannot_end_before_the_latest_one():
    by = rules("scorefactor", inactivity_rot=True, start=500)
    ratings = rate(random_table("scorefactor", 3, 50), by)
    rater = Rater.after(ratings)
    assert rater.stakes([["p1"], ["p2"]], at=np.datetime64(0, "us")) == rater.stakes([["p1"], ["p2"]])


@pytest.mark.parametrize("name", NAMES, ids=lambda name: Path(name).stem)
def test_the_assumptions_are_stated_and_whether_quitting_counts(name):
    told = Rater(name).stakes([["a"], ["b"]], StakeAssumptions(seconds=900, quit_after=0.25))
    said = " ".join(told.sentences)
    assert "900 seconds" in said
    assert "25% of the match" in said
    assert "score 2" in said
    assert ("has a rule for players who quit" in said) == (name == "wager")
    assert ("quitting counts as the team's result, a loss" in said) == (name != "wager")


WRONG = [
    ([["ann"], ["bob"]], ["zoe"], "'zoe' is not in the line-up, so there are no stakes; expected one of 'ann', 'bob'"),
    ([["ann"], ["ann"]], None, "'ann' is in the line-up more than once"),
    ([["ann"], ["bob"], ["cat"]], None, "expected 2 teams"),
]


@pytest.mark.parametrize(("teams", "players", "said"), WRONG)
def test_a_line_up_or_player_that_has_no_stakes_is_an_error(teams, players, said):
    with pytest.raises(InputError, match=said):
        Rater("wager").stakes(teams, players=players)


def test_a_rating_out_of_range_is_an_error():
    with pytest.raises(RatingRangeError, match="rating of 'a' leaves the range of wager"):
        by_hand("wager", [8.9e11], [1.0], stake=0.5, floor=1.0, start=1.0, assumed=StakeAssumptions(seconds=None))


# values, a part of what is said
REFUSED = [
    ({"seconds": 0}, "seconds=0: expected a number from 1 to 1,000,000, or none"),
    ({"quit_after": "1.5"}, "quit_after=1.5: expected a number from 0 to 1"),
    ({"win_score": "many"}, "win_score=many: expected a number"),
    ({"win_score": "1", "loss_score": 2}, "win_score=1 is below loss_score=2"),
    ({"performance": "none", "loss_score": float("nan")}, "loss_score=nan: expected"),
]


@pytest.mark.parametrize(("values", "said"), REFUSED)
def test_a_wrong_assumption_is_refused(values, said):
    with pytest.raises(BadParameterError, match=said):
        StakeAssumptions.read(values)


def test_an_unknown_assumption_is_refused():
    with pytest.raises(UnknownNameError, match=r"unknown assumption 'second' \(did you mean 'seconds'"):
        StakeAssumptions.read({"second": 600})
    assert StakeAssumptions.read({"seconds": "none", "quit_after": "0"}) == StakeAssumptions(seconds=None, quit_after=0)
