"""Scenarios, the people of a scenario's ladder, and when they arrive."""

import dataclasses
import json
from collections import Counter

import numpy as np
import pytest

from evenmatch.errors import BadParameterError, UnknownNameError
from evenmatch.lab.queue.population import arrival_times, populate
from evenmatch.lab.queue.scenario import PARTY_MIXES, REGION_MIXES, Scenario, party_mix
from evenmatch.matchmaking.tickets import FOREVER
from evenmatch.options import options_of

SECOND = 1_000_000


def test_the_default_is_the_scenario_of_the_quality_claims():
    told = Scenario()
    assert (told.arrivals, told.minutes, told.tick, told.kind) == (5.0, 20.0, 1.0, "poisson")
    assert (told.share_strict, told.strict_within, told.loose_within) == (0.25, 5.0, 2.0)
    assert (told.parties, told.patience, told.return_share, told.regions) == ((1.0,), None, 0.0, {})
    assert len(populate(told, len(arrival_times(told))).skill) == 20_000


def test_every_value_says_what_it_does():
    assert {one.name for one in dataclasses.fields(Scenario)} == {*options_of(Scenario)}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"arrivals": 0}, "arrivals=0"),
        ({"arrivals": float("nan")}, "arrivals=nan"),
        ({"seed": 1.5}, "a whole number from 0"),
        ({"seed": True}, "seed=True"),
        ({"share_strict": 1.1}, "0 to 1"),
        ({"kind": "weekly"}, "poisson, daily, bursts or recorded"),
        ({"kind": "recorded"}, "times is empty"),
        ({"times": (1.0,)}, "only allowed with kind='recorded'"),
        ({"kind": "recorded", "times": (-1.0,)}, "seconds from 0"),
        ({"parties": (0.5, 0.4)}, "add up to 1"),
        ({"parties": ()}, "add up to 1"),
        ({"regions": {"moon": 0.0}}, "a number above 0"),
        ({"roles": {"healer": 1.5}}, "above 0 to 1"),
        ({"vetoes": {"dust": 1.5}}, "above 0 to 1"),
        ({"attributes": {"mode": {"ctf": 0.0}}}, "mode has 'ctf'"),
        ({"attributes": ["mode"]}, "expected a table of shares"),
        ({"tick": 2000.0}, "minutes=20: expected at least one tick of 2000 seconds"),
        ({"players": 1}, "or none"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_what_could(value, words):
    with pytest.raises(BadParameterError, match=words.replace("(", r"\(")):
        Scenario(**value)


def test_a_scenario_is_the_same_after_json():
    told = Scenario(
        kind="recorded",
        times=(3.0, 1.0),
        parties=(0.5, 0.5),
        regions={"a": 1, "b": 2},
        roles={"tank": 0.5},
        attributes={"mode": {"ctf": 2, "any": 1}},
        vetoes={"dust": 0.25},
        players=99,
    )
    again = Scenario.from_data(json.loads(json.dumps(told.to_data())))
    assert again == told
    assert again.times == (1.0, 3.0)


def test_a_document_may_name_mixes_and_nothing_unknown():
    told = Scenario.from_data({"parties": "many", "regions": "four", "patience": "none"})
    assert (told.parties, told.regions, told.patience) == (PARTY_MIXES["many"], REGION_MIXES["four"], None)
    with pytest.raises(UnknownNameError, match="did you mean 'arrivals'"):
        Scenario.from_data({"arrival": 3})
    with pytest.raises(UnknownNameError, match="some"):
        Scenario.from_data({"parties": "sum"})


def test_a_mix_for_small_teams_leaves_larger_parties_out():
    # "many" begins 0.35, 0.25, 0.15
    assert party_mix("many", 2) == pytest.approx((35 / 60, 25 / 60))
    assert party_mix("none", 1) == (1.0,)


def test_percentiles_come_from_known_ratings_whose_error_is_as_requested():
    people = populate(Scenario(players=4000, rating_error=80.0))
    # no two ratings are equal, so the mid-rank of the player at place r from below is (r - 1/2) / 4000
    place = np.argsort(np.argsort(people.rating))
    expected = 100 * (place + 0.5) / 4000
    assert people.parties.percentile == pytest.approx(expected[people.parties.player])
    assert np.std(people.rating - people.skill) == pytest.approx(80, rel=0.05)
    assert np.std(people.skill) == pytest.approx(300, rel=0.05)
    assert sorted(people.parties.player.tolist()) == list(range(4000))


def test_parties_have_the_sizes_and_the_nearness_asked_for():
    told = Scenario(players=30_000, parties=(0.5, 0.0, 0.5), friends_apart=4.0)
    parties = populate(told).parties
    sizes = np.diff(parties.start)
    assert set(sizes[:-1].tolist()) == {1, 3}  # the last takes who is left
    assert (sizes == 3).mean() == pytest.approx(0.5, abs=0.02)
    threes = parties.percentile[np.repeat(sizes == 3, sizes)].reshape(-1, 3)
    assert np.sqrt(threes.var(axis=1, ddof=1).mean()) == pytest.approx(4.0, rel=0.1)
    parties.check()


def test_a_party_plays_where_the_worst_ping_of_its_members_is_accepted_and_at_home_always():
    told = Scenario(players=5000, parties=(0.5, 0.5), regions={"a": 3.0, "b": 1.0, "c": 1.0}, max_ping=100.0)
    parties = populate(told).parties
    assert parties.region_names == ("a", "b", "c")
    assert np.isfinite(parties.ping).any(axis=1).all()
    assert parties.ping[np.isfinite(parties.ping)].max() <= 100.0
    assert np.isinf(parties.ping).any()
    home = parties.ping.argmin(axis=1)
    assert (home == 0).mean() == pytest.approx(0.6, abs=0.03)
    # one region further is 60 ms more
    near = np.isfinite(parties.ping[:, 1]) & (home == 0)
    assert (parties.ping[near, 1] - parties.ping[near, 0]) == pytest.approx(60.0)


def test_players_avoid_strangers_of_similar_strength():
    people = populate(Scenario(players=2000, parties=(0.3, 0.7), share_avoiding=0.5))
    parties = people.parties
    assert (parties.met == FOREVER).all()
    assert 0.5 * 2000 * 2 < len(parties.named) <= 0.55 * 2000 * 3
    percentile = np.empty(2000)
    percentile[parties.player] = parties.percentile
    for at in range(len(parties)):
        own = parties.player[parties.start[at] : parties.start[at + 1]]
        named = parties.named[parties.named_start[at] : parties.named_start[at + 1]]
        assert not set(own.tolist()) & set(named.tolist())
        for one in named:
            assert np.abs(percentile[one] - percentile[own]).min() < 35


def test_newcomers_are_known_worse():
    told = Scenario(players=8000, share_newcomers=0.2, newcomer_error=300.0)
    people = populate(told)
    new = np.zeros(8000, np.bool_)
    new[people.parties.player] = people.parties.newcomer
    assert new.mean() == pytest.approx(0.2, abs=0.02)
    error = people.rating - people.skill
    assert np.std(error[new]) == pytest.approx(300, rel=0.06)
    assert np.std(error[~new]) == pytest.approx(50, rel=0.06)


def test_parties_accept_and_veto_in_the_requested_shares():
    told = Scenario(
        players=40_000,
        attributes={"platform": {"pc": 6, "console": 3, "pc, console": 0.5, "any": 0.5}, "mode": {"ctf": 1}},
        vetoes={"dust": 0.25, "nuke": 0.5},
    )
    parties = populate(told).parties
    plain = populate(Scenario(players=40_000)).parties
    np.testing.assert_array_equal(parties.percentile, plain.percentile)
    np.testing.assert_array_equal(parties.loose, plain.loose)
    drawn = [parties.choices[row] for row in parties.choice.tolist()]
    platforms = Counter(dict(choice.accepted).get("platform") for choice in drawn)
    for platform, share in ((("pc",), 0.6), (("console",), 0.3), (("console", "pc"), 0.05), (None, 0.05)):
        assert platforms[platform] / 40_000 == pytest.approx(share, abs=0.01)
    assert all(dict(choice.accepted)["mode"] == ("ctf",) for choice in drawn)
    vetoes = Counter(choice.vetoes for choice in drawn)
    assert vetoes["dust", "nuke"] / 40_000 == pytest.approx(0.125, abs=0.01)
    assert vetoes["nuke",] / 40_000 == pytest.approx(0.375, abs=0.01)


def test_poisson_arrivals_have_the_requested_rate_and_variance():
    times = arrival_times(Scenario(arrivals=50, minutes=60))
    assert (np.diff(times) >= 0).all()
    assert len(times) == pytest.approx(180_000, abs=4 * np.sqrt(180_000))
    counts = np.bincount(times // SECOND, minlength=3600)
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.1)  # Poisson's law
    assert times[-1] < 3600 * SECOND


def test_a_day_swings_around_the_average():
    times = arrival_times(Scenario(arrivals=20, minutes=60, kind="daily", period=3600, swing=0.5))
    quarters = np.bincount(times // (900 * SECOND), minlength=4)
    # over the first half of a sine the mean is 1 + 0.5 * 2/pi, over the second 1 - 0.5 * 2/pi
    high, low = 18_000 * (1 + 1 / np.pi), 18_000 * (1 - 1 / np.pi)
    assert quarters == pytest.approx([high, high, low, low], rel=0.04)


def test_bursts_bring_their_share_and_fade():
    told = Scenario(arrivals=20, minutes=60, kind="bursts", burst_every=600, burst_seconds=30, burst_share=0.8)
    times = arrival_times(told) / SECOND
    assert len(times) == pytest.approx(72_000, rel=0.02)
    into = (times - 300) % 600
    # two half-lives of the fade: 1 - exp(-1) of a burst in its first 30 s, and the even part of 30 s
    share = ((into < 30) & (times > 300)).mean()
    assert share == pytest.approx(0.8 * (1 - np.exp(-1)) + 0.2 * 30 / 600, rel=0.05)
    assert ((times < 300).sum()) == pytest.approx(0.2 * 20 * 300, rel=0.1)


def test_recorded_times_are_taken_as_they_are():
    told = Scenario(kind="recorded", times=(59.5, 0.25, 61.0), minutes=1)
    assert arrival_times(told).tolist() == [250_000, 59_500_000]
