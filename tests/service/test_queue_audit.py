"""The audit of a queue: predictions of its matches against what was reported."""

import math
from dataclasses import replace

import numpy as np
import pytest

from evenmatch.corrections.corrections import Void
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.match import Match, Team
from evenmatch.queues import queue_sql
from evenmatch.queues.audit import audit, measure_waits
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.queue_sql import FormedMatch
from ledger.sample_matches import after
from service.sample_queues import DUEL, accept_all, forecast, hold_lease, join_queue, solos

ALWAYS = (0, 2**62)


@pytest.fixture
def queue_service(service, ladder):
    made = QueueService(service)
    made.set_queue(ladder, "ranked", DUEL)
    hold_lease(made, ladder)
    return made


def formed(service, ladder, number, odds, *, at=0, teams=None, spread=1.0, waits=(5.0,), parties=((1,), (1,))):
    """Store that a queue formed a match of two players with these odds of the first team."""
    ids = [[service.player(name) for name in team] for team in teams or ((f"a{number}",), (f"b{number}",))]
    body = forecast(
        teams=ids,
        parties=[list(sizes) for sizes in parties],
        odds=None if odds is None else [odds, 1 - odds],
        spread=spread,
        percentile=42.0,
        waits=list(waits),
    )
    with service.database.write() as store:
        head = store.head(ladder)
        queue_sql.insert_formed_match(store, head.ladder, FormedMatch(f"m{number}", "ranked", at, 7, body))


def result(number, first, second, *, ladder, quitters=(), teams=None):
    """A match of the same number with the scores of its teams."""
    names = teams or ((f"a{number}",), (f"b{number}",))
    made = [Team.of(*players, score=score) for players, score in zip(names, (first, second), strict=True)]
    made = [
        replace(team, players=tuple(replace(player, quit=player.player in quitters) for player in team.players))
        for team in made
    ]
    return Match(f"m{number}", after(number / 100), tuple(made), ladder)


def audited(service, ladder, since=0, until=2**62):
    with service.database.read() as store:
        return audit(store, store.head(ladder), "ranked", since, until)


def test_what_a_queue_predicted_is_compared_with_what_was_reported(service, ladder):
    """Four duels with odds of .8, .6, .5 and .7, of which the favourite of the second loses; by hand."""
    service.change_settings(ladder, {"stomp_margin": 3})
    outcomes = [(0.8, 5, 1), (0.6, 1, 3), (0.5, 4, 4), (0.7, 9, 0)]
    for number, (_, first, second) in enumerate(outcomes):
        quitters = ("b3",) if number == 3 else ()
        service.record(result(number, first, second, ladder=ladder, quitters=quitters))
    for number, (odds, _, _) in enumerate(outcomes):
        formed(service, ladder, number, odds, at=number)
    found = audited(service, ladder)
    assert (found.formed, found.unplayed, found.changed, found.unpredicted) == (4, 0, 0, 0)
    assert found.overall.matches == 4
    assert found.overall.brier.value == pytest.approx((0.2**2 + 0.6**2 + 0 + 0.3**2) / 4)
    assert found.overall.stomps.value == pytest.approx(2 / 4)  # 5:1 and 9:0
    assert found.overall.quits.value == pytest.approx(1 / 4)
    logit = np.log(np.array([4.0, 1.5, 1.0, 7 / 3]))
    won = np.array([1.0, 0.0, 0.5, 1.0])
    slope = found.overall.slope.value
    assert ((won - 1 / (1 + np.exp(-slope * logit))) * logit).sum() == pytest.approx(0, abs=0.02)
    assert audited(service, ladder, since=1, until=3).formed == 2
    assert math.isnan(found.overall.slope.low)  # too few matches for an interval
    assert found.warning is None
    assert found.verdict == "Too few matches to tell."


def test_matches_that_say_nothing_about_the_odds_are_counted_apart(service, ladder):
    """Not reported, voided, played by others, not predictable; and teams in another order are the same match."""
    for number in range(5):
        teams = (("b4",), ("a4",)) if number == 4 else (("a2",), ("x",)) if number == 2 else None
        if number != 0:
            service.record(result(number, 3, 1, ladder=ladder, teams=teams))
    service.record(result(9, 3, 1, ladder=ladder, teams=(("a0",), ("b0", "b2"))))
    service.correct(ladder, Void("m1"))
    for number in range(5):
        formed(service, ladder, number, None if number == 3 else 0.75)
    found = audited(service, ladder)
    assert (found.formed, found.unplayed, found.changed, found.unpredicted) == (5, 2, 1, 1)
    assert found.overall.matches == 1
    assert found.overall.brier.value == pytest.approx(0.75**2)  # b4 won at odds of .25


@pytest.mark.parametrize(("sharpness", "warning"), [(0.5, "too extreme"), (1.0, None), (2.0, "too close to even")])
def test_odds_that_are_not_calibrated_are_warned_of(service, ladder, sharpness, warning):
    """The favourite's log-odds are truly `sharpness` times the predicted ones, in a thousand matches."""
    luck = np.random.default_rng(4)
    service.record(result(0, 1, 0, ladder=ladder, teams=(("ann",), ("bob",))))
    ids = [[service.player("ann")], [service.player("bob")]]
    predicted = luck.uniform(0.3, 0.9, 1000)
    chance = 1 / (1 + ((1 - predicted) / predicted) ** sharpness)
    won = luck.uniform(size=1000) < chance
    matches = [
        Match(f"m{number}", after(number / 100), (Team.of("ann", place=2 - win), Team.of("bob", place=1 + win)), ladder)
        for number, win in enumerate(won.astype(int).tolist(), 1)
    ]
    service.record_many(ladder, matches)
    with service.database.write() as store:
        for number, odds in enumerate(predicted.tolist(), 1):
            body = forecast(teams=ids, odds=[odds, 1 - odds])
            match = FormedMatch(f"m{number}", "ranked", number, 7, body)
            queue_sql.insert_formed_match(store, store.head(ladder).ladder, match)
    found = audited(service, ladder)
    slope = found.overall.slope
    assert slope.low < sharpness < slope.high
    assert slope.high - slope.low < 0.6 * sharpness + 0.3
    assert warning is None if found.warning is None else warning in found.warning
    assert (
        found.verdict
        == {
            0.5: "Favourites win less often than predicted.",
            1.0: "The predictions are right.",
            2.0: "Favourites win more often than predicted.",
        }[sharpness]
    )
    for point in found.reliability:
        if point.matches > 50:
            told = point.predicted / (1 - point.predicted)
            assert point.observed == pytest.approx(told**sharpness / (1 + told**sharpness), abs=0.12)


def test_groups_split_all_matches(service, ladder):
    shapes = [
        {"spread": 3.0, "waits": (2.0, 11.0), "parties": ((1,), (1,))},
        {"spread": 5.0, "waits": (29.0,), "parties": ((2,), (2,))},
        {"spread": 7.5, "waits": (300.0,), "parties": ((2,), (1, 1))},
    ]
    for number, shape in enumerate(shapes):
        service.record(result(number, 3, 1, ladder=ladder))
        formed(service, ladder, number, 0.6, **shape)
    groups = audited(service, ladder).groups
    labels = {name: [(group.label, group.matches) for group in listed] for name, listed in groups.items()}
    assert labels["spread in percentiles"] == [("0 to 5", 2), ("5 to 10", 1)]
    assert labels["longest wait in seconds"] == [("10 to 30", 2), ("120 and more", 1)]
    assert labels["percentile"] == [("40 to 50", 3)]
    assert labels["policy"] == [("version 7", 3)]
    assert {name for name, _ in labels["parties"]} == {
        "single players only",
        "parties of one size in each team",
        "parties of different sizes",
    }


def test_a_match_of_the_queue_keeps_its_prediction(service, ladder, queue_service, clock):
    """From joining to the report: odds, waits and the policy's version are stored when the last player accepts."""
    service.record(result(0, 3, 1, ladder=ladder, teams=(("ann",), ("bob",))))
    service.view(ladder)
    (first,) = join_queue(queue_service, ladder, *solos("ann"))
    clock.move(seconds=12)
    (second,) = join_queue(queue_service, ladder, *solos("bob"))
    Matchmaker(queue_service).step(ladder)
    odds = queue_service.status(ladder, first).offer.odds
    clock.move(seconds=3)
    accept_all(queue_service, ladder, [first, second])
    match = queue_service.status(ladder, first).match
    with service.database.read() as store:
        (stored,) = queue_sql.read_formed_matches(store, store.head(ladder).ladder, "ranked", 0, 2**62, 10)
    assert stored.match_id == match.match_id
    assert stored.forecast["odds"] == list(odds)
    assert sorted(stored.forecast["waits"]) == [0.0, 12.0]
    estimates = dict(zip(stored.forecast["waits"], stored.forecast["estimates"], strict=True))
    assert estimates == {0.0: [0.5, 0.9], 12.0: None}  # the matchmaker did not run when the first one joined
    assert stored.forecast["parties"] == [[1], [1]]
    assert stored.policy == queue_service.queue(ladder, "ranked").change
    names = [[one.player for one in team] for team in match.teams]
    teams = tuple(Team.of(*team, place=place) for place, team in enumerate(names, 1))
    clock.move(seconds=600)
    service.record(Match(match.match_id, after(241), teams, ladder))
    found = LadderQueries(service).queue_audit(ladder, "ranked", *ALWAYS)
    assert found.overall.matches == 1
    assert found.overall.brier.value == pytest.approx((1 - odds[0]) ** 2)
    assert (found.waits.parties, found.waits.within_estimate.value, found.waits.within_upper.value) == (1, 1.0, 1.0)


def test_waits_are_compared_with_what_was_estimated_at_joining():
    """By hand: of three parties with an estimate, one waited less than it, two less than the upper figure."""
    told = forecast(waits=[10.0, 30.0, 90.0, 5.0], estimates=[(20.0, 60.0), (20.0, 60.0), (20.0, 60.0), None])
    untold = forecast(waits=[1.0, 2.0])
    found = measure_waits([FormedMatch("m1", "ranked", 0, 7, told), FormedMatch("m2", "ranked", 0, 7, untold)])
    assert found.parties == 3
    assert (found.within_estimate.value, found.within_upper.value) == pytest.approx((1 / 3, 2 / 3))
    assert math.isnan(found.within_upper.low)
    assert measure_waits([]).parties == 0


def test_the_intervals_of_calibrated_estimates_contain_half_and_nine_of_ten():
    """2,000 parties with exponential waits of mean 30 s, who were told the quantiles ln 2 and ln 10."""
    draw = np.random.default_rng(2)
    quantiles = (30 * math.log(2), 30 * math.log(10))
    found = measure_waits(
        [
            FormedMatch(str(number), "ranked", number, 7, {"waits": waits, "estimates": [quantiles] * 2})
            for number, waits in enumerate(draw.exponential(30, (1000, 2)))
        ]
    )
    assert found.parties == 2000
    for share, ideal in ((found.within_estimate, 0.5), (found.within_upper, 0.9)):
        assert share.low < ideal < share.high
        assert share.high - share.low == pytest.approx(2 * 1.96 * math.sqrt(ideal * (1 - ideal) / 2000), rel=0.3)
