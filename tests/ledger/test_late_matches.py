"""Matches that arrive late: inserted at the time they were played, or counted as the newest and listed by time."""

import pytest

from evenmatch import from_matches, rate, rules
from evenmatch.corrections.corrections import Ban, Unvoid, Void
from evenmatch.durations import HOUR
from evenmatch.errors import ConflictError, InputError
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.ledger import event_rows
from evenmatch.operations.service import Service
from ledger.sample_matches import START, after, duel, dump, everybody, micros, ratings, team_match

SEASON = [
    duel(1, "ann", "bob"),
    team_match(2, (1, "cat", "dan"), (2, "eve")),
    team_match(4, (1, "ann"), (1, "bob"), (3, "eve", "dan*")),
    duel(8, "bob", "cat"),
    duel(40, "eve", "ann"),
]
FORGOTTEN = [duel(3, "bob", "fay"), team_match(5, (1, "eve"), (2, "ann~"), (2, "cat"))]


@pytest.fixture
def season(service, ladder, clock):
    """A ladder with matches from hour 1 to hour 40, on day 90."""
    clock.move(days=90)
    for one in SEASON:
        service.record(one)
    return service


def insertion(service, *matches, **options):
    return service.insertion("default", from_matches(matches), **options)[0]


def insert(service, *matches):
    return service.correct("default", insertion(service, *matches))


def rated_in_order(matches, system="elo", **parameters):
    """The ratings of a file in which nothing came late."""
    made = rate(from_matches(matches), rules(system, **parameters))
    return dict(zip(made.matches.player_names, made.state["rating"].tolist(), strict=True))


def listed(service, **options):
    """(match, whether it is marked as late) of a page of the ladder's matches."""
    _, page, _ = LadderQueries(service).matches("default", limit=50, **options)
    return [(one.match_id, one.late is not None) for one in page]


@pytest.mark.parametrize("at_once", [2, 20_000])
def test_inserted_matches_count_when_they_were_played(season, monkeypatch, at_once):
    monkeypatch.setattr(event_rows, "BATCH", at_once)
    before = everybody(season)
    wish = insertion(season, *FORGOTTEN)
    previewed = season.preview("default", wish)
    assert everybody(season) == before
    applied = season.correct("default", wish)
    assert ratings(season) == rated_in_order([*SEASON, *FORGOTTEN])
    assert applied == previewed
    moved = {move.player: (move.before, move.after, move.matches_after) for move in applied.moves}
    now = everybody(season)
    assert moved == {
        name: (before[name].rating if name in before else None, one.rating, one.matches)
        for name, one in now.items()
        if name not in before or (before[name].rating, before[name].matches) != (one.rating, one.matches)
    }
    assert moved["fay"][0] is None
    assert season.verify("default").is_equal


def test_idle_times_of_an_inserted_match_are_those_of_its_own_time(service, clock):
    service.create_ladder("default", "glicko", rules("glicko", c=60.0))
    clock.move(days=90)
    first, last = duel(1, "ann", "bob"), duel(1500, "ann", "bob")
    late = [duel(700, "bob", "ann"), duel(900, "bob", "ann")]
    for one in (first, last):
        service.record(one)
    insert(service, late[1])
    insert(service, late[0])  # before the same match, and earlier than the one that is there
    assert ratings(service) == rated_in_order([first, *late, last], "glicko", c=60.0)
    assert service.verify("default").is_equal


def test_inserted_matches_are_events_of_the_ledger_like_others(season):
    effect = insert(season, *FORGOTTEN)
    assert effect.position == len(SEASON) + 1
    receipts = [season.record(one) for one in FORGOTTEN]
    assert [receipt.position for receipt in receipts] == [7, 8]
    bob, fay = (team[0].change for team in receipts[0].teams)
    lost = 32 / (1 + 10 ** ((1484 - 1500) / 400))  # to bob, who has lost to ann
    assert (bob.before, fay.before) == (1484.0, 1500.0)
    assert fay.after == pytest.approx(1500 - lost)
    season.correct("default", Void("m3"))
    assert ratings(season) == rated_in_order([*SEASON, FORGOTTEN[1]])
    season.correct("default", Unvoid("m3"))
    season.correct("default", Ban("fay"))
    assert ratings(season) == rated_in_order([*SEASON, FORGOTTEN[1]])
    season.rebuild("default", whole=True)
    assert season.verify("default").is_equal


def test_a_match_that_another_match_is_inserted_beside_keeps_its_place_in_later_corrections(season):
    insert(season, FORGOTTEN[1])
    insert(season, FORGOTTEN[0])
    season.record(duel(50, "fay", "eve"))
    season.correct("default", Void("m8"))
    season.correct("default", Void("m40"))
    wanted = [*SEASON[:3], *FORGOTTEN, duel(50, "fay", "eve")]
    assert ratings(season) == rated_in_order(wanted)
    assert season.verify("default").is_equal


def test_a_match_of_the_last_season_does_not_count_in_the_next(season, clock):
    assert season.open_season("default", reset="full").number == 2
    opened = (clock() - micros(START)) // HOUR
    clock.move(days=1)
    season.record(duel(opened + 3, "ann", "bob"))
    insert(season, duel(opened - 1, "eve", "ann"))
    assert ratings(season)["ann"] == 1516.0
    assert season.verify("default").is_equal


def test_only_new_late_matches_are_inserted(season):
    rows = dump(season)
    with pytest.raises(InputError, match=r"'m99' ended at .*, and no match of ladder 'default' ended later"):
        season.preview("default", insertion(season, duel(99, "ann", "bob")))
    with pytest.raises(ConflictError, match="already has all of these matches"):
        season.preview("default", insertion(season, SEASON[1]))
    insert(season, SEASON[1], FORGOTTEN[0])
    assert ratings(season) == rated_in_order([*SEASON, FORGOTTEN[0]])
    assert rows["event"] == dump(season)["event"][: len(rows["event"])]


def test_an_insertion_with_an_id_is_applied_once(season):
    wish = insertion(season, *FORGOTTEN, reason="the server was offline")
    season.correct("default", wish, event_id="late-1")
    rows = dump(season)
    assert season.correct("default", wish, event_id="late-1").done
    with pytest.raises(ConflictError, match="'late-1'"):
        season.correct("default", insertion(season, FORGOTTEN[0]), event_id="late-1")
    assert dump(season) == rows


def test_lists_are_in_the_order_played_and_mark_what_was_recorded_late(season):
    season.record(duel(6, "ann", "bob"))  # counts as the newest
    insert(season, duel(7, "ann", "cat"))
    wanted = ["m40", "m8", "m7", "m6", "m4", "m2", "m1"]
    assert listed(season) == [(match_id, match_id in ("m6", "m7")) for match_id in wanted]
    of_ann = ["m40", "m7", "m6", "m4", "m1"]
    assert [match_id for match_id, _ in listed(season, player="ann")] == of_ann
    _, page, key = LadderQueries(season).matches("default", limit=3)
    assert [one.match_id for one in page] == wanted[:3]
    _, page, _ = LadderQueries(season).matches("default", limit=9, before=key)
    assert [one.match_id for one in page] == wanted[3:]
    span = {"since": micros(after(6)), "until": micros(after(8))}
    assert [match_id for match_id, _ in listed(season, **span)] == ["m7", "m6"]
    assert [match_id for match_id, _ in listed(season, player="bob", **span)] == ["m6"]


def test_a_rating_path_goes_through_inserted_matches_in_order(season):
    insert(season, duel(3, "ann", "fay"), duel(6, "ann", "fay"))
    _, path = LadderQueries(season).path("default", "ann", 100)
    assert [step.match_id for step in path.steps] == ["m1", "m3", "m4", "m6", "m40"]
    for earlier, later in zip(path.steps, path.steps[1:], strict=False):
        assert earlier.after == later.before


def test_a_page_of_matches_is_read_without_reading_all_the_others(tmp_path, clock):
    """Counted in steps of SQLite, of which there are as many after 400 matches as after forty."""
    with Service.open(str(tmp_path / "evenmatch.db"), clock) as service:
        service.create_ladder("default", "elo", rules("elo"))

        def steps_of_a_page() -> int:
            steps = []
            with service.database.read() as store:
                head = store.head("default")
                driver = store.connection.connection.driver_connection
                driver.set_progress_handler(lambda: steps.append(1), 1)
                assert len(event_rows.read_match_list(store, head.ladder, event_rows.END_OF_LIST, 10, None, None)) == 10
                assert event_rows.read_newest_time(store, head.ladder) is not None
                assert (
                    len(
                        event_rows.read_match_list_of_player(
                            store, head.ladder, 1, event_rows.END_OF_LIST, 10, None, None
                        )
                    )
                    == 10
                )
                driver.set_progress_handler(None, 0)
            return len(steps)

        service.record_many("default", [duel(number, "eve", "dan") for number in range(1, 41)])
        few = steps_of_a_page()
        service.record_many("default", [duel(number, "eve", "dan") for number in range(41, 401)])
        assert 0 < steps_of_a_page() == few


def test_the_receipt_of_a_match_that_counts_as_the_newest_says_so(season):
    receipt = season.record(duel(6, "ann", "bob"))
    assert receipt.warnings == [f"reported late: it counts as if it had ended at {after(40):%Y-%m-%dT%H:%M:%S}Z"]
    assert season.record(duel(6, "ann", "bob")).warnings == receipt.warnings
    assert season.record(duel(41, "ann", "bob")).warnings == []


def test_a_match_that_is_late_by_minutes_is_not_marked(season):
    season.record(team_match(41, (1, "ann"), (2, "bob"), at=40 - 0.5))
    assert listed(season)[1] == ("m41", False)
