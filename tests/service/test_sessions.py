"""Web sessions end with what they were begun with: an API key, a login link, an account, or groups."""

import pytest

from evenmatch.accounts.access import OPERATOR
from evenmatch.accounts.keys import Keys
from evenmatch.accounts.sessions import Sessions
from evenmatch.accounts.tokens import Tokens
from evenmatch.errors import AccessError


class Process:
    """What one process of the service verifies callers with."""

    def __init__(self, service, clock):
        self.keys = Keys(service.database, clock)
        self.tokens = Tokens(service.database, clock, self.keys)
        self.sessions = Sessions(service.database, clock, self.keys, self.tokens)

    def link(self, player, key=None):
        backend = self.keys.authenticate(key or self.keys.create("backend", ["queue"])[1])
        return self.tokens.issue_link(backend, player).text.partition("=")[2]


@pytest.fixture
def process(service, clock):
    return Process(service, clock)


@pytest.fixture
def other(other_service, clock):
    return Process(other_service, clock)


@pytest.mark.parametrize("end", ["revoked", "expired"])
@pytest.mark.parametrize("kind", ["key", "link"])
def test_a_session_ends_with_its_key(process, other, clock, end, kind):
    key, text = process.keys.create("somebody", ["queue"], None, clock.now + 60_000_000)
    sessions = process.sessions
    session = sessions.begin(text) if kind == "key" else sessions.begin_by_link(process.link("ann", text))
    assert other.sessions.find(session) is not None
    if end == "revoked":
        process.keys.revoke(key.key)
        clock.move(seconds=2)
    else:
        clock.move(seconds=60)
    assert [each.sessions.find(session) for each in (process, other)] == [None, None]


def test_a_session_that_no_browser_would_keep_is_refused(process):
    long_name = "\N{GRINNING FACE}"
    assert len(process.sessions.begin_by_link(process.link(long_name * 200))) < 4096
    with pytest.raises(AccessError, match=r"has 4,\d{3} characters, at most 3,900 fit"):
        process.sessions.begin_by_link(process.link(long_name * 256))


def test_a_login_link_works_once_in_all_processes(process, other):
    link = process.link("ann")
    assert other.tokens.read_link(link).player == "ann"
    session = process.sessions.find(process.sessions.begin_by_link(link))
    assert (session.caller.player, session.caller.scopes) == ("ann", {"queue", "read"})
    for each in (process, other):
        with pytest.raises(AccessError, match="already used"):
            each.sessions.begin_by_link(link)


def test_another_spelling_of_the_signature_does_not_make_a_login_link_work_twice(process):
    """Base64 may be padded, and is read either way."""
    link = process.link("ann")
    assert process.tokens.read_link(f"{link}=").player == "ann"
    process.sessions.begin_by_link(link)
    with pytest.raises(AccessError, match="already used"):
        process.sessions.begin_by_link(f"{link}=")


def test_a_login_link_is_no_token_and_a_token_no_link_nor_key(process, clock):
    backend = process.keys.authenticate(process.keys.create("backend", ["queue"])[1])
    token, link = process.tokens.issue(backend, "ann").text, process.link("ann")
    for use, text in (
        (process.tokens.verify, link),
        (process.sessions.begin_by_link, token),
        (process.sessions.begin, token),
        (process.sessions.begin, link),
    ):
        with pytest.raises(AccessError):
            use(text)
    clock.move(seconds=900)
    with pytest.raises(AccessError, match="expired"):
        process.sessions.begin_by_link(link)


def test_the_operator_at_the_command_line_makes_login_links(process):
    link = process.tokens.issue_link(OPERATOR, "ann", lasts=60).text
    assert link.startswith("/login/link?token=")
    session = process.sessions.find(process.sessions.begin_by_link(link.partition("=")[2]))
    assert (session.caller.player, session.caller.issuer) == ("ann", "operator")


def test_a_cookie_of_a_login_that_has_begun_is_no_session(process):
    text = process.sessions.remember_login({"provider": "openid"})
    assert process.sessions.recall_login(text) == {"provider": "openid"}
    assert process.sessions.find(text) is None
    assert process.sessions.recall_login(process.sessions.begin_by_link(process.link("ann"))) is None
