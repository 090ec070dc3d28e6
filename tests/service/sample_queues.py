"""Queues that tests fill, and questions put to the tables by plain SQL."""

import json
from collections import Counter

import sqlalchemy as sa

from evenmatch.queues.leases import Leases
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_service import lease_of
from evenmatch.queues.requests import Accept, Decline, Join, Leave, QueuedPlayer

ANYBODY = {"max_odds": "none", "even_spread": 100.0, "steps": [[0, 100]], "rematch_wait": 0.0, "party_wait": 0.0}
DUEL = {**ANYBODY, "team_size": 1}
PAIRS = {**ANYBODY, "team_size": 2}


def party(*names, queues=("ranked",), request=None, playlist=(), **wishes):
    """A wish to join; names are players who all wish the same."""
    members = tuple(QueuedPlayer(name=name, **wishes) for name in names)
    return Join(members=members, queues=queues, request=request, playlist=dict(playlist))


def solos(*names, **wishes):
    return [party(name, **wishes) for name in names]


def join_queue(queue_service, ladder, *wishes):
    """The numbers of their tickets."""
    return [granted(told).ticket for told in queue_service.apply(ladder, wishes)]


def granted(told):
    if isinstance(told, Exception):
        raise told
    return told


def join_one(queue_service, ladder, wish):
    """What becomes of a wish; raises why it is refused."""
    (told,) = queue_service.apply(ladder, [wish])
    return granted(told)


def accept_all(queue_service, ladder, tickets):
    return [granted(told) for told in queue_service.apply(ladder, [Accept(ticket) for ticket in tickets])]


def hold_lease(queue_service, ladder):
    """Let the desk's process hold the lease of a ladder's matchmaker, as if one ran."""
    assert queue_service.leases.hold(lease_of(queue_service.levels.of(ladder).ladder))


def always(queue_service):
    """A matchmaker that believes it holds every lease: the worst that two processes can do to one another."""
    leases = Leases(queue_service.service.database, "always")
    leases.hold = lambda _: True
    return Matchmaker(queue_service, leases)


def select_rows(service, sql, **values):
    with service.database.read() as store:
        return [tuple(row) for row in store.connection.execute(sa.text(sql), values)]


def check_everything(service):
    """What must hold of the tables at any time, whoever wrote them, in whatever order."""
    ladders = dict(select_rows(service, "SELECT ladder, change FROM line"))
    tickets = {
        (ladder, ticket): (state, json.loads(body), offer, match_id, ended, change)
        for ladder, ticket, state, body, offer, match_id, ended, change in select_rows(
            service, "SELECT ladder, ticket, state, body, offer, match_id, ended, change FROM ticket"
        )
    }
    playlists = {
        (ladder, ticket): [tuple(entry) for entry in json.loads(listed)]
        for ladder, ticket, listed in select_rows(
            service, "SELECT ladder, ticket, playlist FROM ticket WHERE playlist IS NOT NULL"
        )
    }
    offers = {
        (ladder, offer): (state, json.loads(body), set(json.loads(said)), match_id, change)
        for ladder, offer, state, body, said, match_id, change in select_rows(
            service, "SELECT ladder, offer, state, body, said, match_id, change FROM offer"
        )
    }
    live = {
        (ladder, match_id): (state, json.loads(body), change)
        for ladder, match_id, state, body, change in select_rows(
            service, "SELECT ladder, match_id, state, body, change FROM live"
        )
    }
    seats = {
        player: (ladder, ticket, match_id)
        for player, ladder, ticket, match_id in select_rows(
            service, "SELECT player, ladder, ticket, match_id FROM seat"
        )
    }
    for own, entries in playlists.items():
        states = [tickets[entry][0] for entry in entries]
        assert own in entries
        assert len({ladder for ladder, _ in entries}) == len(entries)
        assert states.count("offered") + states.count("matched") <= 1
        if "offered" in states:
            assert set(states) <= {"offered", "elsewhere", "gone"}
        elif "matched" in states:
            assert set(states) <= {"matched", "gone"}
        else:
            assert set(states) <= {"waiting", "gone"}
        parties = [sorted(member["id"] for member in tickets[entry][1]["members"]) for entry in entries]
        assert parties == [parties[0]] * len(parties)
    waiting = Counter()
    for (ladder, ticket), (state, body, offer, match_id, ended, change) in tickets.items():
        assert change <= ladders[ladder]
        players = [member["id"] for member in body["members"]]
        assert (offer is not None) == (state == "offered")
        assert (match_id is not None) == (state == "matched")
        assert (ended is not None) == (state == "gone")
        open_tickets = [
            entry
            for entry in playlists.get((ladder, ticket), [(ladder, ticket)])
            if tickets[entry][0] in ("waiting", "offered", "elsewhere")
        ]
        if (ladder, ticket) == min(open_tickets, default=None):
            waiting.update(players)
            offered = [entry for entry in open_tickets if tickets[entry][0] == "offered"]
            for player in players:
                assert seats[player] in [(*entry, None) for entry in offered or open_tickets]
        if state == "offered":
            asked = [chair["ticket"] for team in offers[ladder, offer][1]["teams"] for chair in team]
            assert offers[ladder, offer][0] in ("open", "allocating")
            assert asked.count(ticket) == len(players)
    assert max(waiting.values(), default=1) == 1
    here = {
        (ladder, player): match_id
        for ladder, player, match_id in select_rows(service, "SELECT ladder, player, match_id FROM ladder_seat")
    }
    assert {(ladder, match_id) for (ladder, _), match_id in here.items()} <= live.keys()
    playing = Counter()
    for (ladder, match_id), (state, body, change) in live.items():
        assert change <= ladders[ladder]
        if state == "open":
            there = [slot["id"] for team in body["teams"] for slot in team if slot["spells"][-1][1] is None]
            assert {player for (where, player), match in here.items() if (where, match) == (ladder, match_id)} <= {
                *there
            }
            there = [player for player in there if here.get((ladder, player)) != match_id]
            playing.update(there)
            for player in there:
                assert seats[player][0] == ladder
                assert seats[player][2] == match_id
    assert max(playing.values(), default=1) == 1
    assert not waiting.keys() & playing.keys()
    assert seats.keys() == waiting.keys() | playing.keys()
    for (ladder, _), (state, body, said, match_id, change) in offers.items():
        assert change <= ladders[ladder]
        chairs = [chair["id"] for team in body["teams"] for chair in team]
        assert len(set(chairs)) == len(chairs)
        assert said <= set(chairs)
        assert (state == "made") == (match_id is not None)
        if state == "allocating":
            assert said == set(chairs)
        if state == "open":
            assert said != set(chairs)
        if state in ("open", "allocating"):
            assert all(tickets[ladder, chair["ticket"]][0] == "offered" for team in body["teams"] for chair in team)
        if state == "made":
            assert said == set(chairs)


__all__ = ["ANYBODY", "DUEL", "PAIRS", "Accept", "Decline", "Join", "Leave", "QueuedPlayer"]


def forecast(**given):
    """The forecast of an even duel, as it is stored; `given` replaces its values."""
    duel = {"teams": [[1], [2]], "parties": [[1], [1]], "odds": [0.5, 0.5], "spread": 1.0, "percentile": 50.0}
    values = {**duel, "waits": [1.0], "attributes": {}, "map": None, "trial": None, **given}
    return {"estimates": [None] * len(values["waits"]), **values}
