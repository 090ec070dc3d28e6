"""What other rules would make of a ladder: by hand where it is small, else against scipy and the backtest."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest
from scipy.stats import spearmanr

from evenmatch import backtest, from_matches, rate, rules
from evenmatch.errors import BadParameterError, InputError
from evenmatch.lab.ladder.what_if import ranks, what_if, what_if_findings
from evenmatch.lab.sample import season
from evenmatch.match import Match
from evenmatch.standings.division import Division
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import team_match

EVERYBODY = StandingsRules(placement=1, divisions=(Division("Low", 1), Division("High", 51)))


def match_table(*matches):
    return from_matches([team_match(at, *teams) for at, teams in enumerate(matches)])


@pytest.fixture(scope="module")
def league():
    return season(5, players=60, matches=800).matches


def test_the_same_rules_change_nothing(league):
    found = what_if(league, rules("elo"), rules("elo"))
    assert found.movers(10) == []
    assert (found.alike, found.changed_division, found.difference.value) == (pytest.approx(1.0), 0.0, 0.0)
    assert what_if_findings(found)[0].startswith("The other rules predict the same as the present ones: log loss")
    assert "All keep their division." in what_if_findings(found)


def test_movers_are_found_by_comparing_both_standings():
    # with k = 32 ann's two wins outweigh that bob beat her in the end; with k = 400 the last match decides
    table = match_table([(1, "ann"), (2, "bob")], [(1, "ann"), (2, "cat")], [(1, "bob"), (2, "ann")])
    found = what_if(table, rules("elo", k=32), rules("elo", k=400), EVERYBODY)
    assert found.now.rating == pytest.approx([1513.1, 1502.16, 1484.74], abs=0.005)
    assert (found.now.rank.tolist(), found.then.rank.tolist()) == ([1, 2, 3], [2, 1, 3])
    assert (found.now.percentile.tolist(), found.then.percentile.tolist()) == ([100, 51, 1], [51, 100, 1])
    assert found.alike == pytest.approx(0.5)  # 1 − 6 · (1 + 1 + 0) / (3 · 8)
    bob, ann = sorted(found.movers(10), key=lambda one: one.rank_then)
    assert (bob.player, bob.up, ann.player, ann.up) == ("bob", 1, "ann", -1)
    assert (bob.division_now, bob.division_then, found.changed_division) == ("High", "High", 0.0)
    assert "The largest move is from percentile" in what_if_findings(found)[-1]


def test_standings_match_those_of_rate(league):
    found = what_if(league, rules("elo"), rules("trueskill"))
    for side, system in ((found.now, "elo"), (found.then, "trueskill")):
        told = {row["player"]: row for row in rate(league, rules(system)).standings().to_pylist()}
        for at, name in enumerate(league.player_names):
            assert side.listed[at] == (told[name]["percentile"] is not None)
            assert side.rating[at] == told[name]["rating"]
            if side.listed[at]:
                assert side.percentile[at] == told[name]["percentile"]
                assert found.standings.divisions[side.division[at]].name == told[name]["division"]
        ranked = sorted(side.rating[side.listed], reverse=True)
        assert all(side.rank[at] == 1 + ranked.index(side.rating[at]) for at in np.flatnonzero(side.listed))


def test_the_correlation_is_spearmans(league):
    found = what_if(league, rules("elo"), rules("wager"))
    both = found.both
    assert both.sum() > 50
    assert found.alike == pytest.approx(spearmanr(found.now.rating[both], found.then.rating[both]).statistic)
    assert 0 < found.alike < 1


def test_how_well_they_predict_is_what_a_backtest_finds(league):
    found = what_if(league, rules("elo"), rules("elo", k=60))
    judged = backtest(league, [rules("elo", k=60)], warm_up=0.5)
    loss = {row["variant"]: row["log_loss"] for row in judged.scores.to_pylist()}
    assert found.judged == 400
    assert [one.log_loss for one in found.scores] == pytest.approx([loss["default"], loss["given"]])
    assert found.difference.value == pytest.approx(loss["given"] - loss["default"])
    assert found.difference.low < found.difference.value < found.difference.high


def test_the_largest_moves_come_first(league):
    found = what_if(league, rules("elo"), rules("wager"))
    movers = found.movers(5)
    apart = [abs(one.percentile_now - one.percentile_then) for one in movers]
    assert apart == sorted(apart, reverse=True)
    everybody = found.movers(1000)
    assert max(abs(one.percentile_now - one.percentile_then) for one in everybody) == apart[0]
    assert all(one.up == one.rank_now - one.rank_then for one in everybody)
    assert [one.rank_now for one in found.best(3)] == [1, 2, 3]
    assert len(found.sample(10)) == 10
    assert [one.rank_now for one in found.sample(10)] == sorted(one.rank_now for one in found.sample(10))
    assert len(found.sample(10_000)) == found.both.sum()


def test_matches_that_other_rules_cannot_rate_are_left_out_or_refused(league):
    three = Match(
        "x", datetime(2026, 1, 1, tzinfo=UTC), team_match(1, (1, "Bara"), (2, "Deno"), (3, "Fivi")).teams, "6v6"
    )
    listed = [*league.to_matches("6v6"), three]
    found = what_if(from_matches(listed), rules("elo"), rules("wager"))
    assert (found.now.left_out, found.then.left_out) == (0, 1)
    assert what_if_findings(found)[-1] == "1 match cannot be rated by the other rules, 0 by the present ones."
    with pytest.raises(InputError, match="wager cannot rate 1 of 1 matches"):
        what_if(from_matches([three]), rules("elo"), rules("wager"))
    with pytest.raises(BadParameterError, match="k="):
        what_if(league, rules("elo"), rules("elo", k=-1))


def test_the_picture_shows_who_rises_and_who_falls():
    figure = json.loads(ranks([("<b>ann", 1, 3), ("bob", 2, 2), ("cat", 3, 1)]).to_json())
    line, rise, fall, stay = figure["data"]
    assert (line["x"], line["y"]) == ([1, 3], [1, 3])
    assert [(one["name"], one["x"], one["y"]) for one in (rise, fall, stay)] == [
        ("rise", [3], [1]),
        ("fall", [1], [3]),
        ("stay", [2], [2]),
    ]
    assert fall["customdata"] == ["&lt;b&gt;ann"]
