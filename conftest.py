"""The examples in README.md and docs/ are tests: Python blocks run, console blocks run and print what they show."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from sybil import Sybil
from sybil.example import Example
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from run_command import run_command

ROOT = Path(__file__).parent

settings.register_profile("evenmatch", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("evenmatch")


# The master secret of all databases that tests create.
os.environ.setdefault("EVENMATCH_SECRET", "ZXZlbm1hdGNoIHRlc3RzOiBhIGZpeGVkIHNlY3JldCE=")

LONG = (
    "README.md",  # the guides come first: each page is a file whose examples stand on one another
    "docs",
    "tests/test_recorded_games",
    *(f"tests/{part}" for part in ("crash", "cluster", "browser", "contract", "systems/test_against", "ledger")),
    *(f"tests/{part}" for part in ("matchmaking", "http", "lab", "cli", "service", "client")),
)


TYPED = ("README.md", "tutorial.md")  # pages whose commands each run in a process of its own


@pytest.hookimpl(tryfirst=True)  # before -m chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave repetitions on PostgreSQL to `make slow`. Put what takes longest first, so that workers end together."""
    on_sqlite = {name_of(item) for item in items if "sqlite" in parameters_of(item)}
    for item in items:
        is_repeated = "postgresql" in parameters_of(item) and name_of(item) in on_sqlite
        if is_repeated and item.get_closest_marker("both_databases") is None:
            item.add_marker("slow")

    def rank(item: pytest.Item) -> int:
        place = item.path.relative_to(ROOT).as_posix()
        return next((at for at, name in enumerate(LONG) if place.startswith(name)), len(LONG))

    items.sort(key=rank)


def parameters_of(item: pytest.Item) -> list[str]:
    """The texts with which a test runs, the kind of its database among them."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return [value for value in values if isinstance(value, str)]


def name_of(item: pytest.Item) -> tuple[Path, str]:
    """The file and name of a test without its parameters."""
    return item.path, item.name.partition("[")[0]


def run_console(example: Example) -> None:
    """Run each `$ command` of a block and compare what it prints; a line of … stands for any lines."""
    steps: list[tuple[str, list[str]]] = []
    for line in example.parsed.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif steps:
            steps[-1][1].append(line)
    is_typed = Path(example.path).name in TYPED
    for command, shown in steps:
        printed = run_in_shell(command) if is_typed or not is_ours_alone(command) else run_here(command)
        told = [line.rstrip() for line in printed.rstrip().splitlines()]
        expected = [line.rstrip() for line in "\n".join(shown).rstrip().splitlines()]
        assert matches(told, expected), f"$ {command}\nprinted:\n{printed}\nbut is shown to print:\n" + (
            "\n".join(expected)
        )


def run_in_shell(command: str) -> str:
    """What a command prints that is run as people type it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path}
    run = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, env=env)
    return run.stdout + run.stderr


def is_ours_alone(command: str) -> bool:
    """Whether a command is one of evenmatch with plain arguments, which a shell would only hand over."""
    return command.startswith("evenmatch ") and not set(command) & set("|&;<>()$`\\*?[#~%{")


def run_here(command: str) -> str:
    """What a command of evenmatch prints."""
    ended = run_command(*shlex.split(command)[1:])
    return ended.out + ended.err


def matches(told: list[str], expected: list[str]) -> bool:
    """Whether the lines are the same, where … stands for any number of lines."""
    if not expected:
        return not told
    if expected[0] == "…":
        return any(matches(told[skipped:], expected[1:]) for skipped in range(len(told) + 1))
    return bool(told) and told[0] == expected[0] and matches(told[1:], expected[1:])


@pytest.fixture(scope="module")
def beside_the_examples(tmp_path_factory: pytest.TempPathFactory):
    """A folder of its own for each page, with docs/examples and the how-to's system in it."""
    folder = tmp_path_factory.mktemp("page")
    for file in [*(ROOT / "docs" / "examples").iterdir(), ROOT / "docs" / "how-to" / "league_points.py"]:
        shutil.copy(file, folder)
    before = Path.cwd()
    os.chdir(folder)
    yield
    os.chdir(before)


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), CodeBlockParser(language="console", evaluator=run_console)],
    patterns=["*.md"],
    fixtures=["beside_the_examples"],
).pytest()
