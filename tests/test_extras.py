"""An installation without extras: what works, and what says which extra it needs instead of ending in a traceback."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def requirements(name):
    """The distributions that one needs, without extras."""
    for line in metadata.requires(name) or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Runs Python with what `pip install evenmatch` installs, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    left, known = list(requirements("evenmatch")), set()
    while left:
        name = left.pop()
        if name not in known:
            known.add(name)
            left += requirements(name)
            found = metadata.distribution(name)
            for top in {Path(str(file)).parts[0] for file in found.files if ".." not in str(file)}:
                if not (folder / top).exists():
                    (folder / top).symlink_to(found.locate_file(top))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(folder)))}

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-S", "-s", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=environment,
        )

    return run


@pytest.fixture(scope="module")
def sample(bare):
    """Runs Python in a folder with the season that `evenmatch sample` makes."""
    assert bare("-m", "evenmatch", "sample").returncode == 0
    return bare


NEEDS = [
    (("serve",), "the service needs structlog", "serve"),
    (("demo",), "the demo needs starlette", "serve"),
    (("discord",), "the Discord bot needs ", "discord"),
    (("backtest", "sample/season.csv", "--systems", "elo", "--tune", "3"), "tuning needs optuna", "lab"),
    (("backtest", "sample/season.csv", "--systems", "elo", "--report", "a.html"), "a report needs jinja2", "lab"),
    (("simulate-queue", "--minutes", "1", "--report", "b.html"), "a report needs jinja2", "lab"),
    (("ladder", "create", "duel", "--system", "elo"), "a ladder needs ", "ladder"),
    (("standings",), "a ladder needs ", "ladder"),
    (("copy", "--from", "a.db", "--to", "b.db"), "a ladder needs ", "ladder"),
    (("secret", "new"), "a ladder needs ", "ladder"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "said", "extra"), NEEDS, ids=[command[0] for command, _, _ in NEEDS])
def test_a_command_says_which_extra_it_needs(sample, command, said, extra):
    told = sample("-m", "evenmatch", *command)
    assert told.returncode == 2
    assert said in told.stderr
    assert told.stderr.rstrip().endswith(f"pip install 'evenmatch[{extra}]'")
    assert "Traceback" not in told.stderr


@pytest.mark.slow
def test_the_library_rates_and_compares_systems_without_extras(sample):
    program = (
        "import evenmatch, pyarrow.csv\n"
        "matches = evenmatch.read('sample/season.csv')\n"
        "framed = evenmatch.from_frame(pyarrow.csv.read_csv('sample/season.csv'))\n"
        "ratings = evenmatch.rate(framed, evenmatch.rules('elo'))\n"
        "print(len(framed) == len(matches), len(ratings.standings()) > 0)\n"
        "print(len(evenmatch.verdict(evenmatch.backtest(matches, ['elo', 'glicko2']))) > 0)\n"
        "try:\n    evenmatch.Service\nexcept evenmatch.EvenmatchError as error:\n    print(error)\n"
    )
    told = sample("-c", program)
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[:2] == ["True True", "True"]
    assert told.stdout.rstrip().endswith("pip install 'evenmatch[ladder]'")


FILE = "sample/season.csv"
BASE = [
    ("rate", FILE, "--system", "elo"),
    ("backtest", FILE, "--systems", "elo"),
    ("odds", FILE, "--system", "elo", "--teams", "a vs b"),
    ("simulate-queue", "--minutes", "1"),
    ("systems",),
]


@pytest.mark.slow
@pytest.mark.parametrize("command", BASE, ids=[command[0] for command in BASE])
def test_commands_on_files_need_no_extra(sample, command):
    told = sample("-m", "evenmatch", *command)
    assert told.returncode == 0, told.stderr


def test_a_sample_is_made_without_its_picture(bare):
    told = bare("-m", "evenmatch", "sample", "--folder", "other")
    assert told.returncode == 0, told.stderr
    assert "no picture is drawn: a plot needs plotly" in told.stderr
    assert "Why did my rating move?" in told.stdout
    assert "rating-paths.html" not in told.stdout


def test_every_extra_of_the_project_is_named_on_the_page_about_installing_it():
    extras = metadata.metadata("evenmatch").get_all("Provides-Extra")
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    assert [name for name in extras if f"| `{name}` |" not in page] == []
