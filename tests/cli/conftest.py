"""The command line as a function, and a season for it to rate."""

import io
import os
import shutil
import subprocess
import sys
import warnings

import pytest

from evenmatch.cli import main
from run_command import Ended
from run_command import run_command as in_process

COMMAND = [sys.executable, "-c", "from evenmatch.cli import main; main()"]

# Two ladders, unsorted; on "duel" a > b > c > d > e without ties, and f has played once
SEASON = """\
match_id,played_at,ladder,team,player,place,seconds
d11,2026-01-11T12:00:00Z,duel,1,f,1,60
d11,2026-01-11T12:00:00Z,duel,2,a,2,60
d01,2026-01-01T12:00:00Z,duel,1,a,1,60
d01,2026-01-01T12:00:00Z,duel,2,b,2,60
d02,2026-01-02T12:00:00Z,duel,1,a,1,60
d02,2026-01-02T12:00:00Z,duel,2,c,2,60
d03,2026-01-03T12:00:00Z,duel,1,a,1,60
d03,2026-01-03T12:00:00Z,duel,2,d,2,60
d04,2026-01-04T12:00:00Z,duel,1,a,1,60
d04,2026-01-04T12:00:00Z,duel,2,e,2,60
d05,2026-01-05T12:00:00Z,duel,1,b,1,60
d05,2026-01-05T12:00:00Z,duel,2,c,2,60
d06,2026-01-06T12:00:00Z,duel,1,b,1,60
d06,2026-01-06T12:00:00Z,duel,2,d,2,60
d07,2026-01-07T12:00:00Z,duel,1,b,1,60
d07,2026-01-07T12:00:00Z,duel,2,e,2,60
d08,2026-01-08T12:00:00Z,duel,1,c,1,60
d08,2026-01-08T12:00:00Z,duel,2,d,2,60
d09,2026-01-09T12:00:00Z,duel,1,c,1,60
d09,2026-01-09T12:00:00Z,duel,2,e,2,60
d10,2026-01-10T12:00:00Z,duel,1,d,1,60
d10,2026-01-10T12:00:00Z,duel,2,e,2,60
t1,2026-03-01T12:00:00Z,team,red,a,1,60
t1,2026-03-01T12:00:00Z,team,red,b,1,60
t1,2026-03-01T12:00:00Z,team,blue,c,2,60
t1,2026-03-01T12:00:00Z,team,blue,g,2,60
"""


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["evenmatch", *map(str, arguments)])
        capsys.readouterr()
        with warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return Ended(0 if code is None else code, *capsys.readouterr())

    return command


@pytest.fixture
def piped(monkeypatch):
    """Put a text or bytes into standard input."""

    def pipe(held):
        raw = held.encode() if isinstance(held, str) else held
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))

    return pipe


@pytest.fixture
def spawn():
    """Run a command in a process of its own, its output in pipes."""

    def command(*arguments, **environment):
        ended = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            capture_output=True,
            env=os.environ | environment,
            timeout=120,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    return command


@pytest.fixture
def season_file(tmp_path):
    path = tmp_path / "season.csv"
    path.write_text(SEASON)
    return path


@pytest.fixture
def spoilt(tmp_path):
    """The season with two bad matches, one of which only wager refuses."""
    path = tmp_path / "spoilt.csv"
    text = SEASON.replace("d03,2026-01-03T12:00:00Z,duel,2,d,2,60", "d03,2026-01-03T12:00:00Z,duel,2,d,0,60")
    path.write_text(text.replace("t1,2026-03-01T12:00:00Z,team,blue,g,2,60", "t1,2026-03-01T12:00:00Z,team,blue,g,2,"))
    return path


@pytest.fixture(scope="session")
def league_made_once(tmp_path_factory):
    """A database with ladder "duel" (elo, 2 placement matches), into which the season was imported."""
    folder = tmp_path_factory.mktemp("league")
    (folder / "season.csv").write_text(SEASON)
    db = str(folder / "league.db")
    for line in (
        ["ladder", "create", "duel", "--system", "elo", "--placement", "2", "--db", db],
        ["import", str(folder / "season.csv"), "--ladder", "duel", "--db", db],
    ):
        assert in_process(*line).code == 0
    return folder / "league.db"


@pytest.fixture
def league(league_made_once, tmp_path, monkeypatch):
    """A copy of that database for one test, in its own folder, where the test runs; EVENMATCH_DB names it."""
    path = tmp_path / "league.db"
    shutil.copyfile(league_made_once, path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENMATCH_DB", "league.db")
    return path
