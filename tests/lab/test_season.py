"""The made-up season: honest about skill, with quitters, the same for the same seed; and its picture."""

import numpy as np

from evenmatch import rate, rules
from evenmatch.lab.sample import player_names, season


def test_a_seed_is_a_season():
    assert season(3, matches=50).matches.to_arrow() == season(3, matches=50).matches.to_arrow()
    assert season(3, matches=50).matches.to_arrow() != season(4, matches=50).matches.to_arrow()


def test_its_matches_are_full_and_in_order_and_those_who_quit_played_for_less_time():
    matches = list(season(1, players=60, matches=400, team_size=3).matches.to_matches("trios"))
    assert [match.id for match in matches] == [f"6v6-{number}" for number in range(1, 401)]
    assert matches == sorted(matches, key=lambda match: match.played_at)
    assert {tuple(len(team.players) for team in match.teams) for match in matches} == {(3, 3)}
    quitters = [(one, match) for match in matches for team in match.teams for one in team.players if one.quit]
    assert 20 < len(quitters) < 200
    assert all(one.seconds < match.duration for one, match in quitters)


def test_the_stronger_team_wins_more_often_and_a_rating_system_finds_skill():
    played = season(1, players=60, matches=3000)
    wins = total = 0
    for match in played.matches.to_matches("6v6"):
        strength = [np.mean([played.skill[slot.player] for slot in team.players]) for team in match.teams]
        if match.places != (1, 1) and abs(strength[0] - strength[1]) > 0.5:
            total += 1
            wins += (strength[0] > strength[1]) == (match.places[0] == 1)
    assert 0.84 < wins / total < 0.97  # a lead of 1 standard deviation wins 84 %; these have 1 or more
    ratings = rate(played.matches, rules("prav"))
    skill = np.array([played.skill[name] for name in ratings.matches.player_names])
    assert np.corrcoef(skill, ratings.state["rating"])[0, 1] > 0.75


def test_names_are_different_however_many():
    assert len(set(player_names(1000))) == 1000
