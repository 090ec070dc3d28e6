"""The stakes of a line-up of player ids, as offers of queues know them."""

import pytest

from evenmatch import StakeAssumptions, rules
from evenmatch.corrections.corrections import Ban
from evenmatch.errors import InputError
from evenmatch.ledger import player_rows
from evenmatch.match import Appearance, Match, Team
from evenmatch.players.odds import stakes_by_id
from ledger.sample_matches import after, duel, micros

LINE_UP = [["ann", "cat"], ["bob", "dan", "eve"]]


@pytest.fixture
def arena(service):
    """A ladder by Glicko, whose deviations grow with time; ann has beaten bob, and cat dan."""
    name = service.create_ladder("arena", "glicko", rules("glicko")).name
    for number, (winner, loser) in enumerate((("ann", "bob"), ("cat", "dan"), ("ann", "dan")), 1):
        service.record(duel(number, winner, loser, name))
    service.record(
        duel(4, "eve", "zoe", service.create_ladder("other", "elo", rules("elo")).name)
    )  # no player of arena
    return name


def at_stake(service, ladder, teams=LINE_UP):
    """The stakes by name, of players given by id."""
    with service._read(ladder) as (store, head):
        ids = player_rows.ids_of(store, [name for team in teams for name in team])
        told = stakes_by_id(
            store, head, service.clock(), [[ids[name] for name in team] for team in teams], StakeAssumptions()
        )
        return {name: told[player] for name, player in ids.items()}


@pytest.mark.parametrize("outcome", ["win", "draw", "loss", "quit"])
def test_stakes_by_id_are_what_the_receipt_then_says(service, arena, clock, outcome):
    clock.now = micros(after(24 * 40))
    told = at_stake(service, arena)
    places = {"win": (1, 2), "draw": (1, 1)}.get(outcome, (2, 1))
    teams = []
    for names, place in zip(LINE_UP, places, strict=True):
        left = {"cat"} if outcome == "quit" else set()
        players = [Appearance(name, seconds=300 if name in left else 600, quit=name in left) for name in names]
        teams.append(Team(tuple(players), place))
    receipt = service.record(Match("next", after(24 * 40), tuple(teams), arena))
    own = receipt.teams[0][1].change
    assert own.player == "cat"
    assert (told["cat"].player, told["cat"].team) == ("cat", 0)
    assert (told["cat"].before, getattr(told["cat"].after, outcome)) == (own.before, own.after)
    assert told["eve"].before == 1500  # plays elsewhere: a newcomer here
    assert told["cat"].before != 1500


def test_a_merged_player_has_the_stakes_of_the_present_one(service, arena):
    with service._read(arena) as (store, _):
        ids = player_rows.ids_of(store, ["ann", "eve", "bob"])
    service.merge("eve", "ann")
    with service._read(arena) as (store, head):
        told = stakes_by_id(store, head, service.clock(), [[ids["eve"]], [ids["bob"]]], StakeAssumptions())
    own = at_stake(service, arena, [["ann"], ["bob"]])["ann"]
    assert (told[ids["eve"]].before, told[ids["eve"]].after) == (own.before, own.after)


def test_nothing_is_at_stake_with_a_banned_player(service, arena):
    service.correct(arena, Ban("dan", reason="aimbot", since=micros(after(24 * 365))))
    assert at_stake(service, arena)["ann"].change.win > 0  # not yet
    service.correct(arena, Ban("bob", reason="aimbot"))
    with pytest.raises(InputError, match="'bob' is banned from this ladder"):
        at_stake(service, arena)
