"""Matches that were reported under former names: `verify` finds these names, or says that it did not look on."""

from random import Random

import pytest

from evenmatch.corrections import verification as verification_module
from evenmatch.match import Match, Team
from ledger.sample_matches import after, run_sql
from ledger.test_player_damage import of

SIZE = 6


def names_of_eras(eras, order):
    """For each era the names of all players: each player's are in an alphabetical order of their own."""
    chosen = Random(order)
    prefixes = [chosen.sample("abcdefgh", eras) for _ in range(2 * SIZE)]
    return [[f"{prefix[era]}{number}" for number, prefix in enumerate(prefixes)] for era in range(eras)]


def play(service, number, names):
    teams = Team.of(*names[:SIZE], place=1), Team.of(*names[SIZE:], place=2)
    service.record(Match(f"m{number}", after(number), teams, "default"))


def rename_all(service, old, new):
    for pair in zip(old, new, strict=True):
        service.rename(*pair)


@pytest.mark.parametrize("order", range(3))
def test_matches_of_whole_teams_before_and_after_a_rename_are_checked(service, ladder, order):
    first, second = names_of_eras(2, order)
    play(service, 1, first)
    rename_all(service, first, second)
    play(service, 2, second)
    play(service, 3, [first[0], *second[1:]])  # former names may still be reported
    verification = service.verify("default")
    assert verification.is_equal
    assert verification.unchecked == ()


@pytest.mark.parametrize("last", ["other names", "the first names"])
def test_whole_teams_renamed_twice_are_no_damage(service, ladder, last):
    first, second, third = names_of_eras(3, 7)
    play(service, 1, first)
    rename_all(service, first, second)
    play(service, 2, second)
    rename_all(service, second, first if last == "the first names" else third)
    play(service, 3, [*first[::2], *second[1::2]])
    verification = service.verify("default")
    assert verification.is_equal
    assert verification.damage == ()


def test_names_that_are_too_many_to_try_are_unchecked_and_no_damage(service, ladder, monkeypatch):
    first, second, third = names_of_eras(3, 1)
    play(service, 1, first)
    rename_all(service, first, second)
    rename_all(service, second, third)
    play(service, 2, third)
    monkeypatch.setattr(verification_module, "MOST_TRIED", 2)
    verification = service.verify("default")
    assert verification.is_equal
    (line,) = verification.unchecked
    assert line.startswith("the names in 1 match were not checked (the first: 'm1' at position 2): ")


def test_a_match_whose_names_were_all_tried_is_damage(service, ladder):
    first, second = names_of_eras(2, 1)
    play(service, 1, first)
    service.rename(first[0], second[0])
    play(service, 2, [second[0], *first[1:]])
    run_sql(service, f"UPDATE name SET name = 'zz' WHERE player = {of(first[0])} AND name = '{first[0]}'")
    verification = service.verify("default")
    assert verification.damage == ("match 'm1' at position 2 was reported with different names",)
    assert verification.unchecked == ()
