"""Exit codes of the commands on a database: 1 contents, 2 a wrong command, option, name or value, 3 the database."""

import inspect
import json
import os
import shlex
import sqlite3

import pytest
import typer

from evenmatch.cli.app import application

WRONG = [
    ("ladder", "Usage"),
    ("ladder create", "Missing"),
    ("ladder create x", "--system"),
    ("ladder create x --system wagr", "did you mean 'wager'?"),
    ("ladder create x --system elo --param q=1", "unknown parameter"),
    ("ladder create x --system elo --reset half", "expected full, soft or none"),
    ("ladder create x --system elo --factor 2", "--factor"),
    ("ladder create x --system elo --placement -1", "--placement"),
    ("ladder create x --system elo --divisions nowhere.csv", "No such file"),
    ("ladder create x --system elo --db no/such/folder/x.db", "the folder no/such/folder does not exist"),
    ("ladder create x --system elo --db mysql://h/d", "is not a supported database"),
    ("ladder show duell", "unknown ladder 'duell' (did you mean 'duel'?); known: duel"),
    ("ladder change duel", "nothing to change"),
    ("ladder change duel --param k=20 --from tomorrow", "--from tomorrow: expected start or now"),
    ("ladder change duel --system glicko2 --from now", "a new system cannot start from now on"),
    ("ladder change duel --param kk=20", "did you mean 'k'?"),
    ("ladder change duel --preset nope", "unknown preset of elo 'nope'"),
    ("import nowhere.csv", "No such file"),
    ("import SEASON --ladder duell", "did you mean 'duel'?"),
    ("import SEASON --ratings --unrated", "--ratings imports no matches"),
    ("record nowhere.csv", "No such file"),
    ("export", "nothing to export"),
    ("export --counted --ratings r.csv", "--counted needs --matches"),
    ("export --ratings r.txt", "suffix '.txt'"),
    ("export --ratings no/r.csv", "cannot be written"),
    ("export --ratings r.csv --journal ./r.csv", "is named twice"),
    ("void d3", "unknown match 'd3' of ladder 'duel'"),
    ("void d3", "did you mean 'd03'?"),
    ("ban aa --rule void", "unknown player 'aa'"),
    ("ban a --rule forgive", "--rule forgive: expected void, refund or keep"),
    ("ban a --since yesterday", "--since yesterday: expected ISO 8601"),
    ("reinstate", "expected either a banned player, or --match"),
    ("reinstate a --match d01", "expected either a banned player, or --match"),
    ("reinstate nobody", "unknown player 'nobody'"),
    ("season open --reset half", "expected full, soft or none"),
    ("season open --reset full --factor 0.5", "--factor is only for a soft reset"),
    ("season show 1", "season 1 has not ended"),
    ("season show 7", "unknown ended season '7'"),
    ("standings --page 0", "--page"),
    ("standings --page 1 --around a", "--page and --around cannot be combined"),
    ("standings --around nobody", "unknown player 'nobody'"),
    ("standings --friends a,nobody", "unknown player 'nobody'"),
    ("standings --friends ,", "expected names separated by commas"),
    ("standings --as-of soon", "--as-of soon"),
    ("player show nobody", "unknown player 'nobody'"),
    ("player show a --ladder duell", "unknown ladder 'duell'"),
    ("player merge a --into nobody --yes", "unknown player 'nobody'"),
    ("player merge a --into f", "give --yes"),
    ("player export a --out a.csv", "expected .json"),
    ("player export a --out no/a.json", "cannot be written"),
    ("player erase a", "give --yes"),
    ("verify --ladder duell", "unknown ladder"),
    ("rebuild --ladder duell", "unknown ladder"),
    ("backup no/b.db", "the folder no does not exist"),
    ("backup league.db", "is the database itself"),
    ("backup season.csv", "exists already"),
    ("backup .", "is a folder"),
]


@pytest.mark.parametrize(("line", "said"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_command_option_name_or_value_ends_with_2_and_changes_nothing(line, said, run, league, season_file):
    before = league.read_bytes()
    files = {path.name for path in league.parent.iterdir()}
    ended = run(*["season.csv" if word == "SEASON" else word for word in line.split(" ")])
    assert ended.code == 2, ended
    assert said in " ".join((ended.err + ended.out).replace("│", " ").split())
    assert "Traceback" not in ended.err
    assert league.read_bytes() == before
    assert {path.name for path in league.parent.iterdir()} - {"league.db-wal", "league.db-shm"} == files


CONFLICTS = [
    ("ladder create duel --system elo", "ladder 'duel' exists already"),
    ("reinstate a", "player 'a' is not banned"),
    ("reinstate --match d01", "match 'd01' is not void"),
    ("player rename a b", "another player"),
    ("player merge a --into a --yes", "the same player"),
    ("player merge a --into b --yes", "both played in match 'd01'"),
]


@pytest.mark.parametrize(("line", "said"), CONFLICTS, ids=[line for line, _ in CONFLICTS])
def test_what_contradicts_the_ledger_ends_with_1(line, said, run, league):
    ended = run(*line.split())
    assert (ended.code, ended.out) == (1, "")
    assert said in ended.err


def test_a_void_or_ban_twice_ends_with_1_and_says_how_to_take_it_back(run, league):
    for line in (["void", "d01"], ["ban", "a"]):
        assert run(*line).code == 0
        ended = run(*line)
        assert ended.code == 1
        assert "already" in ended.err
        assert "reinstate" in ended.err


def test_the_ladder_must_be_named_where_there_are_several(run, league):
    run("ladder", "create", "other", "--system", "elo")
    ended = run("standings")
    assert ended.code == 2
    assert "there are the ladders duel, other; name one with --ladder" in ended.err
    assert run("standings", "--ladder", "duel").code == 0


def test_a_database_without_a_ladder_says_how_to_make_one(run, tmp_path):
    (tmp_path / "empty.db").touch()
    ended = run("standings", "--db", tmp_path / "empty.db")
    assert ended.code == 2
    assert "evenmatch ladder create NAME --system S" in ended.err
    assert run("verify", "--db", tmp_path / "empty.db").out == "there are no ladders to verify\n"


def test_a_file_that_is_no_database_ends_with_3(run, tmp_path):
    (tmp_path / "x.db").write_bytes(b"not a database" * 100)
    for line in (["ladder", "list"], ["ladder", "create", "x", "--system", "elo"]):
        ended = run(*line, "--db", tmp_path / "x.db")
        assert (ended.code, ended.out) == (3, "")
        assert "not an evenmatch database" in ended.err


def test_a_database_of_something_else_ends_with_3_and_stays_as_it_is(run, tmp_path):
    with sqlite3.connect(tmp_path / "x.db") as other:
        other.execute("CREATE TABLE recipes (name)")
    other.close()
    ended = run("ladder", "create", "x", "--system", "elo", "--db", tmp_path / "x.db")
    assert ended.code == 3
    assert "contains other tables (recipes)" in ended.err


@pytest.fixture
def as_a_guest(run, league, league_made_once, tmp_path_factory, monkeypatch):
    """A database that this process may read and not write to, in a folder likewise."""
    assert run("void", "d01", "--preview").code == 0  # so that all code is loaded, which a guest may not be let to
    folder = tmp_path_factory.getbasetemp() / "guest"
    folder.mkdir(exist_ok=True)
    above = [path for path in folder.parents if path.stat().st_mode & 0o777 == 0o700]
    kept = [(path, path.stat().st_mode) for path in above]
    db = folder / "league.db"
    db.write_bytes(league_made_once.read_bytes())
    db.chmod(0o444)
    folder.chmod(0o555)
    for path in above:
        path.chmod(0o711)
    monkeypatch.setenv("EVENMATCH_DB", str(db))
    if os.geteuid() == 0:  # whom permissions do not bind
        os.seteuid(65534)
    yield db
    if os.getuid() == 0:
        os.seteuid(0)
    folder.chmod(0o755)
    db.unlink()
    for path, mode in kept:
        path.chmod(mode)


def test_a_database_that_cannot_be_written_to_ends_with_3_and_says_so(run, as_a_guest):
    ended = run("void", "d01")
    assert (ended.code, ended.out) == (3, "")
    assert "Traceback" not in ended.err
    assert str(as_a_guest) in ended.err


def test_rows_that_cannot_be_read_are_all_named_and_nothing_is_imported(run, league, spoilt):
    ended = run("import", spoilt, "--ladder", "duel")
    assert (ended.code, ended.out) == (1, "")
    assert "match 'd03'" in ended.err
    assert json.loads(run("ladder", "list", "--json").out)[0]["matches"] == 11


# What has to be so before an example of the help can be followed, beside ladder "duel" with m17 and its players
FIRST = {
    "copy --from old.db": ["backup old.db"],
    "copy --from postgresql": ["backup other.db"],
    "rebuild --cluster": ["backup other.db"],
    "reinstate mallory": ["ban mallory"],
    "reinstate --match": ["void m17"],
    "season show": ["season open"],
    "player unlink": ["player link ann steam 76561197960287930"],
    "ladder create duel": [],
    "ladder list": ["backup evenmatch.db"],
    "queue set": ["ladder create arena --system elo"],
    "queue audit": ["ladder create arena --system elo", "queue set arena ranked"],
    "ladder decay": ["ladder change duel --inactivity rating --rating-decay 10"],
    "queue fit": ["ladder create arena --system elo", "queue set arena ranked"],
    "queue list": ["ladder create arena --system elo"],
    "queue remove": ["ladder create arena --system elo", "queue set arena quick"],
    "queue pause": ["ladder create arena --system elo", "queue set arena ranked"],
    "queue resume": ["ladder create arena --system elo", "queue set arena ranked", "queue pause arena ranked"],
    "queue experiment": ["ladder create arena --system elo", "queue set arena ranked"],
    "queue stop-experiment": [
        "ladder create arena --system elo",
        "queue set arena ranked",
        "queue experiment arena ranked --policy quick",
    ],
}
# Of no ledger, or without an end.
OTHERS = {"look", "rate", "explain", "odds", "backtest", "learned", "systems", "sample", "demo", "import", "record"}
OTHERS |= {"simulate-queue", "replay-queue", "policies", "audit", "serve", "discord", "compile"}


def help_examples():
    """Every example in the help of the commands on a ledger."""
    group = typer.main.get_command(application())
    commands = {name: one for name, one in group.commands.items() if name not in OTHERS}
    listed = [one for command in commands.values() for one in getattr(command, "commands", {"": command}).values()]
    lines = [line.strip() for one in listed for line in inspect.cleandoc(one.callback.__doc__).splitlines()]
    return [line.removeprefix("evenmatch ") for line in lines if line.startswith("evenmatch ")]


def test_there_are_examples_of_every_command():
    assert len(help_examples()) > 30


@pytest.mark.parametrize("line", help_examples())
def test_an_example_of_the_help_is_accepted(line, run, league, tmp_path):
    rows = "m17,2026-02-01,1,mallory,1\nm17,2026-02-01,2,bob,2\nm18,2026-02-01,1,ann,1\nm18,2026-02-01,2,bob,2\n"
    (tmp_path / "m.csv").write_text(
        f"match_id,played_at,team,player,place\n{rows}m19,2026-02-01,1,ann_smurf,1\nm19,2026-02-01,2,bob,2\n"
    )
    (tmp_path / "season.csv").write_bytes((tmp_path / "m.csv").read_bytes())
    assert run("import", "m.csv").code == 0
    for first in next((value for start, value in FIRST.items() if line.startswith(start)), []):
        assert run(*first.split()).code == 0
    words = shlex.split(line.replace("/backups/", "").replace("postgresql://league@db.example/league", "other.db"))
    if ">" in words:  # of a shell
        words = words[: words.index(">")]
    if "heads.txt" in words:
        (tmp_path / "heads.txt").write_text(run("head").out)
    if words[0] == "drill":
        (tmp_path / "backups").mkdir()
        for copy in ("monday.db", "backups/tuesday.db"):
            assert run("backup", copy).code == 0
        words = [word.replace("/backups", "backups").replace("evenmatch.db", str(league)) for word in words]
    if words[:2] == ["secret", "reset"]:
        words.append("--yes")
    if "--cluster" in words:  # of machines that are not there; that it is understood is tested with clusters
        del words[words.index("--cluster") : words.index("--cluster") + 2]
    if words[:2] == ["ladder", "create"]:
        words += ["--db", "new.db"]
    if words[:2] == ["player", "merge"]:
        words.append("--yes")
    if words[:2] == ["key", "revoke"]:
        words[2] = json.loads(run("key", "create", "k", "--scope", "read", "--json").out)["key"]
    ended = run(*words)
    if words[:2] == ["ladder", "advise"]:  # a handful of matches is too few
        assert "too few matches for advice" in ended.err
    elif words[:2] == ["queue", "fit"]:  # nobody joined
        assert "at least 200 are needed" in ended.err
    else:
        assert ended.code == 0, ended


NOT_UTF8 = "x\udcff"  # as Python reads the bytes b"x\xff" of an argument
LINES = (
    "void d03 --reason",
    "void d03 --id",
    "void",
    "reinstate d03 --reason",
    "ladder change duel --title",
    "player show",
    "backup",
    "backup copy.db --db",
    "verify --head",
)


@pytest.mark.parametrize("line", LINES)
def test_an_argument_that_is_not_utf8_is_refused(line, run, league):
    ended = run(*line.split(), NOT_UTF8)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: the argument 'x\\udcff' is not valid UTF-8; expected text in UTF-8\n"
