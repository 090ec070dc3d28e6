"""Queues whose maps are chosen by the ladder's odds on each map: chosen again from what is stored, bounded, refused."""

import json
from collections import Counter

import pytest

from evenmatch import rules
from evenmatch.errors import BadParameterError
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.ladders.settings import Settings
from evenmatch.live.attendance import Ending, TeamEnd
from evenmatch.live.live_matches import Running
from evenmatch.matchmaking import choose_map
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from evenmatch.queues.requests import Join, Leave, QueuedPlayer
from ledger.sample_matches import duel
from service.sample_queues import DUEL, accept_all, check_everything, hold_lease, join_queue, select_rows

MAPS = ["dust", "mill", "rock"]
EVEN = {**DUEL, "maps": MAPS, "vetoes": 2, "map_choice": "even"}
FREE = QueueRules(heartbeat=None, penalty=0)


@pytest.fixture
def ladder(service):
    """Ann beats bob on dust and loses on mill; on rock they take turns."""
    service.create_ladder("arena", "even", rules("even"), Settings(context=("map",)))
    for number in range(90):
        name = MAPS[number % 3]
        has_won = name == "dust" or (name == "rock" and number % 2 == 0)
        sides = ("ann", "bob") if has_won else ("bob", "ann")
        service.record(duel(number, *sides, "arena", context={"map": name}))
    return "arena"


@pytest.fixture
def queue_service(service, ladder):
    made = QueueService(service)
    made.set_queue(ladder, "ranked", EVEN, FREE)
    hold_lease(made, ladder)
    return made


def solo(name, *vetoes):
    return Join(members=(QueuedPlayer(name=name, vetoes=vetoes),), queues=("ranked",))


def offers(service):
    return [
        (number, json.loads(text))
        for number, text in select_rows(service, "SELECT offer, body FROM offer ORDER BY offer")
    ]


def expected(service, body, context):
    teams = [[slot["player"] for slot in team] for team in body["teams"]]
    return LadderQueries(service).prospects("arena", teams, context=context).odds.expected


def play_rounds(queue_service, maker, clock, count, *vetoes):
    """Offer ann and bob so many matches, which both decline."""
    for _ in range(count):
        tickets = join_queue(queue_service, "arena", solo("ann", *vetoes), solo("bob"))
        assert len(maker.step("arena").offers) == 1
        queue_service.apply("arena", [Leave(ticket) for ticket in tickets])
        clock.move(seconds=300)


def test_the_most_even_map_is_chosen_and_the_offer_has_its_odds(queue_service, service, maker, clock):
    """By the odds of the ladder's own page: mill favours bob, dust ann, and rock nobody as much."""
    play_rounds(queue_service, maker, clock, 36)
    played: list[str] = []
    for number, body in offers(service):
        odds = {name: expected(service, body, {"map": name}) for name in MAPS}
        assert max(odds["rock"]) < min(max(odds["dust"]), max(odds["mill"])) - 0.02
        favourite = [max(odds[name]) for name in body["maps"]]
        assert body["map"] == choose_map(body["maps"], played, 1, number, favourite)
        assert body["odds"] == pytest.approx(odds[body["map"]], abs=1e-4)
        played.append(body["map"])
    counts = Counter(played)
    assert 12 < counts["rock"] < 24
    assert min(counts[name] for name in MAPS) >= 5
    check_everything(service)


def test_only_accepted_maps_are_chosen_however_even_another_one_is(queue_service, service, maker, clock):
    play_rounds(queue_service, maker, clock, 10, "rock")
    play_rounds(queue_service, maker, clock, 1, "rock", "dust")
    assert {body["map"] for _, body in offers(service)} <= {"dust", "mill"}
    _, body = offers(service)[-1]
    assert body["map"] == "mill"
    assert body["odds"] == pytest.approx(expected(service, body, {"map": "mill"}), abs=1e-4)


def test_without_the_option_maps_are_drawn_and_the_odds_are_those_of_any_map(queue_service, service, maker, clock):
    queue_service.set_queue("arena", "ranked", {**EVEN, "map_choice": "balanced"}, FREE)
    play_rounds(queue_service, maker, clock, 12)
    queue_service.set_queue("arena", "ranked", {name: EVEN[name] for name in EVEN if name != "map_choice"}, FREE)
    play_rounds(queue_service, maker, clock, 12)
    played: list[str] = []
    for number, body in offers(service):
        assert body["map"] == choose_map(body["maps"], played, 1, number)
        assert body["odds"] == pytest.approx(expected(service, body, {}), abs=1e-4)
        played.append(body["map"])


def test_a_match_is_recorded_on_the_chosen_map(queue_service, service, maker):
    tickets = join_queue(queue_service, "arena", solo("ann"), solo("bob"))
    maker.step("arena")
    assert queue_service.status("arena", tickets[0]).offer.map == "rock"
    match_id = accept_all(queue_service, "arena", tickets)[-1].match_id
    Running(service).close("arena", match_id, Ending((TeamEnd(1), TeamEnd(2))))
    assert LadderQueries(service).match("arena", match_id)[1].context == {"map": "rock"}
    ((forecast,),) = select_rows(service, "SELECT body FROM formed_match")
    ((_, body),) = offers(service)
    assert json.loads(forecast)["odds"] == body["odds"]


def test_a_ladder_with_the_same_odds_on_all_maps_refuses_the_option(service):
    queues = QueueService(service)
    service.create_ladder("bare", "even", rules("even"), Settings(context=("mode",)))
    service.create_ladder("plain", "elo", rules("elo"), Settings(context=("map",)))
    with pytest.raises(BadParameterError, match=r"^map_choice=even: ladder 'bare' has .* add map to its setting"):
        queues.set_queue("bare", "ranked", EVEN)
    with pytest.raises(BadParameterError, match=r"^map_choice=even: ladder 'plain' has .* elo, does not learn"):
        queues.set_queue("plain", "ranked", EVEN)
    assert queues.queues("bare") == queues.queues("plain") == []
    queues.set_queue("plain", "ranked", {**EVEN, "map_choice": "balanced"})
    with pytest.raises(BadParameterError, match="does not learn from maps"):
        queues.start_experiment("plain", "ranked", {"map_choice": "even"}, {})
    service.change_settings("bare", {"context": ("mode", "map")})
    assert queues.set_queue("bare", "ranked", EVEN).policy.map_choice == "even"


def test_an_experiment_may_compare_the_two_choices(queue_service, service, maker, clock):
    queue_service.set_queue("arena", "ranked", {**EVEN, "map_choice": "balanced"}, FREE)
    queue_service.start_experiment("arena", "ranked", {**EVEN}, {"slice_seconds": 600})
    play_rounds(queue_service, maker, clock, 30)
    played: list[str] = []
    arms = Counter()
    for number, body in offers(service):
        favourite = None
        if body["trial"]["arm"] == "b":
            favourite = [max(expected(service, body, {"map": name})) for name in MAPS]
        assert body["map"] == choose_map(body["maps"], played, 1, number, favourite)
        played.append(body["map"])
        arms[body["trial"]["arm"]] += 1
    assert min(arms["a"], arms["b"]) > 5


def test_a_column_that_the_ladder_drops_later_leaves_maps_to_be_drawn(queue_service, service, maker, clock):
    service.change_settings("arena", {"context": ()})
    play_rounds(queue_service, maker, clock, 18)
    played: list[str] = []
    for number, body in offers(service):
        assert body["map"] == choose_map(body["maps"], played, 1, number, [0.5] * 3)
        played.append(body["map"])
    assert set(played) == set(MAPS)
