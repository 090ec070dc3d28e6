"""The clients against a real service: everything that a game does, over a socket."""

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from evenmatch.client import AsyncClient, Client, ProblemError
from evenmatch.client.models import (
    Announce,
    AppearanceReport,
    AttendanceChange,
    AttendanceReport,
    BatchReport,
    Close,
    JoinRequest,
    KeyCreate,
    LadderCreate,
    LineUp,
    LiveTeam,
    MatchReport,
    OfferAnswer,
    PartyMember,
    QueueRulesIn,
    RulesChange,
    SetQueue,
    SettingsChange,
    StakesRequest,
    TeamLineUp,
    TeamReport,
    TeamResult,
    TokenRequest,
    VoidRequest,
)

NOW = datetime(2026, 11, 21, 18, 30, tzinfo=UTC)
DUEL = SetQueue(policy={"preset": "quick", "team_size": 1}, rules=QueueRulesIn(tick=0.2, accept_within=60))


def duel(name, winner, loser, minutes=0):
    """A match that the first won."""
    teams = [TeamReport(players=[AppearanceReport(player=one)], place=at) for at, one in enumerate((winner, loser), 1)]
    return MatchReport(id=name, played_at=NOW + timedelta(minutes=minutes), teams=teams)


def listed(client, ladder, players):
    """Wait until the standings, which may be some seconds old, list so many players."""
    end = time.monotonic() + 30
    while client.get_standings(ladder).listed != players:
        assert time.monotonic() < end, "the standings did not come"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def make_ladder(admin):
    """Makes a ladder of a name, rated by Elo with k 32, whose players are listed from their first match on."""

    def make(name):
        settings = SettingsChange(placement=0, active_days=36_500)
        admin.create_ladder(LadderCreate(name=name, system="elo", parameters={"k": 32}, settings=settings))
        return name

    return make


def test_a_reported_match_tells_what_it_changed_and_why(serving, make_ladder):
    ladder = make_ladder("reports")
    with Client(serving.url, serving.keys["report"]) as server:
        receipt = server.report_match(ladder, duel("m-1", "ann", "bob"))
        assert receipt == server.report_match(ladder, duel("m-1", "ann", "bob"))  # sent twice
        with pytest.raises(ProblemError) as caught:
            server.report_match(ladder, duel("m-1", "bob", "ann"))
        told = server.report_matches(
            ladder, BatchReport(matches=[duel("m-2", "ann", "eve", 1), duel("m-3", "a", "a", 2)])
        )
    (ann,), (bob,) = receipt.teams
    assert (ann.player, ann.change, bob.change) == ("ann", 16.0, -16.0)  # Elo: 32 × (1 − 1/2)
    assert caught.value.status == 409
    assert caught.value.problem.type == "urn:evenmatch:problem:conflict"
    assert (told.recorded, told.refused) == (1, 1)
    assert told.outcomes[1].problem.status == 422


def test_a_signed_report_is_accepted_and_one_with_another_byte_is_not(serving, make_ladder):
    ladder = make_ladder("signed / ladder?")  # whose address is signed as it is sent

    class Changing(httpx.HTTPTransport):
        """Changes one byte of each body on its way."""

        def handle_request(self, request):
            body = request.read().replace(b'"place":1', b'"place":3')
            return super().handle_request(
                httpx.Request(request.method, request.url, headers=request.headers, content=body)
            )

    with Client(serving.url, serving.keys["report"], signed=True) as server:
        assert server.report_match(ladder, duel("s-1", "ann", "bob")).teams[0][0].change == 16.0
        assert server.list_matches(ladder, player="ann", since=NOW).items[0].match_id == "s-1"
    with (
        Client(serving.url, serving.keys["report"], signed=True, transport=Changing()) as server,
        pytest.raises(ProblemError, match="the signature does not fit the request") as caught,
    ):
        server.report_match(ladder, duel("s-2", "ann", "bob", 1))
    assert caught.value.status == 401


def test_players_queue_by_tokens_of_their_own_and_play(serving, admin, make_ladder):
    ladder = make_ladder("duel")
    admin.set_queue(ladder, "main", DUEL)
    backend = Client(serving.url, serving.keys["queue"])
    players = [Client(serving.url, backend.issue_token(TokenRequest(player=one)).token) for one in ("ann", "bob")]
    tickets = [
        player.join_queue(
            ladder, JoinRequest(queues=["main"], members=[PartyMember(player=name)], request_id=f"{name}-1")
        ).ticket
        for player, name in zip(players, ("ann", "bob"), strict=True)
    ]
    with pytest.raises(ProblemError) as caught:
        players[0].ticket(ladder, tickets[1])
    assert caught.value.status == 403

    seen = []
    watching = threading.Thread(target=lambda: seen.extend(players[0].watch_ticket(ladder, tickets[0])))
    watching.start()
    offered = players[0].ticket(ladder, tickets[0])
    while offered.offer is None:
        offered = players[0].ticket(ladder, tickets[0], after=offered.change, wait=20)
    players[0].accept_offer(ladder, tickets[0], OfferAnswer(player="ann"))
    matched = players[1].wait_for_match(ladder, tickets[1], accept=True, timeout=60)
    watching.join(30)
    assert matched.state == "matched"
    assert seen[-1].match == matched.match
    assert {one.player for team in matched.match.teams for one in team} == {"ann", "bob"}
    assert backend.ticket_of_player(ladder, "ann").match_id == matched.match.match_id

    server = Client(serving.url, serving.keys["report"])
    (waiting,) = server.live_matches(ladder, queue="main").items
    assert (waiting.match_id, waiting.confirmed) == (matched.match.match_id, False)
    teams = [LiveTeam(players=[one.player for one in team]) for team in matched.match.teams]
    begun = server.announce_match(ladder, waiting.match_id, Announce(teams=teams))
    assert begun.confirmed
    loser = teams[1].players[0]
    server.tell_presence(ladder, waiting.match_id, AttendanceReport(players=[AttendanceChange(player=loser)]))
    receipt = server.close_match(ladder, waiting.match_id, Close(teams=[TeamResult(place=1), TeamResult(place=2)]))
    assert [line.change for (line,) in receipt.teams] == [16.0, -16.0]
    assert server.get_match(ladder, waiting.match_id).teams[1].players[0].quit
    for client in (backend, server, *players):
        client.close()


def test_a_wait_without_a_match_ends_in_time_and_leaving_ends_it_for_good(serving, admin, make_ladder):
    ladder = make_ladder("lonely")
    admin.set_queue(ladder, "main", DUEL)
    ticket = admin.join_queue(ladder, JoinRequest(queues=["main"], members=[PartyMember(player="ann")])).ticket
    assert admin.wait_for_match(ladder, ticket, timeout=0.3).state == "waiting"
    admin.heartbeat(ladder, ticket)
    assert admin.leave_queue(ladder, ticket).state == "gone"
    assert admin.wait_for_match(ladder, ticket).state == "gone"
    assert admin.forgive(ladder, "ann") is None
    assert admin.remove_queue(ladder, "main") is None


def test_lists_are_read_page_by_page_to_their_end(admin, make_ladder):
    ladder = make_ladder("pages")
    names = [f"player {number}" for number in range(5)]
    matches = [duel(f"p-{at}", names[at], names[at + 1], at) for at in range(4)]
    admin.report_matches(ladder, BatchReport(matches=matches))
    listed(admin, ladder, 5)
    rows = list(admin.all(admin.get_standings, ladder, limit=2))
    assert {row.player for row in rows} == set(names)
    assert [row.rating for row in rows] == sorted((row.rating for row in rows), reverse=True)
    assert [one.match_id for one in admin.all(admin.list_matches, ladder, limit=1)] == ["p-3", "p-2", "p-1", "p-0"]
    assert len(list(admin.all(admin.list_seasons, ladder))) == 1
    since = admin.list_matches(ladder, since=NOW + timedelta(minutes=2), until=NOW + timedelta(minutes=3))
    assert [one.match_id for one in since.items] == ["p-2"]


NAMES = ["a/b", "..", ".", "100 % sure?", "Zoë & 猫", "a+b", "#1", "a\\b;c=d", "%2F"]


def test_names_may_hold_anything_that_an_address_holds_otherwise(admin, make_ladder):
    ladder = make_ladder("names / ?&#%")
    admin.report_matches(
        ladder, BatchReport(matches=[duel(f"{name} / 1", name, "joe", at) for at, name in enumerate(NAMES)])
    )
    listed(admin, ladder, len(NAMES) + 1)
    for name in NAMES:
        assert admin.get_player(ladder, name).player == name
        assert admin.get_match(ladder, f"{name} / 1").match_id == f"{name} / 1"
    among = admin.standings_among(ladder, player=[*NAMES, "nobody"])
    assert {one.player for one in among.items} == set(NAMES)
    assert among.missing == ["nobody"]
    line_up = LineUp(teams=[TeamLineUp(players=["joe"]), TeamLineUp(players=["a newcomer"])])
    assert admin.get_odds(ladder, line_up).teams[0].expected < 0.5
    at_stake = LineUp(teams=line_up.teams, stakes=StakesRequest(players=["a newcomer"], seconds=None))
    joe, newcomer = (team.players[0].stakes for team in admin.get_odds(ladder, at_stake).teams)
    assert joe is None
    assert 0 < newcomer.change.win < 16 < -newcomer.change.loss  # the favourite, by Elo with k 32


def test_operators_correct_and_wait_for_what_takes_longer(admin, make_ladder):
    ladder = make_ladder("operated")
    admin.report_matches(ladder, BatchReport(matches=[duel("o-1", "ann", "bob"), duel("o-2", "eve", "ann", 1)]))
    seen = admin.void_match(ladder, VoidRequest(match_id="o-1"), preview=True)
    assert seen.preview
    assert seen.effect.moved > 0
    assert not admin.void_match(ladder, VoidRequest(match_id="o-1", id="c-1")).there_already
    assert admin.void_match(ladder, VoidRequest(match_id="o-1", id="c-1")).there_already
    assert [one.match_id for one in admin.list_voids(ladder).items] == ["o-1"]
    listed(admin, ladder, 2)  # bob is out: the only match of his is void
    assert admin.get_player(ladder, "eve").standing.rating - admin.get_player(ladder, "ann").standing.rating == 32.0
    assert admin.wait_for_job(admin.rebuild_ladder(ladder).job).state == "done"
    job = admin.wait_for_job(admin.change_rules(ladder, RulesChange(parameters={"k": 16})).job)
    assert job.state == "done"
    assert admin.get_ladder(ladder).parameters["k"] == 16
    assert admin.change_settings(ladder, SettingsChange(title="Duels")).settings.placement == 0  # stays as it was


def test_players_learn_in_time_that_inactivity_will_lower_their_rating(serving, admin, make_ladder):
    ladder = make_ladder("idle")
    rule = SettingsChange(placement=1, inactivity="rating", grace_days=7, rating_decay=10)
    admin.change_settings(ladder, rule)
    with Client(serving.url, serving.keys["report"]) as server:
        server.report_match(ladder, duel("i-1", "ann", "bob"))
    assert admin.decay_ratings(ladder).players == 0
    assert admin.preview_decay(ladder, days=13).moved == 0  # a week after the grace days, which begin with the rule
    (move,) = admin.preview_decay(ladder, days=16).moves
    assert (move.player, move.before, move.after) == ("ann", 1516.0, 1506.0)
    listed(admin, ladder, 2)
    told = admin.get_player(ladder, "ann").inactivity
    assert (told.rule, told.amount) == ("rating", 10.0)
    assert timedelta(days=13) < told.falls_at - datetime.now(UTC) < timedelta(days=15)
    assert admin.get_player(ladder, "bob").inactivity.falls_at is None


def test_what_monitors_ask_is_answered(serving, admin):
    with Client(serving.url) as nobody:
        assert nobody.health().status == nobody.ready().status == "ok"
        with pytest.raises(ProblemError) as caught:
            nobody.list_ladders()
    assert caught.value.status == 401
    assert "evenmatch" in admin.metrics()


def test_a_key_is_shown_once_and_its_end_is_heeded(serving, admin):
    made = admin.create_key(KeyCreate(name="for a while", scopes=["read"]))
    with Client(serving.url, made.text) as reader:
        reader.list_ladders()
        with pytest.raises(ProblemError) as caught:
            reader.create_ladder(LadderCreate(name="x", system="elo"))
        assert caught.value.status == 403
    assert admin.revoke_key(made.key).state == "revoked"
    assert made.key in {one.key for one in admin.all(admin.list_keys, limit=2)}
    assert [one.action for one in admin.read_audit(limit=1).items] == ["key.revoked"]


def test_everything_can_be_awaited(serving, admin, make_ladder):
    ladder = make_ladder("awaited")
    admin.set_queue(ladder, "main", DUEL)

    async def play(client, player):
        joined = await client.join_queue(ladder, JoinRequest(queues=["main"], members=[PartyMember(player=player)]))
        return await client.wait_for_match(ladder, joined.ticket, accept=True, timeout=60)

    async def watch(client, player):
        joined = await client.join_queue(ladder, JoinRequest(queues=["main"], members=[PartyMember(player=player)]))
        async for told in client.watch_ticket(ladder, joined.ticket):
            if told.offer is not None and not told.offer.own[player]:
                await client.accept_offer(ladder, joined.ticket, OfferAnswer(player=player))
            last = told
        return last

    async def run():
        async with AsyncClient(serving.url, serving.keys["admin"], signed=True) as client:
            ann, bob = await asyncio.gather(play(client, "ann"), watch(client, "bob"))
            assert ann.match.match_id == bob.match.match_id
            await client.report_match(ladder, duel("a-1", "ann", "bob"))
            await asyncio.to_thread(listed, admin, ladder, 2)
            rows = [row.player async for row in client.all(client.get_standings, ladder, limit=1)]
            with pytest.raises(ProblemError):
                await client.get_match(ladder, "nothing")
            with pytest.raises(ProblemError):
                async for _ in client.ticket_events(ladder, 10**9):
                    pass
            return rows

    assert asyncio.run(run()) == ["ann", "bob"]
