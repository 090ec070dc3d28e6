"""The command in a process of its own: exit codes, streams, pipes and terminals."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest

from evenmatch import write
from evenmatch.lab.sample import season as season_of_teams

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-c", "from evenmatch.cli import main; main()"]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.csv"
    write(season_of_teams(2, players=2000, matches=1500).matches, path)
    return path


def test_results_are_on_standard_output_and_everything_else_on_standard_error(spawn, spoilt, season_file):
    ended = spawn("rate", season_file, "-s", "wager", "--json")
    assert (ended.code, ended.err) == (0, "")
    json.loads(ended.out)
    ended = spawn("rate", spoilt, "-s", "wager")
    assert (ended.code, ended.out) == (1, "")
    assert re.search(r"line 9, match 'd03': place is '?0'?;", ended.err)
    ended = spawn("rate", season_file, "-s", "nope")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: unknown system 'nope'")


def test_output_to_a_pipe_is_plain(spawn, season_file):
    narrow = {"TERM": "xterm-256color", "COLUMNS": "20"}
    explain = ["explain", season_file, "-s", "wager", "-m", "t1"]
    for arguments, environment in ((["systems"], {}), (["systems"], narrow), (explain, {}), (explain, narrow)):
        ended = spawn(*arguments, **environment)
        assert (ended.code, ended.err) == (0, "")
        assert "\x1b" not in ended.out
        assert not set("│┃━─╭╰┏") & set(ended.out)
    assert "duel: 11 matches, 6 players, 0 placed" in spawn("rate", season_file, "-s", "wager", COLUMNS="20").out


@pytest.mark.parametrize("extra", [["--json"], []], ids=["json", "table"])
def test_a_reader_that_has_seen_enough_is_no_error(extra, large):
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, "rate", str(large), "-s", "battlepoints", *extra]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_the_first_line_of_many_can_be_had_alone(large):
    command = [*COMMAND, "rate", str(large), "-s", "battlepoints", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        ended = subprocess.run(["head", "-1"], stdin=process.stdout, capture_output=True, check=True)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert ended.stdout == b"{\n"


def test_a_name_that_the_encoding_of_the_output_lacks_is_replaced_and_no_crash(spawn, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("match_id,played_at,team,player,place\nm,2026-01-01,1,🦊,1\nm,2026-01-01,2,é,2\n", encoding="utf-8")
    for arguments in (["rate"], ["explain", "-m", "m"]):
        ended = spawn(arguments[0], path, "-s", "wager", *arguments[1:], PYTHONIOENCODING="ascii")
        assert "Traceback" not in ended.err
        assert ended.code == 0


def on_a_terminal(command, stream):
    """What a command writes to standard output (1) or error (2) when that is a terminal."""
    main, worker = pty.openpty()
    streams = {1: {"stdout": worker, "stderr": subprocess.DEVNULL}, 2: {"stdout": subprocess.DEVNULL, "stderr": worker}}
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CI")}
    with subprocess.Popen(command, **streams[stream], env=environment | {"TERM": "xterm", "COLUMNS": "100"}) as process:
        os.close(worker)
        read = bytearray()
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            read += piece
    os.close(main)
    assert process.returncode == 0
    return read.decode()


WORK = "from evenmatch.cli.shared.output import working\nimport time\nwith working('rating it', 40) as done:\n    {}"


def test_what_takes_longer_than_a_second_shows_its_progress_on_a_terminal():
    slow = "[(time.sleep(0.08), done(at)) for at in range(24)]"
    shown = on_a_terminal([sys.executable, "-c", WORK.format(slow)], 2)
    assert "rating it" in shown
    assert "/40" in shown


def test_what_takes_less_shows_nothing():
    assert on_a_terminal([sys.executable, "-c", WORK.format("done(40)")], 2).strip() == ""


def test_progress_is_not_written_to_a_pipe():
    slow = WORK.format("time.sleep(1.3)")
    ended = subprocess.run([sys.executable, "-c", slow], capture_output=True, check=True)
    assert (ended.stdout, ended.stderr) == (b"", b"")


def test_a_terminal_gets_a_drawn_table_and_names_are_no_markup(tmp_path):
    path = tmp_path / "x.csv"
    names = "[bold]ann[/bold]", "[/oops]"
    rows = [f"m,2026-01-01,{at},{name},{at}" for at, name in enumerate(names, 1)]
    path.write_text("\n".join(["match_id,played_at,team,player,place", *rows]))
    shown = on_a_terminal([*COMMAND, "rate", str(path), "-s", "wager"], 1)
    assert all(name in shown for name in names)
    assert "─" in shown
