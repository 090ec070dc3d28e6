"""Web sessions end with what they were begun with: an API key, or a player's token."""

import pytest

from evenmatch.accounts.keys import Keys
from evenmatch.accounts.sessions import Sessions
from evenmatch.accounts.tokens import Tokens
from evenmatch.errors import AccessError

HOUR = 3600


class Process:
    """What one process of the service verifies callers with."""

    def __init__(self, service, clock):
        self.keys = Keys(service.database, clock)
        self.tokens = Tokens(service.database, clock, self.keys)
        self.sessions = Sessions(service.database, clock, self.keys, self.tokens)

    def token(self, player, lasts=HOUR):
        backend = self.keys.authenticate(self.keys.create("backend", ["queue"])[1])
        return self.tokens.issue(backend, player, lasts=lasts).text


@pytest.fixture
def process(service, clock):
    return Process(service, clock)


@pytest.fixture
def other(other_service, clock):
    return Process(other_service, clock)


def test_a_session_ends_with_its_token(process, clock):
    text = process.sessions.begin(process.token("ann", lasts=60))
    clock.move(seconds=59)
    assert process.sessions.find(text) is not None
    clock.move(seconds=1)
    assert process.sessions.find(text) is None


@pytest.mark.parametrize("end", ["revoked", "expired"])
@pytest.mark.parametrize("kind", ["key", "token"])
def test_a_session_ends_with_its_key(process, other, clock, end, kind):
    key, text = process.keys.create("somebody", ["queue"], None, clock.now + 60_000_000)
    if kind == "token":
        text = process.tokens.issue(process.keys.authenticate(text), "ann").text
    session = process.sessions.begin(text)
    assert other.sessions.find(session) is not None
    if end == "revoked":
        process.keys.revoke(key.key)
        clock.move(seconds=2)
    else:
        clock.move(seconds=60)
    assert [each.sessions.find(session) for each in (process, other)] == [None, None]


def test_a_session_that_no_browser_would_keep_is_refused(process):
    assert len(process.sessions.begin(process.token("\N{GRINNING FACE}" * 200))) < 4096
    with pytest.raises(AccessError, match=r"has 4,\d{3} characters, at most 3,900 fit"):
        process.sessions.begin(process.token("\N{GRINNING FACE}" * 256))
