"""What everybody who clones the repository relies on: the locks, and tools/dev.py."""

import ast
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

# Put together here, so that this file does not hold what it forbids.
SPELT = ("py+pi", "python+hosted", r"deb\.deb+ian", "npm+js", "ana+conda")
HOSTS = [rf"\b{name.replace('+', '')}\.(org|com|io)" for name in SPELT]
PATHS = [r"(?<![\w.)\]-])/(root|home|Users|work|opt|tmp)/\w", r"\bfile:(//)"]
FORBIDDEN = re.compile("|".join([*HOSTS, *PATHS]))


def read_pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def normalise(requirement):
    """The canonical name of a requirement's project (PyPA, names and normalization)."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def read_lock(path):
    """Whole requirements of a lock, continued lines joined."""
    return path.read_text().replace("\\\n", " ").splitlines()


def find_forbidden(paths):
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in paths
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if FORBIDDEN.search(line)
    ]


@pytest.fixture
def dev():
    """A fresh copy of tools/dev.py as a module, free to be changed by a test."""
    spec = importlib.util.spec_from_file_location("dev", ROOT / "tools" / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def made(dev, tmp_path, monkeypatch):
    """dev.py looking at an environment that is complete and up to date with one file."""
    python = tmp_path / "python3.11"
    python.touch()
    for name, value in {"ROOT": tmp_path, "VENV": tmp_path / ".venv", "BIN": tmp_path / ".venv" / "bin"}.items():
        monkeypatch.setattr(dev, name, value)
    monkeypatch.setattr(dev, "STAMP", dev.VENV / "stamp")
    dev.BIN.mkdir(parents=True)
    (dev.BIN / "python").symlink_to(python)
    dev.STAMP.write_text(json.dumps({**dev.home(), "run.txt": "digest"}))
    return dev


def test_no_lock_names_a_host_or_a_machine_path():
    assert LOCKS
    assert find_forbidden(LOCKS) == []


def test_no_tracked_file_names_a_registry_host_or_a_machine_path():
    if not shutil.which("git"):
        pytest.skip("git, which lists the tracked files, is not installed")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip(f"git cannot list the tracked files: {listing.stderr.strip()}")
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    assert find_forbidden(path for path in paths if path.is_file()) == []


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_locked_requirement_has_one_version_and_a_hash(path):
    requirements = read_lock(path)
    assert requirements
    for requirement in requirements:
        assert re.match(r"[\w.-]+==[\w.!+-]+ ( ?; .+?)? +--hash=sha256:[0-9a-f]{64}", requirement), requirement[:100]


def declared():
    """Lock, and a requirement that pyproject.toml says must be in it."""
    pyproject = read_pyproject()
    project = pyproject["project"]
    extras = dict(project["optional-dependencies"])
    for name in ("cluster", "discord"):  # which the demo does not need
        yield from (("test", requirement) for requirement in extras.pop(name))
    others = [
        requirement for group in extras.values() for requirement in group if normalise(requirement) != "evenmatch"
    ]
    yield from (("run", requirement) for requirement in [*project["dependencies"], *others])
    yield from (("build", requirement) for requirement in pyproject["build-system"]["requires"])
    for name, group in pyproject["dependency-groups"].items():
        if name != "bench":  # is installed by hand, see docs/benchmarks.md
            yield from ((name, requirement) for requirement in group)


@pytest.mark.parametrize(("lock", "requirement"), [*declared(), ("uv", "uv")])
def test_every_declared_dependency_is_locked(lock, requirement):
    locked = [normalise(line) for line in read_lock(ROOT / "requirements" / f"{lock}.txt")]
    assert normalise(requirement) in locked, "make lock writes the locks anew"


def test_no_two_locks_disagree_on_a_version():
    pins = {}
    for path in LOCKS:
        for line in read_lock(path):
            pin, _, marker = line.split("--hash")[0].partition(";")
            name, version = pin.strip().split("==")
            assert pins.setdefault((name, marker.strip()), version) == version, f"{name} in {path.name}"


def test_dev_is_understood_by_python_3_9_so_that_it_can_ask_for_a_newer_one():
    ast.parse((ROOT / "tools" / "dev.py").read_text(), feature_version=(3, 9))


def test_the_makefile_and_dev_have_the_same_commands(dev):
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert sorted(phony) == sorted([*dev.COMMANDS, "help"])


def test_an_interrupted_environment_is_created_again(made):
    made.STAMP.write_text('{"place": ')
    assert made.read_stamp() == {}
    made.STAMP.unlink()
    assert made.read_stamp() == {}


def test_a_moved_environment_is_created_again(made, monkeypatch):
    monkeypatch.setattr(made, "VENV", made.VENV.rename(made.ROOT / "moved"))
    monkeypatch.setattr(made, "STAMP", made.VENV / "stamp")
    monkeypatch.setattr(made, "BIN", made.VENV / "bin")
    assert made.STAMP.exists()
    assert made.read_stamp() == {}


def test_an_environment_without_its_python_is_created_again(made):
    (made.ROOT / "python3.11").unlink()
    assert made.read_stamp() == {}


def test_only_what_changed_is_installed_and_a_failure_keeps_what_worked(made, monkeypatch):
    (made.ROOT / "run.txt").write_text("numpy")
    asked = []
    monkeypatch.setattr(made, "install", asked.append)
    made.prepare(["run.txt"])
    made.prepare(["run.txt"])
    (made.ROOT / "test.txt").write_text("pytest")
    monkeypatch.setattr(made, "install", lambda _: made.fail("no network"))
    with pytest.raises(SystemExit):
        made.prepare(["run.txt", "test.txt"])
    made.prepare(["run.txt"])
    assert asked == [["run.txt"]]
    assert "test.txt" not in made.read_stamp()


@pytest.fixture
def tried(dev, tmp_path, monkeypatch):
    """A function (LINT, COMPILE): the exit code of `make test` whose lint and compiler are these shell commands.

    Of the lines that they wrote to `log`, pytest's own is the last.
    """

    def run(lint, compiler, *extra):
        monkeypatch.setattr(dev, "ROOT", tmp_path)
        monkeypatch.setattr(dev, "BIN", tmp_path)
        monkeypatch.setattr(dev, "prepare", lambda _: None)
        monkeypatch.setattr(dev, "add_browser", lambda: True)
        for tool, does in {"ruff": "true", "mypy": lint, "evenmatch": compiler, "pytest": "echo tested"}.items():
            (tmp_path / tool).write_text(f"#!/bin/sh\n{{ {does}; }} >> log\n")
            (tmp_path / tool).chmod(0o755)
        try:
            dev.test(*extra)
        except SystemExit as ended:
            return ended.code, (tmp_path / "log").read_text().split()
        return 0, (tmp_path / "log").read_text().split()

    return run


def test_kernels_are_compiled_beside_lint_and_before_the_tests(tried):
    lint_waits = "until test -e begun; do sleep 0.01; done; echo linted; touch linted"
    compiler_waits = "touch begun; until test -e linted; do sleep 0.01; done; sleep 0.1; echo compiled"
    assert tried(lint_waits, compiler_waits) == (0, ["linted", "compiled", "tested"])


def test_a_choice_of_tests_compiles_what_it_needs_itself(tried):
    assert tried("echo linted", "echo compiled", "-k", "elo") == (0, ["linted", "tested"])


def test_all_tests_but_the_slow_ones_run_unless_some_are_chosen(tried, dev, tmp_path):
    def arguments(command, *extra):
        (tmp_path / "pytest").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > asked\n')
        command(*extra)
        return (tmp_path / "asked").read_text().splitlines()[2:]

    assert tried("true", "true") == (0, ["tested"])
    assert arguments(dev.test) == ["-m", "not slow"]
    assert arguments(dev.test, "-k", "elo") == ["-k", "elo"]
    assert arguments(dev.slow) == ["-m", "slow"]


@pytest.mark.parametrize(
    ("room", "flag", "given", "is_used"),
    [
        (8 << 30, 0, None, True),
        (1 << 30, 0, None, False),
        (8 << 30, os.ST_NOEXEC, None, False),
        (8 << 30, 0, "/x", False),
    ],
)
def test_temporary_files_are_in_memory_if_they_fit_there(dev, tmp_path, monkeypatch, room, flag, given, is_used):
    monkeypatch.setattr(dev, "MEMORY", tmp_path)
    monkeypatch.setattr(dev.os, "statvfs", lambda _: SimpleNamespace(f_bavail=room >> 12, f_frsize=4096, f_flag=flag))
    monkeypatch.delenv("TMPDIR", raising=False)
    if given is not None:
        monkeypatch.setenv("TMPDIR", given)
    with suppress(SystemExit), dev.folder_in_memory():
        seen = os.environ.get("TMPDIR")
        dev.fail("a test failed")
    assert (Path(seen or "/").parent == tmp_path) == is_used
    assert os.environ.get("TMPDIR") == given
    assert not list(tmp_path.iterdir())


def test_kernels_that_do_not_compile_fail_the_tests(tried):
    assert tried("echo linted", "exit 3") == (3, ["linted"])


def test_a_failed_lint_stops_the_compiler_and_the_tests(tried):
    code, log = tried("until test -s log; do sleep 0.01; done; exit 4", "echo begun; exec sleep 60")
    assert (code, log) == (4, ["begun"])


# Imports programs where none of the listed modules is installed, and prints how each of them ended.
WITHOUT = """
import json, runpy, sys
programs, modules = json.loads(sys.argv[1])
sys.path.insert(0, "tools")
sys.modules |= dict.fromkeys(modules)
ended = {}
for program in programs:
    try:
        runpy.run_path(program) if program.endswith(".py") else runpy.run_module(program, run_name="")
        ended[program] = None
    except ImportError as error:
        ended[program] = f"{type(error).__name__}: {error}"
    except SystemExit as end:
        ended[program] = end.code
print(json.dumps(ended))
"""


def locked(name):
    """The canonical names of the projects in a lock."""
    return {normalise(line) for line in read_lock(ROOT / "requirements" / f"{name}.txt") if re.match(r"[\w]", line)}


def test_every_program_runs_where_the_demo_was_installed_or_says_in_one_line_what_to_run():
    tests_alone = locked("test") - locked("run") - locked("build")
    providers = importlib.metadata.packages_distributions().items()
    modules = sorted(name for name, of in providers if {normalise(project) for project in of} <= tests_alone)
    assert {"psutil", "playwright", "pytest"} <= set(modules)
    programs = [path for path in sorted((ROOT / "tools").glob("*.py")) if "__main__" in path.read_text()]
    names = ["benchmarks.__main__", *(str(path.relative_to(ROOT)) for path in programs)]
    command = [sys.executable, "-c", WITHOUT, json.dumps([names, modules])]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    ended = json.loads(told.stdout)
    remedy = "packages that are not installed; to install them, run: python3 tools/dev.py"
    for name in ("benchmarks.__main__", "tools/queue_pictures.py"):
        assert ended.pop(name) == f"benchmarks need {remedy} bench --help"
    assert ended.pop("tools/screenshots.py") == 1
    assert told.stderr == f"evenmatch: pictures need {remedy} screenshots\n"
    assert "tools/choosing.py" in ended
    assert {name: code for name, code in ended.items() if code is not None} == {}
