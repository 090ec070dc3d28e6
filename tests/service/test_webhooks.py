"""Subscribing, and the URLs and addresses that are refused."""

import pytest

from evenmatch.errors import ConflictError, InputError, UnknownNameError
from evenmatch.webhooks.addresses import check_public
from evenmatch.webhooks.delivery import Deliverer
from evenmatch.webhooks.subscriptions import EVENTS, Webhooks
from ledger.sample_matches import duel

PUBLIC = {"hooks.example": ["93.184.215.14"], "six.example": ["2606:2800:21f:cb07:6820:80da:af6b:8b2c"]}


def find_addresses(host, port):
    """A resolver that knows two public names, and numbers."""
    inside = {"localhost": ["::1", "127.0.0.1"], "half.example": ["93.184.215.14", "10.0.0.7"]}
    return (PUBLIC | inside).get(host, [host] if host[0].isdigit() or ":" in host else [])


@pytest.fixture
def webhooks(service):
    return Webhooks(service, find=find_addresses)


def test_a_webhook_shows_its_secret_once(webhooks, ladder, clock):
    hook, secret = webhooks.add("https://hooks.example/a?b=c", ["season.closed", "match.rated", "match.rated"], ladder)
    assert (hook.ladder, hook.events, hook.created_at) == (ladder, ("match.rated", "season.closed"), clock.now)
    assert len(secret) == 47
    assert secret not in repr(hook)
    assert secret not in repr(webhooks.list())
    assert webhooks.list() == [hook]
    other, other_secret = webhooks.add("http://six.example", EVENTS)
    assert other.ladder is None
    assert other_secret != secret
    assert [one.webhook for one in webhooks.list()] == [hook.webhook, other.webhook]


REFUSED = [
    ("ftp://hooks.example/", "scheme 'ftp'"),
    ("file:" + "///etc/passwd", "scheme 'file'"),
    ("hooks.example/a", "scheme ''"),
    ("https://", "host None"),
    ("https:///path", "host None"),
    ("https://ann:secret@hooks.example/", "contains a user name or password"),
    ("https://hooks.example:99999/", "cannot be read"),
    ("https://hooks.example:0/", "port 0"),
    ("https://[::1/", "cannot be read"),
    ("https://hooks.example/a b", "a space"),
    ("https://hooks.example/\r\nHost: x", "a space"),
    ("https://hööks.example/", "a character that must be written as %"),
    ("https://hooks.example/" + "a" * 2000, "2,022 characters"),
    ("http://localhost:8000/", "resolves to ::1"),
    ("http://half.example/", "resolves to 10.0.0.7"),
    ("http://127.0.0.1/", "resolves to 127.0.0.1"),
    ("http://[::1]:8080/", "resolves to ::1"),
    ("http://[fec0::1]/", "resolves to fec0::1"),
    ("http://[64:ff9b:1::7f00:1]/", "resolves to 64:ff9b:1::7f00:1"),
    ("http://[::127.0.0.1]/", "resolves to ::127.0.0.1"),
    ("http://192.0.0.8/", "resolves to 192.0.0.8"),
]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_malformed_and_private_urls_are_refused(webhooks, ladder):
    for url, said in REFUSED:
        with pytest.raises(InputError) as caught:
            webhooks.check(url)
        assert said in str(caught.value), url
        assert "secret" not in str(caught.value)
    webhooks.check("https://hooks.example/")


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254"),
        *("0.0.0.0", "100.64.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a00:1::1"),
        *("fec0::1", "feff::1", "64:ff9b:1::7f00:1", "::127.0.0.1", "::10.0.0.1", "::ffff:0:7f00:1"),  # leads inside
        *("192.0.0.8", "192.0.0.9", "192.0.0.170", "192.88.99.1", "192.31.196.1", "192.52.193.1", "192.175.48.1"),
        "168.63.129.16",
        *(
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "2001:2::1",
            "3fff::1",
            "100::1",
            "5f00::1",
            "2620:4f:8000::1",
        ),
        *("2001::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:20::1", "2002:808:808::1", "4000::1", "8000::1"),
        *("2606:2800::5efe:a00:1", "2606:2800::200:5efe:7f00:1"),
    ],
)
def test_addresses_that_are_not_public_are_refused(address):
    with pytest.raises(InputError, match="which is not a public address"):
        check_public("h.example", [address])
    with pytest.raises(InputError, match="which is not a public address"):
        check_public("h.example", ["93.184.215.14", address])


@pytest.mark.parametrize(
    "address",
    [
        "93.184.215.14",
        "8.8.8.8",
        "172.32.0.1",
        "2606:2800:21f:cb07::",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2606:2800::5efe:808:808",
    ],
)
def test_public_addresses_are_accepted(address):
    check_public("h.example", [address])


def test_an_operator_may_allow_private_addresses(service, ladder):
    Webhooks(service, allow_private=True, find=find_addresses).check("http://localhost:8000/")


def test_unknown_events_ladders_and_numbers_are_refused(webhooks, ladder):
    with pytest.raises(UnknownNameError, match=r"unknown event 'match\.rate'"):
        webhooks.add("https://hooks.example/", ["match.rated", "match.rate"])
    with pytest.raises(InputError, match="name at least one event"):
        webhooks.add("https://hooks.example/", [])
    with pytest.raises(UnknownNameError, match="unknown ladder 'none'"):
        webhooks.add("https://hooks.example/", ["match.rated"], "none")
    with pytest.raises(UnknownNameError, match="unknown webhook '7'"):
        webhooks.remove(7)
    with pytest.raises(UnknownNameError, match="unknown webhook '7'"):
        webhooks.deliveries(7)
    with pytest.raises(UnknownNameError, match="unknown delivery '7'"):
        webhooks.redeliver(7)
    assert webhooks.list() == []


def test_a_removed_webhook_gets_nothing(service, webhooks, ladder):
    hook, _ = webhooks.add("https://hooks.example/", ["match.rated"])
    deliverer = Deliverer(webhooks)
    service.record(duel(1, "ann", "bob", ladder))
    assert deliverer.make() == 1
    (waiting,) = webhooks.deliveries(hook.webhook, "pending")
    assert webhooks.remove(hook.webhook) == hook
    service.record(duel(2, "ann", "bob", ladder))
    assert deliverer.make() == 0
    assert webhooks.list() == []
    with pytest.raises(UnknownNameError):
        webhooks.deliveries(hook.webhook)
    with pytest.raises(ConflictError, match="belongs to a removed webhook"):
        webhooks.redeliver(waiting.delivery)


def test_deliveries_are_listed_newest_first_page_by_page(service, webhooks, ladder, clock):
    hook, _ = webhooks.add("https://hooks.example/", ["match.rated"])
    for number in range(1, 6):
        service.record(duel(number, "ann", "bob", ladder))
    deliverer = Deliverer(webhooks)
    assert deliverer.make() == 5
    first = webhooks.deliveries(hook.webhook, limit=2)
    second = webhooks.deliveries(hook.webhook, before=first[-1].delivery, limit=9)
    told = [one.body.split('"match_id":"')[1].split('"')[0] for one in (*first, *second)]
    assert told == ["m5", "m4", "m3", "m2", "m1"]
    assert {one.state for one in second} == {"pending"}
    assert (first[0].attempts, first[0].next_at, first[0].error) == (0, clock.now, None)
    assert webhooks.deliveries(hook.webhook, "dead") == webhooks.deliveries(hook.webhook, "delivered") == ()
    with pytest.raises(UnknownNameError, match="unknown state of a delivery 'late'"):
        webhooks.deliveries(hook.webhook, "late")
