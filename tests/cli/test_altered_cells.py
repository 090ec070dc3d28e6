"""Commands on a database in which one cell was altered: they work, or end with 1 or 3 and a message."""

import shutil
import sqlite3

import pytest

from evenmatch.operations.service import Service
from ledger.sample_matches import ManualClock
from ledger.varied_ledger import write_varied_ledger

HUGE = 2**63 - 1
MATCHES = "match_id,played_at,team,place,player\nzz,2026-02-20,0,1,p21\nzz,2026-02-20,1,2,p00\n"
LOST = ("DELETE FROM player WHERE player = 21", "UPDATE player SET player = -1 WHERE player = 14")
OF_PLAYERS = (
    "export -l default --matches a.csv --journal b.csv --ratings c.csv --corrections d.csv",
    "export -l learning --learned l.csv --journal c.csv",
    "ban p02 -l default --preview",
    "ban p02 -l default",
    "void m5 -l default --preview",
    "reinstate p13 -l default --preview",
    "reinstate p13 -l default",
    "season open -l default --preview",
    "ladder show default",
)
LAST_POSITION = f"UPDATE ladder SET position = {HUGE} WHERE ladder = 1"
LAST_TIME = f"UPDATE generation SET time = {HUGE} WHERE ladder = 1"
CASES = [
    *((statement, command) for statement in LOST for command in OF_PLAYERS),
    ("UPDATE event SET players = NULL WHERE ladder = 2 AND position = 12", OF_PLAYERS[1]),
    ("UPDATE event SET body = '{}' WHERE ladder = 1 AND position = 1", "ladder decay default"),
    (LAST_TIME, "standings -l default"),
    (LAST_TIME, "import m.csv -l default"),
    (LAST_TIME, "rebuild -l default --whole"),
    *(
        (LAST_POSITION, command)
        for command in (
            "rebuild -l default --whole",
            "ladder show default",
            "player show p01",
            "player erase p03 -y",
            "reinstate p13 -l default",
        )
    ),
]


@pytest.fixture(scope="session")
def varied_made_once(tmp_path_factory):
    path = tmp_path_factory.mktemp("varied") / "varied.db"
    clock = ManualClock()
    with Service.open(str(path), clock) as service:
        write_varied_ledger(service, clock)
    return path


@pytest.fixture
def varied(varied_made_once, tmp_path, monkeypatch):
    """A copy of a varied ledger in the test's own folder."""
    path = tmp_path / "x.db"
    shutil.copyfile(varied_made_once, path)
    (tmp_path / "m.csv").write_text(MATCHES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENMATCH_DB", "x.db")
    return path


def alter(path, statement):
    connection = sqlite3.connect(path)
    assert connection.execute(statement).rowcount
    connection.commit()
    connection.close()


@pytest.mark.parametrize(("statement", "command"), CASES)
def test_a_command_on_an_altered_cell_ends_with_a_message(statement, command, run, varied):
    alter(varied, statement)
    ended = run(*command.split())
    assert ended.code in (0, 3) or (ended.code, ended.err[:7]) == (1, "error: ")
    assert ended.code == 0 or any(line.startswith("error: ") for line in ended.err.splitlines())


def test_a_lost_player_is_not_renamed(run, varied):
    alter(varied, "DELETE FROM player WHERE name = 'p21'")
    ended = run("player", "rename", "p21", "new")
    assert ended.code == 3
    assert "is not in the table of players; `evenmatch verify` shows what is damaged" in ended.err
