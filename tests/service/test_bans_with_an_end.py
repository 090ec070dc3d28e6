"""Bans that end by themselves: the player can queue and is listed again, and no rating ever depends on the end."""

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Ban, Reinstate
from evenmatch.durations import DAY
from evenmatch.errors import BadParameterError, ConflictError, NotYetError
from evenmatch.ladders import correction_log
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import player_rows
from evenmatch.players.odds import StakesQuery
from evenmatch.queues.queue_service import QueueService
from evenmatch.stake_assumptions import StakeAssumptions
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import after, duel, micros
from service.sample_queues import DUEL, check_everything, hold_lease, join_queue, party, solos


@pytest.fixture
def played(service, ladder):
    """A ladder on which ann has beaten bob twice, so that both are placed."""
    for number in (1, 2):
        service.record(duel(number, "ann", "bob", ladder))
    return ladder


@pytest.fixture
def queue_service(service, played):
    made = QueueService(service)
    made.set_queue(played, "ranked", DUEL)
    hold_lease(made, played)
    return made


def listed(service, ladder):
    view = service.view(ladder)
    with service.reading(ladder) as (store, _):
        return sorted(player_rows.names_of(store, view.snapshot.board.player[view.snapshot.order].tolist()).values())


def test_a_banned_player_queues_again_from_the_moment_at_which_the_ban_ends(queue_service, service, played, clock):
    end = clock.now + 7 * DAY
    service.correct(played, Ban("bob", until=end))
    clock.now = end - 1
    with pytest.raises(NotYetError, match="'bob' is banned from ladder 'duel' and may queue again at") as refused:
        join_queue(queue_service, played, *solos("bob"))
    assert refused.value.until == end
    clock.now = end
    (ticket,) = join_queue(queue_service, played, *solos("bob"))
    assert queue_service.status(played, ticket).state == "waiting"
    check_everything(service)


def test_a_banned_player_is_listed_again_when_the_ban_ends_though_nothing_is_recorded(service, played, clock):
    assert listed(service, played) == ["ann", "bob"]
    end = clock.now + DAY
    service.correct(played, Ban("bob", until=end))
    reading = LadderQueries(service)
    profile = reading.profile(played, "bob")
    assert (listed(service, played), profile.banned, profile.banned_until) == (["ann"], True, end)
    clock.now = end - 1
    assert listed(service, played) == ["ann"]
    clock.now = end
    profile = reading.profile(played, "bob")
    assert (listed(service, played), profile.banned, profile.banned_until) == (["ann", "bob"], False, None)


def test_a_view_of_another_process_lists_the_player_again_too(service, other_service, played, clock):
    end = clock.now + DAY
    service.correct(played, Ban("bob", until=end))
    assert listed(other_service, played) == ["ann"]
    clock.now = end
    assert listed(other_service, played) == ["ann", "bob"]


def test_a_waiting_ticket_ends_and_the_list_of_bans_names_the_player_until_the_end(
    queue_service, service, played, clock, maker
):
    ticket, other = join_queue(queue_service, played, party("ann"), party("cat"))
    end = clock.now + DAY
    service.correct(played, Ban("ann", until=end, reason="insults"))
    assert maker.step(played).dropped == (ticket,)
    told = queue_service.status(played, ticket)
    assert (told.state, told.ended) == ("gone", "'ann' is banned from the ladder")
    assert queue_service.status(played, other).state == "waiting"
    for now, names in ((end - 1, ["ann"]), (end, [])):
        with service.reading(played) as (store, head):
            assert [one.player for one in correction_log.bans(store, head, now)] == names


def test_no_rating_depends_on_a_ban_with_an_end(service, clock):
    """The same matches on two ladders, before, during and after a ban, and after an idle gap of sixty days.

    The systems are those whose ratings depend on time, and one whose ratings do not.
    """
    for system in ("glicko2", "elo"):
        for name in ("plain", "banned"):
            service.create_ladder(f"{name}-{system}", system, rules(system))
        for number, (day, winner, loser) in enumerate(
            [(0, "ann", "bob"), (1, "cat", "ann"), (2, "ann", "cat"), (62, "bob", "ann"), (63, "ann", "bob")]
        ):
            clock.now = micros(after(24 * day + number))
            if day == 1:
                seen = service.preview(f"banned-{system}", Ban("ann", until=clock.now + 30 * DAY))
                assert (seen.moves, seen.matches) == ([], 0)
                service.correct(f"banned-{system}", Ban("ann", until=clock.now + 30 * DAY))
            for name in ("plain", "banned"):
                service.record(duel(24 * day + number, winner, loser, f"{name}-{system}"))
        plain, banned = (service.view(f"{name}-{system}").snapshot.board for name in ("plain", "banned"))
        assert banned.rating.tolist() == plain.rating.tolist()
        assert len(set(plain.rating.tolist())) == 3
        before = banned.rating.tolist()
        assert service.verify(f"banned-{system}").is_equal
        service.rebuild(f"banned-{system}", whole=True)
        assert service.verify(f"banned-{system}").is_equal
        assert service.view(f"banned-{system}").snapshot.board.rating.tolist() == before


def test_a_ban_with_an_end_is_replaced_and_any_other_is_not(service, played, clock):
    first, second = clock.now + DAY, clock.now + 30 * DAY
    service.correct(played, Ban("bob", until=first))
    service.correct(played, Ban("bob", until=second))
    clock.now = first
    assert listed(service, played) == ["ann"]
    effect = service.correct(played, Ban("bob"))
    assert effect.matches == 0
    assert {move.player for move in effect.moves} == {"ann", "bob"}  # every match was against bob
    with pytest.raises(ConflictError, match="'bob' is already banned"):
        service.correct(played, Ban("bob", until=second))
    service.correct(played, Reinstate("bob"))
    assert listed(service, played) == ["ann", "bob"]


def test_a_ban_is_lifted_before_its_end(service, played, clock):
    service.correct(played, Ban("bob", until=clock.now + DAY))
    assert service.correct(played, Reinstate("bob")).moves == []
    assert listed(service, played) == ["ann", "bob"]


def test_players_merge_once_the_ban_has_ended(service, played, clock):
    service.record(duel(3, "bo", "cat", played))
    service.correct(played, Ban("bo", until=clock.now + DAY))
    with pytest.raises(ConflictError, match="'bo' is banned from ladder 'duel'"):
        service.merge("bo", "bob")
    clock.move(days=1)
    assert service.merge("bo", "bob") == [played]


@pytest.mark.parametrize("rule", ["void", "refund"])
def test_a_ban_that_changes_ratings_has_no_end(rule):
    with pytest.raises(BadParameterError, match="a ban with an end changes no rating"):
        Ban("bob", rule, until=1_800_000_000_000_000)


def test_a_ban_that_changes_no_rating_has_no_start():
    with pytest.raises(BadParameterError, match="expected no time since which it does"):
        Ban("bob", "keep", since=1_700_000_000_000_000)


def test_stakes_are_as_usual_while_a_ban_keeps_the_ratings(service, played, clock):
    reading = LadderQueries(service)
    asked = [["ann"], ["bob"]], StakesQuery(StakeAssumptions(), None)
    before = reading.prospects(played, *asked)
    service.correct(played, Ban("bob", until=clock.now + DAY))
    assert reading.prospects(played, *asked) == before


def test_the_standing_of_a_percentile_counts_the_player_again(service, clock):
    """Four placed players: with one of them banned, three share the percentiles."""
    settings = Settings(standings=StandingsRules(placement=1))
    service.create_ladder("four", "elo", rules("elo"), settings)
    for number, (winner, loser) in enumerate([("ann", "bob"), ("cat", "dan"), ("ann", "cat")]):
        service.record(duel(number, winner, loser, "four"))
    service.correct("four", Ban("ann", until=clock.now + DAY))
    assert len(service.view("four").snapshot) == 3
    clock.move(days=1)
    assert len(service.view("four").snapshot) == 4
