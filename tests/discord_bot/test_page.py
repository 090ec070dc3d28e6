"""The page "A Discord bot for your community": its commands run, and its table has every setting."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from evenmatch.discord.settings import PREFIX, VARIABLES
from run_command import run_command

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "discord.md").read_text()


def test_the_page_has_every_setting_with_its_meaning_and_default():
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (.*) \|$", PAGE, re.M))
    shown = {None: "must be set", "": ""}
    assert rows == {
        name.upper(): f"{meaning} | {shown.get(default, f'`{default}`')}"
        for name, (meaning, default) in VARIABLES.items()
    }
    assert set(re.findall(rf"{PREFIX}(\w+)=", PAGE)) <= rows.keys()


def test_the_commands_of_the_page_are_accepted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed = "\n".join(re.findall(r"^```bash\n(.*?)^```$", PAGE, re.M | re.S))
    commands = re.findall(r"evenmatch ((?:queue|key|player) [^)\n]+)", listed)
    assert len(commands) == 6
    rows = "m1,2026-01-01,1,discord:80351110224678912,1\nm1,2026-01-01,2,bob,2\n"
    (tmp_path / "season.csv").write_text(f"match_id,played_at,team,player,place\n{rows}")
    for command in ("ladder create arena --system elo", "import season.csv --ladder arena", *commands):
        ended = run_command(*shlex.split(command))
        assert ended.code == 0, (command, ended.err)
    for name in ("discord:175928847299117063", "bob"):
        assert "bob" in run_command("player", "show", name).out, "both names lead to the player"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit_of_the_page(tmp_path):
    (unit,) = re.findall(r"^```ini\n(.*?)^```$", PAGE, re.M | re.S)
    file = tmp_path / "evenmatch-discord.service"
    file.write_text(re.sub(r"^ExecStart=\S+ ", "ExecStart=/bin/true ", unit, flags=re.M))
    told = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")
