"""The queue on the pages: how long somebody would wait, and a party that queues up as guests may."""

import json
import re

import pytest

from evenmatch import rules
from evenmatch.http.app import application
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.queues.audit import RecentOffer
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.parties import QueueFilter
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.requests import Accept, Join, QueuedPlayer
from evenmatch.queues.stored_queues import penalty_of
from evenmatch.web.app import pages
from evenmatch.web.pages import queue as queue_module
from evenmatch.web.pages.queue import announced
from evenmatch.web.texts import Texts
from web_client import Browsing, field, words

QUEUE = "/ladders/league/queue"


@pytest.fixture
def options():
    return Options(matchmaker=False, open_reads=True, guests=True, open_rate=10_000, open_burst=10_000)


@pytest.fixture
def queue(site, league):
    site.queue_service.set_queue(
        league, "main", {"team_size": 1, "steps": [[0, 100]], "max_odds": "none", "even_spread": 100}
    )
    return league


@pytest.fixture
def matchmaker(site):
    return Matchmaker(site.queue_service)


def joined(anyone, name, **form):
    answer = anyone.submit(f"{QUEUE}/join", on=QUEUE, player=name, queue="main", **form)
    assert answer.status_code == 303, words(answer.text)
    return answer.headers["location"]


def status_words(page):
    """What a screen reader says of a ticket when it changes."""
    return re.search(r'<p class="hidden" role="status" id="ticket-words"[^>]*>([^<]*)</p>', page)[1]


# seconds that an offer lasts, seconds that are left, what is announced
LEFT = [
    (20, 20.0, "20 seconds"),
    (20, 10.01, "20 seconds"),
    (20, 10.0, "10 seconds"),
    (20, 5.2, "10 seconds"),
    (20, 4.9, "5 seconds"),
    (20, 0.0, "5 seconds"),
    (3, 3.0, "3 seconds"),
    (3, 0.5, "3 seconds"),
    (1, 0.9, "1 second"),
    (45, 44.0, "45 seconds"),
    (45, 29.0, "30 seconds"),
    (3600, 3599.0, "60 minutes"),
    (3600, 200.0, "5 minutes"),
    (3600, 59.0, "60 seconds"),
]


@pytest.mark.parametrize(("allowed", "left", "said"), LEFT)
def test_the_time_left_to_answer_is_announced_in_steps(allowed, left, said):
    assert announced(Texts("en"), left, allowed) == said


def test_queue_and_ticket_say_that_the_matchmaker_is_getting_ready_until_it_runs(
    anyone, site, queue, matchmaker, clock
):
    notice = "The matchmaker is getting ready"
    ticket = joined(anyone, "ann")
    clock.move(seconds=50)
    for page in (QUEUE, ticket):
        assert notice in words(anyone.page(page))
    assert "Waiting 0 s" in words(anyone.page(ticket))
    matchmaker.step(queue)
    clock.move(seconds=4)
    for page in (QUEUE, ticket):
        assert notice not in words(anyone.page(page))
    assert "Waiting 4 s" in words(anyone.page(ticket))


def test_waiting_players_are_shown_by_percentile(anyone, site, queue):
    site.queue_service.apply(
        queue, [Join(members=(QueuedPlayer(name=one),), queues=("main",)) for one in ("ann", "joe", "zoe")]
    )
    page = anyone.page(QUEUE)
    assert "3 players in 3 parties" in words(page)
    shares = dict(
        re.findall(r'aria-label="(\d) players? of percentile (\d+) to', page.replace("players of", "player of"))
    )
    assert sum(map(int, shares)) >= 1
    assert "1 player of percentile 80 to 90" in page  # ann, the best of four
    assert "1 player of percentile 10 to 20" in page  # joe, the last


def test_a_guest_queues_up_is_asked_accepts_and_plays(anyone, site, queue, matchmaker, clock):
    ticket = joined(anyone, "ann", filter="loose", within="5")
    assert "Waiting" in words(anyone.page(ticket))
    assert 'data-every="1"' in anyone.page(ticket)
    (other,) = site.queue_service.apply(queue, [Join(members=(QueuedPlayer(name="bob"),), queues=("main",))])
    clock.move(seconds=20)
    matchmaker.step(queue)
    offered = anyone.page(ticket)
    assert status_words(offered) == "Match found. You have 20 seconds to accept."
    assert "data-focus" in re.search('<button name="say" value="accept"[^>]*>', offered)[0]
    assert anyone.submit(ticket, say="accept").status_code == 303
    accepted = anyone.page(ticket)
    assert status_words(accepted) == "You accepted. Waiting for the others."
    assert re.findall("<[^>]* data-focus=[^>]*>([^<]*)<", accepted) == ["1 of 2 have accepted"]
    assert not {"Accept", "Decline"} & set(re.findall("<button[^>]*>([^<]*)<", accepted))
    site.queue_service.apply(queue, [Accept(other.ticket)])
    told = words(anyone.page(ticket))
    assert "You are playing" in told
    assert "Your result will appear here." in told
    assert "bob" in told
    assert f'href="{ticket}"' in anyone.page(QUEUE)


def test_a_guest_leaves_the_queue(anyone, queue):
    ticket = joined(anyone, "ann")
    anyone.submit(ticket, say="leave")
    page = anyone.page(ticket)
    assert "You are no longer in the queue" in words(page)
    german = words(anyone.get(ticket, headers={"Accept-Language": "de"}).text)
    assert "Die Warteschlange wurde verlassen." in german
    assert "data-every" not in page


def test_friends_queue_as_one_party(anyone, site, league):
    site.queue_service.set_queue(league, "main", {"team_size": 3})
    ticket = joined(anyone, "ann", friends="bob, zoe ,ann")
    assert site.queue_service.status(league, int(ticket.rpartition("/")[2])).players == ("ann", "bob", "zoe")


def test_a_guest_waits_for_other_modes_too_and_is_led_to_the_match(anyone, site, queue, matchmaker):
    site.service.create_ladder("arena", "wager", rules("wager"))
    site.queue_service.set_queue("arena", "6v6", {"team_size": 1, "steps": [[0, 100]], "max_odds": "none"})
    assert re.search(r"Wait for other modes too\W+arena\W+6v6", words(anyone.page(QUEUE)))
    refused = anyone.submit(
        f"{QUEUE}/join", on=QUEUE, player="ann", queue="main", elsewhere=json.dumps(["arena", "solo"])
    )
    assert "is not a queue that you may join here" in words(refused.text)
    ticket = joined(anyone, "ann", elsewhere=json.dumps(["arena", "6v6"]))
    assert re.search(r"Also waiting\W+arena", words(anyone.page(ticket)))
    site.queue_service.apply("arena", [Join(members=(QueuedPlayer(name="bob"),), queues=("6v6",))])
    matchmaker.step("arena")
    moved = anyone.get(ticket)
    assert moved.status_code == 303
    there = site.queue_service.seat("arena", "ann").ticket
    assert moved.headers["location"] == f"/ladders/arena/queue/tickets/{there}"
    assert "Match found" in words(anyone.page(moved.headers["location"]))


def test_a_page_answers_the_offer_that_it_shows(anyone, site, queue, matchmaker):
    ticket = joined(anyone, "ann")
    site.queue_service.apply(queue, [Join(members=(QueuedPlayer(name="bob"),), queues=("main",))])
    matchmaker.step(queue)
    shown = re.search(r'name="offer" value="(\d+)"', anyone.page(ticket))[1]
    for say in ("accept", "decline"):
        stale = anyone.submit(ticket, say=say, offer=str(int(shown) - 1))
        assert (stale.status_code, "; answer offer " in stale.text) == (409, True)
    assert anyone.submit(ticket, say="accept", offer=shown).status_code == 303
    own = site.queue_service.status(queue, int(ticket.rpartition("/")[2])).offer.own
    assert own == {"ann": True}


def test_a_ticket_is_shown_to_its_own_party(anyone, site, queue):
    ticket = joined(anyone, "ann")
    stranger = Browsing(application(site, pages=pages))
    assert "another party" in words(stranger.page(ticket, 403))
    assert stranger.post(ticket, data={"say": "leave"}).status_code == 403
    stranger.close()


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"player": ""}, "1 to 200 letters"),
        ({"player": "ann", "within": "wide"}, "Expected a number from 0 to 100, got 'wide'"),
        ({"player": "ann", "queue": "other"}, "Unknown queue 'other'"),
        ({"player": "ann", "friends": "bob"}, "is too large for queue"),
    ],
)
def test_an_impossible_ticket_is_refused_in_words(anyone, queue, form, told):
    answer = anyone.submit(f"{QUEUE}/join", on=QUEUE, **{"queue": "main", **form})
    assert answer.status_code in (404, 409, 422)
    assert told in words(answer.text)


class TestWithoutGuests:
    """Where guests are not let in, players queue in the game."""

    @pytest.fixture
    def options(self):
        return Options(matchmaker=False, open_reads=True, open_rate=10_000, open_burst=10_000)

    def test_nobody_queues_without_a_key(self, anyone, queue):
        assert "Players queue up in the game" in words(anyone.page(QUEUE))
        answer = anyone.post(f"{QUEUE}/join", data={"player": "ann", "queue": "main"})
        assert answer.status_code == 403

    def test_a_key_for_queues_may(self, site, anyone, queue):
        text = site.keys.create("stall", ["queue"])[1]
        anyone.post("/login", data={"key": text})
        assert "Find a match" in words(anyone.page(QUEUE))
        assert joined(anyone, "ann").startswith(f"{QUEUE}/tickets/")


def offer(wait, percentile):
    return RecentOffer(1, "main", "made", 0, (0.5, 0.5), 1.0, None, 2, (wait,), (percentile,))


def test_how_even_matches_were_counts_every_offer_and_the_favourite_of_either_side():
    made = [
        RecentOffer(at, "main", "made", 0, (odds, 1 - odds), spread, None, 2, (wait, wait + 1), (40.0, 60.0))
        for at, (odds, spread, wait) in enumerate([(0.5, 1, 0), (0.4, 2, 2), (0.55, 3, 4), (0.3, 9, 6), (0.52, 4, 8)])
    ]
    few = [RecentOffer(9, "side", "made", 0, (0.9, 0.1), 50.0, None, 2, (9.0, 9.0), (1.0, 99.0))] * 4
    (found,) = queue_module.evenness([*made, *few]).items()
    assert found[0] == "main"
    assert found[1].matches == 5
    assert found[1].spread == pytest.approx((3.0, 7.0))  # of 1, 2, 3, 4, 9: the middle, and 0.6 of the way from 4 to 9
    assert found[1].favourite == pytest.approx((0.55, 0.66))  # of .5, .52, .55, .6, .7
    assert found[1].wait == pytest.approx((4.5, 8.1))  # of 0 … 9


def test_the_page_shows_how_even_its_matches_were(anyone, site, queue, matchmaker, clock):
    assert "How even" not in words(anyone.page(QUEUE))
    for pair in range(5):
        joining = [Join(members=(QueuedPlayer(name=f"{name} {pair}"),), queues=("main",)) for name in ("x", "y")]
        site.queue_service.apply(queue, joining)
        clock.move(seconds=3)
        matchmaker.step(queue)
    shown = words(anyone.page(QUEUE))
    assert "How even matches are" in shown
    assert "The last 5 matches offered" in shown
    assert "Predicted odds of the favourite 50 % 50 %" in shown
    assert "Wait of each party 3 s 3 s" in shown


def test_the_wait_of_a_level_comes_from_enough_nearby_players():
    near = [offer(float(at), 50.0 + at % 3) for at in range(1, 12)]  # 1 … 11 s
    far = [offer(100.0, 90.0) for _ in range(20)]
    found = queue_module.expected(near + far, 51.0)
    assert (found.low, found.high, found.tickets) == (46.0, 56.0, 11)
    assert (found.half, found.most) == (6.0, 10.0)  # of 1 … 11: the middle, and nine of ten
    assert queue_module.expected(near + far, 88.0).half == 100.0
    assert queue_module.expected(near[:5], 51.0) is None


def test_waits_by_level_leave_out_levels_where_too_few_waited():
    listed = queue_module.by_level([offer(10.0, 30.0)] * 8 + [offer(5.0, 100.0)] * 8 + [offer(1.0, 70.0)] * 7)
    assert [(one.low, one.high, one.half) for one in listed] == [(20, 40, 10.0), (80, 100, 5.0)]


def test_an_answer_that_comes_too_late_is_refused_in_words(anyone, queue):
    ticket = joined(anyone, "ann")
    answer = anyone.submit(ticket, say="accept")
    assert answer.status_code == 409
    assert re.search(r'<p class="told bad" role="alert"[^>]*>[^<]*is waiting and has no open offer', answer.text)


@pytest.fixture
def player(site, service, league):
    """Ann, logged in with a token that the game gave her; guests may not queue on this site."""
    closed = site_over(service, Options(matchmaker=False, open_reads=True, open_rate=10_000, open_burst=10_000))
    backend = closed.keys.authenticate(closed.keys.create("backend", ["queue"], [league], None)[1])
    browsing = Browsing(application(closed, pages=pages))
    answer = browsing.submit("/login", on="/login", key=closed.tokens.issue(backend, "ann").text)
    assert answer.status_code == 303
    yield browsing
    browsing.close()


def test_a_signed_in_player_keeps_a_filter_and_queues_with_it(player, site, queue):
    page = player.page(QUEUE)
    assert '<input type="hidden" name="player" value="ann">' in page
    answer = player.submit(f"{QUEUE}/filter", on=QUEUE, player="ann", within="7.5", filter="strict", queue="main")
    assert answer.status_code == 303, words(answer.text)
    assert site.queue_service.filter_of(queue, "ann") == QueueFilter(within=7.5, loose=False)
    page = player.page(QUEUE)
    assert field(page, "within")[0] == "7.5"
    assert '<option value="strict" selected>' in page
    ticket = joined(player, "ann", within="7.5", filter="strict")
    assert "Back to your match" in words(player.page(QUEUE))
    assert "Waiting" in words(player.page(ticket))


def test_a_signed_in_player_acts_for_no_one_else(player, site, queue):
    for path, form in ((f"{QUEUE}/filter", {}), (f"{QUEUE}/join", {}), (f"{QUEUE}/join", {"friends": "joe"})):
        name = "ann" if form else "joe"
        answer = player.submit(path, on=QUEUE, player=name, within="5", queue="main", **form)
        assert answer.status_code == 403, path
    assert site.queue_service.filter_of(queue, "joe") is None
    (other,) = site.queue_service.apply(queue, [Join(members=(QueuedPlayer(name="joe"),), queues=("main",))])
    assert player.get(f"{QUEUE}/tickets/{other.ticket}").status_code == 403
    assert player.get("/operate").status_code in (303, 403)


def test_a_signed_in_player_sees_a_ticket_under_another_of_their_names(player, site, queue):
    site.service.rename("ann", "anna")
    own, other = (
        site.queue_service.apply(queue, [Join(members=(QueuedPlayer(name=name),), queues=("main",))])[0].ticket
        for name in ("anna", "joe")
    )
    assert "Waiting" in words(player.page(f"{QUEUE}/tickets/{own}"))
    assert player.get(f"{QUEUE}/tickets/{other}").status_code == 403
    assert player.submit(f"{QUEUE}/tickets/{own}", say="leave").status_code == 303
    assert site.queue_service.status(queue, own).state == "gone"


def test_a_signed_in_player_accepts_and_leaves_for_no_one_else_of_the_party(player, site, queue, matchmaker, clock):
    site.queue_service.set_queue(
        queue, "main", {"team_size": 2, "steps": [[0, 100]], "max_odds": "none", "even_spread": 100}
    )
    parties = [[QueuedPlayer(name=name) for name in names] for names in (("ann", "joe"), ("bob", "kim"))]
    joins = [Join(members=tuple(members), queues=("main",)) for members in parties]
    (own, _) = site.queue_service.apply(queue, joins)
    for _ in range(3):
        clock.move(seconds=20)
        matchmaker.step(queue)
    page = f"{QUEUE}/tickets/{own.ticket}"
    assert player.submit(page, say="accept").status_code == 303
    assert site.queue_service.status(queue, own.ticket).offer.own == {"ann": True, "joe": False}
    assert status_words(player.page(page)) == "You accepted. Waiting for the others."
    assert 'value="accept"' not in player.page(page)
    assert player.submit(page, say="leave").status_code == 303
    with site.service.reading(queue) as (store, head):
        punished = [penalty_of(store, head.ladder, name, clock()) is not None for name in ("ann", "joe")]
    assert punished == [True, False]


def test_a_page_that_is_refused_keeps_no_ticket_alive(player, anyone, site, queue, matchmaker, clock):
    site.queue_service.set_queue(queue, "main", {"team_size": 2}, QueueRules(heartbeat=30))
    joins = [Join(members=(QueuedPlayer(name=name),), queues=("main",)) for name in ("joe", "bob")]
    silent, seen = (joined.ticket for joined in site.queue_service.apply(queue, joins))
    anyone.cookies({"evenmatch-me": "bob"})
    for _ in range(3):
        matchmaker.step(queue)
        clock.move(seconds=15)
        for visitor in (player, anyone):
            assert visitor.get(f"{QUEUE}/tickets/{silent}").status_code == 403
            assert visitor.post(f"{QUEUE}/tickets/{silent}", data={"say": "leave"}).status_code == 403
        assert anyone.get(f"{QUEUE}/tickets/{seen}").status_code == 200
        site.queue_service.heartbeats.write()
    assert matchmaker.step(queue).dropped == (silent,)


def test_a_key_that_only_reads_answers_for_no_party_where_guests_may_queue(site, queue):
    ticket = site.queue_service.apply(queue, [Join(members=(QueuedPlayer(name="joe"),), queues=("main",))])[0].ticket
    reader = Browsing(application(site, pages=pages))
    assert reader.post("/login", data={"key": site.keys.create("reader", ["read"])[1]}).status_code == 303
    assert reader.get(f"{QUEUE}/tickets/{ticket}").status_code == 403
    assert reader.submit(f"{QUEUE}/tickets/{ticket}", on=QUEUE, say="leave").status_code == 403
    assert site.queue_service.status(queue, ticket).state == "waiting"
    reader.close()


def test_a_process_that_only_reads_shows_no_ticket_since_to_look_at_one_is_a_heartbeat(site, queue):
    (joined,) = site.queue_service.apply(queue, [Join(members=(QueuedPlayer(name="ann"),), queues=("main",))])
    options = Options(matchmaker=False, open_reads=True, guests=True, follower=True, writes_at="https://rank.example")
    follower = Browsing(application(site_over(site.service, options), pages=pages))
    follower.cookies({"evenmatch-me": "ann"})
    assert "https://rank.example" in words(follower.page(f"{QUEUE}/tickets/{joined.ticket}", 405))
    follower.close()


@pytest.fixture
def choosy(site, league):
    attributes = {"mode": {"kind": "equal", "values": ["ctf", "dm"]}, "platform": {"values": ["pc", "console"]}}
    policy = {"team_size": 1, "steps": [[0, 100]], "max_odds": "none", "even_spread": 100, "attributes": attributes}
    site.queue_service.set_queue(league, "main", {**policy, "maps": ["dust", "nuke", "mirage"], "vetoes": 2})
    return league


def test_attributes_and_vetoes_are_chosen_and_shown_with_the_match(player, anyone, site, choosy, matchmaker):
    page = player.page(QUEUE)
    assert "Maps you veto, 2 at most" in words(page)
    form = {"attribute.mode": "dm", "attribute.platform": "pc", "veto": "dust", "within": "100", "queue": "main"}
    answer = player.submit(f"{QUEUE}/filter", on=QUEUE, player="ann", **form)
    assert answer.status_code == 303, words(answer.text)
    kept = site.queue_service.filter_of(choosy, "ann")
    assert (kept.attributes, kept.vetoes) == ({"mode": ("dm",), "platform": ("pc",)}, ("dust",))
    page = player.page(QUEUE)
    assert re.search(r'<option value="dm" selected>', page)
    assert re.search(r'name="attribute.platform" value="pc" checked', page)
    assert re.search(r'name="veto" value="dust" checked', page)
    ticket = joined(player, "ann", **{name: value for name, value in form.items() if name != "queue"})
    joined(anyone, "joe", veto="nuke", **{"attribute.mode": "dm", "within": "100"})
    matchmaker.step(choosy)
    shown = words(player.page(ticket))
    assert "Map mirage" in shown
    assert "mode dm" in shown
    assert "platform pc" in shown
    assert "mirage" in words(player.page(QUEUE))


def test_the_pages_say_that_a_game_server_is_being_found(site, queue, matchmaker, anyone):
    policy = {"team_size": 1, "steps": [[0, 100]], "max_odds": "none", "even_spread": 100}
    site.queue_service.set_queue(queue, "main", policy, QueueRules(heartbeat=None, allocate_within=60.0))
    at = [joined(anyone, name, within="100") for name in ("ann", "bob")]
    matchmaker.step(queue)
    site.queue_service.apply(queue, [Accept(int(address.rpartition("/")[2])) for address in at])
    ticket = anyone.get(at[1]).text
    assert status_words(ticket) == "All have accepted. Finding a game server."
    assert "All have accepted. Finding a game server, 60 s at most." in words(ticket)
    assert "finding a server" in words(anyone.get(QUEUE).text)
