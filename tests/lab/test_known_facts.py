"""Facts about the rating systems that were known before, found again in simulated matches.

Matches without a matchmaker have random teams, as leagues have; seasons have one.
"""

from dataclasses import replace

import numpy as np
import pytest

from evenmatch import rules
from evenmatch.history import History
from evenmatch.lab.seasons.games import GAMES, STAGES, Play
from evenmatch.lab.seasons.season import START, SeasonSettings, simulate_season
from evenmatch.match import Appearance, Match, Team
from evenmatch.systems import loop
from evenmatch.times import EPOCH

COIN = np.log(2.0)
PLAYERS = 200


def random_matches(game, by, matches, seed=1):
    """The history of matches between random teams of honest players, and its replay."""
    rng = np.random.default_rng(seed)
    skill = rng.standard_normal(PLAYERS)
    account = np.concatenate([rng.permutation(PLAYERS)[: game.players] for _ in range(matches)])
    slot = np.arange(len(account))
    noise = rng.standard_normal((len(slot), STAGES))
    even, whim = np.full(len(slot), 0.5), rng.random(len(slot))
    play = Play(game, account, slot // game.players, slot // game.team_size, skill[account], even, whim, noise)
    for stage in range(STAGES):
        play.advance(stage)
    history = History(play.columns(START, rng, np.arange(PLAYERS)))
    return history, loop.replay(by, history, by.newcomers(PLAYERS), journal=True)


def late_log_loss(history, expected):
    """Log loss of the first team's expected score over the second half of the matches."""
    first, place = history.columns.team_start[:-1], history.columns.place
    won = np.where(place[first] == place[first + 1], 0.5, place[first] == 1)
    chance = np.clip(expected[first], 1e-12, 1.0 - 1e-12)
    loss = -(won * np.log(chance) + (1.0 - won) * np.log(1.0 - chance))
    return loss[len(loss) // 2 :].mean()


def median_growth(draw_width, monkeypatch, matches, weeks=8.0):
    """Share of drawn matches, and growth of wager's median rank per match of a player, in percent."""
    monkeypatch.setitem(GAMES, "team", replace(GAMES["team"], draw_width=draw_width, quit=0.0))
    still = dict.fromkeys(("newcomers", "learning", "drift", "parties", "eagerness", "days_off"), 0.0)
    settings = SeasonSettings(players=PLAYERS, matches=matches, weeks=weeks, **still)
    record = simulate_season(settings, rules("wager", start=1000.0))  # far from the floor
    place = record.history.columns.place.reshape(-1, 2)
    late = record.snapshots[len(record.snapshots) // 4 :]
    played = [snapshot.played.sum() / PLAYERS for snapshot in late]
    median = [np.log(np.median(snapshot.rating[:PLAYERS])) for snapshot in late]
    return (place[:, 0] == place[:, 1]).mean(), 100.0 * np.polyfit(played, median, 1)[0]


def rated(by, ratings, seconds, quitting):
    """Ranks after a 4v4 that the first team wins; seconds and quitting of the first team's players."""
    own = [
        Appearance(str(number), seconds=time, quit=left)
        for number, (time, left) in enumerate(zip(seconds, quitting, strict=True))
    ]
    other = [Appearance(str(number), seconds=600.0) for number in range(4, 8)]
    match = Match("1", EPOCH, (Team(tuple(own), 1), Team(tuple(other), 2)))
    history = History.of([match], lambda _, player: int(player))
    return loop.replay(by, history, by.starting(np.array(ratings))).state["rating"]


def test_three_boosters_who_leave_at_the_end_multiply_a_win_by_1_0127_and_by_4_if_heads_are_counted():
    by, leavers = rules("wager"), (False, True, True, True)
    ratings = [1000.0] * 8
    by_time = rated(by, ratings, (600.0, 590.0, 590.0, 590.0), leavers)
    by_heads = rated(by, ratings, (600.0, 0.0, 0.0, 0.0), leavers)
    fair = rated(by, ratings, (600.0,) * 4, (False,) * 4)
    gain = fair[0] - 1000.0
    assert (by_time[0] - 1000.0) / gain == pytest.approx(1.0127, abs=1e-4)
    assert (by_heads[0] - 1000.0) / gain == pytest.approx(4.0)


def test_literal_wager_takes_417_wins_over_newcomers_in_one_loss():
    by = rules("wager", preset="article")
    wins = 417
    matches = [
        Match(str(number), EPOCH, (Team.of("0", place=1), Team.of(str(number), place=2)))
        for number in range(1, wins + 1)
    ]
    after = loop.replay(by, History.of(matches, lambda _, player: int(player)), by.newcomers(wins + 1)).state
    assert after["rating"][0] == 21.85
    upset = Match("upset", EPOCH, (Team.of("0", place=2), Team.of("1", place=1)))
    state = by.starting(np.array([21.85, 1.0]))
    assert loop.replay(by, History.of([upset], lambda _, player: int(player)), state).state["rating"][0] == 1.0


def test_prav_as_written_predicts_worse_than_a_coin_in_5v5_and_steady_does_not():
    five = replace(GAMES["team"], team_size=5, steepness=1.6)  # skill decides as much as where the fact was found
    loss = {}
    for preset in ("as_written", "steady"):
        history, replayed = random_matches(five, rules("prav", preset=preset), 1000)
        loss[preset] = late_log_loss(history, replayed.expected)
    assert loss["as_written"] > 1.2 * COIN
    assert loss["steady"] < 0.9 * COIN


@pytest.mark.parametrize("game", ["brawl", "team"])
def test_scorefactor_as_xonstat_runs_it_inflates_in_matches_of_eight_and_the_default_does_not(game):
    gained = {}
    for preset in ("xonstat", None):
        scored = replace(GAMES[game], score_slope=0.3, score_noise=0.3)  # scores spread as where the fact was found
        _, replayed = random_matches(scored, rules("scorefactor", preset=preset, start=1000.0), 4000)
        gained[preset] = (replayed.journal.after - replayed.journal.before).mean()
    assert gained["xonstat"] == pytest.approx(0.57, abs=0.15)
    assert abs(gained[None]) < 0.01


def test_battlepoints_with_scale_1_is_a_step_function():
    loss = {}
    for scale in (1.0, 400.0):
        history, replayed = random_matches(GAMES["duel"], rules("battlepoints", scale=scale), 2000)
        loss[scale] = late_log_loss(history, replayed.expected)
        settled = replayed.expected[len(replayed.expected) // 2 :]
        sure = (np.abs(settled - 0.5) > 0.49).mean()
        assert sure > 0.9 if scale == 1.0 else sure < 0.05
    assert loss[1.0] > 3.0 > COIN > loss[400.0]


def test_wager_loses_an_eighth_of_a_percent_of_its_median_per_match_without_draws(monkeypatch):
    drawn, growth = median_growth(0.0, monkeypatch, 800)
    assert drawn == 0.0
    assert growth == pytest.approx(-0.125, abs=0.05)


def break_even(points):
    """The share of draws at which a growth that rises with it is 0, by linear interpolation of (share, growth)."""
    shares, growths = zip(*points, strict=True)
    assert list(growths) == sorted(growths)
    assert growths[0] < 0.0 < growths[-1]
    return np.interp(0.0, growths, shares)


@pytest.mark.slow
def test_wager_inflates_when_more_than_about_two_percent_of_the_matches_are_drawn():
    """In a game that skill decides, between random teams: the weaker team, which a draw pays, is far weaker."""
    points = []
    for width in (0.0, 0.03, 0.06, 0.09, 0.12):
        decisive = replace(GAMES["team"], steepness=4.0, draw_width=width, quit=0.0)
        history, replayed = random_matches(decisive, rules("wager", start=1000.0), 8000)
        place, journal = history.columns.place.reshape(-1, 2), replayed.journal
        late = history.slot_match >= len(history) // 4
        points.append(((place[:, 0] == place[:, 1]).mean(), np.log(journal.after / journal.before)[late].mean()))
    assert break_even(points) == pytest.approx(0.02, abs=0.005)


@pytest.mark.slow
def test_between_equal_teams_wager_inflates_only_above_four_percent_of_draws(monkeypatch):
    """A win of R/20 and a loss of R/20 cost (R/20)²/2; a draw pays half of the players R/20. They balance at 1/21."""
    points = [median_growth(width, monkeypatch, 4000) for width in (0.0, 0.0125, 0.03, 0.06, 0.09, 0.12)]
    assert points[0][1] == pytest.approx(-0.125, abs=0.02)
    assert break_even(points) == pytest.approx(1 / 21, abs=0.01)


@pytest.mark.slow
def test_prav_as_written_and_xonstat_are_as_bad_on_other_seeds():
    five = replace(GAMES["team"], team_size=5)
    for seed in range(2, 7):
        history, replayed = random_matches(five, rules("prav", preset="as_written"), 3000, seed)
        assert late_log_loss(history, replayed.expected) > 2.0 * COIN
        _, replayed = random_matches(GAMES["brawl"], rules("scorefactor", preset="xonstat", start=1000.0), 4000, seed)
        assert (replayed.journal.after - replayed.journal.before).mean() > 0.4
