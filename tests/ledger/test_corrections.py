"""Corrections: what they do to ratings, by hand; that a preview tells it; what contradicts the ledger is refused."""

import pytest

from evenmatch import rules
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.corrections.repair import RebuildRun
from evenmatch.errors import BadRowsError, ConflictError, InputError, RatingRangeError, UnknownNameError
from evenmatch.ladders.ladders import ChangeRules
from evenmatch.recording import recorder
from ledger.sample_matches import after, duel, dump, everybody, lasting_rows, micros, ratings, team_match
from reference.ledger import SlowLedger, System

HALF = {"ann": 1516.0, "bob": 1484.0}  # after the first duel, Elo with K = 32


@pytest.fixture
def played_service(service, ladder):
    """ann beats bob, cat beats dan, eve the cheater beats dan and then cat."""
    for one in (duel(1, "ann", "bob"), duel(2, "cat", "dan"), duel(3, "eve", "dan"), duel(4, "eve", "cat")):
        service.record(one)
    return service


def test_a_void_match_counts_for_nothing_and_can_be_made_to_count_again(played_service):
    before = ratings(played_service)
    played_service.correct("default", Void("m3"))
    now = everybody(played_service)
    assert now["dan"].rating == 1484.0
    assert (now["dan"].matches, now["eve"].matches) == (1, 1)
    assert {name: now[name].rating for name in ("ann", "bob")} == HALF
    played_service.correct("default", Unvoid("m3"))
    assert ratings(played_service) == before


def test_a_match_whose_players_played_nothing_else_leaves_nobody_when_it_is_void(played_service):
    played_service.correct("default", Void("m1"))
    assert everybody(played_service).keys() == {"cat", "dan", "eve"}


def test_a_ban_voids_all_matches_of_the_player_or_those_that_ended_since(played_service):
    played_service.correct("default", Ban("eve"))
    assert ratings(played_service) == {**HALF, "cat": 1516.0, "dan": 1484.0}
    played_service.correct("default", Reinstate("eve"))
    played_service.correct("default", Ban("eve", since=micros(after(4))))  # m4 ended at that very moment
    now = everybody(played_service)
    assert (now["cat"].rating, now["cat"].matches, now["eve"].matches, now["dan"].matches) == (1516.0, 1, 1, 2)


def test_a_refund_gives_losses_back_and_keeps_gains_and_counts(played_service):
    before = ratings(played_service)
    played_service.correct("default", Ban("eve", "refund"))
    now = everybody(played_service)
    assert (now["cat"].rating, now["dan"].rating) == (1516.0, 1484.0)
    assert (now["cat"].matches, now["dan"].matches, now["eve"].matches) == (2, 2, 2)
    assert now["eve"].rating == before["eve"]  # a cheater's gains are not taken: that is what the other rule does


def test_a_refund_spares_those_behind_the_banned_and_nobody_else(service, ladder):
    service.record(duel(0, "bob", "mate"))  # or all of the second place would gain as much as they lose
    service.record(team_match(1, (2, "eve", "mate"), (1, "ann"), (2, "bob"), (3, "cat")))
    before = ratings(service)
    service.correct("default", Ban("eve", "refund"))
    now = ratings(service)
    assert now["cat"] == 1500.0 != before["cat"]
    assert {name: now[name] for name in ("eve", "mate", "ann", "bob")} == {
        name: before[name] for name in ("eve", "mate", "ann", "bob")
    }


def test_a_refund_from_a_time_on_gives_back_losses_from_that_very_moment(played_service):
    before = ratings(played_service)
    played_service.correct("default", Ban("eve", "refund", since=micros(after(4))))  # m4 ended at that very moment
    assert ratings(played_service) == before | {"cat": 1516.0}


def test_a_ban_from_a_time_on_leaves_earlier_refunds_of_the_banned_player_alone(played_service):
    played_service.correct("default", Ban("eve", "refund"))
    before = ratings(played_service)
    played_service.correct("default", Ban("cat", "refund", since=micros(after(100))))  # she lost to eve at hour 4
    assert ratings(played_service) == before
    assert played_service.verify("default").is_equal
    played_service.rebuild("default", whole=True)
    assert ratings(played_service) == before


def test_matches_of_a_banned_player_do_not_count_from_then_on_and_the_board_hides_them(played_service):
    played_service.correct("default", Ban("eve"))
    receipt = played_service.record(duel(5, "eve", "ann"))
    assert (receipt.rated, receipt.teams) == (False, ())
    assert ratings(played_service)["ann"] == 1516.0
    played_service.record(duel(6, "cat", "dan"))
    listed = [name for name, _ in played_service.named(played_service.view("default").snapshot.page(1, 50))]
    assert listed == ["cat", "dan"]  # who played twice, and were not banned
    played_service.correct("default", Reinstate("eve"))
    assert everybody(played_service)["eve"].matches == 3
    assert played_service.verify("default").is_equal


def test_a_player_who_never_played_here_can_be_banned_beforehand(played_service):
    played_service.create_ladder("other", "elo", rules("elo"))
    played_service.correct("other", Ban("eve"))
    assert played_service.record(duel(1, "eve", "ann", ladder="other")).rated is False
    assert played_service.verify("other").is_equal


WISHES = {
    "void": Void("m3", "because"),
    "ban": Ban("eve"),
    "refund": Ban("eve", "refund"),
    "since": Ban("eve", since=micros(after(4))),
    "nobody's": Ban("newcomer"),
}


@pytest.mark.parametrize("wish", WISHES.values(), ids=WISHES)
def test_a_preview_tells_what_happens_then_and_changes_nothing(played_service, wish):
    played_service.record(duel(9, "newcomer", "ann"), rated=False)
    before, rows = everybody(played_service), dump(played_service)
    foretold = played_service.preview("default", wish)
    assert dump(played_service) == rows
    played_service.correct("default", wish)
    now = everybody(played_service)
    seen = {
        name: tuple((at[name].rating, at[name].matches) if name in at else (None, 0) for at in (before, now))
        for name in before
    }
    assert {
        one.player: ((one.before, one.matches_before), (one.after, one.matches_after)) for one in foretold.moves
    } == {name: both for name, both in seen.items() if both[0] != both[1]}
    sizes = [abs((one.after or 0) - (one.before or 0)) for one in foretold.moves]
    assert sizes == sorted(sizes, reverse=True)


CONTRADICTIONS = {
    "void twice": ([Void("m3")], Void("m3"), "already void"),
    "not void": ([], Unvoid("m3"), "not void"),
    "banned twice": ([Ban("eve")], Ban("eve", "refund"), "already banned from ladder 'default'"),
    "not banned": ([], Reinstate("eve"), "not banned"),
    "reinstated twice": ([Ban("eve"), Reinstate("eve")], Reinstate("eve"), "not banned"),
}


@pytest.mark.parametrize(("first", "wish", "said"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_correction_that_contradicts_the_ledger_is_refused(played_service, first, wish, said):
    for one in first:
        played_service.correct("default", one)
    rows = dump(played_service)
    for attempt in (played_service.preview, played_service.correct):
        with pytest.raises(ConflictError, match=said):
            attempt("default", wish)
    assert dump(played_service) == rows


UNKNOWN = {"match": Void("m33"), "player": Ban("evee"), "a correction's id": Void("ladder:default")}


@pytest.mark.parametrize("wish", UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_match_or_player_is_named(played_service, wish):
    with pytest.raises(UnknownNameError, match="unknown"):
        played_service.correct("default", wish)


def test_parameters_from_now_on_rate_later_matches_alone_also_after_a_correction(service, ladder):
    service.record(duel(1, "ann", "bob"))
    service.change_rules("default", "elo", rules("elo", k=64.0), start=False)
    assert ratings(service) == HALF
    service.record(duel(2, "cat", "dan"))
    assert (ratings(service)["cat"], ratings(service)["ann"]) == (1532.0, 1516.0)
    service.rebuild("default", whole=True)
    assert (ratings(service)["cat"], ratings(service)["ann"]) == (1532.0, 1516.0)
    service.change_rules("default", "elo", rules("elo", k=16.0))
    assert (ratings(service)["cat"], ratings(service)["ann"]) == (1508.0, 1508.0)
    assert service.ladder("default").rules.values()["k"] == 16.0


def test_another_system_rates_everything_again_from_the_start(played_service):
    played_service.change_rules("default", "wager", rules("wager"))
    assert ratings(played_service)["ann"] == 1.05
    assert played_service.ladder("default").system == "wager"
    with pytest.raises(InputError, match="from the start"):
        played_service.change_rules("default", "elo", rules("elo"), start=False)
    assert played_service.verify("default").is_equal


def test_every_match_that_a_new_system_cannot_rate_is_named_or_left_unrated(played_service):
    played_service.record(team_match(5, (1, "ann"), (2, "bob"), (3, "cat")))
    played_service.record(team_match(6, (1, "ann"), (2, "bob"), (3, "dan")))
    played_service.record(team_match(7, (1, "ann"), (2, "bob"), (3, "dan")), rated=False)
    played_service.correct("default", Void("m6"))
    rows = dump(played_service)
    with pytest.raises(BadRowsError) as refused:
        played_service.change_rules("default", "wager", rules("wager"))
    assert [problem.match_id for problem in refused.value.problems] == ["m5"]
    assert dump(played_service) == rows
    played_service.change_rules("default", "wager", rules("wager"), skip_bad=True)
    played_service.correct("default", Unvoid("m6"))
    assert everybody(played_service)["ann"].matches == 1
    assert played_service.verify("default").is_equal
    played_service.change_rules("default", "elo", rules("elo"))
    assert everybody(played_service)["ann"].matches == 3


def test_starting_ratings_are_numbers_of_the_system_that_they_were_given_for(played_service):
    played_service.start_ratings("default", {"zed": -50.0})
    played_service.change_rules("default", "wager", rules("wager"))
    assert "zed" not in ratings(played_service)
    zed = played_service.record(duel(8, "zed", "ann")).teams[0][0].change
    assert (zed.player, zed.before) == ("zed", 1.0)
    assert played_service.verify("default").is_equal
    played_service.change_rules("default", "elo", rules("elo"))
    assert -50 < ratings(played_service)["zed"] < 0
    assert played_service.verify("default").is_equal


def test_a_change_under_which_a_rating_leaves_its_range_is_refused_and_leaves_nothing(played_service):
    played_service.change_rules("default", "wager", rules("wager"))
    played_service.start_ratings("default", dict.fromkeys(("rich", "richer"), 7e11))
    played_service.record(duel(9, "rich", "richer"))
    rows = lasting_rows(played_service)
    with pytest.raises(RatingRangeError):
        played_service.change_rules("default", "wager", rules("wager", stake=0.5))
    assert lasting_rows(played_service) == rows
    assert played_service.verify("default").is_equal
    assert played_service.ladder("default").due is None


def test_a_ladder_with_checkpoints_is_rebuilt_from_the_last_one_before_the_change(service, ladder, monkeypatch):
    monkeypatch.setattr(recorder, "CHECKPOINT", 5)
    twin = SlowLedger(System("elo"))
    for at in range(60):
        one = duel(at, *(("a", "b"), ("b", "c"), ("a", "c"))[at % 3])
        service.record(one)
        twin.record(one)
    with service.database.read() as store:
        kept = store.connection.exec_driver_sql("SELECT position FROM checkpoint ORDER BY position").scalars().all()
    assert len(kept) > 2
    for match_id in ("m50", "m20", "m0"):
        service.correct("default", Void(match_id))
        twin.void(match_id)
        assert ratings(service) == pytest.approx({name: one.rating for name, one in twin.replay().items()}, rel=1e-12)
        assert service.verify("default").is_equal


def test_a_correction_that_was_interrupted_changed_nothing_and_can_be_made_again(played_service, monkeypatch):
    rows = lasting_rows(played_service)
    with monkeypatch.context() as patch:
        patch.setattr(RebuildRun, "swap", stop)
        with pytest.raises(KeyboardInterrupt):
            played_service.correct("default", Void("m3"))
    assert lasting_rows(played_service) == rows
    assert played_service.verify("default").is_equal
    played_service.record(duel(8, "ann", "dan"))
    played_service.correct("default", Void("m3"))
    assert everybody(played_service)["dan"].matches == 2
    assert played_service.verify("default").is_equal


def stop(*_, **__):
    raise KeyboardInterrupt


def differences(before, now):
    """(player, rating and matches before, rating and matches now) of everyone whose standing changed."""
    shown = {
        name: tuple((one.rating, one.matches) if one else (None, 0) for one in (before.get(name), now.get(name)))
        for name in before.keys() | now.keys()
    }
    return {(name, *old, *new) for name, (old, new) in shown.items() if old != new}


@pytest.mark.parametrize(
    "correction",
    [
        pytest.param(Ban("eve"), id="ban"),
        pytest.param(Ban("eve", "refund"), id="refund"),
        pytest.param(Void("m3"), id="void"),
        pytest.param(ChangeRules("glicko", rules("glicko")), id="rules"),
    ],
)
def test_the_effect_of_a_correction_is_what_it_changed_even_if_matches_arrive_while_it_is_computed(
    played_service, correction
):
    previewed = played_service.preview("default", correction)
    arrived = []

    def record_in_between(_):
        if not arrived:
            arrived.append(played_service.record(duel(5, "dan", "fay")))
            played_service.record(duel(6, "eve", "fay"))
            arrived.append(everybody(played_service))

    applied = played_service.correct("default", correction, record_in_between)
    assert {tuple(move) for move in applied.moves} == differences(arrived[1], everybody(played_service))
    assert applied.moves != previewed.moves
    assert (applied.players, applied.position - previewed.position) == (6, 2)
