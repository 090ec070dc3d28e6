"""Backtests: predict before learning, on matches whose truth is known, and against plain Python."""

import dataclasses
import json
import math
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

import evenmatch
from elo_matches import START, duel, duels, duels_table
from evenmatch import backtest, from_matches, rules, systems
from evenmatch.errors import EvenmatchError, InputError, UnknownNameError, UsageError
from evenmatch.lab.backtests import tune as tuning
from evenmatch.lab.backtests.evaluation import rateable_history, replay_and_judge
from evenmatch.lab.backtests.scoring import Variant
from evenmatch.lab.backtests.verdict import verdict
from evenmatch.match import Appearance, Match, Team
from evenmatch.systems import loop
from evenmatch.systems.system import Rules
from package_systems import as_match
from random_matches import DUELLISTS, random_matches, random_table
from reference import elo, prediction_metrics, trueskill

LEAGUE = Path(__file__).parents[2] / "docs" / "how-to" / "league_points.py"
METRICS = ("log_loss", "three_way_log_loss", "brier", "accuracy", "calibration_slope")
# as the documentation of Backtest has them
SCORES = {
    "system": pa.large_string(),
    "variant": pa.large_string(),
    "matches": pa.int64(),
    **dict.fromkeys(
        ("log_loss", "log_loss_low", "log_loss_high", "brier", "accuracy", "calibration_slope", "seconds"), pa.float64()
    ),
    "parameters": pa.large_string(),
}
INTERVALS = {f"{name}_{end}" for name in METRICS for end in ("low", "high")} | {"three_way_log_loss"}


def rows_where(found, **wanted):
    """Rows of a table with these values."""
    return [row for row in found.to_pylist() if all(row[name] == value for name, value in wanted.items())]


def row_of(found, **wanted):
    (row,) = rows_where(found, **wanted)
    return row


def predicted_odds(by, history, **limits):
    """What was foretold, float64 (P, 2), copied stretch by stretch."""
    told, ends = [], []

    def watch(start, stop, odds):
        told.append(odds.copy())
        ends.append((start, stop))

    loop.replay(by, history, by.newcomers(history.players), watch=watch)
    assert [start for start, _ in ends] == [0, *(stop for _, stop in ends[:-1])]
    assert ends[-1][1] == len(history)
    return np.concatenate(told)


def with_places(matches, changed):
    """The same matches, places of the last ones turned around from `changed` on."""
    columns = matches.history.columns
    place = columns.place.copy()
    teams = columns.team_start[changed]
    place[teams:] = place[teams:].max() + 1 - place[teams:]
    return dataclasses.replace(matches, history=type(matches.history)(columns._replace(place=place)))


# --- predicting before learning


@pytest.mark.parametrize("name", [*systems.names(), str(LEAGUE)], ids=lambda name: Path(name).stem)
def test_no_prediction_knows_of_its_own_match_or_of_later_ones(name):
    matches = random_table(name, 11, 200)
    by = rules(name)
    teams = np.diff(matches.history.columns.team_start)
    until = np.cumsum(teams * (teams - 1) // 2)
    whole = predicted_odds(by, matches.history)
    for changed in (0, 60, 199):
        other = predicted_odds(by, with_places(matches, changed).history)
        assert np.array_equal(other[: until[changed]], whole[: until[changed]])
        if changed < 199:
            assert not np.array_equal(other, whole)
        assert np.array_equal(predicted_odds(by, matches.history.take(slice(0, changed + 1))), whole[: until[changed]])


@pytest.mark.parametrize("name", systems.names())
@pytest.mark.parametrize("stretch", [1, 40])
def test_watched_odds_add_up_to_the_expected_scores_however_long_a_stretch_is(name, stretch, monkeypatch):
    matches = random_table(name, 12, 150)
    by = rules(name)
    whole = predicted_odds(by, matches.history)
    monkeypatch.setattr(loop, "PAIRS", stretch)
    assert len(loop.stretches(matches.history)) > 2
    assert np.array_equal(predicted_odds(by, matches.history), whole)
    columns = matches.history.columns
    expected = np.zeros(len(columns.place))
    odds = iter(whole.tolist())
    for first, end in pairwise(columns.team_start.tolist()):
        for a, b in combinations(range(first, end), 2):
            win, draw = next(odds)
            expected[a] += (win + draw / 2) / (end - first - 1)
            expected[b] += (1 - win - draw / 2) / (end - first - 1)
    rated = loop.replay(by, matches.history, by.newcomers(matches.history.players))
    assert rated.expected == pytest.approx(expected, abs=1e-12)


def ranked(*counts):
    """Matches of so many teams."""
    return from_matches(
        Match(f"m{at}", START, tuple(Team((Appearance(f"p{team}"),), team + 1) for team in range(count)))
        for at, count in enumerate(counts)
    )


# teams of each match, pairs of a stretch, where stretches end
STRETCHES = [
    ([2, 2, 2, 2], 1 << 16, [4]),
    ([2, 2, 2, 2, 2], 2, [1, 3, 5]),
    ([2], 1, [1]),
    ([60], 100, [1]),
    ([2, 60, 2, 2], 100, [1, 4]),
    ([5, 5, 5, 5], 10, [1, 2, 3, 4]),
]


@pytest.mark.parametrize(("teams", "pairs", "ends"), STRETCHES)
def test_stretches_have_about_so_many_pairs(teams, pairs, ends, monkeypatch):
    monkeypatch.setattr(loop, "PAIRS", pairs)
    history = ranked(*teams).history
    assert loop.stretches(history) == ends
    counted = [loop.pair_count(history, start, stop) for start, stop in pairwise([0, *ends])]
    assert counted == [sum(math.comb(count, 2) for count in teams[a:b]) for a, b in pairwise([0, *ends])]
    # also where a later stretch is larger than the first
    assert len(predicted_odds(rules("elo"), history)) == sum(counted)


# --- against plain Python


def judged_slowly(matches, odds):
    """Each match judged in plain Python; `odds` gives (win, draw) for a match and two of its teams."""
    slow = []
    for at, match in enumerate(matches):
        pairs = combinations(range(len(match.teams)), 2)
        slow.append(
            prediction_metrics.judged([team.place for team in match.teams], {pair: odds(at, *pair) for pair in pairs})
        )
    return slow


def team_means(played, changes, of):
    """The mean over each team's players of what `of` a change says, by match and team."""
    found, at = {}, iter(changes)
    for number, match in enumerate(played):
        for index, team in enumerate(match.teams):
            found[number, index] = prediction_metrics.mean([of(next(at)) for _ in team.players])
    return found


def elo_odds(played, **parameters):
    means = team_means(played, elo.replay(played, **parameters), lambda change: change.before)
    return lambda at, a, b: (elo.win_chance(means[at, a] - means[at, b], 400.0, None), 0.0)


def trueskill_odds(played):
    """By the definition, from what the slow twin shows with and without a deviation taken off."""
    mean, less = (trueskill.replay(played, display=display) for display in (0.0, 1.0))
    both = [(one.before, one.before - other.before) for one, other in zip(mean, less, strict=True)]
    told, beta, tau = {}, 25 / 6, 25 / 300
    at = iter(both)
    for number, match in enumerate(played):
        for index, team in enumerate(match.teams):
            skills = [next(at) for _ in team.players]
            variance = sum(deviation**2 + beta**2 + tau**2 for _, deviation in skills)
            told[number, index] = sum(value for value, _ in skills), variance, len(skills)

    def odds(number, a, b):
        (own, v, n), (other, w, m) = told[number, a], told[number, b]
        margin = norm.ppf(0.55) * math.sqrt(n + m) * beta
        scale = math.sqrt(v + w)
        win, loss = norm.cdf((own - other - margin) / scale), norm.cdf((other - own - margin) / scale)
        return win, 1 - win - loss

    return odds


@pytest.mark.parametrize(("name", "odds"), [("elo", elo_odds), ("trueskill", trueskill_odds)])
def test_scores_and_segments_match_plain_python(name, odds):
    played = random_matches("elo", 21, 300)
    listed = [
        dataclasses.replace(as_match(match, number), ladder=["x", "y"][len(match.teams) > 2])
        for number, match in enumerate(played)
    ]
    # a player on two ladders is two players
    split = [
        dataclasses.replace(
            match,
            teams=[
                dataclasses.replace(
                    team, players=[dataclasses.replace(p, name=f"{p.name} {listed[at].ladder}") for p in team.players]
                )
                for team in match.teams
            ],
        )
        for at, match in enumerate(played)
    ]
    slow = judged_slowly(split, odds(split))
    before = prediction_metrics.fewest_before(
        [[p.name for team in match.teams for p in team.players] for match in split]
    )
    years = {f"{match.played_at:%Y}" for match in listed}
    period = [f"{match.played_at:%Y}" if len(years) > 3 else f"{match.played_at:%Y-%m}" for match in listed]
    expected = {("all", "all"): range(300), ("warm-up", "after"): range(120, 300)}
    for by, labels in (
        ("ladder", [match.ladder for match in listed]),
        ("experience", [prediction_metrics.experience(one) for one in before]),
        ("period", period),
    ):
        for label in set(labels[120:]):
            expected[by, label] = [at for at in range(120, 300) if labels[at] == label]
    found = backtest(from_matches(listed), [name], warm_up=0.4)
    rows = rows_where(found.segments, variant="default")
    assert {(row["by"], row["group"]) for row in rows} == set(expected)
    assert len(rows) == len(expected)
    for row in [*rows, row_of(found.scores, variant="default") | {"by": "warm-up", "group": "after"}]:
        wanted = prediction_metrics.together([slow[at] for at in expected[row["by"], row["group"]]])
        if name == "elo":
            assert row["three_way_log_loss"] is None
            del wanted["three_way_log_loss"]
        for metric, value in wanted.items():
            assert row[metric] == (None if value is None else pytest.approx(value, rel=1e-6)), (row, metric)


def test_matches_of_one_moment_have_no_interval_that_looks_sure():
    # three matches in a row are resampled together or not at all: their spread is not known
    listed = duels(1, 2000, spread=200, players=10)
    listed[1500:1503] = [dataclasses.replace(match, ladder="rare") for match in listed[1500:1503]]
    row = row_of(backtest(from_matches(listed), ["elo"]).segments, group="rare", variant="default")
    assert row["matches"] == 3
    assert row["log_loss"] > 0
    assert row["log_loss_low"] is None or row["log_loss_low"] < row["log_loss"] < row["log_loss_high"]


def test_accuracy_is_undefined_if_every_match_was_drawn():
    found = backtest(duels_table(1, 300, draws=1.0), ["elo", "trueskill"])
    for row in found.scores.to_pylist():
        assert row["accuracy"] is row["accuracy_low"] is None
        assert row["log_loss"] == pytest.approx(math.log(2), rel=1e-6)
    assert row_of(found.scores, system="elo", variant="default")["calibration_slope"] is None
    assert row_of(found.scores, system="trueskill", variant="default")["three_way_log_loss"] > math.log(4)
    assert verdict(found)


def test_differences_to_the_best_are_of_the_same_matches_and_resamples():
    found = backtest(duels_table(3, 600, spread=300, players=10), ["elo", "planeswalker"], warm_up=0.2)
    best = found.chosen[0]
    top = row_of(found.scores, system=best.system, variant=best.variant)
    apart = rows_where(found.against_best)
    assert {(row["system"], row["variant"]) for row in apart} == {variant[:2] for variant in found.variants}
    for row in apart:
        own = row_of(found.scores, system=row["system"], variant=row["variant"])
        assert row["difference"] == pytest.approx(own["log_loss"] - top["log_loss"], abs=1e-12)
        assert row["low"] <= row["difference"] <= row["high"]
    mine = row_of(found.against_best, system=best.system, variant=best.variant)
    assert (mine["difference"], mine["low"], mine["high"]) == (0, 0, 0)
    # on the same resamples a difference is surer than the log losses themselves
    other = row_of(found.against_best, system="planeswalker", variant="default")
    wide = row_of(found.scores, system="planeswalker", variant="default")
    assert other["high"] - other["low"] < wide["log_loss_high"] - wide["log_loss_low"] + (
        top["log_loss_high"] - top["log_loss_low"]
    )


# --- planted truths


def losses(matches, *variants, after=0.5):
    """Log loss after the warm-up of a system with these parameters."""
    cell = np.where(np.arange(len(matches)) < after * len(matches), -1, 0).astype(np.int32)
    found = []
    for name, values in variants:
        sums, _ = replay_and_judge(rules(name, **values), matches.history, cell, 1)
        found.append(sums[0, 1] / sums[0, 0])
    return found


def test_elo_with_the_planted_parameters_predicts_its_own_matches_best():
    matches = duels_table(5, 6000, k=90.0, home=80.0, players=12)
    variants = [
        ("elo", {"k": 90, "advantage": 80}),
        ("elo", {"k": 90}),
        ("elo", {"k": 90, "advantage": 240}),
        ("elo", {"k": 16, "advantage": 80}),
        ("elo", {"k": 400, "advantage": 80}),
        ("elo", {"k": 90, "advantage": -80}),
    ]
    best, *others = losses(matches, *variants)
    assert best < min(others) - 0.003
    assert others[4] == max(others[0], others[4])  # an advantage of the wrong side is worse than none


def test_the_order_of_systems_is_the_planted_one():
    found = backtest(duels_table(6, 4000, k=90.0, players=12), ["planeswalker", "elo"])
    assert [variant.system for variant in found.chosen] == ["elo", "planeswalker"]
    assert verdict(found)[0].startswith("elo predicts this game best: log loss ")
    assert verdict(found)[0].endswith(", and ahead of every other by more than chance.")
    assert verdict(found)[1].startswith("planeswalker is ")
    rows = found.scores.to_pylist()
    assert [row["log_loss"] for row in rows] == sorted(row["log_loss"] for row in rows)


def test_tuning_finds_the_planted_parameters_and_does_better_where_it_did_not_see(few_trials):
    few_trials(45)
    found = backtest(duels_table(7, 6000, k=90.0, home=80.0, players=12), ["elo"], warm_up=0.6, tune=1)
    tuned, default = (row_of(found.scores, variant=variant) for variant in ("tuned", "default"))
    values = json.loads(tuned["parameters"])
    assert 45 < values["k"] < 180
    assert 40 < values["advantage"] < 130
    assert tuned["log_loss"] < default["log_loss"] - 0.01
    assert tuned["calibration_slope"] == pytest.approx(1, abs=0.15)
    assert found.chosen == (next(variant for variant in found.variants if variant.variant == "tuned"),)
    assert any(sentence.startswith("Tuning helped elo most, by ") for sentence in verdict(found))
    # judged after the warm-up, with what it learned of the warm-up as well
    (expected,) = losses(found.matches, ("elo", values), after=0.6)
    assert tuned["log_loss"] == pytest.approx(expected, rel=1e-12)
    assert found.trials.num_rows == 45
    assert set(found.trials["system"].to_pylist()) == {"elo"}


@pytest.mark.parametrize("name", ["glicko2", "wenglin"])
def test_an_advantage_of_the_first_listed_is_found_by_tuning(name, few_trials):
    few_trials(30)
    found = backtest(duels_table(8, 3000, spread=100, home=120.0, players=10), [name], tune=1)
    tuned, default = (row_of(found.scores, variant=variant) for variant in ("tuned", "default"))
    assert json.loads(tuned["parameters"])["advantage"] > 0
    assert tuned["log_loss"] < default["log_loss"] - 0.01


@pytest.fixture
def few_trials(monkeypatch):
    """Make a backtest tune by number of trials on one thread: the same whatever the machine does."""
    search = tuning.tune

    def install(most):
        def tune(matches, system, seconds, **options):
            return search(matches, system, 1e9, **{**options, "workers": 1, "most": most})

        monkeypatch.setattr(tuning, "tune", tune)

    return install


def test_the_seconds_of_tuning_are_for_all_systems_together(monkeypatch):
    search, given = tuning.tune, []

    def tune(matches, system, seconds, **options):
        given.append(seconds)
        return search(matches, system, 0.0, **options)

    monkeypatch.setattr(tuning, "tune", tune)
    backtest(duels_table(1, 300), ["elo", "glicko", "battlepoints"], tune=60)
    assert len(given) == 3
    assert sum(given) == pytest.approx(60, abs=5)
    assert max(given) < 30


def test_tuning_never_reads_what_comes_after_the_warm_up(few_trials):
    few_trials(9)
    early = duels(9, 300, k=60, players=10, ladders=("x", "y"))
    one = duels(10, 600, spread=300, players=10, ladders=("x", "y"))[300:]
    other = [
        dataclasses.replace(
            match,
            ladder="z",
            teams=tuple(
                dataclasses.replace(team, place=3 - team.place, players=(Appearance(f"new {number} {at}"),))
                for at, team in enumerate(match.teams)
            ),
        )
        for number, match in enumerate(one)
    ]
    first, second = (backtest(from_matches([*early, *late]), ["elo", "glicko"], tune=1) for late in (one, other))
    assert first.trials.drop_columns("seconds").equals(second.trials.drop_columns("seconds"))
    assert first.trials.num_rows == 18
    for system in ("elo", "glicko"):
        a, b = (row_of(found.scores, system=system, variant="tuned") for found in (first, second))
        assert a["parameters"] == b["parameters"]
        assert a["log_loss"] != b["log_loss"]


# --- what a system cannot rate


def three_teams(number, *names):
    return Match(
        f"m{number}",
        duel(number, "a", "b", 1.0).played_at,
        tuple(Team((Appearance(name),), place + 1) for place, name in enumerate(names)),
        ladder="duel",
    )


def untimed(match):
    """One player's time missing, which wager and scorefactor need of all or none."""
    first, second = match.teams
    return dataclasses.replace(
        match, teams=(dataclasses.replace(first, players=(Appearance(first.players[0].player, seconds=60.0),)), second)
    )


@pytest.mark.parametrize(
    ("name", "preset"),
    [(name, preset) for name in ("wager", "scorefactor", "trophies") for preset in (None, *systems.find(name).presets)],
)
def test_refused_matches_are_predicted_but_not_learned_from(name, preset):
    good = duels(13, 300, k=60, players=10)
    bad = [at for at in range(300) if at % 30 == 17]
    names = [[team.players[0].player for team in match.teams] for match in good]
    spoil = (lambda at: untimed(good[at])) if name == "scorefactor" else (lambda at: three_teams(at, *names[at], "z"))
    listed = [spoil(at) if at in bad else match for at, match in enumerate(good)]
    by = rules(name, preset)
    matches = from_matches(listed)
    refused = {match for match, _ in by.system.refusals(matches.history.columns, by.parameters)}
    assert refused == set(bad)
    history = rateable_history(matches.history, by)
    teams = np.diff(matches.history.columns.team_start)
    of_good = ~np.isin(np.repeat(np.arange(300), teams * (teams - 1) // 2), bad)
    whole = predicted_odds(by, history)
    without = matches.history.take(np.setdiff1d(np.arange(300), bad))
    assert np.array_equal(whole[of_good], predicted_odds(by, without))
    assert np.isfinite(whole).all()
    state = loop.replay(by, history, by.newcomers(history.players)).state
    assert np.array_equal(state, loop.replay(by, without, by.newcomers(history.players)).state)
    found = backtest(matches, [name])
    odds = iter(whole.tolist())
    slow = judged_slowly(listed, lambda *_: next(odds))
    row = row_of(found.scores, variant=preset or "default")
    assert row["matches"] == 150
    assert row["log_loss"] == pytest.approx(prediction_metrics.together(slow[150:])["log_loss"], rel=1e-6)
    assert found.left_out == ()


@pytest.mark.parametrize(("count", "judged"), [(15, True), (16, False)])
def test_a_system_that_cannot_rate_one_match_in_twenty_is_left_out_and_the_reason_is_given(count, judged):
    listed = duels(13, 300, k=60, players=10)
    listed = [*map(untimed, listed[:count]), *listed[count:]]
    found = backtest(from_matches(listed), ["wager", "elo"])
    assert ("wager" in found.scores["system"].to_pylist()) == judged
    if judged:
        assert found.left_out == ()
    else:
        ((name, reason),) = found.left_out
        assert name == "wager"
        assert reason.startswith("cannot rate 16 of 300 matches: seconds is empty for 1 of 2 players")
        assert verdict(found)[-1] == f"wager was left out: {reason}."
        assert "wager" not in {variant.system for variant in found.variants}


def test_parameters_that_cannot_rate_the_matches_are_left_out_with_a_reason():
    # the shares of rounds are not recorded: a prav that goes by them would learn nothing and stay at even odds
    found = backtest(duels_table(1, 300), [rules("prav", outcome="share"), "elo"])
    assert row_of(found.scores, system="prav", variant="default")
    assert rows_where(found.scores, system="prav", variant="given") == []
    ((name, reason),) = found.left_out
    assert "prav" in name
    assert "given" in name
    assert "cannot rate 300 of 300 matches: team_score is empty" in reason


def test_if_no_system_can_rate_the_error_gives_every_reason():
    matches = from_matches(three_teams(at, "a", "b", "c") for at in range(250))
    with pytest.raises(
        InputError, match=r"none of the systems named can rate these matches: wager .* exactly 2; trophies .* 2"
    ):
        backtest(matches, ["wager", "trophies"])


RUNAWAY = "record.rating = (record.rating + 1.0) * 1e200"


@pytest.fixture
def own(tmp_path):
    """Write a system of one's own: the one of the how-to, changed."""

    def write(name, *changes):
        text = LEAGUE.read_text()
        for old, new in (('name="league_points"', f'name="{name}"'), *changes):
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        return str(path)

    return write


def test_a_variant_whose_ratings_run_away_is_left_out(own):
    runaway = own("runaway", ("record.rating += points", RUNAWAY))
    found = backtest(duels_table(1, 300), [runaway, "elo"])
    assert set(found.left_out) == {
        (f"runaway {variant}", "its ratings leave the range of numbers on these matches")
        for variant in ("default", "old")
    }
    assert set(found.scores["system"].to_pylist()) == {"elo"}
    assert all(math.isfinite(row["log_loss_high"]) for row in found.segments.to_pylist())
    with pytest.raises(InputError, match="range of numbers"):
        backtest(duels_table(1, 300), [runaway])


# --- what is asked for


def test_without_names_every_system_and_every_preset_is_tried():
    found = backtest(random_table("wager", 3, 300))
    expected = {
        (name, preset or "default") for name in systems.names() for preset in (None, *systems.find(name).presets)
    }
    assert {variant[:2] for variant in found.variants} == expected
    assert found.left_out == ()
    assert found.scores.num_rows == len(expected)
    for variant in found.variants:
        row = row_of(found.scores, system=variant.system, variant=variant.variant)
        assert json.loads(row["parameters"]) == json.loads(json.dumps(variant.rules.values()))
        preset = None if variant.variant == "default" else variant.variant
        assert variant.rules.values() == rules(variant.system, preset).values()
    assert {variant.system for variant in found.chosen} == set(systems.names())
    assert all(variant.variant == "default" for variant in found.chosen)


def test_rules_that_are_given_are_tried_besides_the_presets():
    matches = duels_table(7, 500, k=90, players=8)
    found = backtest(matches, [rules("elo", k=90), rules("elo", k=400, advantage=5), "glicko", rules("glicko", c=30)])
    expected = {
        *(("elo", name) for name in ("default", "given", "given 2", *systems.find("elo").presets)),
        *(("glicko", name) for name in ("default", "given", *systems.find("glicko").presets)),
    }
    assert {variant[:2] for variant in found.variants} == expected
    assert len(found.variants) == len(expected)
    for variant, values in (("given", {"k": 90}), ("given 2", {"k": 400, "advantage": 5})):
        row = row_of(found.scores, system="elo", variant=variant)
        assert json.loads(row["parameters"]) == rules("elo", **values).values()
        (loss,) = losses(matches, ("elo", values))
        assert row["log_loss"] == pytest.approx(loss, rel=1e-12)
    assert {(variant.system, variant.variant) for variant in found.chosen} == {("elo", "given"), ("glicko", "given")}


def test_two_systems_of_one_name_are_refused(own):
    with pytest.raises(UsageError, match="elo"):
        backtest(duels_table(1, 200), [own("elo"), "elo"])


def test_tables_have_the_documented_columns_and_are_arrows():
    found = evenmatch.backtest(duels_table(1, 300, draws=0.2), ["elo", "trueskill"])
    assert isinstance(found, evenmatch.Backtest)
    scores = dict(zip(found.scores.column_names, found.scores.schema.types, strict=True))
    assert list(scores.items())[: len(SCORES)] == list(SCORES.items())
    assert set(scores) == set(SCORES) | INTERVALS
    assert found.segments.column_names[:5] == ["system", "variant", "by", "group", "matches"]
    assert set(found.segments.column_names[5:]) == INTERVALS | set(METRICS)
    columns = {
        "reliability": ["system", "variant", "predicted", "observed", "low", "high", "matches"],
        "against_best": ["system", "variant", "difference", "low", "high"],
        "trials": ["system", "trial", "log_loss", "parameters", "seconds"],
    }
    for name, expected in columns.items():
        assert isinstance(getattr(found, name), pa.Table)
        assert getattr(found, name).column_names == expected
    assert found.trials.num_rows == 0
    for row in found.scores.to_pylist():
        assert row["seconds"] > 0
        assert (row["three_way_log_loss"] is None) == (row["system"] == "elo")
        for metric in METRICS:
            if row[metric] is not None:
                assert row[f"{metric}_low"] < row[metric] < row[f"{metric}_high"]


def without_seconds(found):
    tables = (found.scores.drop_columns("seconds"), found.segments, found.reliability, found.against_best)
    return [one.to_pylist() for one in tables]


def test_the_same_seed_gives_the_same_tables_and_another_the_same_values():
    matches = duels_table(1, 400, spread=200, draws=0.1, ladders=("x", "y"))
    first, again, other = (backtest(matches, ["elo", "trueskill"], seed=seed) for seed in (1, 1, 2))
    assert without_seconds(first) == without_seconds(again)
    for name in ("scores", "segments", "reliability", "against_best"):
        ends = [column for column in getattr(first, name).column_names if column.endswith("low")]
        assert getattr(first, name).select(ends) != getattr(other, name).select(ends)
    for metric in ("log_loss", "calibration_slope"):
        assert first.scores[metric].equals(other.scores[metric])


# matches, share, how many of them are the warm-up
SHARES = [(150, 0.0, 0), (201, 0.5, 100), (130, 0.2, 26)]


@pytest.mark.parametrize(("count", "share", "warm_up"), SHARES)
def test_the_warm_up_share_is_learned_from_but_not_judged(count, share, warm_up):
    found = backtest(duels_table(2, count, spread=200), ["elo"], warm_up=share)
    assert found.warm_up == warm_up
    row = row_of(found.scores, variant="default")
    assert row["matches"] == count - warm_up
    (expected,) = losses(found.matches, ("elo", {}), after=warm_up / count)
    assert row["log_loss"] == pytest.approx(expected, rel=1e-12)
    assert row_of(found.segments, variant="default", by="all")["matches"] == count


@pytest.mark.parametrize(("count", "share"), [(99, 0.0), (198, 0.5)])
def test_a_set_too_small_to_judge_is_refused_instead_of_ranked(count, share):
    left = count - int(count * share)
    assert left < 100
    with pytest.raises(InputError, match=rf"{count} match(es)?, {left} of them after the warm-up: too few"):
        backtest(duels_table(2, count).take(slice(0, count)), ["elo"], warm_up=share)


# arguments and what is said
WRONG = [
    ({"warm_up": -0.1}, "warm_up=-0.1: must be a share from 0 to 0.9"),
    ({"tune": -1}, "tune=-1: must be"),
    ({"tune": math.inf}, "tune=inf"),
    ({"by": ["elo", "eloo"]}, "unknown system 'eloo' (did you mean 'elo'?)"),
    ({"by": ["nowhere.py"]}, "nowhere.py"),
]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_wrong_arguments_are_refused(options, said):
    with pytest.raises(UsageError) as refused:
        backtest(duels_table(2, 300), **{"by": ["elo"], **options})
    assert said in str(refused.value)
    assert isinstance(refused.value, UnknownNameError) == ("eloo" in said)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.003, 0.1])
def test_tuning_on_a_handful_of_matches_is_refused(share):
    with pytest.raises(EvenmatchError, match="warm-up"):
        backtest(duels_table(2, 400), ["elo"], warm_up=share, tune=0.01)


def test_matches_of_every_shape_are_judged_by_every_system_that_can():
    found = backtest(random_table("elo", 17, 250), warm_up=0.1)
    assert {name for name, _ in found.left_out} == set(DUELLISTS)
    for row in [*found.scores.to_pylist(), *found.segments.to_pylist()]:
        numbers = [value for value in row.values() if isinstance(value, float)]
        assert np.isfinite(numbers).all()


# --- the verdict


def test_the_verdict_says_when_nothing_beats_a_coin():
    found = backtest(duels_table(7, 600), ["elo", "glicko"])
    assert verdict(found)[0].startswith("No system can be distinguished from a coin on these matches; ")


def findings_for(found, **rows):
    """What is said where the numbers are these: log loss, low and high of the difference, others by name."""
    scores, apart, segments = [], [], []
    for name, (loss, low, high, other) in rows.items():
        named = {"system": name, "variant": "default"}
        usual = {"log_loss": loss, "accuracy": 0.6, "calibration_slope": 1.0, "seconds": 5.0, "matches": 500}
        scores.append(named | usual | other)
        apart.append({**named, "difference": loss - scores[0]["log_loss"], "low": low, "high": high})
        segments.append(
            {**named, "by": "experience", "group": "0", "matches": 50, "log_loss": other.get("newcomers", 0.69)}
        )
    chosen = tuple(Variant(name, "default", Rules.of(systems.find("elo"))) for name in rows)

    def as_table(listed, like):
        rows = [{name: row.get(name) for name in like.column_names} for row in listed]
        return pa.Table.from_pylist(rows, like.schema)

    changed = dataclasses.replace(
        found,
        scores=as_table(scores, found.scores),
        against_best=as_table(apart, found.against_best),
        segments=as_table(segments, found.segments),
        chosen=chosen,
        variants=chosen,
        left_out=(("wager", "cannot rate these"),),
    )
    return verdict(changed)


COIN = math.log(2)
BEST = (0.5, 0, 0, {})
# the second system's numbers, and what is said of it
BEHIND = [
    ((0.55, 0.02, 0.08, {"accuracy": 0.5}), "b is 10% worse (4% to 16%)."),
    ((0.55, 0.02, 0.08, {}), "b is 10% worse (4% to 16%), but picks the winner as often (60.0% against 60.0%)."),
    ((0.55, 0.02, 0.08, {"accuracy": 0.5, "newcomers": 0.6}), "but predicts matches with newcomers better."),
    ((0.55, 0.02, 0.08, {"accuracy": 0.5, "seconds": 1.0}), "but rates 5 times as fast."),
    ((0.55, 0.02, 0.08, {"accuracy": 0.5, "calibration_slope": 0.5}), "too sure of itself (calibration slope 0.50)."),
    ((0.55, 0.02, 0.08, {"accuracy": 0.5, "calibration_slope": 1.5}), "too timid (calibration slope 1.50)."),
    ((1.25, 0.5, 1.0, {"accuracy": 0.5}), "b is 150% worse (100% to 200%)."),
]


@pytest.fixture(scope="module")
def any_found():
    return backtest(duels_table(7, 200), ["elo"])


@pytest.mark.parametrize(("numbers", "sentence"), BEHIND)
def test_the_verdict_says_how_far_behind_a_system_is_and_what_speaks_for_it(numbers, sentence, any_found):
    says = findings_for(any_found, a=BEST, b=numbers)
    assert says[0] == f"a predicts this game best: log loss 0.5000, {1 - 0.5 / COIN:.1%} better than a coin" + (
        ", and ahead of every other by more than chance."
    )
    assert says[1].startswith("b is ")
    assert says[1].endswith(sentence)
    assert says[2:] == ["wager was left out: cannot rate these."]


def test_indistinguishable_systems_are_named(any_found):
    level = (0.51, -0.01, 0.02, {})
    opening = f"a predicts this game best: log loss 0.5000, {1 - 0.5 / COIN:.1%} better than a coin; "
    end = " indistinguishable from it on these matches."
    assert findings_for(any_found, a=BEST, b=level)[0] == f"{opening}b is{end}"
    assert findings_for(any_found, a=BEST, b=level, c=level, d=level)[0] == f"{opening}b, c and d are{end}"


# difference's interval, and whether the two are level
LEVEL = [((0.51, -0.001, 0.02), True), ((0.51, 0.0, 0.02), True), ((0.51, 0.001, 0.02), False),
         ((0.5004, 0.0001, 0.0007), True), ((0.5006, 0.0001, 0.001), False)]  # fmt: skip


@pytest.mark.parametrize(("numbers", "level"), LEVEL)
def test_a_small_or_uncertain_difference_counts_as_level(numbers, level, any_found):
    says = findings_for(any_found, a=BEST, b=(*numbers, {"accuracy": 0.5}))
    assert ("; b is indistinguishable from it on these matches." in says[0]) == level
    assert any(sentence.startswith("b is ") for sentence in says) != level


UNTUNED = "Without tuning, a predicts best (log loss 0.5000)"
TUNED_AND_NOT = [
    (0.52, 0.01, 0.03, f"{UNTUNED}; tuned b is 4% worse (2% to 6%)."),
    (0.49, -0.02, -0.005, f"{UNTUNED}; tuned b is 2% better (1% to 4%)."),
    (0.51, -0.01, 0.03, f"{UNTUNED} and is indistinguishable from tuned b."),
]


@pytest.mark.parametrize(("loss", "low", "high", "sentence"), TUNED_AND_NOT)
def test_the_best_default_is_compared_with_the_best_other_system_as_tuned(loss, low, high, sentence, any_found):
    losses = {("a", "default"): 0.5, ("a", "tuned"): 0.5, ("b", "default"): 0.6, ("b", "tuned"): loss}
    usual = {"accuracy": 0.6, "calibration_slope": 1.0, "seconds": 5.0, "matches": 500, "parameters": "{}"}
    scores = [{"system": a, "variant": b, "log_loss": value, **usual} for (a, b), value in losses.items()]
    apart = [{"system": a, "variant": b, "difference": value - 0.5} for (a, b), value in losses.items()]
    at_best = min(losses, key=losses.get)
    ends = [{"low": low, "high": high} if row["variant"] == "tuned" and row["system"] == "b" else {} for row in apart]
    chosen = sorted((Variant(a, b, Rules.of(systems.find("elo"))) for a, b in losses if b == "tuned"),
                    key=lambda variant: losses[variant[:2]])  # fmt: skip

    def as_table(rows, like):
        return pa.Table.from_pylist([{name: row.get(name) for name in like.column_names} for row in rows], like.schema)

    to_best = [row | {"difference": losses[row["system"], row["variant"]] - losses[at_best], "low": 0} for row in apart]
    changed = dataclasses.replace(
        any_found,
        scores=as_table(scores, any_found.scores),
        against_best=as_table(to_best, any_found.against_best),
        against_best_default=as_table(
            [row | end for row, end in zip(apart, ends, strict=True)], any_found.against_best
        ),
        chosen=tuple(chosen),
        variants=tuple(chosen),
    )
    says = verdict(changed)
    assert sentence in says
    assert "Tuning found nothing better than the defaults of a and b." in says  # the same parameters


def test_the_difference_to_the_best_default_is_that_of_the_losses(few_trials):
    few_trials(20)
    found = backtest(duels_table(6, 2000, k=90.0, players=12), ["elo", "glicko"], tune=1)
    losses = {(row["system"], row["variant"]): row["log_loss"] for row in found.scores.to_pylist()}
    base = min(loss for (_, variant), loss in losses.items() if variant == "default")
    for row in found.against_best_default.to_pylist():
        loss = losses[row["system"], row["variant"]]
        assert row["difference"] == pytest.approx(loss - base, abs=1e-12)
        assert row["low"] <= row["difference"] <= row["high"]


def test_a_preset_that_did_better_is_named_but_not_chosen():
    found = backtest(duels_table(6, 3000, k=90.0, players=12), ["elo", "planeswalker"])
    rows = found.scores.to_pylist()
    better = {"system": "planeswalker", "variant": "friday", "log_loss": rows[0]["log_loss"] - 0.01}
    changed = [row if row["variant"] != "friday" else row | better for row in rows]
    says = verdict(dataclasses.replace(found, scores=pa.Table.from_pylist(changed, schema=found.scores.schema)))
    assert says[-1] == (
        f"The friday variant of planeswalker did even better here ({better['log_loss']:.4f}), but choosing it "
        "afterwards would be hindsight."
    )
