"""Every refusal that a setting lifts names that setting. A new setting belongs into one of the two tables below."""

import re
import socket
from html import unescape

import pytest

from asgi_client import Asking
from evenmatch import rules
from evenmatch.errors import EvenmatchError
from evenmatch.http.app import application
from evenmatch.http.middleware import SMALL_BODY
from evenmatch.http.options import Options
from evenmatch.http.server import check_workers, listen, site_over
from evenmatch.ladders import inactivity
from evenmatch.ladders.settings import SETTINGS, Settings
from evenmatch.ladders.visibility import Visibility
from evenmatch.live.live_matches import Running
from evenmatch.options import options_of
from evenmatch.policy import Policy
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.requests import Accept, Decline
from evenmatch.recording.recorder import LARGEST
from evenmatch.web.app import pages
from ledger.sample_matches import duel
from service.sample_queues import DUEL, PAIRS, join_one, join_queue, party, solos

MATCHES, JOIN = "/v1/ladders/duel/matches", "/ladders/duel/queue/tickets/1"
LOOPBACK = {"url": "http://127.0.0.1/hook", "events": ["match.rated"]}
WIDE = {"rate": 1000, "burst": 1000, "open_rate": 1000, "open_burst": 1000, "player_rate": 1000, "player_burst": 1000}


def match(match_id, *teams):
    sides = [{"place": place, "players": [{"player": name} for name in team]} for place, team in enumerate(teams, 1)]
    return {"id": match_id, "played_at": "2026-01-01T12:00:00Z", "teams": sides}


class World:
    """A service with the ladder `duel`, and the application over it with some options."""

    def __init__(self, service, clock):
        self.service, self.clock = service, clock
        self.queues = QueueService(service)
        self._open = []

    def serve(self, **options):
        """Serve with these options, and pages unless they say otherwise."""
        chosen = Options(**{"matchmaker": False, **WIDE, **options})
        self.site = site_over(self.service, chosen)
        self.asking = Asking(application(self.site, pages=pages if chosen.pages else None))
        self._open += [self.asking.close, lambda: self.site.jobs.stop(10), self.site.close]
        return self

    def headers(self, scope="admin", player=None):
        text = self.site.keys.create("a key", [scope])[1]
        if player is not None:
            text = self.site.tokens.issue(self.site.keys.authenticate(text), player).text
        return {"Authorization": f"Bearer {text}"}

    def refused(self, method, address, status, times=1, **fields):
        """What the last of these requests is told, a page or a problem."""
        for _ in range(times):
            response = self.asking.request(method, address, **fields)
        assert response.status_code == status, response.text
        is_page = response.headers["content-type"].startswith("text/html")
        return unescape(response.text) if is_page else response.json()["detail"]

    def raised(self, function, *arguments):
        with pytest.raises(EvenmatchError) as error:
            function(*arguments)
        return str(error.value)

    def offer(self, **chosen):
        """The tickets of two players who are offered a match in a queue with these rules."""
        self.queues.set_queue("duel", "ranked", DUEL, QueueRules(**chosen))
        tickets = join_queue(self.queues, "duel", *solos("ann", "bob"))
        Matchmaker(self.queues).step("duel")
        return tickets

    def join(self, policy, *names, **wishes):
        """Why a party cannot join a queue with this policy."""
        self.queues.set_queue("duel", "ranked", policy)
        return self.raised(join_one, self.queues, "duel", party(*names, **wishes))

    def close(self):
        for close in self._open:
            close()


@pytest.fixture
def world(service, clock):
    clock.move(days=365)
    service.create_ladder("duel", "elo", rules("elo"))
    made = World(service, clock)
    yield made
    made.close()


def occupied_port(world):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return world.raised(listen, Options(port=taken.getsockname()[1]))


def large_match(world, *teams, **options):
    return world.serve(**options).refused("POST", MATCHES, 422, json=match("m", *teams), headers=world.headers())


def second_live_match(world):
    world.serve(running_limit=1)
    announced = {"teams": [{"players": ["a"]}, {"players": ["b"]}]}
    assert world.asking.put("/v1/ladders/duel/live/m1", json=announced, headers=world.headers()).is_success
    return world.refused("PUT", "/v1/ladders/duel/live/m2", 429, json=announced, headers=world.headers())


def report(world, settings, status=422):
    """Why a match of three teams of two, one with a Cyrillic letter in a name, is refused with these settings."""
    world.service.change_settings("duel", settings)
    teams = (["mike", "b"], ["c", "d"], ["m\u0456ke", "e"])
    body = match("m", *teams)
    return world.serve().refused("POST", MATCHES, status, json=body, headers=world.headers())


def late_answer(world):
    (ticket, _) = world.offer(accept_within=5)
    world.clock.move(seconds=6)
    return str(world.queues.apply("duel", [Accept(ticket)])[0])


def silent_player(world):
    world.queues.set_queue("duel", "ranked", PAIRS, QueueRules(heartbeat=10))
    (ticket,) = join_queue(world.queues, "duel", party("ann"))
    maker = Matchmaker(world.queues)
    for _ in range(3):
        maker.step("duel")
        world.clock.move(seconds=15)
    maker.step("duel")
    return str(world.queues.status("duel", ticket).ended)


def penalized_player(world):
    (ticket, _) = world.offer(penalty=60)
    world.queues.apply("duel", [Decline(ticket)])
    return world.raised(join_one, world.queues, "duel", party("ann"))


def expired_match(world):
    tickets = world.offer(longest_match=60)
    match_id = world.queues.apply("duel", [Accept(ticket) for ticket in tickets])[-1].match_id
    world.clock.move(seconds=61)
    running = Running(world.service)
    running.expire("duel")
    return world.raised(running.cancel, "duel", match_id)


def open_seats(world):
    """Why a queue of three teams cannot fill a live match of two."""
    world.queues.set_queue("duel", "ranked", {**DUEL, "teams": 3})
    headers = world.serve().headers()
    announced = {"teams": [{"players": ["a"]}, {"players": ["b"]}]}
    assert world.asking.put("/v1/ladders/duel/live/m1", json=announced, headers=headers).is_success
    wanted = {"queue": "ranked", "seats": [1, 0]}
    return world.refused("PUT", "/v1/ladders/duel/live/m1/backfill", 409, json=wanted, headers=headers)


def player_headers(world):
    return world.headers("queue", player="ann")


def odds_on_a_map(world):
    """Why a queue of a ladder that learns from no map cannot choose maps by their odds."""
    world.service.create_ladder("maps", "even", rules("even"))
    return world.raised(world.queues.set_queue, "maps", "ranked", {**MAPS, "map_choice": "even"})


def second_request(world, headers=lambda world: {}, **options):
    """What the second of two requests is told where a sender may send one."""
    world.serve(**options)
    return world.refused("GET", "/v1/ladders", 429, times=2, headers=headers(world))


BATCH = {"matches": [match("m1", ["a"], ["b"]), match("m2", ["a"], ["b"])]}
ONE_EACH = {"rate": 0.001, "burst": 1}
ROLES = {**DUEL, "roles": {"tank": 1}}
MAPS = {**DUEL, "maps": ["dust", "mill", "rock"], "vetoes": 1}


# How to be refused, by setting.
SERVE = {
    "host": occupied_port,
    "port": occupied_port,
    "workers": lambda world: world.raised(check_workers, 2, "evenmatch.db"),
    "follower": lambda world: world.serve(follower=True).refused("POST", MATCHES, 405, headers=world.headers()),
    "open_reads": lambda world: world.serve().refused("GET", "/v1/ladders", 401),
    "rate": lambda world: second_request(world, World.headers, rate=0.001, burst=1),
    "burst": lambda world: second_request(world, World.headers, rate=0.001, burst=1),
    "player_rate": lambda world: second_request(world, player_headers, player_rate=0.001, player_burst=1),
    "player_burst": lambda world: second_request(world, player_headers, player_rate=0.001, player_burst=1),
    "open_rate": lambda world: second_request(world, open_reads=True, open_rate=0.001, open_burst=1),
    "open_burst": lambda world: second_request(world, open_reads=True, open_rate=0.001, open_burst=1),
    "body_limit": lambda world: world.serve(body_limit=1024).refused(
        "POST", MATCHES, 413, content=b"x" * 2000, headers=world.headers()
    ),
    "hosts": lambda world: world.serve(open_reads=True).refused(
        "GET", "/v1/ladders", 421, headers={"Host": "a.example"}
    ),
    "batch_limit": lambda world: world.serve(batch_limit=1).refused(
        "POST", f"{MATCHES}/batch", 422, json=BATCH, headers=world.headers()
    ),
    "team_limit": lambda world: large_match(world, ["a"], ["b"], ["c"], team_limit=2),
    "player_limit": lambda world: large_match(world, ["a", "b"], ["c"], player_limit=2),
    "running_limit": second_live_match,
    "pages": lambda world: world.serve(pages=False).refused("GET", "/ladders/duel", 404),
    "guests": lambda world: world.serve(open_reads=True).refused("GET", JOIN, 403),
    "private_webhooks": lambda world: world.serve().refused(
        "POST", "/v1/webhooks", 422, json=LOOPBACK, headers=world.headers()
    ),
}
LADDER = {
    "team_limit": lambda world: report(world, {"team_limit": 2}),
    "player_limit": lambda world: report(world, {"player_limit": 5}),
    "names": lambda world: report(world, {"names": "refuse"}),
    "other_sizes": lambda world: report(world, {"team_size": 1, "other_sizes": "refuse"}),
    "archived": lambda world: report(world, {"archived": True}, 409),
    "show": lambda world: world.raised(Visibility("division").check, "its lab", "duel"),
    "inactivity": lambda world: world.raised(inactivity.check, Settings(), "duel"),
    "context": odds_on_a_map,
    "rating_decay": lambda world: world.raised(Settings().changed, {"inactivity": "rating"}),
}
QUEUE = {
    "accept_within": late_answer,
    "heartbeat": silent_player,
    "penalty": penalized_player,
    "longest_match": expired_match,
}
POLICY = {
    "team_size": lambda world: world.join(DUEL, "ann", "bob"),
    "teams": open_seats,
    "roles": lambda world: world.join(ROLES, "ann", roles=("mage",)),
    "attributes": lambda world: world.join(DUEL, "ann", attributes={"colour": ("red",)}),
    "maps": lambda world: world.join(DUEL, "ann", vetoes=("dust",)),
    "vetoes": lambda world: world.join(MAPS, "ann", vetoes=("dust", "mill")),
    "map_choice": lambda world: world.raised(world.queues.set_queue, "duel", "ranked", {**MAPS, "map_choice": "even"}),
}

REFUSALS = {"serve": SERVE, "ladder": LADDER, "queue": QUEUE, "policy": POLICY}
SETTING = {
    "serve": Options.model_fields,
    "ladder": SETTINGS,
    "queue": options_of(QueueRules),
    "policy": options_of(Policy),
}

# Settings that refuse nothing by themselves.
NOTHING = {
    "serve": {
        *("writes_at", "log_format", "log_level"),
        *("trusted_proxies", "cors_origins"),  # whom the service believes; what browsers refuse
        *("matchmaker", "jobs_at_once", "stop_within"),  # who works, how fast, and for how long
        "connections",  # uvicorn refuses those beyond it, with 503
        *("site_name", "accent", "logo", "imprint", "imprint_name", "texts", "docs"),
        # who vouches for players and operators: tests/service/test_issuer_tokens.py and tests/web/test_logins.py
        *("player_issuer", "player_audience", "player_claim", "player_client_id", "player_client_secret"),
        *("discord_client_id", "discord_client_secret", "steam_login"),
        *("operator_issuer", "operator_client_id", "operator_client_secret"),
        *("operator_groups", "operator_groups_claim"),
    },
    "ladder": {
        *("title", "colour", "team_size", "reset", "factor", "stomp_margin", "side_counts", "switch_window"),
        *("placement", "placement_bound", "placement_most", "active_days", "divisions", "division_margin"),
        *("grace_days", "percentile_decay", "percentile_floor", "rating_floor", "rating_stop"),
    },
    "queue": {
        *("tick", "auto_within", "auto_share"),
        *("allocate_within", "allocate_fallback"),  # when they end a wait, nobody is refused
        *("penalty_most", "penalty_fades"),  # they shorten what `penalty` begins
    },
    "policy": {  # they decide who plays whom, and when
        *("min_team_size", "smaller_after", "steps", "max_odds", "max_rating_spread", "odds_scale"),
        *("max_ping", "max_wait", "overdue_after", "party_wait", "newcomer_wait", "rematch_wait", "rematch_fade"),
        *("even_spread", "spread_cost", "odds_cost", "map_seed"),
    },
}


@pytest.mark.parametrize("kind", SETTING)
def test_every_setting_is_in_one_of_the_two_tables(kind):
    assert sorted([*REFUSALS[kind], *NOTHING[kind]]) == sorted(SETTING[kind])


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, cases in REFUSALS.items() for name in cases])
def test_a_refusal_names_the_setting_that_lifts_it(world, kind, name):
    told = REFUSALS[kind][name](world)
    word = f"EVENMATCH_{name.upper()}" if kind == "serve" else name
    assert re.search(rf"\b{word}\b", told), told


def test_a_player_who_asks_about_another_one_learns_what_would_allow_it(world):
    world.service.record_many("duel", [duel(1, "ann", "bob", ladder="duel")])
    headers = player_headers(world.serve())
    assert "EVENMATCH_OPEN_READS" in world.refused("GET", "/v1/ladders/duel/players/bob", 403, headers=headers)


def test_no_refusal_names_a_setting_that_does_not_lift_it(world):
    headers = world.serve(open_reads=True).headers()
    large = b"x" * (SMALL_BODY + 1)
    told = [
        world.refused("POST", MATCHES, 401, json=match("m", ["a"], ["b"])),
        world.refused("POST", "/v1/webhooks", 413, content=large, headers=headers),
        world.refused("GET", "/v1/nothing", 404, headers=headers),
        str(LARGEST.refusal(10_001, 10_001)),
    ]
    assert [text for text in told if "EVENMATCH" in text] == []
