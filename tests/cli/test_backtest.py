"""evenmatch backtest: tables, files, one document, bad input, and an interruption."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.command_output import files_in, only_document, read_csv
from elo_matches import duel, duels_table
from evenmatch import backtest, from_matches, read, write
from evenmatch.lab.backtests import verdict as verdict_module
from evenmatch.lab.backtests.verdict import verdict

LEAGUE = Path(__file__).parents[2] / "docs" / "how-to" / "league_points.py"
EVENMATCH = [sys.executable, "-m", "evenmatch"]
FIRST = [
    "system",
    "variant",
    "matches",
    "log_loss",
    "log_loss_low",
    "log_loss_high",
    "brier",
    "accuracy",
    "calibration_slope",
    "seconds",
    "parameters",
]
LADDERS = ("ones", "twos")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with recorded matches: played.csv of two ladders, few.csv with too few, bad.csv with a bad row."""
    folder = tmp_path_factory.mktemp("recorded")
    write(duels_table(1, 500, k=40, spread=200, players=10, ladders=LADDERS), folder / "played.csv")
    write(duels_table(1, 150, players=10), folder / "few.csv")
    text = (folder / "played.csv").read_text().splitlines()
    place = text[0].split(",").index("place")
    row = text[41].split(",")
    row[place] = "0"
    text[41] = ",".join(row)
    (folder / "bad.csv").write_text("\n".join(text))
    return folder


@pytest.fixture
def played_file(folder):
    return folder / "played.csv"


def test_the_scores_and_the_verdict_are_shown(run, played_file, monkeypatch):
    monkeypatch.setattr(verdict_module, "SLOW", math.inf)  # speed is that of each run, and told of slow ones alone
    ended = run("backtest", played_file, "--systems", "elo,planeswalker")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.strip().splitlines()
    assert lines[0] == "played.csv: judged on 250 matches, after 250 of warm-up"
    expected = backtest(read(played_file), ["elo", "planeswalker"])
    rows = expected.scores.to_pylist()
    assert len(rows) == 5
    for line, row in zip(lines[2:], rows, strict=False):
        cells = line.split()
        assert cells[:3] == [row["system"], row["variant"], f"{row['log_loss']:.4f}"]
        assert cells[3] == f"{row['log_loss_low']:.4f}–{row['log_loss_high']:.4f}"
        assert cells[4:7] == [f"{row['brier']:.4f}", f"{row['accuracy']:.1%}", f"{row['calibration_slope']:.2f}"]
    assert ended.out.strip().endswith("\n".join(verdict(expected)))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_a_file_of_scores_has_the_documented_columns_in_that_order(suffix, run, played_file, tmp_path):
    path, parts = tmp_path / f"scores.{suffix}", tmp_path / f"parts.{suffix}"
    ended = run("backtest", played_file, "-s", "elo,glicko", "--out", path, "--segments", parts)
    assert ended.code == 0
    assert f"{path}: written" in ended.err
    assert f"{parts}: written" in ended.err
    assert "log loss" in ended.out
    expected = backtest(read(played_file), ["elo", "glicko"])
    if suffix == "csv":
        rows, listed = read_csv(path), read_csv(parts)
    elif suffix == "parquet":
        rows, listed = pq.read_table(path).to_pylist(), pq.read_table(parts).to_pylist()
    else:
        rows, listed = ([json.loads(line) for line in one.read_text().splitlines()] for one in (path, parts))
    assert list(rows[0])[: len(FIRST)] == FIRST
    assert list(listed[0])[:5] == ["system", "variant", "by", "group", "matches"]
    assert {(row["by"], row["group"]) for row in listed} >= {("ladder", "ones"), ("ladder", "twos"), ("all", "all")}
    wanted = expected.scores.to_pylist()
    assert [(row["system"], row["variant"]) for row in rows] == [(row["system"], row["variant"]) for row in wanted]
    for row, own in zip(rows, wanted, strict=True):
        assert json.loads(row["parameters"]) == json.loads(own["parameters"])
        assert int(row["matches"]) == 250
        for name in FIRST[3:9]:
            assert float(row[name]) == own[name]
    assert len(listed) == expected.segments.num_rows


def test_json_is_one_document_and_nothing_else(run, played_file, tmp_path):
    path = tmp_path / "scores.csv"
    ended = run("backtest", played_file, "-s", "elo,glicko", "--json", "--out", path, "--warmup", "0.2")
    assert ended.code == 0
    document = only_document(ended.out)
    assert (document["matches"], document["warm_up"], document["skipped_matches"]) == (500, 100, 0)
    assert document["source"] == str(played_file)
    assert [list(row)[: len(FIRST)] for row in document["scores"]] == [FIRST] * len(read_csv(path))
    expected = backtest(read(played_file), ["elo", "glicko"], warm_up=0.2)
    for row, own in zip(document["scores"], expected.scores.to_pylist(), strict=True):
        assert row["parameters"] == json.loads(own["parameters"])
        assert {name: row[name] for name in row if name not in ("seconds", "parameters")} == {
            name: own[name] for name in own if name not in ("seconds", "parameters")
        }
    assert document["verdict"] == verdict(expected)
    assert document["against_best"] == expected.against_best.to_pylist()
    assert document["left_out"] == []


def test_who_is_left_out_is_told_with_the_reason(run, tmp_path):
    rows = ["match_id,played_at,team,player,place"]
    for at in range(240):
        rows += [f"m{at},{1_700_000_000 + 60 * at},{team},{'abcdef'[(at + team) % 6]},{team + 1}" for team in range(3)]
    (tmp_path / "threes.csv").write_text("\n".join(rows))
    document = only_document(run("backtest", tmp_path / "threes.csv", "-s", "elo,wager,trophies", "--json").out)
    assert {row["system"] for row in document["scores"]} == {"elo"}
    assert [one["name"] for one in document["left_out"]] == ["wager", "trophies"]
    assert all("rates matches of exactly 2" in one["reason"] for one in document["left_out"])
    assert document["verdict"][-2].startswith("trophies was left out: cannot rate 240 of 240 matches: ")
    ended = run("backtest", tmp_path / "threes.csv", "-s", "wager,trophies", "--out", tmp_path / "x.csv")
    assert (ended.code, ended.out) == (1, "")
    assert "none of the systems named can rate these matches" in ended.err
    assert files_in(tmp_path) == ["threes.csv"]


def test_what_is_not_defined_is_a_dash_or_null(run, tmp_path):
    write(duels_table(1, 220, draws=1.0), tmp_path / "drawn.csv")
    ended = run("backtest", tmp_path / "drawn.csv", "-s", "elo", "--out", tmp_path / "x.csv")
    assert ended.code == 0
    (line,) = (line for line in ended.out.splitlines() if line.startswith("elo     default"))
    assert line.split()[5:7] == ["–", "–"]
    assert {row["accuracy"] for row in read_csv(tmp_path / "x.csv")} == {""}
    rows = only_document(run("backtest", tmp_path / "drawn.csv", "-s", "elo", "--json").out)["scores"]
    assert {row["accuracy"] for row in rows} == {None}


def test_ladders_are_rated_apart_or_pooled_or_one_alone(run, played_file):
    def loss(*options):
        rows = only_document(run("backtest", played_file, "-s", "elo", "--json", *options).out)["scores"]
        (row,) = (row for row in rows if row["variant"] == "default")
        return row["matches"], row["log_loss"]

    matches = read(played_file)
    for options, part in (
        ([], matches),
        (["--pool-ladders"], matches.pooled()),
        (["--ladder", "twos", "--warmup", "0.1"], matches.on_ladder("twos")),
    ):
        warm_up = 0.1 if "--warmup" in options else 0.5
        scores = backtest(part, ["elo"], warm_up=warm_up).scores.to_pylist()
        (own,) = (row for row in scores if row["variant"] == "default")
        assert loss(*options) == (own["matches"], own["log_loss"])
    assert loss() != loss("--pool-ladders")
    assert loss("--ladder", "twos", "--warmup", "0.1")[0] == 225


def test_a_file_that_defines_a_system_is_judged_with_the_others(run, played_file):
    document = only_document(run("backtest", played_file, "-s", f"elo, {LEAGUE}", "--json").out)
    assert {row["system"] for row in document["scores"]} == {"elo", "league_points"}


def test_parameters_may_be_given_to_try_too(run, played_file):
    arguments = ["-s", "elo", "--param", "elo.k=16", "--param", "elo.scale=200", "--json"]
    rows = only_document(run("backtest", played_file, *arguments).out)["scores"]
    (given,) = (row for row in rows if row["variant"] == "given")
    assert (given["parameters"]["k"], given["parameters"]["scale"]) == (16, 200)
    assert {row["variant"] for row in rows} == {"default", "given", "fide", "uscf"}


def test_parameters_may_be_given_to_a_system_of_ones_own(run, played_file):
    rows = only_document(run("backtest", played_file, "-s", LEAGUE, "--param", f"{LEAGUE}.win=5", "--json").out)[
        "scores"
    ]
    (given,) = (row for row in rows if row["variant"] == "given")
    assert given["parameters"]["win"] == 5


def test_bad_rows_are_listed_or_skipped(run, folder, tmp_path):
    ended = run("backtest", folder / "bad.csv", "-s", "elo", "--out", tmp_path / "x.csv")
    assert (ended.code, ended.out) == (1, "")
    assert re.search(r"line 42, match 'm\d+': place is '?0'?;", ended.err)
    assert files_in(tmp_path) == []
    ended = run("backtest", folder / "bad.csv", "-s", "elo", "--json", "--skip-bad")
    assert ended.code == 0
    document = only_document(ended.out)
    assert (document["matches"], document["skipped_matches"]) == (499, 1)
    assert "1 bad match skipped" in ended.err


# The arguments (PLAYED is a good file, FEW too short), exit code, and what is said
WRONG = [
    ("PLAYED -s eloo", 2, "unknown system 'eloo' (did you mean 'elo'?)"),
    ("PLAYED -s ,", 2, "no system was named"),
    ("PLAYED -s nowhere.py", 2, "nowhere.py"),
    ("PLAYED -s elo --param elo.kk=3", 2, "unknown parameter of elo 'kk'"),
    ("PLAYED -s elo --param elo.k=lots", 2, "k=lots for elo: expected"),
    ("PLAYED -s elo --param k=3", 2, "--param k=3: expected SYSTEM.NAME=VALUE"),
    ("PLAYED -s elo --param elo.k", 2, "expected SYSTEM.NAME=VALUE"),
    ("PLAYED -s elo --param eloo.k=3", 2, "unknown system 'eloo'"),
    ("PLAYED -s elo --warmup 0.95", 2, "--warmup"),
    ("PLAYED -s elo --warmup -0.1", 2, "--warmup"),
    ("PLAYED -s elo --warmup nan", 2, "warm"),
    ("PLAYED -s elo --tune -1", 2, "--tune"),
    ("PLAYED -s elo --tune inf", 2, "tune=inf"),
    ("PLAYED -s elo --tune soon", 2, "--tune"),
    ("PLAYED -s elo --out x.txt", 2, "suffix '.txt'"),
    ("PLAYED -s elo --out NOWHERE/x.csv", 2, "cannot be written"),
    ("PLAYED -s elo --segments x.txt", 2, "suffix '.txt'"),
    ("PLAYED -s elo --segments NOWHERE/x.csv", 2, "cannot be written"),
    ("PLAYED -s elo --report NOWHERE/x.html", 2, "cannot be written"),
    ("PLAYED -s elo --report x.pdf", 2, "expected a name ending in .html"),
    ("PLAYED -s elo --report FOLDER", 2, "folder"),
    ("PLAYED -s elo --out same.csv --segments same.csv", 2, "name the same file"),
    ("PLAYED -s elo --out PLAYED", 2, "name the same file"),
    ("PLAYED -s elo --report x.html --players p1,nobody", 2, "unknown player 'nobody'"),
    ("PLAYED -s elo --players p1", 2, "--players needs --report FILE.html"),
    ("PLAYED -s elo --trials kept", 2, "--trials needs --tune SECONDS"),
    ("PLAYED -s elo --ladder threes", 2, "unknown ladder 'threes'; known: ones, twos"),
    ("PLAYED -s elo --tune 1 --trials PLAYED/x", 2, "trials cannot be stored there"),
    ("NOWHERE.csv -s elo", 2, "No such file"),
    ("FEW -s elo", 1, "150 matches, 75 of them after the warm-up: too few to compare systems"),
    ("FEW -s elo --warmup 0.3 --tune 1", 1, "too few to tune on"),
    ("PLAYED -s elo --warmup 0 --tune 1", 1, "too few to tune on"),
]


@pytest.mark.parametrize("as_json", [False, True], ids=["words", "json"])
@pytest.mark.parametrize(("line", "code", "said"), WRONG, ids=[line for line, _, _ in WRONG])
def test_bad_input_is_refused_and_nothing_is_printed_or_written(
    line, code, said, as_json, run, folder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "folder").mkdir()
    before = files_in(folder), (folder / "played.csv").read_bytes()
    names = {"PLAYED": folder / "played.csv", "FEW": folder / "few.csv", "FOLDER": tmp_path / "folder"}
    arguments = [
        re.sub("PLAYED|FEW|FOLDER", lambda found: str(names[found[0]]), word).replace("NOWHERE", str(tmp_path / "no"))
        for word in line.split(" ")
    ]
    ended = run("backtest", *arguments, *(["--json"] if as_json else []))
    assert (ended.code, ended.out) == (code, ""), ended
    assert said in " ".join(ended.err.replace("│", " ").split())
    assert "Traceback" not in ended.err
    assert (files_in(folder), (folder / "played.csv").read_bytes()) == before
    assert [name for name in files_in(tmp_path) if name != "cache"] == ["folder"]


def test_a_report_is_one_file_that_names_the_command(run, played_file, tmp_path):
    pytest.importorskip("plotly", reason="reports need plotly (the extra lab)")
    ended = run("backtest", played_file, "-s", "elo", "--report", tmp_path / "fit.html", "--players", "p1, p2")
    assert ended.code == 0
    assert f"{tmp_path / 'fit.html'}: written" in ended.err
    assert files_in(tmp_path) == ["fit.html"]
    text = (tmp_path / "fit.html").read_text("utf-8")
    assert f"evenmatch backtest {played_file} -s elo --report" in text


def test_without_what_reports_need_nothing_is_computed_in_vain(run, played_file, tmp_path, monkeypatch):
    for name in [
        name for name in sys.modules if re.match(r"plotly(\.|$)|evenmatch\.lab\.(backtests\.report|charts)$", name)
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "plotly", None)
    ended = run("backtest", played_file, "-s", "elo", "--report", tmp_path / "fit.html", "--out", tmp_path / "x.csv")
    assert (ended.code, ended.out) == (2, "")
    assert "evenmatch[lab]" in ended.err
    assert files_in(tmp_path) == []


def test_tuned_parameters_have_a_row_and_the_verdict_ends_with_the_notes(run, tmp_path):
    pytest.importorskip("optuna", reason="tuning needs optuna (the extra lab)")
    winner_first = [duel(at, *("ab" if at % 3 else "ca"), 1.0) for at in range(300)]
    write(from_matches(winner_first), tmp_path / "played.csv")
    ended = run("backtest", tmp_path / "played.csv", "-s", "elo", "--tune", "0.3", "--trials", tmp_path / "k", "--json")
    assert ended.code == 0
    document = only_document(ended.out)
    (tuned,) = (row for row in document["scores"] if row["variant"] == "tuned")
    assert tuned["parameters"] != next(row for row in document["scores"] if row["variant"] == "default")["parameters"]
    assert any("gives the result away" in sentence for sentence in document["verdict"])
    assert len(files_in(tmp_path / "k")) == 1


def trial_lines(folder):
    """The trials kept so far."""
    return [line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]


def test_a_tuning_run_that_was_interrupted_goes_on_where_it_was(run, played_file, tmp_path):
    pytest.importorskip("optuna", reason="tuning needs optuna (the extra lab)")
    kept, out = tmp_path / "kept", tmp_path / "x.csv"
    arguments = ["backtest", str(played_file), "-s", "elo", "--trials", str(kept), "--out", str(out), "--tune"]
    with subprocess.Popen(
        [*EVENMATCH, *arguments, "60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ, text=True
    ) as process:
        until = time.monotonic() + 60
        while len(trial_lines(kept)) < 12 and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        told, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert told == ""
    assert said.strip() == (f"interrupted; finished trials are stored in {kept}, the same command continues from there")
    assert not out.exists()
    before = trial_lines(kept)
    assert len(before) >= 12
    used = json.loads(before[-1])["elapsed"]
    ended = run(*arguments, f"{used + 0.5:.3f}")
    assert ended.code == 0
    assert f"tuning of elo continued from {len(before)} trials of an earlier run" in ended.out
    after = trial_lines(kept)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    assert json.loads(after[-1])["elapsed"] > used
    assert "tuned" in {row["variant"] for row in read_csv(out)}


def test_trials_are_kept_in_the_users_cache_by_default(run, played_file, tmp_path, monkeypatch):
    pytest.importorskip("optuna", reason="tuning needs optuna (the extra lab)")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run("backtest", played_file, "-s", "elo", "--tune", "0.01").code == 0
    assert len(trial_lines(tmp_path / "evenmatch" / "trials")) >= 3
    assert run("backtest", played_file, "-s", "elo").code == 0
