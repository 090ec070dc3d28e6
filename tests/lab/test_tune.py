"""Tuning: finds what was planted, goes on where it was, and keeps to its budget and to the ranges declared."""

import json
import math
import re
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("optuna", reason="tuning needs optuna (the extra lab)")

from elo_matches import duels, duels_table
from evenmatch import from_matches, rules, systems
from evenmatch.errors import BadParameterError, UsageError
from evenmatch.lab.backtests.evaluation import rateable_history, replay_and_judge
from evenmatch.lab.backtests.tune import LEARNED, tune
from evenmatch.options import Number, Numbers, options_of
from random_matches import random_table

LEAGUE = Path(__file__).parents[2] / "docs" / "how-to" / "league_points.py"
AMPLE = 1e9  # seconds: the number of trials ends a search


def run_tuning(matches, name="elo", most=6, **options):
    return tune(matches, systems.find(name), AMPLE, **{"most": most, "workers": 1, **options})


def tried(found):
    """Log loss and parameters of each trial in turn."""
    return [(row["log_loss"], json.loads(row["parameters"])) for row in found.trials]


def loss_of(matches, name, values):
    """Log loss over the later part."""
    by = rules(name, **values)
    cell = np.where(np.arange(len(matches)) < len(matches) * LEARNED, -1, 0).astype(np.int32)
    sums, _ = replay_and_judge(by, rateable_history(matches.history, by), cell, 1)
    return sums[0, 1] / sums[0, 0]


def notes_of(found, about):
    """The notes that hold these words."""
    return [note for note in found.notes if about in note]


def the_file_in(folder):
    (path,) = folder.iterdir()
    return path


@pytest.mark.parametrize("k", [24.0, 200.0])
def test_the_planted_k_is_found(k):
    found = run_tuning(duels_table(4, 4000, k=k, players=10), most=40)
    assert k / 2 < found.rules.parameters.k < k * 2
    assert len(found.trials) == 40


def test_tuning_returns_the_best_trial_on_the_later_part():
    matches = duels_table(4, 1000, k=100.0, home=60.0, players=10)
    found = run_tuning(matches, most=12)
    listed = tried(found)
    assert [row["trial"] for row in found.trials] == list(range(12))
    for loss, values in listed:
        assert loss == pytest.approx(loss_of(matches, "elo", values), rel=1e-12)
    best = min(listed, key=lambda one: one[0])
    assert found.log_loss == best[0]
    assert found.rules.values() == rules("elo", **best[1]).values()


def test_the_defaults_and_every_preset_are_tried_even_without_time():
    found = tune(duels_table(1, 200), systems.find("elo"), 0.0)
    assert sorted(json.dumps(values) for _, values in tried(found)) == sorted(
        json.dumps(dict(preset)) for preset in ({}, *systems.find("elo").presets.values())
    )


def test_a_search_goes_on_beyond_a_short_budget_until_it_has_tried_twenty():
    found = tune(duels_table(1, 200), systems.find("elo"), 1e-9, workers=2)
    assert 20 <= len(found.trials) <= 21
    assert not notes_of(found, "tried only")


def test_the_same_seed_tries_the_same_and_another_does_not():
    matches = duels_table(1, 300, k=40, players=8)
    first, again, other = (tried(run_tuning(matches, most=9, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", systems.names())
def test_every_system_is_tuned_within_the_ranges_that_it_declares(name, tmp_path):
    matches = random_table(name, 5, 60)
    system = systems.find(name)
    fixed = 1 + len(system.presets)
    found = run_tuning(matches, name, most=fixed + 3, trials=tmp_path)
    listed = tried(found)
    assert len(listed) == fixed + 3
    assert math.isfinite(found.log_loss)
    searched = {name: option for name, option in options_of(system.parameters).items() if option.search is not None}
    for _, values in listed[fixed:]:
        assert set(values) == set(searched)
        for parameter, value in values.items():
            spec = searched[parameter]
            if isinstance(spec, Number | Numbers):
                for one in value if isinstance(spec, Numbers) else [value]:
                    assert spec.search[0] <= one <= spec.search[1]
            else:
                assert value in spec.search
    for loss, values in listed:
        if loss is None:  # each value is one that the parameter accepts, only they do not go together
            with pytest.raises(BadParameterError, match=rf"^{name}: "):
                rules(name, **values)
    # proposals differ in every parameter
    for parameter, spec in searched.items():
        if isinstance(spec, Number | Numbers):
            assert len({json.dumps(values[parameter]) for _, values in listed[fixed:]}) == 3
    again = run_tuning(matches, name, most=fixed + 4, trials=tmp_path)
    assert tried(again)[:-1] == listed


@pytest.fixture
def own(tmp_path):
    """Write a system of one's own: the one of the how-to, changed."""

    def write(*changes):
        text = LEAGUE.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "own.py"
        path.write_text(text)
        return str(path)

    return write


def test_a_system_without_ranges_is_tried_as_it_is_and_time_is_not_waited_for():
    begun = time.monotonic()
    found = tune(duels_table(1, 200), systems.find(str(LEAGUE)), AMPLE)
    assert time.monotonic() - begun < 60
    assert sorted(map(str, (values for _, values in tried(found)))) == ["{'win': 2.0}", "{}"]


CONFLICT = (
    'draw: float = number(1.0, 0, 100, "points for each draw")',
    'draw: float = number(1.0, 0, 100, "points for each draw", search=(0, 6))\n\n'
    "    def conflict(self) -> str:\n"
    '        return "" if self.draw <= self.win else "a draw is worth more than a win; expected less"',
)


def test_parameters_that_do_not_go_together_are_passed_over(own, tmp_path):
    name = own(CONFLICT, ('"points for each rival finished ahead of")', '"points for a win", search=(0, 6))'))
    matches = duels_table(1, 300, spread=200, draws=0.2)
    kept = tmp_path / "kept"
    found = run_tuning(matches, name, most=30, trials=kept)
    listed = tried(found)
    assert {loss is None for loss, _ in listed} == {True, False}
    for loss, values in listed:
        assert (loss is None) == (values.get("draw", 1.0) > values.get("win", 3.0))
    assert found.rules.parameters.draw <= found.rules.parameters.win
    assert tried(run_tuning(matches, name, most=30, trials=kept)) == listed


def test_rows_of_numbers_are_proposed_in_the_order_that_they_must_have(own):
    name = own(
        ("    number,\n", "    number,\n    numbers,\n"),
        (
            CONFLICT[0],
            'draw: tuple = numbers((1.0, 1.0, 1.0), 0, 100, "points for a draw", ascending=True, search=(0, 6))',
        ),
        ("League(p.win, p.draw)", "League(p.win, p.draw[0])"),
    )
    listed = tried(run_tuning(duels_table(1, 200, draws=0.2), name, most=10))
    assert None not in [loss for loss, _ in listed]
    for _, values in listed[2:]:
        assert values["draw"] == sorted(values["draw"])
        assert len(set(values["draw"])) == 3


def test_wide_ranges_are_searched_by_orders_of_magnitude():
    low, high = options_of(systems.find("elo").parameters)["k"].search
    assert high / low > 100
    middle = math.sqrt(low * high)
    matches = duels_table(1, 100)
    proposed = [values["k"] for seed in range(5) for _, values in tried(run_tuning(matches, most=10, seed=seed))[3:]]
    assert 0.25 < sum(k < middle for k in proposed) / len(proposed) < 0.75


def test_parameters_whose_ratings_run_away_are_no_success(own):
    name = own(
        ('"points for each rival finished ahead of")', '"points for a win", search=(1, 400))'),
        ("record.rating += points", "record.rating += 10.0 ** points"),
    )
    listed = tried(run_tuning(duels_table(1, 300), name, most=20))
    assert {loss is None for loss, _ in listed} == {True, False}
    assert all(math.isfinite(loss) for loss, _ in listed if loss is not None)


# --- kept trials


def test_a_search_goes_on_where_it_was(tmp_path):
    matches = duels_table(1, 300, k=40, players=8)
    first = run_tuning(matches, most=7, trials=tmp_path)
    assert notes_of(first, "continued from") == []
    lines = the_file_in(tmp_path).read_text().splitlines()
    assert [(json.loads(line)["log_loss"], json.loads(line)["values"]) for line in lines] == tried(first)
    second = run_tuning(matches, most=12, trials=tmp_path)
    assert tried(second)[:7] == tried(first)
    assert len(second.trials) == 12
    (told,) = notes_of(second, "continued from")
    assert told == "tuning of elo continued from 7 trials of an earlier run"
    third = run_tuning(matches, most=12, trials=tmp_path)
    assert tried(third) == tried(second)
    assert third.rules.values() == second.rules.values()
    assert len(the_file_in(tmp_path).read_text().splitlines()) == 12


@pytest.mark.parametrize("first", [4, 12])
def test_a_search_that_goes_on_does_not_try_the_same_again(first, tmp_path):
    matches = duels_table(1, 300, k=40, players=8)
    run_tuning(matches, most=first, trials=tmp_path)
    listed = [json.dumps(values) for _, values in tried(run_tuning(matches, most=first + 8, trials=tmp_path))]
    assert len(set(listed)) == first + 8


def test_trials_keep_their_numbers_where_one_was_lost(tmp_path):
    # two threads: the run was interrupted when a later trial was done and an earlier one was not
    matches = duels_table(1, 300, k=40, players=8)
    run_tuning(matches, most=8, trials=tmp_path)
    path = the_file_in(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:6] + lines[7:]))
    numbers = [row["trial"] for row in run_tuning(matches, most=10, trials=tmp_path).trials]
    assert len(set(numbers)) == len(numbers) == 10


def test_kept_trials_teach_the_search(tmp_path):
    # with a narrow optimum and forty trials to learn from, new proposals crowd around it
    matches = duels_table(4, 3000, k=150.0, players=8)
    run_tuning(matches, most=40, trials=tmp_path)
    taught = [values["k"] for _, values in tried(run_tuning(matches, most=60, trials=tmp_path))[40:]]
    assert sum(75 < k < 300 for k in taught) >= 12


def test_seconds_that_were_used_count_towards_the_budget(tmp_path):
    matches = duels_table(1, 300, k=40, players=8)
    elo = systems.find("elo")
    first = tune(matches, elo, 1.5, trials=tmp_path)
    lines = [json.loads(line) for line in the_file_in(tmp_path).read_text().splitlines()]
    assert 1.0 < lines[-1]["elapsed"] < 10
    assert [line["elapsed"] for line in lines] == sorted(line["elapsed"] for line in lines)
    begun = time.monotonic()
    again = tune(matches, elo, 1.5, trials=tmp_path)
    assert time.monotonic() - begun < 1
    assert tried(again) == tried(first)
    more = tune(matches, elo, lines[-1]["elapsed"] + 0.5, trials=tmp_path)
    assert len(more.trials) > len(first.trials)
    last = json.loads(the_file_in(tmp_path).read_text().splitlines()[-1])
    assert last["elapsed"] > lines[-1]["elapsed"]


def test_a_half_written_last_line_is_survived_and_costs_no_later_trial(tmp_path):
    matches = duels_table(1, 300, k=40, players=8)
    first = run_tuning(matches, most=6, trials=tmp_path)
    path = the_file_in(tmp_path)
    path.write_text(path.read_text()[:-25])
    second = run_tuning(matches, most=8, trials=tmp_path)
    assert tried(second)[:5] == tried(first)[:5]
    assert len(second.trials) == 8
    third = tune(matches, systems.find("elo"), 0.0, trials=tmp_path)
    assert tried(third) == tried(second)


@pytest.mark.parametrize("spoilt", [b"no JSON\n", b"null\n", b"{}\n", b"\xff\xfe\n"])
def test_lines_that_are_no_trials_are_passed_over(spoilt, tmp_path):
    matches = duels_table(1, 300, k=40, players=8)
    first = run_tuning(matches, most=5, trials=tmp_path)
    path = the_file_in(tmp_path)
    path.write_bytes(spoilt + path.read_bytes())
    assert tried(run_tuning(matches, most=5, trials=tmp_path)) == tried(first)


def test_trials_of_another_history_or_another_system_are_not_taken_up(tmp_path, own):
    matches = duels_table(1, 300, k=40, players=8)
    run_tuning(matches, most=6, trials=tmp_path / "kept")
    for other in (
        matches.take(slice(0, 299)),
        duels_table(2, 300, k=40, players=8),
        duels_table(1, 300, k=40, players=8, hours=7.0),
        from_matches([*duels(1, 299, k=40, players=8), duels(2, 300)[299]]),
    ):
        found = run_tuning(other, most=4, trials=tmp_path / "kept")
        assert notes_of(found, "went on") == []
        assert len(found.trials) == 4
    assert notes_of(run_tuning(matches, "glicko", most=4, trials=tmp_path / "kept"), "went on") == []
    changed = own(('name="league_points"', 'name="elo"'))
    assert notes_of(run_tuning(matches, changed, most=4, trials=tmp_path / "kept"), "went on") == []
    assert len(list((tmp_path / "kept").iterdir())) == 7
    # the same parameters of kernels that are not the same
    for change in (), (("record.rating + 1.5", "record.rating + 2.5"),):
        found = run_tuning(matches, own(CONFLICT, *change), most=4, trials=tmp_path / "kept")
        assert notes_of(found, "went on") == []


@pytest.mark.parametrize("below", ["", "deep/down"])
def test_a_folder_that_cannot_be_written_is_refused(below, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"trials cannot be stored there: \w+"):
        run_tuning(duels_table(1, 200), trials=tmp_path / "file" / below)


def test_progress_reports_trials_and_time():
    told = []
    tune(duels_table(1, 300), systems.find("elo"), 0.5, progress=lambda *said: told.append(said))
    assert all(re.fullmatch(r"tuning elo: \d+ trials, best log loss 0\.\d{4}", what) for what, _ in told)
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[0] >= 0
    assert 0.9 < shares[-1] <= 1


def test_a_preset_may_give_one_number_for_all_brackets(own):
    name = own(
        ("    number,\n", "    number,\n    numbers,\n"),
        (CONFLICT[0], 'draw: tuple = numbers((1.0, 1.0), 0, 100, "points for a draw", search=(0, 6))'),
        ("League(p.win, p.draw)", "League(p.win, p.draw[0])"),
        ('"old": {"win": 2.0}', '"old": {"draw": 0.5}'),
    )
    found = run_tuning(duels_table(1, 200, draws=0.2), name, most=4)
    assert tried(found)[1][1] == {"draw": 0.5}
    assert len(found.trials) == 4


def test_parameters_with_which_the_matches_cannot_be_rated_are_no_success():
    # nothing can be learned here, and prav does not try to where it needs shares of rounds that are not recorded
    matches = duels_table(1, 400)
    found = run_tuning(matches, "prav", most=16)
    assert any(values.get("outcome") == "share" for _, values in tried(found))
    assert found.rules.parameters.outcome == "result"
