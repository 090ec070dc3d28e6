"""Every developer command: makes the environment in .venv when needed, then runs the tool.

Standard library only, and written so that Python 3.9 can still run it and say which Python is needed instead.
"""

from __future__ import annotations

import ctypes.util
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"
STAMP = VENV / "evenmatch-stamp.json"
PYTHONS = ("python3", "python3.11", "python3.12", "python3.13", "python3.14")
PROBE = "import sys, venv, importlib.util as u; print(*sys.version_info[:2], bool(u.find_spec('ensurepip')))"
UV = ("requirements/uv.txt",)
RUN = (*UV, "requirements/run.txt", "requirements/build.txt", "pyproject.toml")  # one that changes is installed again
TEST = (*RUN, "requirements/test.txt")
DOCS = (*UV, "requirements/docs.txt")
COMPILE = ("pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes")
NO_TRACES = ("--no-emit-index-url", "--no-header", "--no-annotate")  # of the machine that compiled
SETTINGS = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "true"}
SOURCES = ("src", "tests", "tools", "benchmarks", "docs", "clients")
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
WORKERS = ("-n", "3")  # on two cores: many tests wait for servers and processes
SOAK = (
    "tests/crash",
    "tests/contract/test_ledger_laws.py",
    "tests/http/test_hostile_requests.py",
    "tests/http/test_limits.py",
    "tests/service/test_clock.py",
    "tests/service/test_webhooks.py",
)
MEMORY = Path("/dev/shm")  # a file system in memory, on Linux
ROOM = 4 << 30  # bytes that tests may write
CACHES = (".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "build", "dist")


class Python(NamedTuple):
    """An interpreter on PATH that can make environments: whether it is new enough, and whether it has pip for them."""

    path: str
    version: str
    is_fit: bool
    has_pip: bool


def say(line: str) -> None:
    """Report progress at once: what is buffered is lost in exec, and comes late beside a child's output."""
    print(f"evenmatch: {line}", file=sys.stderr, flush=True)


def fail(line: str, code: int = 1) -> NoReturn:
    say(line)
    sys.exit(code)


def run(
    *command: str | Path,
    text: str | None = None,
    folder: Path | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """The exit code of a command started in the repository, or in a folder; 128 + n if signal n ended it."""
    env = {**os.environ, **variables}
    where = ROOT if folder is None else folder
    code = subprocess.run([*map(str, command)], cwd=where, env=env, input=text, text=True, check=False).returncode
    return code if code >= 0 else 128 - code


def probe(path: str) -> Python | None:
    """What stands at this path; None if it does not run (a version manager's shim may stand for nothing)."""
    try:
        answer = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return None
    return Python(path, f"{answer[0]}.{answer[1]}", (int(answer[0]), int(answer[1])) >= (3, 11), answer[2] == "True")


def find_python() -> Python:
    """A Python that is new enough, one that has pip for its environments if there is any."""
    folders = [folder for folder in os.get_exec_path() if Path(folder) != BIN]
    paths = [shutil.which(name, path=os.pathsep.join(folders)) for name in PYTHONS]
    pythons = [python for path in paths if path for python in [probe(path)] if python]
    fit = [python for python in pythons if python.is_fit]
    if not fit:
        seen = ", ".join(f"{python.path} is {python.version}" for python in pythons) or "none"
        fail(f"Python 3.11 or newer is needed (on PATH: {seen}). Install one: python3 on Debian 12 or newer.")
    return next((python for python in fit if python.has_pip), fit[0])


def borrow_pip(folder: Path) -> Path:
    """Debian's own wheel of pip, fetched into a folder; anybody may, and nothing is installed on the system."""
    apt = ("apt-get", "-qq", "-o", f"Dir::State::Lists={folder / 'lists'}", "-o", f"Dir::Cache={folder / 'cache'}")
    (folder / "lists" / "partial").mkdir(parents=True)
    run(*apt, "update", text="")  # may fail for a source that is not needed: the next line tells
    run(*apt, "download", "python3-pip-whl", text="", folder=folder)
    for package in folder.glob("*.deb"):
        run("dpkg-deb", "-x", package, folder)
    wheel = next(folder.rglob("pip-*.whl"), None)
    if wheel is None:
        fail("pip could not be fetched; see above. On Debian or Ubuntu type: sudo apt-get install python3-venv")
    return wheel


def apt_install(*packages: str) -> None:
    """Have Debian's installer try; whether it could is for the caller to look at."""
    apt = ("apt-get", "-qq", "-o", "Dpkg::Use-Pty=0")
    run(*apt, "update", text="")  # may fail for a source that is not needed: the next line tells
    run(
        *apt,
        "install",
        "-y",
        "--no-install-recommends",
        *packages,
        text="",
        variables={"DEBIAN_FRONTEND": "noninteractive"},
    )


def lacking_for_a_browser() -> list[str]:
    """Debian's packages without which no test looks at a page."""
    lacking = [] if any(map(shutil.which, CHROMIUMS)) else ["chromium"]
    if sys.platform == "linux" and not ctypes.util.find_library("atomic"):
        lacking.append("libatomic1")  # playwright's driver hangs without it
    return lacking


def add_browser() -> bool:
    """Whether there is a browser for the tests, which is installed if it can be; else say what to type."""
    if not (lacking := lacking_for_a_browser()):
        return True
    if os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing {' and '.join(lacking)}, to look at pages in a real browser")
        apt_install(*lacking)
        lacking = lacking_for_a_browser()
    if lacking:
        say(f"no page is looked at in a browser. On Debian or Ubuntu type: sudo apt-get install {' '.join(lacking)}")
    return not lacking


def home() -> dict[str, str]:
    """What an environment does not outlive: its own place, and the interpreter that it links to."""
    return {"place": str(VENV), "python": os.path.realpath(BIN / "python")}


def read_stamp() -> dict[str, str]:
    """The digests of the files installed from; empty if .venv is missing, half made, moved or without its Python."""
    try:
        stamp: dict[str, str] = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if stamp.items() >= home().items() and (BIN / "python").exists() else {}


def make_venv() -> None:
    python = find_python()
    say(f"making .venv with {python.path}, Python {python.version}")
    if python.has_pip:
        if code := run(python.path, "-m", "venv", "--clear", VENV):
            fail("could not make .venv; see above.", code)
        return
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        fail(f"{python.path} lacks ensurepip; install what your system calls python3-venv or python3-pip.")
    say(f"fetching pip from Debian: {python.path} lacks ensurepip")
    with tempfile.TemporaryDirectory(prefix="evenmatch-") as folder:
        wheel = borrow_pip(Path(folder))
        if code := run(python.path, "-m", "venv", "--clear", "--without-pip", VENV):
            fail("could not make .venv; see above.", code)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(next((VENV / "lib").glob("python*")) / "site-packages")


def fetch(tool: str, *arguments: str, text: str = "") -> None:
    """Run an installer of the environment; its own error stands above the line that says what to do."""
    if code := run(BIN / tool, *arguments, text=text, variables=SETTINGS):
        remedy = "run the same again when it is up, or set PIP_INDEX_URL and UV_DEFAULT_INDEX to a mirror within reach"
        fail(f"{tool} failed; see above. If the network is down, {remedy}.", code)


def install(changed: Sequence[str]) -> None:
    """Bring the environment up to date with the files that changed: uv, then the locks, then evenmatch."""
    into = ["pip", "install", "--python", str(BIN / "python"), *([] if sys.stderr.isatty() else ["--quiet"])]
    locks = [name for name in changed if name.endswith(".txt") and name not in UV]
    if set(UV) & set(changed):
        say("installing uv, checked by hash")
        fetch("python", "-m", "pip", "install", "--quiet", "--no-input", "--require-hashes", "--no-deps", "-r", *UV)
    if locks:
        say(f"installing {', '.join(locks)}, checked by hash")
        fetch("uv", *into, "--require-hashes", *(word for name in locks for word in ("-r", name)))
    if "pyproject.toml" in changed:
        say("installing evenmatch from this folder")
        fetch("uv", *into, "--no-deps", "--no-build-isolation", "-e", ".")


def prepare(needs: Sequence[str]) -> None:
    """Make .venv hold what these files ask for; immediate if it does already."""
    start = time.monotonic()
    stamp = read_stamp()
    digests = {name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in needs}
    changed = [name for name in needs if stamp.get(name) != digests[name]]
    if not changed:
        return
    if not stamp:
        make_venv()
    STAMP.unlink(missing_ok=True)  # an interrupted installation leaves no stamp, so the next run starts afresh
    try:
        install(changed)
    except SystemExit:  # pip and uv fetch everything before they change anything: what was there still works
        if stamp:
            STAMP.write_text(json.dumps(stamp))
        raise
    STAMP.write_text(json.dumps({**stamp, **home(), **digests}))
    say(f"environment ready in {time.monotonic() - start:.1f} s")


def hand_over(tool: str, *arguments: str) -> NoReturn:
    """Become a program of the environment, so that its exit code and signals are ours."""
    say(" ".join(("running", tool, *arguments)))
    os.chdir(ROOT)
    os.execv(BIN / tool, [str(BIN / tool), *arguments])  # the whole path: by it Python finds its environment


def check(*commands: Sequence[str]) -> None:
    """Run tools of the environment in order; ends at the first that fails."""
    for tool, *arguments in commands:
        line = " ".join((tool, *arguments))
        say(f"running {line}")
        start = time.monotonic()
        code = run(BIN / tool, *arguments)
        line = f"{line} ({time.monotonic() - start:.1f} s)"
        if code:
            fail(f"FAILED with exit code {code}: {line}", code)
        say(f"passed: {line}")


def demo(*extra: str) -> None:
    """Install what evenmatch runs on, then serve four games that are played while you look."""
    prepare(RUN)
    hand_over("evenmatch", "demo", *extra)


@contextmanager
def compiling() -> Iterator[None]:
    """Compile all kernels while the block runs, and wait for the end of it; stop at once if the block fails.

    In a clean clone that is two minutes of one processor; both workers of pytest would compile the same at a time.
    """
    say("compiling the kernels beside lint")
    process = subprocess.Popen([str(BIN / "evenmatch"), "compile"], cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        yield
        code = process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)  # it ends its own child processes
        process.wait()
        raise
    if code:
        fail(f"FAILED with exit code {code}: evenmatch compile", code)


@contextmanager
def folder_in_memory() -> Iterator[None]:
    """Let temporary files be in memory while the block runs, if there is room: tests make thousands of databases."""
    is_fit = False
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK | os.X_OK):
        system = os.statvfs(MEMORY)
        is_fit = system.f_bavail * system.f_frsize >= ROOM and not system.f_flag & os.ST_NOEXEC
    if not is_fit:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="evenmatch-", dir=MEMORY) as folder:
        Path(folder).chmod(0o755)  # as root, tests run PostgreSQL as another user
        os.environ["TMPDIR"] = folder
        try:
            yield
        finally:
            del os.environ["TMPDIR"]


def test(*extra: str) -> None:
    """Check style, types and behaviour, all but slow tests; arguments go to pytest."""
    prepare(TEST)
    add_browser()
    with nullcontext() if extra else compiling():  # a choice of tests may need few kernels
        lint()
    with folder_in_memory():
        check(("pytest", *WORKERS, *(extra or ("-m", "not slow"))))


def slow(*extra: str) -> None:
    """Run the tests that take more than ten seconds, or their file half a minute; CI runs them, too."""
    prepare(TEST)
    add_browser()
    with folder_in_memory():
        check(("pytest", *WORKERS, "-m", "slow", *extra))


def screenshots(*extra: str) -> None:
    """Run the demo, and picture its pages into docs/screenshots."""
    prepare(TEST)
    if not add_browser():
        fail("screenshots need a browser; see above.")
    hand_over("python", "tools/screenshots.py", *extra)


def soak(*extra: str) -> None:
    """Kill and freeze processes and servers, fill disks, move clocks, drip bytes, fuzz requests: for hours."""
    prepare(TEST)
    os.environ["EVENMATCH_SOAK"] = "1"
    check(("pytest", "-n", "2", "--timeout", "7200", *(extra or SOAK)))


def lint(*_: str) -> None:
    """Check style and types only."""
    prepare(TEST)
    check(("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",))


def bench(*extra: str) -> None:
    """Measure what the speed claims rest on; arguments go to the benchmarks."""
    prepare(TEST)
    hand_over("python", "-m", "benchmarks", *extra)


def choosing(*extra: str) -> None:
    """Compare all systems on recorded matches, and write the results into docs/choosing-a-system.md."""
    prepare(RUN)
    hand_over("python", "tools/choosing.py", *extra)


def docs(*extra: str) -> None:
    """Build the documentation site into build/docs; a broken link is an error."""
    prepare(DOCS)
    hand_over("mkdocs", "build", "--strict", *extra)


def lock(*extra: str) -> None:
    """Write requirements/ from pyproject.toml, keeping versions that still fit; --upgrade takes the newest."""
    prepare(UV)
    sources = {
        "run": (
            *("pyproject.toml", "-c", "requirements/constraints.in"),
            *(f"--extra={name}" for name in ("lab", "postgresql", "lookalikes", "serve")),
        ),
        "build": ("--group", "build", "-c", "requirements/run.txt"),
        "test": ("--group", "test", "-c", "requirements/run.txt", "-c", "requirements/build.txt"),
        "docs": (
            *("--group", "docs"),
            *(word for name in ("run", "build", "test") for word in ("-c", f"requirements/{name}.txt")),
        ),
        "sbom": ("--group", "sbom"),
        "uv": ("-",),
    }
    for name, source in sources.items():
        say(f"locking requirements/{name}.txt")
        fetch("uv", *COMPILE, *NO_TRACES, *source, "-o", f"requirements/{name}.txt", *extra, text="uv")


def dist(*extra: str) -> None:
    """Build the wheel and the source archive into dist/, and try both; ARGS=kernels adds a wheel with machine code."""
    prepare(RUN)
    hand_over("python", "tools/dist.py", *extra)


def clean(*_: str) -> None:
    """Remove .venv and every cache."""
    say("removing .venv and caches")
    STAMP.unlink(missing_ok=True)  # first: what is left of an interrupted removal must not pass for whole
    compiled = [found for top in SOURCES for found in (ROOT / top).rglob("__pycache__")]
    for folder in (VENV, *compiled, *(ROOT / name for name in CACHES)):
        shutil.rmtree(folder, ignore_errors=True)


COMMANDS = {
    f.__name__: f for f in (demo, test, slow, screenshots, soak, bench, choosing, docs, lock, lint, dist, clean)
}


def main(name: str = "help", *extra: str) -> None:
    """Run one command; without one, list them."""
    if name == "help":
        print("make COMMAND [ARGS='...'], or python3 tools/dev.py COMMAND [...]\n")
        for command in COMMANDS.values():
            print(f"  {command.__name__:<11} {command.__doc__}")
        return
    if name not in COMMANDS:
        fail(f"no command {name!r}; there are {', '.join(COMMANDS)}, help.", 2)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # half of the start of a process would be compiling byte code
    try:
        COMMANDS[name](*(extra[1:] if extra[:1] == ("--",) else extra))
    except OSError as error:
        fail(f"{error}. If .venv was damaged, 'make clean' repairs it.")
    except KeyboardInterrupt:
        fail("interrupted", 0 if name == "demo" else 130)  # Ctrl-C is how a demo ends: make need not call it an error


if __name__ == "__main__":
    main(*sys.argv[1:])
