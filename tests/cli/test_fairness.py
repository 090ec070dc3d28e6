"""`evenmatch audit`: its documents, its errors before the long run, kills, and the command of a cell."""

import inspect
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from evenmatch import systems
from evenmatch.cli.app import application
from evenmatch.cli.audit import PARTS
from evenmatch.lab import behaviours
from evenmatch.lab.backtests import workers
from evenmatch.lab.backtests.workers import Threads
from evenmatch.lab.fairness import health
from evenmatch.lab.seasons import season
from evenmatch.policy import presets

PROGRAM = "from evenmatch.cli import main; main()"
ENDS = "2026-01-01T00:00:00Z", "2026-01-11T00:00:00Z"
SMALL = ("--players", 30, "--matches", 80, "--weeks", 1, "--culprits", 0.2)


@pytest.fixture
def quick(run, monkeypatch, tmp_path):
    """Run an audit of small seasons in this process, by threads; `whole=True`: exactly as it is typed."""
    monkeypatch.setattr(workers, "Processes", lambda: Threads(1))
    monkeypatch.chdir(tmp_path)

    def command(*arguments, whole=False):
        return run("audit", *arguments, *(() if whole else SMALL))

    return command


def cells_of(ended):
    assert ended.code == 0, ended.err
    return strictly(ended.out)["cells"]


def strictly(text):
    """JSON without the numbers that are none."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_the_command_of_a_cell_measures_it_again(quick):
    listed = ("--system", "elo", "--param", "k=20", "--behaviour", "rage_quitter,idle_hoarder", "--seeds", "1:3")
    cells = cells_of(quick(*listed, "--policy", "quick", "--json"))
    assert len(cells) == 2
    for cell in cells:
        words = shlex.split(cell["command"])
        assert words[:2] == ["evenmatch", "audit"]
        (again,) = cells_of(quick(*words[2:], "--json", whole=True))
        assert again.pop("doses") == {}
        assert len(cell.pop("doses")) == 3
        assert again == cell


AUDIT = typer.main.get_command(application("audit")).commands["audit"]
EXAMPLES = [
    line.strip().removeprefix("evenmatch audit")
    for line in inspect.cleandoc(AUDIT.callback.__doc__).splitlines()
    if line.strip().startswith("evenmatch audit")
]


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_of_the_help_is_understood(line):
    """They take minutes; the names in them are looked up here."""
    with AUDIT.make_context("audit", shlex.split(line)) as context:
        named = context.params
    assert named["part"] in PARTS
    for name in named["behaviour"].split(","):
        assert name == "all" or behaviours.find(name)
    for name in named["system"].split(","):
        assert name == "all" or systems.find(name)


def test_the_help_has_an_example_of_each_way_to_audit():
    assert len(EXAMPLES) > 4


def test_documents_of_all_parts_parse(quick):
    one = ("--system", "even", "--behaviour", "rage_quitter", "--game", "brawl", "--seeds", "101", "--json")
    (cell,) = cells_of(quick(*one))
    assert cell["percentile"]["low"] is None
    assert "single pair of seasons" in cell["sentence"]
    policies = strictly(quick("policies", *one).out)["policies"]
    assert [policy["policy"] for policy in policies] == list(presets())
    changes = {cure["changed"] for cure in strictly(quick("cures", *one, "--dose", 1).out)["cures"]}
    assert changes >= {"nothing", "policy quick", "no parties", "preset plain"}
    varied = quick("cures", "--system", "elo,even", *one[2:], "--vary", "wins_gain,no parties", "--dose", 1)
    found = [(cure["contestant"], cure["changed"]) for cure in strictly(varied.out)["cures"]]
    both = [(system, changed) for system in ("elo", "even") for changed in ("nothing", "no parties")]
    assert sorted(found) == sorted([*both, ("even", "wins_gain=True")])


def test_tables_name_what_they_show(quick):
    ended = quick("--system", "elo", "--behaviour", "rage_quitter", "--game", "duel", "--seeds", "101")
    assert ended.code == 0
    assert "unknown" in ended.out
    ended = quick("cures", "--system", "even", "--behaviour", "rage_quitter", "--dose", 1, "--seeds", "101:102")
    assert ended.code == 0
    assert "policy quick" in ended.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--system elop", "'elop' (did you mean 'elo'?)"),
        ("--behaviour smurv", "'smurv' (did you mean 'smurf'?)"),
        ("healt", "'healt' (did you mean 'health'?)"),
        ("--game due", "'due' (did you mean 'duel'?)"),
        ("--seeds 5:3", "--seeds 5:3: expected FIRST:LAST"),
        ("--seeds x", "--seeds x: expected FIRST:LAST"),
        ("--seeds -1", "--seeds -1: expected FIRST:LAST"),
        ("--seeds 1:99999999999", "at most 1000 seeds"),
        ("--system elo --param k", "--param k: expected NAME=VALUE"),
        ("--system elo --param l=1", "'l'"),
        ("--system elo --param k=-1", "k"),
        ("--system elo,wager --preset article", "--preset and --param are those of one system"),
        ("--system elo,wager --param k=1", "--preset and --param are those of one system"),
        ("--system elo --preset nosuch", "'nosuch'"),
        ("--system ,", "--system ',': expected one or more names"),
        ("--behaviour ,", "--behaviour ',': expected one or more names"),
        ("--dose 1.5", "1.5"),
        ("--compared 0", "0"),
        ("--culprits 0 --system elo", "culprits 0 of 240 players: expected at least one culprit"),
        ("--system wager --behaviour win_trader --game brawl", "nothing to audit"),
        ("--report missing/x.html", "expected a file in an existing, writable folder"),
        ("--report x.pdf", "--report x.pdf: expected a file name that ends in .html"),
        ("--keep missing/x.jsonl", "expected a file in an existing, writable folder"),
        ("--keep notes.txt", "is not a file of finished seasons"),
        ("health --report x.html", "only the audit of behaviours writes a report"),
        ("--ladder arena --report x.html", "only the audit of behaviours writes a report"),
        ("invariants --keep x.jsonl", "--keep x.jsonl: this audit keeps no seasons"),
        ("health --ladder arena --keep x.jsonl", "--keep x.jsonl: this audit keeps no seasons"),
        ("cures --ladder arena", "--ladder arena: expected `audit --ladder` or `audit health --ladder`, got cures"),
        ("cures --system elo", "expected one --behaviour"),
        ("cures --system wager --behaviour win_trader --game brawl", "nothing to audit"),
        ("cures --system elo --behaviour smurf --vary kk", "'kk' (did you mean 'k'?)"),
        ("cures --system elo --behaviour smurf --vary ,", "--vary ',': expected one or more names"),
        ("fits", "expected --data FOLDER"),
    ],
)
def test_what_is_wrong_is_told_before_the_long_run(quick, tmp_path, arguments, message):
    (tmp_path / "notes.txt").write_text("my notes")
    begun = time.monotonic()
    ended = quick(*arguments.split(), whole=True)
    assert ended.code == 2, ended.out
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert time.monotonic() - begun < 30
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert (tmp_path / "notes.txt").read_text() == "my notes"


def test_a_report_keeps_its_seasons_beside_it(quick, tmp_path):
    arguments = ("--system", "elo", "--behaviour", "rage_quitter", "--dose", 1, "--game", "duel", "--seeds", "3:4")
    assert quick(*arguments, "--report", "x.html").code == 0
    assert len((tmp_path / "x.seasons.jsonl").read_text().splitlines()) == 4
    assert "Rage quitter" in (tmp_path / "x.html").read_text()


@pytest.mark.parametrize(("part", "seasons"), [("health", 1 + 3), ("policies", 2 * len(presets()))])
def test_a_part_that_keeps_its_seasons_gives_the_same_result_without_playing_again(quick, monkeypatch, part, seasons):
    for game in health.TABLE_MATCHES:
        monkeypatch.setitem(health.TABLE_MATCHES, game, 40)
    arguments = (part, "--system", "wager", "--game", "duel", "--seeds", "3:4", "--json", "--keep", "x.jsonl")
    first = quick(*arguments)
    assert first.code == 0, first.err
    kept = Path("x.jsonl").read_text()
    assert len(kept.splitlines()) == seasons
    monkeypatch.setattr(season.Season, "run", lambda *_: pytest.fail("a season was played again"))
    assert strictly(quick(*arguments).out) == strictly(first.out)
    assert Path("x.jsonl").read_text() == kept


def test_the_health_of_a_recorded_ladder_is_shown_by_period(run, season_file, tmp_path):
    """The file has one duel a day from January 1 to 11, and the last is an upset."""
    on = ("--db", tmp_path / "health.db")
    assert run("ladder", "create", "duel", "--system", "elo", *on).code == 0
    assert run("import", season_file, "--ladder", "duel", *on).code == 0
    ended = run("audit", "health", "--ladder", "duel", *on, "--json")
    assert ended.code == 0, ended.err
    found = strictly(ended.out)
    assert (found["unit"], found["start"][0], found["start"][-1]) == ("day", *ENDS)
    assert found["matches"] == [1] * 11
    assert found["players"] == [2] * 11
    assert found["mean"][0] == 1500.0
    assert found["given"][0] is None  # two newcomers: there is no favourite
    assert (found["scored"][1], found["scored"][-1]) == (1.0, 0.0)
    assert "at_floor" not in found
    table = run("audit", "health", "--ladder", "duel", *on).out
    first, last = (next(line for line in table.splitlines() if line.startswith(end)) for end in ENDS)
    assert first.split()[1:4] == ["1", "2", "1500.0"]
    assert first.split()[-2:] == ["–", "–"]
    assert last.split()[-1] == "0.0%"
    assert table.splitlines()[-1] == found["findings"][-1]


def test_doses_are_never_searched_on_the_seeds_that_measure(quick):
    arguments = ("--system", "elo", "--behaviour", "rage_quitter", "--game", "duel", "--keep", "x.jsonl")
    assert quick(*arguments, "--seeds", "2:3").code == 0  # the search takes 1, 4, 5, 6: 4 · 4 + 2 · 2
    assert len(Path("x.jsonl").read_text().splitlines()) == 20


def test_help_imports_no_numba():
    program = f"import atexit, sys; atexit.register(lambda: print(*sys.modules)); {PROGRAM}"
    ended = subprocess.run(
        [sys.executable, "-c", program, "audit", "--help"], capture_output=True, text=True, check=True
    )
    assert "--system" in ended.stdout
    imported = ended.stdout.splitlines()[-1].split()
    assert "evenmatch.cli.audit" in imported
    assert {"numba", "sqlalchemy", "evenmatch.lab.seasons.season", "jinja2"}.isdisjoint(imported)


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_there(pid):
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_audit_that_is_killed_goes_on_without_repeating_a_season(spawn, tmp_path):
    arguments = ("audit", "--system", "elo", "--behaviour", "rage_quitter,idle_hoarder", "--game", "duel")
    arguments += ("--seeds", "101:104", "--json", *SMALL)
    words = [str(word) for word in arguments]
    whole = spawn(*words, "--keep", tmp_path / "whole.jsonl")
    kept = tmp_path / "kept.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words, "--keep", kept], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while len(lines_of(kept)) < 5 and process.poll() is None:
        time.sleep(0.01)
    children = children_of(process.pid)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = lines_of(kept)
    assert 5 <= len(before) < len(lines_of(tmp_path / "whole.jsonl"))
    with kept.open("a") as file:
        file.write('["0123456789abcdef01234567", [[1, 2')
    again = spawn(*words, "--keep", kept)
    assert again.code == 0, again.err
    assert strictly(again.out) == strictly(whole.out)
    after = lines_of(kept)
    assert after[: len(before)] == before
    keys = [json.loads(line)[0] for line in after]
    assert len(keys) == len(set(keys)) == len(lines_of(tmp_path / "whole.jsonl")) == 4 * 7 + 4 * 3
    assert sorted(after) == sorted(lines_of(tmp_path / "whole.jsonl"))
    assert children
    until = time.monotonic() + 30
    while any(map(is_there, children)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [child for child in children if is_there(child)], os.getpid()
