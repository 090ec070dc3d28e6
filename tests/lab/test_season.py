"""The made-up season: honest about skill, with quitters, the same for the same seed; and its picture."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from evenmatch import from_matches, rate, rules
from evenmatch.errors import UsageError
from evenmatch.lab.sample import Habits, player_names, rating_paths, season


def test_a_seed_is_a_season():
    assert season(3, matches=50) == season(3, matches=50)
    assert season(3, matches=50) != season(4, matches=50)


def test_people_quit_leave_late_and_join_late_at_the_requested_rates():
    habits = Habits(quit=0.05, leave_late=0.1, join_late=0.2, draw=0.3)
    matches = season(1, matches=1500, habits=habits).matches
    slots = [(slot, match) for match in matches for team in match.teams for slot in team.players]
    length = {match.id: max(slot.seconds for team in match.teams for slot in team.players) for match in matches}
    quits = np.array([slot.quit for slot, _ in slots])
    missed = np.array([length[match.id] - slot.seconds for slot, match in slots])
    assert quits.mean() == pytest.approx(0.15, abs=0.01)
    assert (quits & (missed < 20)).mean() == pytest.approx(0.1, abs=0.01)
    assert (~quits & (missed > 0)).mean() == pytest.approx(0.2, abs=0.01)
    assert np.mean([match.places == (1, 1) for match in matches]) == pytest.approx(0.3, abs=0.04)
    assert (missed[quits] > 0).all()


def test_the_stronger_team_wins_more_often_and_a_rating_system_finds_skill():
    played = season(1, players=60, matches=3000)
    wins = total = 0
    for match in played.matches:
        strength = [np.mean([played.skill[slot.player] for slot in team.players]) for team in match.teams]
        if match.places != (1, 1) and abs(strength[0] - strength[1]) > 0.5:
            total += 1
            wins += (strength[0] > strength[1]) == (match.places[0] == 1)
    assert 0.8 < wins / total < 0.97
    ratings = rate(from_matches(played.matches), rules("prav"))
    skill = np.array([played.skill[name] for name in ratings.matches.player_names])
    assert np.corrcoef(skill, ratings.state["rating"])[0, 1] > 0.75


def test_names_are_different_however_many():
    assert len(set(player_names(1000))) == 1000


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_picture_of_rating_paths_names_its_players(suffix, tmp_path):
    ratings = rate(from_matches(season(1, players=20, matches=60).matches), rules("wager"), journal=True)
    names = ratings.matches.player_names[:3]
    rating_paths(ratings, names, tmp_path / f"paths.{suffix}")
    data = (tmp_path / f"paths.{suffix}").read_bytes()
    if suffix == "png":
        assert data.startswith(b"\x89PNG")
    else:
        ET.fromstring(data)
        assert all(f"<!-- {name} ".encode() in data for name in names)
    with pytest.raises(UsageError, match="cannot be written"):
        rating_paths(ratings, names, tmp_path / "nosuch" / f"paths.{suffix}")
