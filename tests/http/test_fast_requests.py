"""The most frequent writes: how they are read, and that both routes to an endpoint give the same answer."""

import json
import math
import re
from decimal import Decimal

import msgspec
import numpy as np
import pytest
from fastapi.exceptions import RequestValidationError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from asgi_client import check_alike
from evenmatch import rules
from evenmatch.errors import InputError, StoreError
from evenmatch.http import hot_routes
from evenmatch.http.models.reports import BatchReport, MatchReport, Receipt
from evenmatch.http.report_recording import all_matches, match_of, one_match, times_of
from evenmatch.http.request_bodies import decoded
from evenmatch.players.explanations import shown_numbers
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.recording.report_batch import ReportBatch
from evenmatch.systems import names as system_names

MATCHES = "/v1/ladders/duel/matches"
TICKETS = "/v1/ladders/duel/tickets"
TWO = [
    {"score": 7, "players": [{"player": "ann", "score": 12, "seconds": 600}, {"player": "bob", "seconds": 590}]},
    {"score": 4, "players": [{"player": "eve", "seconds": 600}, {"player": "joe", "seconds": 120.5, "quit": True}]},
]
THREE = [
    {"place": 2, "players": [{"player": "ann"}]},
    {"place": 1, "players": [{"player": "Jörg 🦊", "keep": False}, {"player": "bob"}]},
    {"place": 2, "players": [{"player": "joe"}]},
]


def match_json(match_id="m-1", **changes):
    return {"id": match_id, "played_at": "2025-11-21T18:30:00Z", "teams": TWO, **changes}


@pytest.fixture
def ladder(service):
    service.create_ladder("duel", "trueskill", rules("trueskill"))
    return "duel"


@pytest.fixture
def either(admin, monkeypatch):
    """Sends a body twice, to the hot route and then, with a query, by FastAPI's; the answers must be alike."""
    taken = []

    def noting(bind):
        def bound(*arguments):
            answer = bind(*arguments)
            taken.extend([] if answer is None else [answer])
            return answer

        return bound

    for key, route in hot_routes.ROUTES.items():
        monkeypatch.setitem(hot_routes.ROUTES, key, route._replace(bind=noting(route.bind)))

    def send(address, body):
        """The first of two answers."""
        taken.clear()
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        first = admin.post(address, content=content)
        hot = len(taken)
        second = admin.post(f"{address}?by=endpoint", content=content)
        assert len(taken) == hot, "FastAPI was to route this"
        check_alike(first, second)
        return first

    return send


@pytest.mark.usefixtures("ladder")
@pytest.mark.parametrize(
    "body",
    [
        match_json(),
        match_json(duration=600, rated=False),
        match_json(teams=THREE),
        match_json(id="é" * 256, played_at="2025-11-21T19:30:00.123456+01:00"),
        match_json(teams=[{"score": 1, "players": [{"player": "a"}]}, {"score": 1.5, "players": [{"player": "b"}]}]),
    ],
)
def test_a_good_report_gets_the_same_receipt_by_either_way(either, body):
    first = either(MATCHES, body)
    assert first.status_code == 200, first.json()["detail"]
    assert [len(team) for team in first.json()["teams"]] in ([len(team["players"]) for team in body["teams"]], [])


@pytest.mark.parametrize("system", system_names())
def test_a_receipt_has_the_factors_of_every_system_as_the_model_says(admin, service, system):
    service.create_ladder("duel", system, rules(system))
    sides = [
        {"score": score, "players": [{"player": name, "score": 3 + score, "seconds": 600, "performance": 0.5}]}
        for name, score in (("ann", 7), ("bob", 4))
    ]
    answer = admin.post(MATCHES, json=match_json(teams=sides, duration=600))
    assert answer.status_code == 200, answer.json()["detail"]
    told = msgspec.json.decode(answer.content, type=Receipt)
    report = decoded(MatchReport, json.dumps(match_json(teams=sides, duration=600)).encode())
    known = service.record(match_of("duel", report, times_of([report])[0]))
    for team, lines in zip(told.teams, known.teams, strict=True):
        for one, line in zip(team, lines, strict=True):
            before, after = f"{line.change.before:.2f}", f"{line.change.after:.2f}"
            assert msgspec.structs.asdict(one) == {
                **line.change._asdict(),
                "before": float(before),
                "after": float(after),
                "change": float(Decimal(after) - Decimal(before)),
                "expected": rounded(line.change.expected),
                "result": rounded(line.change.result),
                "factors": {name: rounded(value) for name, value in line.change.factors.items()},
                "percentile": line.percentile,
                "division": line.division,
            }


def rounded(value):
    """To six significant digits, by Python's own formatting."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None


def test_numbers_are_told_as_they_are_shown_without_digits_of_binary_fractions(admin, service):
    """wager: 1.00 wins a twentieth, 0.05; in binary that is 0.050000000000000044."""
    service.create_ladder("duel", "wager", rules("wager"))
    sides = [{"place": place, "players": [{"player": name}]} for place, name in ((1, "ann"), (2, "bob"))]
    answer = admin.post(MATCHES, json=match_json(teams=sides))
    assert b'"change":0.05,' in answer.content
    match_id = answer.json()["match_id"]
    told = [admin.get(f"{MATCHES}/{match_id}").content, admin.get("/v1/ladders/duel/players/ann/matches").content]
    for content in (answer.content, *told):
        assert re.findall(rb"\d\.\d{7,}", content) == []


@given(arrays(np.float64, 4, elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_significant_digits_are_those_of_pythons_own_formatting(values):
    for value, shown in zip(values.tolist(), shown_numbers(values).tolist(), strict=True):
        if math.isfinite(value) and 1e-200 < abs(value) < 1e200:
            assert shown == pytest.approx(float(f"{value:.6g}"), rel=1.1e-5)  # of two as near, either
            assert len(f"{shown!r}".lower().split("e")[0].replace(".", "").strip("-0")) <= 6, (value, shown)
        elif not math.isfinite(value):
            assert repr(shown) == repr(value)


@pytest.mark.usefixtures("ladder")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"id": "\\ud800"}',
        b"\xff",
        match_json(extra=1),
        match_json(match_id=""),
        match_json(match_id="x\0y"),
        match_json(match_id="x" * 257),
        match_json(played_at="yesterday"),
        match_json(played_at=5),
        match_json(played_at=1795285800),
        match_json(played_at=10**400),
        match_json(played_at="05/01/2026"),
        match_json(teams=TWO[:1]),
        match_json(teams=[TWO[0], TWO[0]]),
        match_json(teams=[TWO[0], {"players": [{"player": "eve"}]}]),
        match_json(teams=[{**TWO[0], "place": 1}, TWO[1]]),
        match_json(teams=[{**TWO[0], "place": 1.0}, {**TWO[1], "place": 2}]),
        match_json(teams=[{**TWO[0], "place": 0}, {**TWO[1], "place": 2}]),
        match_json(teams=[{"score": 1, "players": []}, TWO[1]]),
        match_json(duration=-1),
        match_json(duration="600"),
        match_json(rated=1),
    ],
)
def test_a_body_that_is_no_report_is_refused(either, body):
    first = either(MATCHES, body)
    assert 400 <= first.status_code < 500


@pytest.mark.usefixtures("ladder")
def test_what_the_ledger_refuses_is_told_alike(either, admin):
    assert admin.post(MATCHES, json=match_json()).status_code == 200
    for body, status in (
        (match_json(duration=5), 409),
        (match_json("m-2", played_at="2999-01-01T00:00:00Z"), 422),
        (match_json("m-2", played_at="0026-01-01T00:00:00Z"), 422),
        (match_json("m-2", played_at="1970-01-21T18:41:25.800Z"), 422),
    ):
        first = either(MATCHES, body)
        assert first.status_code == status


# A time that is none, and what the answer says of it
NO_TIMES = [
    (1795285800, "epoch seconds (2026-11-21T18:30:00Z)"),
    (1795285800000, "epoch milliseconds (2026-11-21T18:30:00Z)"),
    (46347.84375, "a spreadsheet date (2026-11-21T20:15:00Z)"),
    ("1795285800", "epoch seconds (2026-11-21T18:30:00Z)"),
    ("05/01/2026", "2026-01-05 with the day first, or 2026-05-01 with the month first"),
    ("21/11/26", "a date whose year has two digits"),
]


@pytest.mark.usefixtures("ladder")
@pytest.mark.parametrize(("value", "likeness"), NO_TIMES, ids=[str(value) for value, _ in NO_TIMES])
def test_a_value_that_is_no_time_is_refused_with_what_it_looks_like(admin, value, likeness):
    told = admin.post(MATCHES, json=match_json(played_at=value))
    assert told.status_code == 422
    assert told.json()["detail"] == (
        "played_at: expected an ISO 8601 time as text, for example 2026-11-21T18:30:00Z, but this looks like "
        f"{likeness} (sent: {str(value)!r})"
    )
    asked = admin.get(MATCHES, params={"since": value})
    assert (asked.status_code, f"but this looks like {likeness}" in asked.json()["detail"]) == (422, True)


@pytest.mark.usefixtures("ladder")
def test_a_match_at_an_implausible_time_is_refused_and_the_rest_of_its_batch_recorded(admin):
    """In JavaScript, new Date(1795285800) takes seconds for milliseconds."""
    odd = [
        match_json("misread", played_at="1970-01-21T18:41:25.800Z"),
        match_json("short", played_at="0026-11-21T18:30:00Z"),
    ]
    told = admin.post(f"{MATCHES}/batch", json={"matches": [*odd, match_json("old", played_at="1872-11-30T14:15:00Z")]})
    assert [one["problem"]["detail"] for one in told.json()["outcomes"] if "problem" in one] == [
        "match 'misread': played_at is 1970-01-21T18:41:25.800000Z, which looks like a time read in the wrong unit "
        "(2026-11-21 is 1,000 times as long after 1970); expected a time in the years 1800 to 2099",
        "match 'short': played_at is 0026-11-21T18:30:00Z, which looks like a year of two digits; expected a time in "
        "the years 1800 to 2099",
    ]
    assert told.json()["recorded"] == 1


def five_against_six(match_id):
    teams = [{"place": side + 1, "players": [{"player": f"{side}{at}"} for at in range(5 + side)]} for side in (0, 1)]
    return match_json(match_id, teams=teams)


SIZES = "5 against 6 players; expected teams of 6, the ladder's team_size"
REFUSED = f"{SIZES} (the ladder has other_sizes=refuse)"


def test_a_receipt_warns_of_teams_of_other_sizes_than_the_ladders(either, service, ladder):
    service.change_settings(ladder, {"team_size": 6})
    first = either(MATCHES, five_against_six("m-1"))
    assert first.json()["warnings"] == [SIZES]
    assert msgspec.convert(first.json(), Receipt).warnings == [SIZES]
    full = [{"place": side + 1, "players": [{"player": f"{side}{at}"} for at in range(6)]} for side in (0, 1)]
    even = match_json("m-3", teams=full)
    first = either(f"{MATCHES}/batch", {"matches": [five_against_six("m-2"), even]})
    told = [one["receipt"] for one in first.json()["outcomes"]]
    assert [one.get("warnings") for one in told] == [[SIZES], None]
    assert msgspec.convert(told[1], Receipt).warnings == []


def test_a_ladder_may_refuse_teams_of_other_sizes(either, service, ladder):
    service.change_settings(ladder, {"team_size": 6, "other_sizes": "refuse"})
    first = either(MATCHES, five_against_six("m-1"))
    assert (first.status_code, first.json()["detail"]) == (422, f"the match: {REFUSED}")
    assert first.json()["problems"] == [{"where": "m-1", "reason": REFUSED}]
    assert service.ladder(ladder).matches == 0


@pytest.mark.usefixtures("ladder")
def test_no_ban_begins_and_no_live_match_starts_at_an_implausible_time(admin):
    assert admin.post(MATCHES, json=match_json()).status_code == 200
    ban = admin.post("/v1/ladders/duel/bans", json={"player": "ann", "since": "0026-11-21T00:00:00Z"})
    start = {"teams": [{"players": ["kim"]}, {"players": ["max"]}], "started_at": "1970-01-21T18:41:25.8Z"}
    live = admin.put("/v1/ladders/duel/live/l-1", json=start)
    for told, name in ((ban, "since is 0026"), (live, "started_at is 1970")):
        assert (told.status_code, name in told.json()["detail"]) == (422, True), told.json()
        assert "; expected a time in the years 1800 to 2099" in told.json()["detail"]


@pytest.mark.usefixtures("ladder")
def test_a_batch_is_told_alike_with_what_was_refused_in_its_place(either):
    good = [match_json(f"m-{at}", duration=600 + at) for at in range(70)]
    again = {**good[3], "duration": 1}
    first = either(f"{MATCHES}/batch", {"matches": [*good, again, match_json("last", teams=THREE)]})
    told = first.json()
    assert (told["recorded"], told["refused"]) == (71, 1)
    assert [one["match_id"] for one in told["outcomes"]] == [*(f"m-{at}" for at in range(70)), "m-3", "last"]
    assert told["outcomes"][70]["problem"]["status"] == 409
    assert told["outcomes"][71]["receipt"]["teams"][1][0]["player"] == "Jörg 🦊"


@pytest.mark.usefixtures("ladder")
def test_a_batch_with_a_bad_match_is_read_by_the_endpoint_which_records_the_others(either):
    twice = match_json("bad", teams=[TWO[0], TWO[0]])
    first = either(f"{MATCHES}/batch", {"matches": [match_json(), twice, match_json("m-2")]})
    assert [list(one)[1] for one in first.json()["outcomes"]] == ["receipt", "problem", "receipt"]


@pytest.mark.usefixtures("ladder")
def test_more_matches_than_a_batch_may_have_are_refused_before_any_is_recorded(either, site, service):
    site.options = site.options.model_copy(update={"batch_limit": 3})
    first = either(f"{MATCHES}/batch", {"matches": [match_json(f"m-{at}") for at in range(4)]})
    assert first.status_code == 422
    assert "4 matches in one batch; the limit EVENMATCH_BATCH_LIMIT is 3" in first.json()["detail"]
    assert service.ladder("duel").position == 1


@pytest.fixture
def queue(site, ladder):
    site.queue_service.set_queue(ladder, "main", {"team_size": 2})
    return "main"


@pytest.mark.usefixtures("queue")
def test_a_party_that_joins_again_by_its_request_gets_the_same_ticket_by_either_way(either):
    member = {"player": "ann", "within": 5, "loose": False, "ping": {"eu": 20.5}, "max_ping": 90, "avoid": ["joe"]}
    first = either(TICKETS, {"queues": ["main"], "members": [member], "request_id": "r-1"})
    assert first.status_code == 201


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize(
    "body",
    [
        {"queues": ["main"], "members": [{"player": "a", "within": 101}]},
        {"queues": ["main"], "members": [{"player": "a", "ping": {"eu": -1}}]},
        {"queues": [], "members": [{"player": "a"}]},
        {"queues": ["main"], "members": []},
        {"queues": ["main"], "members": [{"player": "a"}], "request_id": ""},
        {"queues": ["other"], "members": [{"player": "a"}]},
        {"queues": ["main"], "members": [{"player": "a"}, {"player": "a"}]},
        {"queues": ["main"], "members": [{"player": name} for name in "abc"]},
    ],
)
def test_who_may_not_join_is_told_alike(either, body):
    first = either(TICKETS, body)
    assert first.status_code in {404, 422}


def test_an_offer_is_accepted_alike(either, asking, admin, site, queue, clock):
    """Repeating it changes nothing, so that the second answer is that of the endpoint."""
    maker = Matchmaker(site.queue_service)
    maker.step("duel")
    parties = [
        {"queues": [queue], "members": [{"player": name, "loose": True}]} for name in ("ann", "bob", "eve", "joe")
    ]
    tickets = [admin.post(TICKETS, json=party).json()["ticket"] for party in parties]
    clock.move(seconds=1)
    maker.step("duel")
    offer = admin.get(f"{TICKETS}/{tickets[0]}").json()["offer"]["offer"]
    for ticket, body in zip(
        tickets, ({}, {"player": "bob"}, {"offer": offer}, {"player": "joe", "offer": offer}), strict=True
    ):
        first = either(f"{TICKETS}/{ticket}/accept", body)
        assert first.status_code == 200, first.text
    assert admin.get(f"{TICKETS}/{tickets[0]}").json()["match"] is not None


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize(
    "body",
    [
        {"offer": 7},
        {"player": "eve"},
        {"offer": 0},
        {"offer": 1.5},
        {"player": ""},
        {"player": "a", "more": 1},
        [],
        b"",
        b"{",
    ],
)
def test_what_accepts_no_offer_is_told_alike(either, admin, body):
    (ticket,) = (admin.post(TICKETS, json={"queues": ["main"], "members": [{"player": "ann"}]}).json()["ticket"],)
    first = either(f"{TICKETS}/{ticket}/accept", body)
    assert first.status_code in {400, 404, 409, 422}


def test_who_may_not_accept_is_told_alike(asking, service, site, keys, admin, queue):
    service.create_ladder("other", "elo", rules("elo"))
    ticket = admin.post(TICKETS, json={"queues": [queue], "members": [{"player": "ann"}]}).json()["ticket"]
    caller = site.keys.authenticate(site.keys.create("game", ["queue"], None, None)[1])
    tokens = [{"Authorization": f"Bearer {site.tokens.issue(caller, who).text}"} for who in ("ann", "bob")]
    elsewhere = {"Authorization": f"Bearer {site.keys.create('of other', ['admin'], ['other'], None)[1]}"}
    for headers, body, status in (
        (tokens[0], {}, 409),
        (tokens[0], {"player": "bob"}, 403),
        (tokens[1], {}, 403),
        (keys["read"], {}, 403),
        (elsewhere, {}, 403),
        ({}, {}, 401),
    ):
        path = f"{TICKETS}/{ticket}/accept"
        first, second = (asking.post(f"{path}{query}", headers=headers, json=body) for query in ("", "?by=endpoint"))
        assert first.status_code == status, (body, first.text)
        check_alike(first, second)


@pytest.mark.usefixtures("queue")
def test_a_player_joins_as_themselves_alone(asking, site):
    caller = site.keys.authenticate(site.keys.create("game", ["queue"], None, None)[1])
    headers = {"Authorization": f"Bearer {site.tokens.issue(caller, 'ann').text}"}
    for who, status in (("ann", 201), ("bob", 403)):
        answer = asking.post(TICKETS, headers=headers, json={"queues": ["main"], "members": [{"player": who}]})
        assert answer.status_code == status


@pytest.mark.usefixtures("ladder")
@pytest.mark.parametrize("header", [None, "Bearer em_no", "Bearer x.y.z", "Basic abc", "EM1-HMAC-SHA256 nonsense"])
def test_who_is_not_known_is_told_so_by_the_endpoint(asking, header):
    headers = {} if header is None else {"Authorization": header}
    for address in (MATCHES, f"{MATCHES}/batch", TICKETS):
        assert asking.post(address, headers=headers, json=match_json()).status_code == 401


@pytest.mark.usefixtures("ladder")
def test_each_request_is_counted_once_whoever_answers_it(admin, site, monkeypatch):
    limit = site.key_limit
    took = []
    take = limit.take
    monkeypatch.setattr(limit, "take", lambda key: took.append(key) or take(key))
    for body, count in ((match_json(), 1), (match_json(extra=1), 1), (match_json(teams=[TWO[0], TWO[0]]), 1)):
        took.clear()
        admin.post(MATCHES, json=body)
        assert len(took) == count


good_slot = st.fixed_dictionaries(
    {"player": st.text("abcdefghé🦊", min_size=1, max_size=4)},
    optional={"score": st.floats(-9, 9), "seconds": st.integers(0, 9), "performance": st.sampled_from([-1, 0.5, 1])}
    | {"entry": st.floats(-1e9, 1e9, width=32)},
)
good = st.fixed_dictionaries(
    {
        "id": st.text(min_size=1, max_size=9),
        "played_at": st.datetimes().map(lambda one: one.isoformat()),
        "teams": st.lists(
            st.fixed_dictionaries({"players": st.lists(good_slot, min_size=1, max_size=3), "score": st.integers(0, 3)}),
            min_size=2,
            max_size=4,
        ),
    },
    optional={"duration": st.floats(0, 9), "rated": st.booleans()},
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(good)
def test_reports_are_read_into_columns_as_matches_are(site, body):
    try:
        report = decoded(MatchReport, json.dumps(body).encode())
        (time,) = times_of([report])
        read = ReportBatch.of([match_of("duel", report, time)], [report.rated])
    except (InputError, RequestValidationError):
        return
    assert repr(one_match(site, "duel", report)) == repr(read)


# What an independent reader of this layer found.


@pytest.mark.usefixtures("ladder")
def test_a_database_that_fails_is_told_alike_and_without_its_words(either, site, monkeypatch):
    def lost(*_):
        raise StoreError("postgresql://secret-host/db: connection refused")

    with monkeypatch.context() as patch:
        patch.setattr(site.service.recorder, "prepare", lost)
        first = either(MATCHES, match_json())
        assert first.status_code == 503
        assert "secret-host" not in first.text
    with monkeypatch.context() as patch:
        patch.setattr(type(site.keys), "recall", lambda *_: None)
        patch.setattr(type(site.keys), "authenticate", lost)
        first = either(MATCHES, match_json())
        assert first.status_code == 503
        assert "secret-host" not in first.text


async def pieces(content):
    for first in range(0, len(content), 500):
        yield content[first : first + 500]


@pytest.mark.usefixtures("ladder")
def test_a_wrong_key_is_looked_for_once(asking, site, monkeypatch):
    asked = []
    real = site.keys.authenticate
    monkeypatch.setattr(site.keys, "authenticate", lambda text: asked.append(text) or real(text))
    wrong = f"Bearer em_{'a' * 10}_{'b' * 43}"
    assert asking.post(MATCHES, headers={"Authorization": wrong}, json=match_json()).status_code == 401
    assert len(asked) == 1


def test_only_what_was_recorded_says_who_quit(site):
    bodies = [match_json(teams=[TWO[0], {**TWO[1], "players": [{"player": "eve"}]}]), match_json()]
    batch = decoded(BatchReport, json.dumps({"matches": bodies}).encode())
    two, _ = all_matches(site, "duel", batch)
    assert two.quitters([0, 1]) == {"m-1": ["joe"]}
    assert two.quitters([0]) == {}
