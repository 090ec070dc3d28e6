"""Recorded matches of real games: every file rates with every system whose needs it meets, from the command line."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from evenmatch import backtest, read, systems
from run_command import Ended, run_command

DATA = Path(__file__).parents[2] / "shared" / "data"
FILES = {
    "afl": 4365,
    "cod_cwl": 5091,
    "codeforces": 301,
    "f1": 1188,
    "halo2_h2h": 6028,
    "halo2_largeteam": 972,
    "halo2_smallteam": 25557,
    "intl_football": 49520,
}  # matches, as the description of the data counts them
# What a file lacks: system, what the refusal names. cod_cwl has one match without scores.
REFUSED = {
    ("codeforces", "wager"): "rates matches of exactly 2",
    ("f1", "wager"): "rates matches of exactly 2",
    ("codeforces", "trophies"): "rates matches of exactly 2",
    ("f1", "trophies"): "rates matches of exactly 2",
    ("codeforces", "scorefactor"): "score is empty",
    ("cod_cwl", "scorefactor"): "score is empty for 8 of 8 players",
}
# Log loss and accuracy of plain Elo over the second half, ladders pooled, as the description of the data has them
PLAIN_ELO = {
    "halo2_h2h": (0.6199, 0.686),
    "halo2_smallteam": (0.6544, 0.627),
    "halo2_largeteam": (0.6847, 0.559),
    "cod_cwl": (0.6706, 0.602),
    "afl": (0.6254, 0.647),
    "f1": (0.5811, 0.696),
    "codeforces": (0.6310, 0.661),
    "intl_football": (0.5807, 0.745),
}
# Contests of thousands: a system takes ten seconds there, so those for free-for-alls, and those that must refuse.
ON_CODEFORCES = {"elommr", "trueskill", "battlepoints", "wager", "trophies", "scorefactor"}
SLOWEST = {("codeforces", "elommr"), ("codeforces", "trueskill")}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.is_dir(), reason="the recorded matches in ../shared/data are not here"),
]


def spawned(*arguments):
    """What a command in a process of its own tells."""
    line = [sys.executable, "-m", "evenmatch", *map(str, arguments)]
    run = subprocess.run(line, capture_output=True, text=True, check=False)
    return Ended(run.returncode, run.stdout, run.stderr)


@pytest.mark.parametrize("file", FILES)
def test_a_file_holds_as_many_matches_as_its_description_says(file):
    table = read(DATA / f"{file}.parquet")
    assert len(table) == FILES[file]
    assert len(table.history.columns.player) == pq.read_metadata(DATA / f"{file}.parquet").num_rows


@pytest.mark.parametrize(
    ("file", "system"),
    [
        pytest.param(file, system, marks=[pytest.mark.slow] if (file, system) in SLOWEST else [])
        for file in FILES
        for system in systems.names()
        if file != "codeforces" or system in ON_CODEFORCES
    ],
)
def test_a_file_is_rated_by_every_system_whose_needs_it_meets(file, system, tmp_path):
    out, journal = tmp_path / "ratings.parquet", tmp_path / "journal.parquet"
    arguments = ["rate", DATA / f"{file}.parquet", "--system", system, "--out", out, "--journal", journal, "--json"]
    run = spawned if file == "cod_cwl" else run_command  # of each system one that is started as people start it
    told = run(*arguments)
    if (file, system) in REFUSED:
        assert told.code == 1
        assert REFUSED[file, system] in told.err
        refusal = json.loads(told.out)
        assert refusal["outcome"] == "nothing was rated"
        assert 1 <= len(refusal["bad_matches"]) <= FILES[file]
        assert not out.exists()
        assert not journal.exists()
        if (file, system) != ("cod_cwl", "scorefactor"):
            return
        told = run(*arguments, "--skip-bad")
        assert "1 bad match skipped" in told.err
    assert told.code == 0, told.err
    skipped = 1 if (file, system) in REFUSED else 0
    document = json.loads(told.out)
    assert document["matches"] == FILES[file] - skipped
    assert document["skipped_matches"] == skipped
    ratings, changes = pq.read_table(out), pq.read_table(journal)
    expected_columns = ["ladder", "player", "rating", "matches", "last_played", "percentile", "placed", "division"]
    assert ratings.column_names[:8] == expected_columns
    assert np.isfinite(ratings["rating"].to_numpy()).all()
    assert ratings.num_rows == len(document["standings"])
    assert changes.column_names[:8] == [
        "match_id",
        "played_at",
        "ladder",
        "player",
        "team",
        "before",
        "after",
        "expected",
    ]
    assert changes.num_rows == sum(row["matches"] for row in document["standings"])
    expected = changes["expected"].to_numpy()
    assert ((expected >= 0) & (expected <= 1)).all()
    assert np.std(expected) > 0.01


def test_pooled_ladders_are_one_and_single_ladders_are_rated_alone():
    football = DATA / "intl_football.parquet"
    alone = json.loads(run_command("rate", football, "-s", "battlepoints", "--json").out)["standings"]
    pooled = json.loads(run_command("rate", football, "-s", "battlepoints", "--pool-ladders", "--json").out)[
        "standings"
    ]
    assert len({row["ladder"] for row in alone}) == 4
    assert len({row["player"] for row in alone}) == len(pooled)
    one = json.loads(run_command("rate", football, "-s", "battlepoints", "--ladder", "friendly-home", "--json").out)
    assert one["standings"] == [row for row in alone if row["ladder"] == "friendly-home"]


@pytest.mark.parametrize(
    "file", [pytest.param(file, marks=[pytest.mark.slow] if file == "codeforces" else []) for file in PLAIN_ELO]
)
def test_plain_elo_predicts_as_well_as_the_description_of_the_data_says(file, monkeypatch):
    plain = replace(systems.find("elo"), presets={})  # which nobody asks about here, and cost as much again each
    monkeypatch.setattr(systems, "find", {"elo": plain}.__getitem__)
    found = backtest(read(DATA / f"{file}.parquet").pooled(), ["elo"])
    (row,) = found.scores.to_pylist()
    assert (row["system"], row["variant"]) == ("elo", "default")
    log_loss, accuracy = PLAIN_ELO[file]
    assert row["matches"] == FILES[file] - FILES[file] // 2
    assert row["log_loss"] == pytest.approx(log_loss, abs=0.5001e-3)
    assert row["accuracy"] == pytest.approx(accuracy, abs=0.5001e-3)
    assert row["log_loss_low"] < row["log_loss"] < row["log_loss_high"]
