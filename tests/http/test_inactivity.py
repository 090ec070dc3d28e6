"""Inactive players over HTTP: they learn in time what it costs them, and operators lower ratings or look first."""

import pytest

from evenmatch import rules
from evenmatch.http.server import site_over, workers
from evenmatch.ladders.inactivity import DailyDecay
from evenmatch.ladders.settings import Settings
from ledger.sample_matches import START, after, duel, micros


@pytest.fixture
def database_url(either_database):
    return either_database


def ladder_of(service, clock, **changes):
    """A ladder since 1 January 2026; ann (1530.53) and bob completed two matches by 02:00."""
    clock.now = micros(START)
    settings = {"placement": 2, "active_days": 30.0, "grace_days": 14.0, "rating_decay": 25.0, **changes}
    service.create_ladder("duel", "elo", rules("elo"), Settings().changed(settings))
    for number in (1, 2):
        service.record(duel(number, "ann", "bob", "duel"))


def notice(reader, service, player="ann"):
    service.view("duel")  # what is read may be a twentieth of a second old
    told = reader.get(f"/v1/ladders/duel/players/{player}")
    assert told.status_code == 200, told.text
    return told.json()["inactivity"]


def test_a_player_is_told_when_the_rating_falls_before_it_does(reader, service, clock):
    ladder_of(service, clock, inactivity="rating")
    clock.now = micros(after(48))
    text = (  # a whole week ends at 02:00 on 22 January, and counts from the midnight after
        "Without a completed match, the rating falls by 25 a week from 2026-01-23 on, down to 1500.00, and "
        "this player leaves the standings after 2026-01-31."
    )
    wanted = {"rule": "rating", "leaves_at": "2026-01-31T02:00:00Z", "falls_at": "2026-01-23T00:00:00Z", "amount": 25.0}
    assert notice(reader, service) == {**wanted, "text": text}
    assert notice(reader, service, "bob")["falls_at"] is None  # below the floor already
    clock.now = micros(after(24 * 22))
    assert DailyDecay(service).apply("duel").players == 1
    assert notice(reader, service)["falls_at"] == "2026-01-30T00:00:00Z"
    clock.now = micros(after(24 * 40))
    assert DailyDecay(service).apply("duel").players == 1  # down to 1500
    assert notice(reader, service) is None


def test_a_player_is_told_when_the_percentile_falls_and_when_the_list_ends(reader, service, clock):
    ladder_of(service, clock, inactivity="percentile", percentile_decay=0.5, percentile_floor=20)
    told = notice(reader, service)
    assert (told["rule"], told["falls_at"], told["amount"]) == ("percentile", "2026-01-17T02:00:00Z", 1.0)  # two days
    assert told["text"] == (
        "Without a completed match, the shown percentile falls by 0.5 a day from 2026-01-17 on, to 20 at the lowest, "
        "and this player leaves the standings after 2026-01-31."
    )
    clock.now = micros(after(24 * 16 + 3))
    service.view("duel")
    assert reader.get("/v1/ladders/duel/players/ann").json()["standing"]["percentile"] == 99
    assert notice(reader, service)["falls_at"] == "2026-01-19T02:00:00Z"
    assert notice(reader, service, "bob")["falls_at"] is None  # at percentile 1


def test_a_player_is_told_when_they_leave_the_list(reader, service, clock):
    ladder_of(service, clock)
    told = notice(reader, service)
    assert (told["rule"], told["leaves_at"], told["falls_at"]) == ("leave", "2026-01-31T02:00:00Z", None)
    assert told["text"] == "Without a completed match, this player leaves the standings after 2026-01-31."
    clock.now = micros(after(24 * 31))
    assert notice(reader, service) is None


def test_an_operator_looks_ahead_then_lowers_the_ratings_once(admin, reader, keys, service, clock):
    ladder_of(service, clock, inactivity="rating")
    clock.now = micros(after(24 * 20))
    assert admin.get("/v1/ladders/duel/decay/preview").json()["moved"] == 0
    (move,) = admin.get("/v1/ladders/duel/decay/preview?days=2").json()["moves"]
    assert (move["player"], move["before"], move["after"], move["change"]) == ("ann", 1530.53, 1505.53, -25.0)
    clock.now = micros(after(24 * 22))
    told = admin.post("/v1/ladders/duel/decay").json()
    assert told == {"players": 1, "position": 4, "until": "2026-01-23T00:00:00Z"}
    assert admin.post("/v1/ladders/duel/decay").json() == {"players": 0, "position": None, "until": None}
    assert reader.get("/v1/ladders/duel/players/ann").json()["standing"]["rating"] == pytest.approx(1505.5305)
    (event,) = [one for one in admin.get("/v1/ladders/duel/corrections").json()["items"] if one["position"] == 4]
    assert (event["kind"], event["id"], event["said"]["rate"]) == ("ratings-decayed", "decay:2026-01-23", 25.0)
    with service.database.read() as store:
        trail = store.connection.exec_driver_sql("SELECT action FROM audit ORDER BY entry").scalars().all()
    assert trail.count("ratings.decayed") == 1
    assert service.verify("duel").is_equal


def test_one_of_the_services_workers_lowers_the_ratings(service, options):
    site = site_over(service, options.model_copy(update={"matchmaker": True}))
    site.threads.shutdown()
    (run,) = [run for name, run in workers(site) if name == "decay"]
    assert isinstance(run.__self__, DailyDecay)


def test_who_may_not_and_what_is_not_decays_nothing(admin, reader, service, clock):
    ladder_of(service, clock)
    assert reader.post("/v1/ladders/duel/decay").status_code == 403
    told = admin.post("/v1/ladders/duel/decay")
    assert (told.status_code, told.json()["detail"][:34]) == (409, "ladder 'duel' has inactivity=leave")
    assert admin.get("/v1/ladders/duel/decay/preview").status_code == 409
    assert admin.get("/v1/ladders/none/decay/preview").status_code == 404
    assert admin.get("/v1/ladders/duel/decay/preview?days=-1").status_code == 422
    refused = admin.patch("/v1/ladders/duel", json={"rating_stop": "Wood"})
    assert (refused.status_code, "rating_stop='Wood'" in refused.json()["detail"]) == (422, True)
