"""The demo's ladders: the same for the same seed, rated as their ledger says, with a season that was closed."""

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import NormalDist

import numpy as np
import pytest

from evenmatch.demo.games import GAMES, LADDERS
from evenmatch.demo.ladder_creation import QUEUE, make_ladder, missing, play_histories
from evenmatch.demo.population import make_people, player_names
from evenmatch.errors import UsageError
from evenmatch.operations.backup import backup
from evenmatch.operations.service import Service
from evenmatch.queues.queue_service import QueueService
from evenmatch.rating import rules

ENDS = datetime(2026, 11, 20, 19, tzinfo=UTC)
SHORT = [replace(game, matches=150) for game in GAMES]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A database with the four ladders, each of a few matches."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    seasons = play_histories(1, SHORT, ENDS)
    for game in SHORT:
        make_ladder(path, game, seasons[game.name])
    with Service.open(str(path)) as service:
        yield service


def history(game):
    """The simulated matches of a game, as a list."""
    (matches,) = play_histories(1, [game], ENDS).values()
    return list(matches.to_matches(game.name))


def test_the_same_seed_is_the_same_season_and_another_is_not():
    duel = [replace(LADDERS["duel"], matches=60)]
    first, again, other = (play_histories(seed, duel, ENDS)["duel"].to_arrow() for seed in (3, 3, 4))
    assert first == again
    assert first != other


@pytest.mark.parametrize("game", SHORT, ids=lambda game: game.name)
def test_ratings_are_what_a_replay_says(made, game):
    told = made.verify(game.name)
    assert told.differences == ()
    assert (told.matches, told.due) == (150, None)


@pytest.mark.parametrize("game", SHORT, ids=lambda game: game.name)
def test_a_season_was_closed_thirty_days_ago_with_its_standings_kept(made, game):
    first, second = made.seasons(game.name)
    assert second.closed_at is None
    assert abs(first.closed_at / 1e6 - (ENDS - timedelta(days=30)).timestamp()) < 3 * 86_400  # its last match of 150
    assert made.finals(game.name, 1)[0].rank == 1


@pytest.mark.parametrize("game", SHORT, ids=lambda game: game.name)
def test_its_queue_makes_matches_of_the_game(made, game):
    queue = QueueService(made).queue(game.name, QUEUE)
    assert (queue.policy.teams, queue.policy.team_size) == (game.teams, game.team_size)


def test_a_season_has_what_its_system_needs_quitters_and_every_team_full():
    for game in SHORT:
        matches = history(game)
        assert matches == sorted(matches, key=lambda match: match.played_at)
        assert matches[-1].played_at <= ENDS
        everybody = [one for match in matches for team in match.teams for one in team.players]
        assert {len(team.players) for match in matches for team in match.teams} == {game.team_size}
        assert {len(match.teams) for match in matches} == {game.teams}
        assert all(None not in (one.seconds, one.score, one.performance) for one in everybody)
        assert any(one.quit for one in everybody)


def test_of_duels_some_are_lopsided():
    matches = history(replace(LADDERS["duel"], matches=300))
    scores = {tuple(team.score for team in match.teams) for match in matches}
    assert {(5.0, 0.0), (0.0, 5.0)} & scores
    assert all(max(one) == 5 and min(one) < 5 for one in scores)


def test_winners_of_duels_follow_true_skill():
    """The gap at the end is normal, with 1.6 times the difference in skill as its mean and a deviation of 1."""
    matches = history(LADDERS["duel"])
    people = {one.name: one for one in make_people(1)}
    expected, won = [], []
    for match in matches:
        first, second = (team.players[0] for team in match.teams)
        if first.quit or second.quit:
            continue
        hour = match.played_at.hour + match.played_at.minute / 60
        lead = people[first.player].skill_at("duel", hour) - people[second.player].skill_at("duel", hour)
        expected.append(NormalDist().cdf(1.6 * abs(lead)))
        won.append((match.places[0] == 1) == (lead > 0))
    assert len(won) > 2000
    assert 0.6 < np.mean(expected) < 0.9  # neither coin flips nor foregone
    assert np.mean(won) == pytest.approx(np.mean(expected), abs=0.03)  # four standard errors


def test_names_are_those_of_people_in_several_scripts_and_each_has_one_player():
    names = player_names(960, np.random.default_rng(5))
    assert len(set(names)) == 960
    assert {unicodedata.category(letter)[0] for name in names for letter in name.replace(" ", "")} <= {"L", "M"}
    assert {"さくら", "Ольга", "ليلى"} <= set(names)


def test_a_database_of_another_site_is_refused(tmp_path):
    path = tmp_path / "other.db"
    with Service.open(str(path)) as service:
        service.create_ladder("chess", "elo", rules("elo"))
        service.create_ladder("duel", "elo", rules("elo"))
    with pytest.raises(UsageError, match="contains the ladder 'chess' but not 'arena'"):
        missing(path)


def test_a_database_of_the_demo_is_used_again_also_with_a_ladder_that_was_created_on_its_pages(made, tmp_path):
    path = tmp_path / "demo.db"
    backup(made.database, path)
    assert missing(path) == []
    with Service.open(str(path)) as service:
        service.create_ladder("chess", "elo", rules("elo"))
    assert missing(path) == []
    assert missing(tmp_path / "new.db") == list(GAMES)
