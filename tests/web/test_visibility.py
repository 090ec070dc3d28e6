"""What a ladder does not show its players is found at no address of the API and of the site, by their own tables."""

import base64
import json
import math
import re
from urllib.parse import quote

import numpy as np
import pytest

from asgi_client import Asking
from evenmatch import rules
from evenmatch.accounts.access import ANYONE, OPERATOR
from evenmatch.http.app import application, endpoints
from evenmatch.http.options import Options
from evenmatch.ladders.export import journal_tables, rating_table
from evenmatch.ladders.settings import Settings
from evenmatch.players.profile import everything
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.requests import Accept, Join, QueuedPlayer
from evenmatch.web.app import pages
from evenmatch.web.pages import PAGES
from ledger.sample_matches import duel, team_match
from web_client import Browsing, words

ON = "/v1/ladders/league"
RATINGS = {  # in the order of their ids, which is not that of ratings
    "abe": 1157.65432,
    "ann": 1312.34568,
    "bob": 1651.23457,
    "cat": 1498.76543,
    "dan": 1834.56789,
    "new": 1743.21098,  # plays once only, so is not placed
}
ANYBODY = {"team_size": 1, "max_odds": "none", "steps": [[0, 100]], "even_spread": 100, "rematch_wait": 0}
NUMBER = re.compile(r"(?<![\w.#])[+\-−]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w])")
HIDDEN = {"rating", "before", "after", "rating_change", "expected", "odds"}  # keys whose values are null
QUERIES = {  # of operations and pages that must be asked something, or can be
    "search_players": ["search=a"],
    "standings_among": ["&".join(f"player={name}" for name in RATINGS)],
    "get_standings": ["", "season=1", "season=1&limit=2", "limit=2"],
    "/ladders/{ladder:text}/me": ["player=ann&want=standing", "player=ann&want=why"],
    "/ladders/{ladder:text}/standings": ["", "around=ann", "around=new"],
    "/ladders/{ladder:text}/matches": ["", "season=1", "player=ann&result=won&opponent=abe&since=2026-01-01"],
    "/search": ["q=a"],
    "/ladders/{ladder:text}/matches/{match:text}": ["", "player=ann"],
    "/ladders/{ladder:text}/lab/results": ["", "job=none"],
}
DESCRIPTIONS = {"list_policies", "list_systems", "get_ladder", "ladder_rules"}  # they name factors and options
STREAMS = {"ticket_events", "/ladders/{ladder:text}/pulse"}


@pytest.fixture
def options():
    limits = {f"{who}{what}": 10**5 for who in ("", "open_", "player_") for what in ("rate", "burst")}
    return Options(matchmaker=False, open_reads=True, guests=True, **limits)


class World:
    """A ladder of six players, with a season that has ended, an offer, a running match, and a job."""

    def __init__(self, site, clock):
        self.site, service, queue_service = site, site.service, site.queue_service
        settings = {"placement": 2, "active_days": 1000.0, "divisions": [("Low", 1), ("High", 51)]}
        service.create_ladder("league", "glicko2", rules("glicko2"), Settings().changed(settings))
        service.start_ratings("league", RATINGS)
        service.record_many(
            "league",
            [
                duel(at, *who, ladder="league")
                for at, who in enumerate([("dan", "bob"), ("cat", "ann"), ("ann", "abe"), ("bob", "cat")], 1)
            ],
        )
        service.open_season("league", title="Second", reset="none")
        last = [team_match(5, (1, "dan", "abe"), (2, "bob", "cat"), ladder="league"), duel(6, "ann", "new", "league")]
        service.record_many("league", last)
        service.divide("league")
        queue_service.set_queue("league", "main", ANYBODY)
        self.live = self._offer("cat", "dan")[1]
        self.ticket, _ = self._offer("ann", "bob", accepted=False)
        self.webhook = site.webhooks.add("https://game.example/hook", ["match.rated"], "league")[0].webhook
        self.job = site.jobs.begin("verify", "league", lambda _: {})[0].job
        clock.move(seconds=1)
        self.key = site.keys.create("another", ["read"])[0].key
        self.token = site.tokens.issue(site.keys.authenticate(site.keys.create("backend", ["queue"])[1]), "ann").text
        self.secrets = self._secrets()

    def _offer(self, *names, accepted=True):
        """A ticket for each of two players, who are offered a match: the first ticket and the match."""
        queue_service = self.site.queue_service
        joins = [Join(members=(QueuedPlayer(name=name, within=100),), queues=("main",)) for name in names]
        first, second = (one.ticket for one in queue_service.apply("league", joins))
        Matchmaker(queue_service).step("league")
        if not accepted:
            return first, None
        answers = queue_service.apply("league", [Accept(first), Accept(second)])
        return first, answers[-1].match_id

    def show(self, show):
        self.site.service.change_settings("league", {"show": show})
        self.site.service.view("league")

    def _secrets(self):
        """Every number of the ratings in full: ratings, changes, odds, factors, deviations, with player and kind."""
        found = set()
        service = self.site.service
        view = service.view("league")
        with service.reading("league") as (store, head):
            tables = [*journal_tables(store, head), rating_table(store, view)]
        for table in tables:
            for row in table.to_pylist():
                numbers = {name: value for name, value in row.items() if isinstance(value, float)}
                found |= {(row["player"], name, value) for name, value in numbers.items()}
                if "after" in row:
                    found.add((row["player"], "change", row["after"] - row["before"]))
                    found |= {(row["player"], "percent", 100 * row["expected"])}
        found |= {(name, "start", value) for name, value in RATINGS.items()}
        rules_told = {0.0, 0.5, 1.0, 50.0, 100.0, *service.ladder("league").rules.values().values()}  # known to all
        return {one for one in found if math.isfinite(one[2]) and one[2] not in rules_told}

    def parts(self, path):
        """An address for a path; a part that nothing is known of fails the test: add it here."""
        known = {
            "ladder": "league",
            "player": "ann",
            "match_id": self.live if "/live" in path else "m6" if "/results" in path else "m5",
            "match": "m6" if "/results" in path else "m5",
            "season": "1",
            "queue": "main",
            "ticket": self.ticket,
            "key": self.key,
            "webhook": self.webhook,
            "delivery": 1,
            "job": self.job,
            "kind": "svg",
            "provider": "openid",
        }
        return re.sub(r"\{(\w+)(?::\w+)?\}", lambda part: quote(str(known[part[1]]), safe=""), path)


@pytest.fixture
def world(site, clock):
    return World(site, clock)


def operations(site):
    """Every operation of the API: id, method, path, and a body that its model accepts."""
    document = endpoints(site).openapi()
    schemas = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            schema = schemas[body["$ref"].rpartition("/")[2]] if body else {}
            yield operation["operationId"], method.upper(), path, schema.get("examples", [{}])[0] if body else None


def answers_of_api(world, asking, headers, methods=("GET",)):
    """What the API answers at every address to these methods, by operation and address; pages are followed."""
    for operation, method, path, body in operations(world.site):
        if method not in methods and operation != "get_odds":
            continue
        sent = {"teams": [{"players": ["ann"]}, {"players": ["bob"]}]} if operation == "get_odds" else body
        for query in QUERIES.get(operation, [""]):
            address = world.parts(path) + (f"?{query}" if query else "")
            yield operation, address, ask(world, asking, operation, method, address, json=sent, headers=headers)
    if "GET" not in methods:
        return
    for name in RATINGS:
        for rest in (f"players/{name}", f"players/{name}/matches", f"players/{name}/path", f"standings/around/{name}"):
            yield "more", f"{ON}/{rest}", asking.get(f"{ON}/{rest}", headers=headers)
    cursor = None
    while True:
        page = asking.get(
            f"{ON}/standings", params={"limit": 1, **({"cursor": cursor} if cursor else {})}, headers=headers
        )
        yield "more", f"{ON}/standings?cursor={cursor}", page
        cursor = page.json()["next"]
        if cursor is None:
            return


def answers_of_site(world, browsing, methods=("GET",)):
    """What the site answers at the address of every page."""
    for page in PAGES:
        for method in page.methods:
            if method in methods:
                for query in QUERIES.get(page.path, [""]):
                    address = world.parts(page.path) + (f"?{query}" if query else "")
                    data = {} if method == "POST" else None
                    yield page.path, address, ask(world, browsing, page.path, method, address, data=data)
    if "GET" in methods:
        for name in RATINGS:
            address = f"/ladders/league/players/{name}"
            yield "more", address, browsing.get(address)
        for number in range(1, 7):
            yield "more", f"m{number}", browsing.get(f"/ladders/league/matches/m{number}")


def ask(world, asking, what, method, address, **fields):
    """The answer at an address; a stream ends after its first event, as when the process is asked to stop."""
    stopping = world.site.stopping
    if what in STREAMS:
        stopping.set()
    try:
        return asking.request(method, address, **{name: value for name, value in fields.items() if value is not None})
    finally:
        stopping.clear()


def revealed(text, secrets):
    """The secrets that stand in a text, rounded to four or more digits, also inside of cursors and packed arrays."""
    text = re.sub(r'"request_id":"[0-9a-f]{16}"', "", text)  # at random: 00e1674860292905 would be a zero
    texts = [text]
    for word in re.findall(r"[A-Za-z0-9_\-]{8,}", text):
        try:
            texts.append(str(json.loads(base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)))))
        except ValueError:
            continue
    for kind, packed in re.findall(r'"dtype":\s*"(\w+)",\s*"bdata":\s*"([^"]+)"', text):
        texts.append(str(np.frombuffer(base64.b64decode(json.loads(f'"{packed}"')), kind).tolist()))
    found = set()
    for token in {token for one in texts for token in NUMBER.findall(one)}:
        plain = token.replace(",", "").replace("−", "-")
        value, decimals = float(plain), len(plain.partition("e")[0].partition(".")[2])
        digits = len(re.sub(r"\D", "", plain.lstrip("+-0.")))
        close = max(0.5 * 10.0**-decimals * (1 + 1e-9), 1e-9 * min(abs(value), 1e6))
        found |= {one for one in secrets if digits >= 4 and abs(abs(one[2]) - abs(value)) <= close}
    return found


def nulls(data, keys, at=""):
    """Where a value of one of these keys is anything but null, or empty."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if key in keys and value not in (None, {}, []):
            yield f"{at}.{key}: {value}"
        yield from nulls(value, keys, f"{at}.{key}")


def players(world, site):
    """Who sees what players see: anybody, a player with a token, who reads with a key."""
    read = site.keys.create("reader", ["read"])[1]
    return {
        "anybody": {},
        "ann": {"Authorization": f"Bearer {world.token}"},
        "reader": {"Authorization": f"Bearer {read}"},
    }


@pytest.fixture
def asking(site):
    made = Asking(application(site, pages=pages))
    yield made
    made.close()


@pytest.fixture
def signed_in(site):
    """A visitor who logged in with a key that may read, and says to be ann."""
    browsing = Browsing(application(site, pages=pages))
    key = site.keys.create("league", ["read"])[1]
    assert browsing.post("/login", data={"key": key, "to": "/"}).status_code == 303
    browsing.cookies({"evenmatch-me": "ann"})
    yield browsing
    browsing.close()


def hidden(world, show):
    """The secrets under this setting: all, or those of the player who is not placed."""
    if show == "after_placement":
        return {one for one in world.secrets if one[0] == "new"}
    return world.secrets


@pytest.mark.parametrize("show", ["division", "percentile", "after_placement"])
def test_no_address_of_the_api_tells_players_what_the_ladder_does_not_show(world, site, asking, show):
    world.show(show)
    secrets, keys = hidden(world, show), set() if show == "after_placement" else {*HIDDEN}
    keys |= {"percentile", "spread", "window", "by_percentile"} if show == "division" else set()
    for who, headers in players(world, site).items():
        for operation, address, answer in answers_of_api(world, asking, headers):
            assert answer.status_code in (200, 204, 401, 403) or operation == "ready", (who, address, answer.text)
            text = re.sub(r"(?m)^.*(seconds|bytes).*$", "", answer.text) if operation == "metrics" else answer.text
            assert revealed(text, secrets) == set(), (who, operation, address, text)
            if answer.headers["content-type"] == "application/json" and operation not in DESCRIPTIONS:
                assert list(nulls(answer.json(), keys)) == [], (who, operation, address)
    token = players(world, site)["ann"]
    writes = ("POST", "PUT", "PATCH", "DELETE")
    for headers in ({}, token):
        for operation, address, answer in answers_of_api(world, asking, headers, writes):
            assert revealed(answer.text, secrets) == set(), (operation, address)


@pytest.mark.parametrize("show", ["division", "percentile", "after_placement"])
def test_no_page_tells_visitors_what_the_ladder_does_not_show(world, anyone, signed_in, show):
    world.show(show)
    secrets = hidden(world, show)
    anyone.cookies({"evenmatch-me": "ann"})
    for visitor in (anyone, signed_in):
        for path, address, answer in answers_of_site(world, visitor):
            assert answer.status_code in (200, 302, 303, 403, 404), (address, answer.status_code)
            assert revealed(answer.text, secrets) == set(), (path, address)
            if show == "division" and "/operate" not in path:
                told = set(re.findall(r"percentile (\d+)", words(answer.text)))
                assert told <= {"1", "51"}, (address, told)  # where the divisions begin
                assert "Percentile after each match" not in answer.text, address
        for _, address, answer in answers_of_site(world, visitor, ("POST",)):
            assert revealed(answer.text, secrets) == set(), address


def test_players_see_every_page_that_they_saw_but_the_lab(world, anyone):
    anyone.cookies({"evenmatch-me": "ann"})
    before = {address: answer.status_code for _, address, answer in answers_of_site(world, anyone)}
    world.show("division")
    after = {address: answer.status_code for _, address, answer in answers_of_site(world, anyone)}
    gone = {address for address in before if before[address] != after[address]}
    assert {address.partition("/league")[2].split("?")[0] for address in gone} == {
        "/lab",
        "/lab/health",
        "/lab/waits",
        "/lab/results",
        "/lab/backtest",
        "/lab/tuning",
        "/lab/what-if",
        "/lab/queue",
        "/lab/audit",
    }
    assert {after[address] for address in gone} == {303}


@pytest.mark.parametrize("scope", ["admin", "report", "ratings"])
def test_keys_with_the_scope_see_everything(world, site, asking, scope):
    world.show("division")
    headers = {"Authorization": f"Bearer {site.keys.create(scope, [scope])[1]}"}
    telling = {}
    for operation, _, answer in answers_of_api(world, asking, headers):
        telling.setdefault(operation, set()).update(kind for _, kind, _ in revealed(answer.text, world.secrets))
    assert {name for name, kinds in telling.items() if "rating" in kinds} >= {
        "get_standings",
        "standings_around",
        "standings_among",
        "get_player",
        "get_odds",
        "rating_distribution",
        "player_career",
    }
    assert {name for name, kinds in telling.items() if {"before", "after", "change"} & kinds} >= {
        "list_matches",
        "get_match",
        "player_matches",
        "player_path",
    }
    assert "expected" in telling["get_match"] | telling["list_matches"]
    assert asking.get(f"{ON}/live/{world.live}", headers=headers).json()["odds"] is not None


def test_an_operator_sees_everything_on_the_pages(world, operator):
    world.show("division")
    telling = {}
    for path, _, answer in answers_of_site(world, operator):
        telling.setdefault(path, set()).update(revealed(answer.text, world.secrets))
    shown = {path.removeprefix("/ladders/{ladder:text}") for path, found in telling.items() if found}
    assert shown >= {
        "",
        "/standings",
        "/distribution",
        "/seasons/{season:text}",
        "/players/{player:text}",
        "/matches/{match:text}",
        "/",
    }


@pytest.mark.parametrize("show", ["division", "percentile", "after_placement"])
def test_the_file_for_a_player_has_what_the_ladder_shows(world, show):
    world.show(show)
    service = world.site.service
    for name in RATINGS:
        told, whole = (
            json.dumps(everything(service.database, name, service.clock(), caller=caller))
            for caller in (ANYONE, OPERATOR)
        )
        assert revealed(told, hidden(world, show)) == set(), name
        assert {"rating", "after", "expected"} <= {kind for _, kind, _ in revealed(whole, world.secrets)}
        assert ('"percentile": 1' in told) == (show != "division" and name in ("abe", "dan")), told  # 1 and 100


def test_the_order_of_standings_tells_nothing_more_than_divisions(world, asking):
    ann = {"Authorization": f"Bearer {world.token}"}
    admin = {"Authorization": f"Bearer {world.site.keys.create('operator', ['admin'])[1]}"}

    def rows(address, headers):
        return [
            (row["player"], row["rank"], row["division"])
            for row in asking.get(address, headers=headers).json()["items"]
        ]

    by_rating = rows(f"{ON}/standings", admin)
    world.show("division")
    assert rows(f"{ON}/standings", admin) == by_rating
    assert [row[:2] for row in by_rating] == [("dan", 1), ("bob", 2), ("ann", 3), ("cat", 4), ("abe", 5)]
    expected = [("ann", 1, "High"), ("bob", 1, "High"), ("dan", 1, "High"), ("abe", 4, "Low"), ("cat", 4, "Low")]
    assert rows(f"{ON}/standings", ann) == expected
    assert rows(f"{ON}/standings/among?" + "&".join(f"player={name}" for name in RATINGS), ann) == [
        *expected,
        ("new", None, None),
    ]
    assert rows(f"{ON}/standings/around/new", ann) == expected  # nobody knows where the unplaced would be
    final = [(name, division) for name, _, division in rows(f"{ON}/standings?season=1", admin)]
    assert [name for name, _ in final[:3]] == ["bob", "cat", "ann"]
    known = sorted((row for row in final if row[1]), key=lambda row: (row[1], list(RATINGS).index(row[0])))
    seen = rows(f"{ON}/standings?season=1", ann)
    assert [(name, division) for name, _, division in seen if division] == known
    assert {rank for _, rank, _ in seen} == {None}


def test_callers_who_see_different_things_share_no_cached_answer(world, asking, site, monkeypatch):
    monkeypatch.setattr(type(site.service._boards), "_is_young", staticmethod(lambda _: True))
    world.show("percentile")
    admin = {"Authorization": f"Bearer {site.keys.create('operator', ['admin'])[1]}"}
    ann = {"Authorization": f"Bearer {world.token}"}
    for address in (f"{ON}/standings", f"{ON}/distribution"):
        for first, second in ((admin, ann), (ann, admin), ({}, admin), (admin, {})):
            told = [asking.get(address, headers=headers).json() for headers in (first, second, first, second)]
            assert told[0] == told[2] != told[1] == told[3]
    etag = asking.get(f"{ON}/standings", headers=admin).headers["etag"]
    assert asking.get(f"{ON}/standings", headers={**ann, "If-None-Match": etag}).status_code == 200


def test_a_change_of_the_setting_is_seen_at_once(world, asking):
    def rating():
        return asking.get(f"{ON}/standings").json()["items"][0]["rating"]

    assert rating() is not None
    for show in ("division", "rating", "percentile"):
        world.site.service.change_settings("league", {"show": show})
        assert (rating() is None) == (show != "rating")
