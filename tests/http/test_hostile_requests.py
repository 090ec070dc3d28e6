"""What is malformed, too large, in the wrong place or meant to harm is refused clearly; nothing is lost or executed."""

import copy
import gzip
import json
import os
import random
import socket
from base64 import urlsafe_b64encode
from urllib.parse import quote

import pytest

from asgi_client import Asking
from evenmatch.accounts.keys import Keys
from evenmatch.http.app import application
from evenmatch.operations.service import Service
from server_process import Served

SOAK = os.environ.get("EVENMATCH_SOAK") == "1"
LIMIT = 64 * 1024
REPORT = {
    "id": "m-1",
    "played_at": "2026-01-01T12:00:00Z",
    "teams": [{"place": 1, "players": [{"player": "ann"}]}, {"place": 2, "players": [{"player": "bob"}]}],
}
MATCHES = "/v1/ladders/duel/matches"
STRINGS = (
    "'; DROP TABLE event; --",
    "\" OR ''='",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "%s {0} ${jndi:ldap://x/y} $(reboot) `reboot`",
    "../../../../etc/passwd",
    "\u202eנהג אבא\u200f 👩‍👩‍👧‍👦 e\u0301",
    "é" * 256,
    "é" * 257,
    "a\0b",
    "half \ud800 of a letter",
    "",
    " \t\n",
)
LEAKS = ("Traceback", 'File "', "sqlalchemy", "psycopg", "sqlite3", "/site-packages/", "SELECT ", "INSERT ")


def check_refusal(told, secret, accepted=()):
    """It is a problem in clear words, or one of the accepted answers."""
    if told.status_code in accepted:
        return
    assert 400 <= told.status_code < 500, (told.request.method, str(told.request.url), told.status_code, told.text)
    check_problem(told.status_code, told.headers["content-type"], told.text, secret)


def check_problem(status, media, text, secret):
    assert media == "application/problem+json"
    problem = json.loads(text)
    assert problem["status"] == status
    assert problem["type"].startswith("urn:evenmatch:problem:")
    assert len(problem["detail"]) > 10, problem
    assert not [leak for leak in (*LEAKS, secret) if leak in text], text


# every string of every model and every address, in this process


@pytest.fixture
def database_url(either_database):
    return either_database


@pytest.fixture
def secret(site):
    """The text of a key that may do everything."""
    return site.keys.create("all", ["admin"], None, None)[1]


@pytest.fixture
def known_client(site, secret, clock):
    """Asks with that key; there is a ladder `duel` with a queue `main`, a match `m-1`, and a season that ended."""
    asking = Asking(application(site), headers={"Authorization": f"Bearer {secret}"})
    clock.move(days=365)
    for method, address, body in (
        ("POST", "/v1/ladders", {"name": "duel", "system": "elo"}),
        ("POST", MATCHES, REPORT),
        ("PUT", "/v1/ladders/duel/queues/main", {"policy": {"team_size": 1}}),
        ("POST", "/v1/ladders/duel/seasons", {}),
    ):
        assert asking.request(method, address, json=body).status_code in (200, 201)
    yield asking
    asking.close()


VALID = {"ladder": "duel", "player": "ann", "match_id": "m-1", "queue": "main", "ticket": "1", "season": "1"}


def operations(document):
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            if told["operationId"] != "ticket_events":  # which never ends where there is such a ticket
                yield method.upper(), path, told


def example(document, told):
    """The example of what is to be sent; None where nothing is."""
    if "requestBody" not in told:
        return None
    schema = told["requestBody"]["content"]["application/json"]["schema"]
    named = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return named["examples"][0] if "examples" in named else {}


def string_paths(value, at=()):
    """Where strings stand in a value, and names of its objects."""
    if isinstance(value, str):
        yield at
    elif isinstance(value, list | dict):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from string_paths(inner, (*at, key))
        if isinstance(value, dict):
            yield (*at, None)


def planted(value, place, text):
    """The value with this text in that place; None as the last step: as the name of another member."""
    made = copy.deepcopy(value)
    inner = made
    for step in place[:-1]:
        inner = inner[step]
    if place[-1] is None:
        inner[text] = text
    else:
        inner[place[-1]] = text
    return made


def filled(path, given):
    for name, text in {**VALID, "key": "em_x", "job": "job_x", "webhook": "1", "delivery": "1", **given}.items():
        path = path.replace(f"{{{name}}}", quote(text, safe="", errors="surrogatepass"))
    return path


def attacks(document, text):
    """Requests with this text in every place where a string can stand, one at a time."""
    for method, path, told in operations(document):
        body = example(document, told)
        for place in string_paths(body):
            yield method, filled(path, {}), {}, planted(body, place, text)
        for parameter in told.get("parameters", []):
            name = parameter["name"]
            if parameter["in"] == "path" and text.strip():
                yield method, filled(path, {name: text}), {}, body
            elif parameter["in"] == "query":
                yield method, filled(path, {}), {name: text.encode(errors="surrogatepass")}, body


def test_no_string_anywhere_breaks_out(known_client, site, secret):
    """SQL, HTML, paths, formats, other scripts, the longest name and a longer one, NUL, and half a letter."""
    document = known_client.get("/v1/openapi.json").json()
    before = known_client.get(f"{MATCHES}/m-1").json()
    asked = refused = 0
    for number, text in enumerate(STRINGS):
        for at, (method, address, query, body) in enumerate(attacks(document, text)):
            if not SOAK and (at + number) % 3:  # of each place four of the texts, of each text every third place
                continue
            sent = None if body is None else json.dumps(body)
            told = known_client.request(method, address, params=query, content=sent)
            check_refusal(told, secret, (200, 201, 202, 204))
            asked += 1
            refused += told.status_code >= 400
    assert asked > (2000 if SOAK else 700)
    assert refused > asked / 2
    site.jobs.stop(30)
    after = known_client.get(f"{MATCHES}/m-1").json()
    kept = ("match_id", "position", "played_at")
    assert [after[name] for name in kept] == [before[name] for name in kept]
    for ladder in site.service.ladders():
        site.service.rebuild(ladder.name)
        assert site.service.verify(ladder.name).is_equal


def test_names_of_any_script_come_back_as_they_were_sent(known_client):
    for at, name in enumerate(STRINGS[:7]):
        report = copy.deepcopy({**REPORT, "id": f"{name[:200]} {at}"})
        report["teams"][0]["players"][0]["player"] = name
        told = known_client.post(MATCHES, json=report)
        assert told.status_code == 200, told.text
        assert told.json()["teams"][0][0]["player"] == name
        assert known_client.get(f"/v1/ladders/duel/players/{quote(name, safe='')}").json()["player"] == name
        assert known_client.get(f"{MATCHES}/{quote(report['id'], safe='')}").json()["match_id"] == report["id"]
        assert known_client.get("/v1/ladders/duel/standings").headers["content-type"] == "application/json"


def test_reports_that_are_replayed_and_out_of_order_count_once(known_client, site):
    chance = random.Random(3)
    reports = []
    for number in range(40):
        report = copy.deepcopy({**REPORT, "id": f"r{number}", "played_at": f"2026-01-02T12:{number:02}:00Z"})
        for team in report["teams"]:
            team["players"][0]["player"] = f"{team['place']}{chance.randrange(5)}"
        reports.append(report)
    receipts = {}
    for report in chance.sample(reports * 3, 120):
        told = known_client.post(MATCHES, json=report)
        assert told.status_code == 200, told.text
        assert receipts.setdefault(report["id"], told.json()) == told.json()
    other = known_client.post(MATCHES, json={**reports[0], "played_at": "2026-01-02T13:00:00Z"})
    assert (other.status_code, other.json()["type"]) == (409, "urn:evenmatch:problem:conflict")
    assert site.service.ladder("duel").matches == 41
    assert site.service.verify("duel").is_equal


def test_cursors_that_nobody_gave_are_refused(known_client, secret):
    made = ["", "x", "e30", "\0", "W10", *STRINGS[:5]]
    values = (
        ["\0"],
        ["\ud800"],
        [1, "\0"],
        [1, "\ud800"],
        [1.5, "\0"],
        ["\ud800", 1],
        [1e999],
        [10**30],
        [None],
        [[]],
        [True],
        {"a": 1},
        ["a", 1, 2],
        [-1, "x"],
    )
    made += [urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in values]
    document = known_client.get("/v1/openapi.json").json()
    for method, path, told in operations(document):
        if any(one["name"] == "cursor" for one in told.get("parameters", [])):
            for cursor in made:
                answer = known_client.request(method, filled(path, {}), params={"cursor": cursor, "limit": 1})
                check_refusal(answer, secret, (200,))


# bodies, addresses and headers, byte for byte through a socket


class Wire:
    """Sends bytes to a process that serves, and reads what comes back."""

    def __init__(self, served, key):
        self.host, port = served.address.removeprefix("http://").split(":")
        self.port, self.key, self.served = int(port), key, served

    def send(self, *pieces):
        """Status, headers and body of the answer; a status of 0 where there was none."""
        with socket.create_connection((self.host, self.port), timeout=30) as connection:
            try:
                for piece in pieces:
                    connection.sendall(piece)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it answered before it had read all, and closed
            received = b""
            try:
                while piece := connection.recv(65536):
                    received += piece
            except ConnectionResetError:
                pass
        head, _, body = received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        return int(lines[0].split()[1]) if received else 0, headers, body.decode()

    def ask(self, method, target, body=b"", *headers, key=None):
        """The same of a whole request; each header is bytes."""
        more = [b"Host: localhost", b"Connection: close", b"Content-Length: %d" % len(body), *headers]
        if key != "":
            more.append(f"Authorization: Bearer {self.key if key is None else key}".encode())
        return self.send(b"%s %s HTTP/1.1\r\n%s\r\n\r\n" % (method, target, b"\r\n".join(more)), body)

    def head(self, target):
        """The beginning of a request that posts there."""
        told = f"Host: x\r\nConnection: close\r\nAuthorization: Bearer {self.key}\r\n"
        return b"POST %s HTTP/1.1\r\n%s" % (target, told.encode())

    def check_refused(self, answer, *statuses):
        status, headers, text = answer
        assert status in statuses, answer
        check_problem(status, headers["content-type"], text, self.key)


@pytest.fixture(scope="module")
def raw_connection(empty_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    path = folder / "evenmatch.db"
    path.write_bytes(empty_file.read_bytes())
    with Service.open(str(path)) as service:
        key = Keys(service.database, service.clock).create("all", ["admin"], None, None)[1]
    settings = {"EVENMATCH_BODY_LIMIT": str(LIMIT), "EVENMATCH_OPEN_RATE": "10000", "EVENMATCH_OPEN_BURST": "10000"}
    with Served(str(path), folder, **settings) as served:
        made = Wire(served, key)
        ladder = json.dumps({"name": "duel", "system": "elo"}).encode()
        assert made.ask(b"POST", b"/v1/ladders", ladder)[0] == 201
        assert made.ask(b"POST", MATCHES.encode(), json.dumps(REPORT).encode())[0] == 200
        yield made


@pytest.fixture(autouse=True)
def nothing_lost(request):
    """What was recorded is there after each test that used the socket, once, and no bug was met."""
    yield
    if "raw_connection" in request.fixturenames:
        wire = request.getfixturevalue("raw_connection")
        status, _, text = wire.ask(b"GET", MATCHES.encode())
        assert (status, [one["match_id"] for one in json.loads(text)["items"]]) == (200, ["m-1"])
        assert '"bug"' not in wire.served.told()
        assert "Traceback" not in wire.served.told()
        assert wire.key not in wire.served.told()


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
GOOD = json.dumps({**REPORT, "id": "m-2"}).encode()
BODIES = {
    "nothing": b"",
    "cut": GOOD[:-20],
    "text": b"hello",
    "null": b"null",
    "list": b"[" + GOOD + b"]",
    "text in JSON": json.dumps(GOOD.decode()).encode(),
    "deep lists": b"[" * 30_000 + b"]" * 30_000,
    "deep objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "open brackets": b"[" * 60_000,
    "deep in a field": GOOD.replace(b'"m-2"', b"[" * 900 + b"]" * 900),
    "NaN": GOOD.replace(b"1,", b"NaN,", 1),
    "Infinity": GOOD.replace(b'"place": 1', b'"score": Infinity'),
    "large float": GOOD.replace(b'"place": 1', b'"score": 1e999'),
    "large whole number": GOOD.replace(b'"place": 1', b'"place": ' + b"9" * 400),
    "whole number for a float": GOOD.replace(b'"place": 1', b'"score": ' + b"9" * 400),
    "5,000 digits": GOOD.replace(b'"place": 1', b'"place": ' + b"9" * 5_000),
    "a float for a place": GOOD.replace(b'"place": 1', b'"place": 1.0'),
    "text for a place": GOOD.replace(b'"place": 1', b'"place": "1"'),
    "true for a place": GOOD.replace(b'"place": 1', b'"place": true'),
    "a number for a name": GOOD.replace(b'"ann"', b"1"),
    "an object for a list": GOOD.replace(b'"teams": [', b'"teams": {"a": [').replace(b"]}]}", b"]}]}}"),
    "unknown member": GOOD.replace(b'"id"', b'"admin": true, "id"'),
    "member that is half a letter": GOOD.replace(b'"id"', b'"\\ud800": true, "id"'),
    "half a letter": GOOD.replace(b'"ann"', b'"\\udfff"'),
    "NUL": GOOD.replace(b'"ann"', b'"a\\u0000"'),
    "bytes that are no UTF-8": GOOD.replace(b'"ann"', b'"\xff\xfe\xc3("'),
    "latin-1": GOOD.replace(b'"ann"', '"zoé"'.encode("latin-1")),
    "binary": bytes(range(256)) * 16,
    "gzip": gzip.compress(GOOD),
    "two documents": GOOD + GOOD,
    "comment": GOOD + b"// end",
    "year 99999": GOOD.replace(b"2026-01-01", b"99999-01-01"),
    "far future": GOOD.replace(b"2026-01-01", b"9999-12-31"),
    "a year that is none": GOOD.replace(b"2026-01-01", b"0000-01-01"),
    "a form": b"id=m-2&teams=1",
    "multipart": b'--x\r\nContent-Disposition: form-data; name="id"\r\n\r\nm-2\r\n--x--\r\n',
    "XML": b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "/etc/passwd">]><a>&b;</a>',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_malformed_body_is_refused_in_words(raw_connection, body):
    for address in (MATCHES.encode(), MATCHES.encode() + b"/batch"):
        sent = body if address.endswith(b"s") else b'{"matches": [%s]}' % body
        answer = raw_connection.ask(b"POST", address, sent)
        if answer[0] == 200:  # a batch, of which each stands for itself
            told = json.loads(answer[2])
            assert (told["recorded"], told["outcomes"][0]["problem"]["status"]) == (0, 422)
        else:
            raw_connection.check_refused(answer, 400, 422)


def test_of_a_member_that_stands_twice_one_counts(raw_connection):
    """As JSON leaves it open; it is nothing by which two readers could be told different things."""
    twice = GOOD.replace(b'"id"', b'"id": "m-1", "id"').replace(b'"m-2"', b'"m-1"').replace(b'"ann"', b'"eve"')
    raw_connection.check_refused(raw_connection.ask(b"POST", MATCHES.encode(), twice), 409)


def test_a_body_that_is_too_large_is_refused_declared_or_in_chunks(raw_connection):
    large = GOOD + b" " * LIMIT
    raw_connection.check_refused(raw_connection.ask(b"POST", MATCHES.encode(), large), 413)
    head = raw_connection.head(MATCHES.encode())
    raw_connection.check_refused(raw_connection.send(head + b"Content-Length: 99999999999\r\n\r\n"), 413)
    chunk = b"1000\r\n" + b" " * 0x1000 + b"\r\n"
    raw_connection.check_refused(raw_connection.send(head + CHUNKED, *[chunk] * 20, b"0\r\n\r\n"), 413)
    for broken in (
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: x\r\n\r\n",
        CHUNKED + b"zz\r\n",
    ):
        assert raw_connection.send(head + broken, b"{}")[0] in (0, 400)
    assert raw_connection.ask(b"GET", b"/healthz")[0] == 200


PATHS = (
    b"/v1/../v1/keys/..",
    b"/v1/ladders/../../etc/passwd",
    b"/v1/ladders/..%2f..%2fkeys",
    b"/v1/ladders/%2e%2e/keys",
    b"/v1//ladders",
    b"/v1/ladders/duel/",
    b"/v1/ladders/duel%2Fmatches",
    b"/v1/ladders/%00",
    b"/v1/ladders/duel%00",
    b"/v1/ladders/duel/players/%ff%fe",
    b"/v1/ladders/duel/players/%ed%a0%80",
    b"/v1/ladders/%",
    b"/v1/ladders/%zz",
    b"/v1/ladders/" + b"a" * 5000,
    b"/v1/ladders/duel;x=1",
    b"/v1/jobs/%27%20OR%201=1--",
    b"/v1/webhooks/999999999999999999999999/deliveries",
    b"/v1/ladders/duel/tickets/99999999999999999999",
    b"/v1/ladders/duel/tickets/-1",
)


OUTSIDE = (b"//v1/ladders", b"/V1/LADDERS/duel", b"/openapi.json", b"/swagger", b"/.env")  # pages answer there


@pytest.mark.parametrize("path", OUTSIDE)
def test_an_address_beside_the_endpoints_is_a_page_that_tells_nothing(raw_connection, path):
    for key in (raw_connection.key, ""):
        status, headers, body = raw_connection.ask(b"GET", path, key=key)
        assert (status, headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "There is no page at" in body


def test_the_front_page_asks_who_is_there(raw_connection):
    status, headers, _ = raw_connection.ask(b"GET", b"/", key="")
    assert (status, headers["location"]) == (303, "/login?to=%2F")


@pytest.mark.parametrize("path", PATHS)
def test_no_address_leads_out(raw_connection, path):
    raw_connection.check_refused(raw_connection.ask(b"GET", path), 404, 405, 422)
    status = raw_connection.ask(b"GET", path, key="")[0]
    assert status in (401, 404, 405), status


def test_methods_that_an_address_does_not_know_are_refused(raw_connection):
    document = json.loads(raw_connection.ask(b"GET", b"/v1/openapi.json")[2])
    for path, known in document["paths"].items():
        target = filled(path, {}).encode()
        for method in {"get", "post", "put", "patch", "delete"} - set(known):
            answer = raw_connection.ask(method.upper().encode(), target, b"{}")
            if answer[0] == 404:  # another address fits, too, where a name stands in this one
                continue
            raw_connection.check_refused(answer, 405)
            assert "allow" in answer[1]
    for method in (b"TRACE", b"OPTIONS", b"PROPFIND"):
        raw_connection.check_refused(raw_connection.ask(method, b"/v1/ladders"), 405)
    assert raw_connection.ask(b"CONNECT", b"example.com:443")[0] in (400, 404, 405)


def test_headers_that_lie_let_nobody_in(raw_connection):
    good = f"Authorization: Bearer {raw_connection.key}".encode()
    part, target = raw_connection.key[:20], b"/v1/keys"
    wrong = (
        b"Authorization: Bearer",
        b"Authorization: Bearer ",
        b"Authorization: Basic YTpi",
        b"Authorization: " + b"a" * 20_000,
        b"Authorization: Bearer em_\xe9\xff",
        "Authorization: Bearer em_é".encode(),
        b"Authorization: Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.",
        b"Authorization: Bearer a.b.c",
        b"Authorization: Bearer \xe9.b.c",
        f"Authorization: Bearer {part}".encode(),
        f"Authorization: Bearer {raw_connection.key}x".encode(),
        f"Authorization: Bearer {raw_connection.key[:-1]}".encode(),
        b"Authorization: Evenmatch-HMAC-SHA256 key=em_x, timestamp=1, signature=\xe9",
        b"Authorization: Evenmatch-HMAC-SHA256 key=em_x, timestamp=" + b"9" * 6000 + b", signature=00",
        b"Authorization: Evenmatch-HMAC-SHA256",
        b"X-Forwarded-User: admin",
        b"Cookie: key=" + raw_connection.key.encode(),
    )
    for header in wrong:
        raw_connection.check_refused(raw_connection.ask(b"GET", target, b"", header, key=""), 401)
    raw_connection.check_refused(raw_connection.ask(b"GET", target, b"", wrong[0], good, key=""), 401)
    assert raw_connection.ask(b"GET", target, b"", b"X-Request-Id: <b>" + b"b" * 5000)[0] == 200
    assert raw_connection.ask(b"GET", target, b"", b"If-None-Match: " + b"\xff" * 3000)[0] == 200
    assert raw_connection.ask(b"GET", target, b"", *[b"X-%d: y" % at for at in range(500)])[0] in (200, 400, 431)
    assert raw_connection.ask(b"GET", target, b"", b"X: " + b"a" * 200_000)[0] in (0, 200, 400, 431)
    assert raw_connection.ask(b"GET", b"/healthz")[0] == 200
