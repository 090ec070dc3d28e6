"""Findings as plain values: nothing is lost on the way through JSON that a table or a figure needs."""

import json

import pytest

from evenmatch import backtest, rules
from evenmatch.lab.backtests.verdict import verdict
from evenmatch.lab.ladder.what_if import what_if
from evenmatch.lab.sample import season
from evenmatch.lab.stored_results import (
    backtest_figures,
    keep_backtest,
    keep_tuning,
    keep_what_if,
    look_up,
    tuning_figures,
    what_if_figures,
)


@pytest.fixture(scope="module")
def league():
    return season(5, players=60, matches=800).matches


def through_json(kept):
    return json.loads(json.dumps(kept, allow_nan=False))


def data(figure):
    return json.loads(figure.to_json())["data"]


def test_a_backtest_keeps_its_table_and_its_figures(league):
    found = backtest(league, ["elo", "wager"], workers=1)
    kept = through_json(keep_backtest(found))
    assert kept["verdict"] == verdict(found)
    assert (kept["matches"], kept["judged"]) == (800, 400)
    variants = [(row["system"], row["variant"]) for row in kept["scores"]]
    assert variants == [(one.system, one.variant) for one in found.variants]
    first = found.scores.to_pylist()[0]
    assert kept["scores"][0]["log_loss"] == pytest.approx(first["log_loss"])
    assert {row["difference"] for row in kept["scores"] if [row["system"], row["variant"]] == kept["chosen"][0]} == {
        0.0
    }
    figures = backtest_figures(kept)
    assert [one["name"] for one in data(figures["reliability"])] == [
        "as predicted",
        kept["chosen"][0][0],
        kept["chosen"][1][0],
    ]
    assert sum(row["matches"] for row in kept["periods"]) == 2 * 400
    assert len(data(figures["periods"])) >= 2
    assert len(json.dumps(kept)) < 30_000


def test_tuning_keeps_what_it_changed_and_what_that_is_worth(league):
    present = rules("elo", k=2)
    found = backtest(league, [present], tune=2.0, workers=1)
    kept = through_json(keep_tuning(found, present))
    assert (kept["before"]["variant"], kept["after"]["variant"]) == ("given", "tuned")
    assert kept["after"]["log_loss"] < kept["before"]["log_loss"]  # k = 2 learns next to nothing
    assert kept["findings"][0].startswith("The tuned parameters predict better, by ")
    changed = {row["name"]: row for row in kept["changed"]}
    assert changed["k"]["before"] == "2"
    assert float(changed["k"]["after"]) > 2
    again = rules("elo", **kept["parameters"])  # as somebody would type them
    assert again.values()["k"] == pytest.approx(found.chosen[0].rules.values()["k"])
    (line,) = data(tuning_figures(kept)["best"])
    assert line["y"] == sorted(line["y"], reverse=True)
    assert line["x"][-1] == kept["trials"] == len(found.trials)


def test_a_what_if_keeps_movers_and_points(league):
    found = what_if(league, rules("elo"), rules("elo", k=60))
    kept = through_json(keep_what_if(found))
    assert kept["changed"] == [{"name": "k", "before": "32", "after": "60"}]
    assert (kept["now"]["system"], kept["then"]["parameters"]["k"]) == ("elo", "60")
    gains, losses = ([mover for mover in found.movers() if sign * mover.up > 0] for sign in (1, -1))
    assert (kept["gaining"], kept["losing"]) == (len(gains), len(losses))
    assert [one["player"] for one in kept["gains"]] == [one.player for one in gains[:25]]
    assert [one["player"] for one in kept["losses"]] == [one.player for one in losses[:25]]
    assert all(one["rank_then"] < one["rank_now"] for one in kept["gains"])
    last = found.best(1000)[-1]
    assert look_up(kept, last.player) == last._replace(
        rating_now=pytest.approx(last.rating_now), rating_then=pytest.approx(last.rating_then)
    )
    assert look_up(kept, "nobody") is None
    assert kept["listed"] == found.both.sum() == len(kept["ranks"])
    assert kept["difference"]["value"] == pytest.approx(found.difference.value)
    assert sum(len(one["x"]) for one in data(what_if_figures(kept)["ranks"])[1:]) == kept["listed"]
    assert len(json.dumps(kept)) < 40_000
