"""Under which names browsers get pages and data, whose word about addresses and HTTPS counts, how cookies are kept."""

import socket

import pytest
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from evenmatch.errors import UsageError
from evenmatch.http.app import application
from evenmatch.http.hosts import AllowedHosts
from evenmatch.http.options import Options, read_options
from evenmatch.web.app import pages
from web_client import Browsing, words

HTTPS = {"x-forwarded-proto": "https"}


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "localhost:8080", "LOCALHOST", "localhost.", "demo.localhost:8080"),
        *("127.0.0.1", "127.0.0.1:8080", "192.168.1.7:8080", "[::1]:8080", "[fe80::1]", "[2001:db8::7]:80"),
        *("ranks.lan", "ranks.lan:8080", socket.gethostname(), f"{socket.gethostname().partition('.')[0]}.local:80"),
    ],
)
def test_addresses_localhost_the_bound_name_and_the_machines_own_are_names_of_the_service(host):
    assert host in AllowedHosts((), "ranks.lan")


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8080", "localhost.evil.example", "xlocalhost", "127.0.0.1.evil.example"),
        *("", ":8080", "127.0.0.1@evil.example", "2130706433", "[evil.example]", "127.0.0.1, evil.example"),
    ],
)
def test_other_names_are_not(host):
    """By a name of its own that leads here, a page of another site could read what its visitor reaches."""
    assert host not in AllowedHosts((), "127.0.0.1")


@pytest.mark.parametrize(
    ("entry", "host", "is_allowed"),
    [
        ("rank.example", "rank.example:443", True),
        ("Rank.Example", "rank.example", True),
        ("rank.example", "www.rank.example", False),
        ("*.rank.example", "www.rank.example", True),
        ("*.rank.example", "a.b.rank.example", True),
        ("*.rank.example", "rank.example", False),
        ("*.rank.example", "evilrank.example", False),
        ("*", "evil.example", True),
    ],
)
def test_an_operator_names_more(entry, host, is_allowed):
    assert (host in AllowedHosts((entry,), "0.0.0.0")) is is_allowed


@pytest.mark.parametrize("entry", ["https://rank.example", "rank.example:443", "", "a b", "*.*", "**"])
def test_an_invalid_host_name_is_refused_at_the_start(monkeypatch, entry):
    monkeypatch.setenv("EVENMATCH_HOSTS", f'["{entry}"]')
    with pytest.raises(UsageError, match="EVENMATCH_HOSTS"):
        read_options({})


@pytest.mark.parametrize("entry", ["proxy.example", "10.0.0.1/8", "10.0.0.0/33", ""])
def test_an_invalid_proxy_address_is_refused_at_the_start(monkeypatch, entry):
    monkeypatch.setenv("EVENMATCH_TRUSTED_PROXIES", f'["{entry}"]')
    with pytest.raises(UsageError, match="EVENMATCH_TRUSTED_PROXIES"):
        read_options({})


def as_host(host):
    return {"host": host}


@pytest.mark.parametrize("path", ["/", "/ladders/league", "/login", "/nope", "/ladders/league/pulse"])
def test_a_page_is_not_shown_under_a_name_that_is_not_the_services(anyone, league, path):
    told = anyone.get(path, headers=as_host("evil.example"))
    assert told.status_code == 421
    assert "does not answer browsers under the name 'evil.example'" in words(told.text)
    assert "EVENMATCH_HOSTS" in told.text
    assert "The league" not in told.text


def test_a_form_is_not_taken_under_such_a_name(anyone, admin_key):
    headers = {**as_host("evil.example"), "origin": "http://evil.example", "sec-fetch-site": "same-origin"}
    told = anyone.post("/login", data={"key": admin_key}, headers=headers)
    assert told.status_code == 421
    assert "set-cookie" not in told.headers


def test_data_without_a_key_are_not_read_under_such_a_name_and_with_one_they_are(anyone, league, site, admin_key):
    path = f"/v1/ladders/{league}/standings"
    assert anyone.get(path).status_code == 200
    told = anyone.get(path, headers=as_host("evil.example"))  # from the cache of responses it would be the same
    assert (told.status_code, told.json()["type"]) == (421, "urn:evenmatch:problem:misdirected")
    key = {"Authorization": f"Bearer {admin_key}"}
    assert anyone.get(path, headers={**as_host("api1:8080"), **key}).status_code == 200
    assert anyone.get("/healthz", headers=as_host("api1:8080")).status_code == 200
    assert anyone.get("/ladders/league", headers={**as_host("evil.example"), **key}).status_code == 421


class TestNamed:
    """The operator named the site."""

    @pytest.fixture
    def options(self):
        return Options(matchmaker=False, open_reads=True, open_rate=1e4, open_burst=10_000, hosts=("rank.example",))

    def test_pages_are_shown_under_that_name(self, anyone, league):
        assert anyone.get("/", headers=as_host("rank.example")).status_code == 200
        assert anyone.get("/", headers=as_host("evil.example")).status_code == 421


@pytest.fixture
def behind_proxy(site):
    """The site behind a load balancer that is trusted, as uvicorn calls it: httpx asks from 127.0.0.1."""
    browsing = Browsing(ProxyHeadersMiddleware(application(site, pages=pages), ["127.0.0.1"]))
    yield browsing
    browsing.close()


def cookies_of(answer):
    return {one.partition("=")[0]: one.partition("; ")[2].lower() for one in answer.headers.get_list("set-cookie")}


def test_over_https_cookies_belong_to_this_host_alone(behind_proxy, admin_key):
    answer = behind_proxy.post("/login", data={"key": admin_key}, headers=HTTPS)
    (name, attributes), *others = cookies_of(answer).items()
    assert (name, others) == ("__Host-evenmatch-session", [])
    assert {"secure", "httponly", "path=/", "samesite=lax"} <= set(attributes.split("; "))
    assert "domain" not in attributes
    text = answer.headers["set-cookie"].partition("; ")[0]
    assert behind_proxy.get("/operate", headers={**HTTPS, "cookie": text}).status_code == 200


def test_over_https_a_cookie_without_the_prefix_is_ignored(behind_proxy, admin_key):
    """Another host of the same domain, or whoever is in between, could have set it."""
    answer = behind_proxy.post("/login", data={"key": admin_key}, headers=HTTPS)
    value = answer.headers["set-cookie"].partition("; ")[0].partition("=")[2]
    told = behind_proxy.get("/operate", headers={**HTTPS, "cookie": f"evenmatch-session={value}"})
    assert told.headers["location"].startswith("/login")


def test_over_http_cookies_have_no_prefix_that_browsers_would_refuse(anyone, admin_key):
    (name, attributes), *_ = cookies_of(anyone.post("/login", data={"key": admin_key})).items()
    assert name == "evenmatch-session"
    assert "secure" not in attributes
    assert "httponly" in attributes


def test_only_a_trusted_proxy_says_that_it_is_https(anyone, admin_key):
    (name, _), *_ = cookies_of(anyone.post("/login", data={"key": admin_key}, headers=HTTPS)).items()
    assert name == "evenmatch-session"


def test_a_secret_is_shown_once_and_on_its_own_page_alone(behind_proxy, operator):
    made = operator.submit("/operate/keys", name="game", scope="read")
    assert made.status_code == 303
    cookie = {name: value for name, value in cookies_of(made).items() if name == "evenmatch-once"}
    assert "samesite=strict" in cookie["evenmatch-once"]
    assert "em_" not in words(operator.page("/operate/webhooks"))
    first = operator.page("/operate/keys")
    second = operator.page("/operate/keys")
    assert len([part for part in words(first).split() if part.startswith("em_") and len(part) > 50]) == 1
    assert not [part for part in words(second).split() if part.startswith("em_") and len(part) > 50]


def test_logging_out_and_forgetting_delete_the_cookies(behind_proxy, operator):
    gone = cookies_of(operator.submit("/logout", on="/operate"))
    assert "max-age=0" in gone["evenmatch-session"]
