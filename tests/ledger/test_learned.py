"""A ladder by `even`: what the system learns of the ladder is kept, corrected, verified and shown with the ratings."""

import numpy as np
import pytest

from evenmatch import Rater, Team, from_matches, rate, rules
from evenmatch.corrections.corrections import Unvoid, Void
from evenmatch.errors import InputError
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.ledger.roster import unpack_ladders
from evenmatch.match import Match
from ledger.sample_matches import after, everybody

NAMES = ("ann", "bob", "cat", "dan", "eve", "joe", "kim")


def recorded(count=40):
    """Matches of uneven teams with scores: who is later in the list is stronger, and the first side wins more often."""
    rng = np.random.default_rng(5)
    matches = []
    for number in range(count):
        size, rivals = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        chosen = rng.permutation(len(NAMES))[: size + rivals]
        drawn = [NAMES[index] for index in chosen]
        lead = 0.4 * (chosen[:size].sum() - chosen[size:].sum()) + 1.0
        own, theirs = (3, 1) if rng.random() < 1 / (1 + np.exp(-lead)) else (0, 2)
        teams = (
            Team.of(*drawn[:size], place=1 if own > theirs else 2, score=own),
            Team.of(*drawn[size:], place=2 if own > theirs else 1, score=theirs),
        )
        matches.append(Match(f"m{number}", after(number), teams, "default"))
    return matches


@pytest.fixture
def played(service):
    service.create_ladder("default", "even", rules("even"))
    for match in recorded():
        service.record(match)
    return service


def shown(service):
    return {name: standing.rating for name, standing in everybody(service).items()}


def rated(matches):
    """The ratings and the numbers learned by the library, from a table of the same matches."""
    ratings = rate(from_matches(matches), rules("even"))
    state = dict(zip(ratings.matches.player_names, ratings.state["rating"].tolist(), strict=True))
    return state, Rater.after(ratings, "default").learned


def assert_as_rated(service, matches):
    state, learned = rated(matches)
    assert shown(service) == state
    assert repr(LadderQueries(service).learned("default")) == repr(learned)  # NaN is not equal to itself
    assert service.verify("default").is_equal


def learned_bytes(service):
    with service.database.read() as store:
        return store.head("default").learned


def test_matches_recorded_one_by_one_teach_what_the_same_matches_in_a_table_teach(played):
    assert_as_rated(played, recorded())
    side, player = LadderQueries(played).learned("default")[:2]
    assert side.value > 0
    assert player.low < player.value < player.high


def test_a_correction_takes_back_what_a_match_taught(played):
    before = learned_bytes(played)
    played.correct("default", Void("m7"))
    assert_as_rated(played, [match for match in recorded() if match.id != "m7"])
    assert learned_bytes(played) != before
    played.correct("default", Unvoid("m7"))
    assert learned_bytes(played) == before
    assert_as_rated(played, recorded())


def test_a_ladder_changes_to_elo_and_back_and_has_learned_the_same(played):
    before = learned_bytes(played)
    played.change_rules("default", "elo", rules("elo"))
    assert LadderQueries(played).learned("default") == ()
    assert played.verify("default").is_equal
    played.change_rules("default", "even", rules("even"))
    assert learned_bytes(played) == before
    assert_as_rated(played, recorded())


@pytest.mark.parametrize(
    ("name", "value", "before"),
    [("performance", True, False), ("single", True, False), ("pooled", False, True), ("start", 1000.0, 1500.0)],
)
def test_a_change_that_the_present_records_do_not_fit_starts_at_the_first_match(played, name, value, before):
    ratings = shown(played)
    refused = f"{name}={value} must rate from the start.*expected {name}={before} as before"
    with pytest.raises(InputError, match=refused):
        played.change_rules("default", "even", rules("even", **{name: value}), start=False)
    assert shown(played) == ratings
    played.change_rules("default", "even", rules("even", **{name: value}))
    assert played.verify("default").is_equal
    played.change_rules("default", "even", rules("even", **{name: value}, margin=0.5, drift=2.0), start=False)
    assert played.verify("default").is_equal


@pytest.mark.parametrize("reset", ["soft", "full"])
def test_a_new_season_keeps_what_was_learned_of_the_ladder(played, reset):
    before, ratings = learned_bytes(played), shown(played)
    played.open_season("default", reset=reset)
    assert learned_bytes(played) == before
    assert shown(played) != ratings
    assert played.verify("default").is_equal
    played.record(Match("next", after(100), (Team.of("ann", place=1), Team.of("bob", place=2)), "default"))
    assert learned_bytes(played) != before
    assert played.verify("default").is_equal
    played.rebuild("default", whole=True)
    assert played.verify("default").is_equal


def test_verify_reports_a_changed_record_of_the_ladder(played):
    changed = unpack_ladders(rules("even"), learned_bytes(played))
    changed["body"][0][0] += 1
    with played.database.write() as store:
        store.run("UPDATE generation SET learned = ?", changed.tobytes())
    differences = played.verify("default").differences
    assert "what was learned about the ladder is not what a replay gives" in differences


def test_odds_use_what_was_learned(played):
    odds = LadderQueries(played).prospects("default", [["new"], ["other"]]).odds
    learned = Rater.after(rate(from_matches(recorded()), rules("even")), "default").odds([["new"], ["other"]])
    assert odds.expected == pytest.approx(learned.expected)
    assert odds.expected[0] > 0.5 == Rater("even").odds([["new"], ["other"]]).expected[0]
