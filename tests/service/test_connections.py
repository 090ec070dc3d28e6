"""Where players connect, and what the match did to them: on their own tickets only, and only while it matters."""

import threading

import pytest

from evenmatch.accounts.access import Caller
from evenmatch.errors import ConflictError, InputError
from evenmatch.live.attendance import Ending, Presence, TeamEnd
from evenmatch.live.live_matches import Connection, Running
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from service.sample_queues import PAIRS, accept_all, check_everything, join_queue, party, select_rows, solos

pytestmark = pytest.mark.both_databases

AT = "203.0.113.7:7777"
NEVER = QueueRules(heartbeat=None)


@pytest.fixture
def queue_service(service):
    return QueueService(service)


@pytest.fixture
def running(service, queue_service):
    return Running(service, queue_service.notifier)


@pytest.fixture
def matched(queue_service, ladder, maker):
    """The tickets of ann and bob, of eve and of joe, who have accepted a match of two against two, and its id."""
    queue_service.set_queue(ladder, "ranked", {**PAIRS, "maps": ["nuke"]}, NEVER)
    tickets = join_queue(queue_service, ladder, party("ann", "bob"), *solos("eve", "joe"))
    maker.step(ladder)
    return tickets, accept_all(queue_service, ladder, tickets)[-1].match_id


def teams_of(queue_service, ladder, ticket):
    """The names of a match's teams, as its game server sends them back."""
    return [[player.player for player in team] for team in queue_service.status(ladder, ticket).match.teams]


def announce(running, queue_service, ladder, matched, address=AT, **tokens):
    tickets, match_id = matched
    connection = Connection(address, tokens)
    return running.announce(ladder, match_id, teams_of(queue_service, ladder, tickets[0]), connection=connection)


def connections(queue_service, ladder, tickets):
    matches = [queue_service.status(ladder, ticket).match for ticket in tickets]
    return [match.connection and (match.connection.address, dict(match.connection.tokens)) for match in matches]


def tokens_seen_by(status, player, own):
    caller = Caller(f"token of {player}", frozenset({"queue"}), None, player=player)
    return dict(status.seen_by(caller, own).match.connection.tokens)


def test_each_ticket_shows_the_address_and_the_tokens_of_its_own_players(queue_service, running, ladder, matched):
    tickets, _ = matched
    assert connections(queue_service, ladder, tickets) == [None, None, None]
    before = queue_service.status(ladder, tickets[0]).change
    told = announce(running, queue_service, ladder, matched, ann="a-1", bob="b-2", joe="j-3")
    assert told.connected
    assert connections(queue_service, ladder, tickets) == [
        (AT, {"ann": "a-1", "bob": "b-2"}),
        (AT, {}),
        (AT, {"joe": "j-3"}),
    ]
    status = queue_service.status(ladder, tickets[0])
    assert (status.state, status.match.map, status.is_over) == ("matched", "nuke", False)
    assert status.change > before


def test_a_player_of_a_party_sees_no_token_of_a_friend(queue_service, running, ladder, matched, service):
    announce(running, queue_service, ladder, matched, ann="a-1", bob="b-2")
    ticket = matched[0][0]
    status = queue_service.status(ladder, ticket)
    assert tokens_seen_by(status, "bob", "bob") == {"bob": "b-2"}
    backend = Caller("backend", frozenset({"queue"}), None)
    assert dict(status.seen_by(backend, None).match.connection.tokens) == {"ann": "a-1", "bob": "b-2"}
    service.rename("bob", "robert")
    assert queue_service.member_name(ladder, ticket, "robert") == "bob"
    assert queue_service.member_name(ladder, ticket, "eve") is None
    assert tokens_seen_by(queue_service.status(ladder, ticket), "robert", "bob") == {"bob": "b-2"}


def test_a_connection_comes_once_and_only_missing_tokens_may_follow(queue_service, running, ladder, matched):
    first = announce(running, queue_service, ladder, matched, ann="a-1")
    assert announce(running, queue_service, ladder, matched, ann="a-1") == first
    with pytest.raises(ConflictError, match=f"already has a connection, to '{AT}'"):
        announce(running, queue_service, ladder, matched, address="203.0.113.8:1")
    with pytest.raises(ConflictError, match="only players without a token can get one"):
        announce(running, queue_service, ladder, matched, ann="other")
    later = announce(running, queue_service, ladder, matched, bob="b-2")
    assert later.change > first.change
    assert connections(queue_service, ladder, matched[0][:1]) == [(AT, {"ann": "a-1", "bob": "b-2"})]
    with pytest.raises(InputError, match=r"connection\.tokens names 'zoe', who is not in the match") as refused:
        announce(running, queue_service, ladder, matched, zoe="s3cret")
    assert "s3cret" not in str(refused.value)


def test_a_match_that_is_over_gets_no_connection_and_forgets_the_one_it_had(
    queue_service, running, ladder, matched, service
):
    tickets, match_id = matched
    announce(running, queue_service, ladder, matched, ann="s3cret")
    teams = teams_of(queue_service, ladder, tickets[0])
    running.cancel(ladder, match_id, "the server fell over")
    assert connections(queue_service, ladder, tickets) == [None, None, None]
    assert queue_service.status(ladder, tickets[0]).is_over
    assert "s3cret" not in str(select_rows(service, "SELECT body FROM live"))
    with pytest.raises(ConflictError, match="is cancelled; it can no longer be changed"):
        running.announce(ladder, match_id, teams, connection=Connection(AT))
    check_everything(service)


def test_a_recorded_match_brings_each_ticket_the_receipt_of_its_own_players(
    queue_service, running, ladder, matched, clock, service
):
    """Elo with K = 32 among newcomers: 16 points are won and lost; https://en.wikipedia.org/wiki/Elo_rating_system."""
    tickets, match_id = matched
    announce(running, queue_service, ladder, matched)
    sides = teams_of(queue_service, ladder, tickets[0])
    service.rename("bob", "Róbert/2")
    clock.move(seconds=300)
    ends = (TeamEnd(1), TeamEnd(2)) if "ann" in sides[0] else (TeamEnd(2), TeamEnd(1))
    running.close(ladder, match_id, Ending(ends))
    of_pair, of_eve = (queue_service.status(ladder, ticket) for ticket in tickets[:2])
    assert of_pair.is_over
    assert (of_pair.match.receipt.rated, of_pair.match.connection) == (True, None)
    ratings = of_pair.match.receipt.players
    assert {name: rating[:3] for name, rating in ratings.items()} == {
        "ann": (1500.0, 1516.0, 16.0),
        "bob": (1500.0, 1516.0, 16.0),
    }
    assert ratings["bob"].page == f"/ladders/duel/matches/{match_id}/results/R%C3%B3bert%2F2"
    assert {name: rating[:3] for name, rating in of_eve.match.receipt.players.items()} == {
        "eve": (1500.0, 1484.0, -16.0)
    }


def test_the_receipt_of_an_unrated_match_has_no_numbers(queue_service, running, ladder, matched, clock):
    tickets, match_id = matched
    clock.move(seconds=300)
    running.close(ladder, match_id, Ending((TeamEnd(1), TeamEnd(2)), rated=False))
    receipt = queue_service.status(ladder, tickets[1]).match.receipt
    page = f"/ladders/duel/matches/{match_id}/results/eve"
    assert (receipt.rated, receipt.players) == (False, {"eve": (None, None, None, None, None, page)})


def test_followers_of_the_tickets_are_notified(queue_service, running, ladder, matched, clock):
    tickets, match_id = matched
    heard = []
    queue_service.notifier.listen(lambda where, numbers: heard.append((where, numbers)))
    announce(running, queue_service, ladder, matched)
    assert heard == [(ladder, sorted(tickets))]
    announce(running, queue_service, ladder, matched)  # changes nothing
    assert len([numbers for _, numbers in heard if numbers]) == 1
    clock.move(seconds=1)
    running.close(ladder, match_id, Ending((TeamEnd(1), TeamEnd(2))))
    assert heard[-1] == (ladder, sorted(tickets))


def test_of_two_servers_announced_at_once_one_wins_and_all_tickets_show_it(
    queue_service, running, ladder, matched, service, other_service
):
    both = [running, Running(other_service)]
    together, outcomes = threading.Barrier(2), {}

    def run(number):
        together.wait()
        try:
            outcomes[number] = announce(
                both[number], queue_service, ladder, matched, f"203.0.113.{number}:1", eve="e"
            ).match_id
        except ConflictError as error:
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [number for number, outcome in outcomes.items() if outcome == matched[1]]
    assert isinstance(outcomes[1 - winner], ConflictError)
    address = f"203.0.113.{winner}:1"
    assert connections(queue_service, ladder, matched[0]) == [(address, {}), (address, {"eve": "e"}), (address, {})]


def test_a_player_who_fills_an_open_slot_gets_the_connection_too(queue_service, running, ladder, matched, maker, clock):
    tickets, match_id = matched
    announce(running, queue_service, ladder, matched, ann="a-1")
    sides = teams_of(queue_service, ladder, tickets[0])
    clock.move(seconds=10)
    running.leaves(ladder, match_id, [Presence("eve", clock(), back=False)])
    running.openings(ladder, match_id, "ranked", [int("eve" in side) for side in sides])
    (new,) = join_queue(queue_service, ladder, *solos("zoe"))
    maker.step(ladder)
    accept_all(queue_service, ladder, [new])
    assert connections(queue_service, ladder, [new]) == [(AT, {})]
    running.announce(ladder, match_id, sides, connection=Connection(AT, {"zoe": "z-4"}))
    assert connections(queue_service, ladder, [new]) == [(AT, {"zoe": "z-4"})]
