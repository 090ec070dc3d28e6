"""A mistake in a kernel of one's own is told in one line with file, line and name, and not in numba's words."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from evenmatch import rules
from evenmatch.compile_notice import load_kernels
from evenmatch.errors import KernelError

OWN_FILE = Path(__file__).parents[2] / "docs" / "how-to" / "league_points.py"
SEASON = Path(__file__).parents[2] / "docs" / "examples" / "season.csv"
SOURCE = OWN_FILE.read_text()

# what is changed in the file of the guide, into what, and what the error says after the line of the change
FAULTS = [
    ("record.rating += points", "record.ratng += points", "the state has no field 'ratng'; it has rating, games"),
    ("(record.rating + 1.5)", "(record.ratng + 1.5)", "the state has no field 'ratng'; it has rating, games"),
    ("].points = points", "].pionts = points", "the factors have no field 'pionts'; they have points"),
    ("params.win if", "params.wim if", "the parameters have no 'wim'; they have win, draw"),
    ("h.place[rival]", "h.plaze[rival]", "the columns have no 'plaze'; they have time, team_start, place"),
    ("state[team[i]]", "stat[team[i]]", "NameError: name 'stat' is not defined"),
    ("points = 0.0", 'points = f"{m:.1f}"', "kernels cannot use this: format spec in f-strings not supported"),
    ("points = 0.0", 'points = "a" + h.duration[m]', "No implementation of function"),
]


def fault_of(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(source)
    with pytest.raises(KernelError) as raised:
        load_kernels(rules("own.py"))
    return raised.value


@pytest.mark.parametrize(("right", "wrong", "said"), FAULTS, ids=[wrong for _, wrong, _ in FAULTS])
def test_a_mistake_is_told_with_file_line_and_name(right, wrong, said, tmp_path, monkeypatch):
    changed = SOURCE.replace(right, wrong, 1)
    line = next(at for at, text in enumerate(changed.splitlines(), 1) if wrong in text)
    error = fault_of(changed, tmp_path, monkeypatch)
    assert str(error).startswith(f"own.py:{line}: {said}")
    assert "\n" not in str(error)
    assert error.__suppress_context__
    assert "numba" in error.details
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# faults of a whole kernel, whose line is that of `pair`
OF_KERNELS = [
    ("return own / (own + other), 0.0", "return own / (own + other)", "pair does not return two numbers"),
    ("return own / (own + other), 0.0", "return own / (own + other), 0.0, 0.0", "pair does not return two numbers"),
    ("    own, other =", "    kept = [a[0]]\n    kept.append(b[0])\n    own, other =", "a list, dictionary, text or"),
    ("    h: Columns, m: int,", "    h: Columns, m: int, more: int,", "missing a required argument: 'scratch'; expect"),
]


@pytest.mark.parametrize(("right", "wrong", "said"), OF_KERNELS, ids=["one", "three", "list", "arguments"])
def test_a_kernel_of_the_wrong_shape_is_told_with_what_is_expected(right, wrong, said, tmp_path, monkeypatch):
    changed = SOURCE.replace(right, wrong, 1)
    line = changed[: changed.index("def pair(")].count("\n")  # of its decorator
    assert changed != SOURCE
    assert str(fault_of(changed, tmp_path, monkeypatch)).startswith(f"own.py:{line}: {said}")


def test_the_command_line_prints_one_line_and_exits_with_2(tmp_path):
    (tmp_path / "own.py").write_text(SOURCE.replace("record.rating += points", "record.ratng += points"))
    run = [sys.executable, "-m", "evenmatch", "rate", str(SEASON), "--system", "own.py"]
    told = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert told.returncode == 2
    assert told.stdout == ""
    lines = [line for line in told.stderr.splitlines() if not line.startswith("evenmatch: compiling")]
    assert len(lines) == 1
    assert lines[0].startswith("error: own.py:")
    assert lines[0].endswith("the state has no field 'ratng'; it has rating, games")
