"""evenmatch key: create, list, revoke."""

import json
import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from evenmatch.accounts.access import Caller
from evenmatch.accounts.keys import Keys
from evenmatch.errors import AccessError
from evenmatch.operations.open_database import open_existing

SHAPE = re.compile(r"em_[a-z2-7]{10}_[A-Za-z0-9_-]{43}\n")


def who(text):
    """Whom the service takes this key's holder for."""
    with open_existing("league.db") as service:
        return Keys(service.database, lambda: time.time_ns() // 1000).authenticate(text)


def listed(run):
    return json.loads(run("key", "list", "--json").out)


def test_the_key_alone_goes_to_standard_output_and_works(run, league):
    made = run("key", "create", "game server", "--scope", "queue", "--scope", "report", "--ladder", "duel")
    assert made.code == 0
    assert SHAPE.fullmatch(made.out)
    key = made.out[:13]
    assert made.err == (
        f"key {key} (game server): may report, queue on duel\n"
        f"store it now; it cannot be shown again. To revoke it: evenmatch key revoke {key}\n"
    )
    scopes = frozenset({"report", "queue"})
    assert who(made.out.strip()) == Caller(f"key {key}", scopes, frozenset({"duel"}), None, key)


def test_as_json_the_key_stands_beside_what_it_may(run, league):
    made = json.loads(run("key", "create", "ops", "--scope", "admin", "--expires", "2099-01-01", "--json").out)
    assert who(made["text"]).ladders is None
    text, created = made.pop("text"), made.pop("created_at")
    assert made == {
        **{"key": text[:13], "name": "ops", "scopes": ["admin"], "ladders": None},
        **{"expires_at": "2099-01-01T00:00:00Z", "revoked_at": None},
    }
    assert listed(run) == [{**made, "created_at": created, "state": "good"}]


SPANS = [("30m", 30 * 60), ("12h", 12 * 3600), ("90d", 90 * 86_400), ("4w", 28 * 86_400)]


def test_a_key_expires_after_the_span_that_was_named(run, league):
    for span, seconds in SPANS:
        before = datetime.now(UTC)
        made = json.loads(run("key", "create", "x", "--scope", "read", "--expires", span, "--json").out)
        ends = datetime.fromisoformat(made["expires_at"])
        assert timedelta(0) <= ends - before - timedelta(seconds=seconds) < timedelta(seconds=30)


def test_the_list_shows_every_key_and_no_secret(run, league):
    texts = [
        run("key", "create", name, "--scope", "read", *options).out.strip()
        for name, options in (
            ("first", []),
            ("<b>\x1b[31m", ["--ladder", "duel"]),
            ("third", ["--expires", "2099-01-01"]),
        )
    ]
    run("key", "revoke", texts[0][:13])
    shown = run("key", "list").out
    lines = shown.splitlines()
    assert lines[0] == "3 keys"
    assert lines[1].split() == ["key", "name", "scopes", "ladders", "created", "(UTC)", "state"]
    rows = {line.split()[0]: line for line in lines[2:] if line}
    assert set(rows) == {text[:13] for text in texts}
    assert re.search(r"first +read +all ladders .*revoked \d{4}-\d\d-\d\d \d\d:\d\d$", rows[texts[0][:13]])
    assert re.search(r"<b>�\[31m +read +duel .* good$", rows[texts[1][:13]])
    assert rows[texts[2][:13]].endswith("good until 2099-01-01 00:00")
    assert not [text for text in texts if text[14:30] in shown + json.dumps(listed(run))]


def test_a_revoked_key_works_no_more_and_stays_revoked(run, league):
    text = run("key", "create", "game", "--scope", "report").out.strip()
    done = run("key", "revoke", text[:13])
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(rf"key {text[:13]} \(game\): revoked at \d{{4}}-\d\d-\d\d \d\d:\d\d UTC\n", done.out)
    with pytest.raises(AccessError, match="was revoked at"):
        who(text)
    first = listed(run)[0]["revoked_at"]
    assert json.loads(run("key", "revoke", text, "--json").out)["revoked_at"] == first


# The arguments, and what is said
WRONG = [
    ("create", "Missing argument"),
    ("create game", "--scope"),
    (
        "create game --scope reports",
        "unknown scope 'reports' (did you mean 'report'?); known: report, queue, read, ratings, admin",
    ),
    ("create game --scope read --ladder deul", "unknown ladder 'deul' (did you mean 'duel'?); known: duel"),
    ("create game --scope read --expires soon", "--expires soon: expected a span like 90d, 12h, 30m or 4w"),
    ("create game --scope read --expires 0d", "--expires 0d"),
    ("create game --scope read --expires 2020-01-01", "a future ISO 8601 time"),
    ("create game --scope read --expires 999999w", "before the year 2100"),
    ("create game --scope read --db nowhere.db", "there is no such database"),
    ("revoke em_aaaaaaaaaa", "unknown key 'em_aaaaaaaaaa'"),
    ("revoke", "Missing argument"),
]


@pytest.mark.parametrize(("line", "said"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_option_name_or_value_ends_with_2_and_makes_no_key(line, said, run, league):
    ended = run("key", *line.split())
    assert (ended.code, ended.out) == (2, "")
    assert said in " ".join(ended.err.replace("│", " ").split())
    assert listed(run) == []


def test_a_whole_key_mistyped_is_not_shown_again(run, league):
    text = run("key", "create", "game", "--scope", "report").out.strip()
    for typed in (text + "x", text[:-1], text[14:], f"{text} "):
        ended = run("key", "revoke", "--", typed)
        assert ended.code == 2
        assert text[18:30] not in ended.err
