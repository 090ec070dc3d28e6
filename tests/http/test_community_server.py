"""The page "A community server in ten minutes": its commands run in a folder, and its files pass their own checkers."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from datetime import datetime
from pathlib import Path

import httpx
import pytest

import proxies
from server_process import Served

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "deploy" / "small"
UNITS = SMALL / "etc" / "systemd" / "system"
PAGE = (ROOT / "docs" / "how-to" / "community-server.md").read_text()
SITE = ROOT / "deploy" / "nginx-site.conf"
NAME = "ranks.test"
PLACES = re.compile(r"/(?:var/(?:lib|cache)/evenmatch|etc/evenmatch|etc/caddy|usr/local/lib/evenmatch)")
# What needs root, the internet or systemd itself. `systemctl start` and `stop` are carried out by Machine.
ELSEWHERE = re.compile(r"(?:apt|useradd|chown|certbot|python3 -m venv|systemctl (?:daemon-reload|reload)) ?.*")
SYSTEMD = shutil.which("systemd-analyze")


def commands(heading):
    """The commands of the first block below a heading of the page."""
    (block,) = re.findall(rf"^#+ {heading}$.*?```bash\n(.*?)```", PAGE, re.M | re.S)
    return block.splitlines()


class Unit(Served):
    """A service of systemd, run as its unit says, on a free port."""

    def __init__(self, command, environment, folder):
        super().__init__("", folder)
        self._command, self._environment = command, environment

    def launch(self):
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment
            )


class Machine:
    """A folder that stands for the file system of the page, and systemd in it."""

    def __init__(self, folder):
        self.folder, self.at, self.running, self.skipped = folder, ROOT, {}, []
        for made in ("usr/local/lib/evenmatch/bin", "var/lib/evenmatch", "var/lib/evenmatch-backups", "etc/caddy"):
            (folder / made).mkdir(parents=True)
        (folder / "usr/local/lib/evenmatch/bin/evenmatch").symlink_to(Path(sys.executable).parent / "evenmatch")
        self.environment = {name: text for name, text in os.environ.items() if not name.startswith("EVENMATCH_")}
        path = os.pathsep.join([str(folder / "usr/local/bin"), self.environment["PATH"]])
        self.environment |= {"PATH": path, "EVENMATCH_PORT": "0", "EVENMATCH_STOP_WITHIN": "5"}
        self.environment["HOME"] = str(folder)
        with tarfile.open(folder / "evenmatch.tar.gz", "w:gz") as archive:
            archive.add(ROOT / "deploy", "deploy")

    def moved(self, text):
        """The text with the folder before each place of the machine."""
        return PLACES.sub(rf"{self.folder}\g<0>", text)

    def run(self, lines):
        """Carry out the commands of a block; those for elsewhere are noted."""
        for command in (command for line in lines for command in line.split(" && ")):
            words = shlex.split(command)
            if ELSEWHERE.fullmatch(command) or words[0].endswith("/pip"):
                self.skipped.append(words[0])
            elif words[0] == "systemctl":
                getattr(self, words[1])(*(word for word in words[2:] if not word.startswith("-")))
            elif command == "cp -r --backup deploy/small/. /":
                self.shell(f"cp -r --backup deploy/small/. {self.folder}/")
                for name in (path.relative_to(SMALL) for path in SMALL.rglob("*") if path.is_file()):
                    file = self.folder / name
                    text = re.sub(r"^NUMBA_CACHE_DIR=.*$", "", self.moved(file.read_text()), flags=re.M)
                    file.write_text(text)  # kernels: those that the other tests use
            elif words[0] == "cd":
                self.at /= self.moved(words[1])
            else:
                self.shell(self.moved(command).replace("YOUR.NAME", NAME))

    def shell(self, command):
        made = subprocess.run(
            *(["sh", "-c", command],), cwd=self.at, env=self.environment, capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, f"{command}\n{made.stdout}{made.stderr}"
        return made.stdout

    def enable(self, *units):
        for unit in units:
            if unit.endswith(".timer"):
                assert (UNITS / unit).with_suffix(".service").exists()
            else:
                self.start(unit)

    def start(self, unit):
        """Run what a unit starts with what its EnvironmentFile says; wait for the end of a oneshot."""
        text = (self.folder / "etc/systemd/system" / f"{unit.removesuffix('.service')}.service").read_text()
        (file,) = re.findall(r"^EnvironmentFile=(.*)$", text, re.M)
        given = dict(shlex.split(line)[0].split("=", 1) for line in Path(file).read_text().splitlines() if "=" in line)
        lines = re.findall(r"^ExecStart(?:Post)?=(.*)$", text, re.M)
        found = [[word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line)] for line in lines]
        for command in found:
            if "Type=oneshot" in text:
                self.shell(shlex.join(["env", *(f"{name}={value}" for name, value in given.items()), *command]))
            else:
                self.running[unit] = Unit(command, self.environment | given, self.folder)
                self.running[unit].launch()
                self.running[unit].wait_for_address()

    def stop(self, unit):
        assert self.running.pop(unit).stop() == 0

    def get(self, path, host=NAME, **headers):
        return httpx.get(self.running["evenmatch"].address + path, headers={"Host": host, **headers})


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path)
    yield made
    for unit in made.running.values():
        unit.kill()


@pytest.mark.slow
def test_the_commands_of_the_page_set_up_a_server_upgrade_it_and_go_back_after_everything_was_lost(machine):
    setup = commands("A community server in ten minutes")
    assert len(setup) <= 10
    matches = machine.folder / "matches.csv"
    shutil.copy(ROOT / "docs" / "examples" / "season.csv", matches)
    machine.run([line.replace("matches.csv", str(matches)) for line in setup])
    assert machine.get("/ladders/arena/standings").status_code == 200
    assert machine.get("/ladders/arena/standings", "another.test").status_code == 421
    cookie = machine.get("/ladders/arena/me?player=ann", **{"X-Forwarded-Proto": "https"}).headers["set-cookie"]
    assert cookie.startswith("__Host-")
    assert NAME in (machine.folder / "etc/caddy/Caddyfile").read_text()

    key = re.search(r"em_\S+", machine.shell("evenmatch key create game --scope report --ladder arena"))[0]
    machine.run(commands("Upgrade"))
    machine.start("evenmatch-drill.service")
    machine.shell("evenmatch ladder create later --system elo")
    assert machine.get("/ladders/later").status_code == 200

    back = [line.replace("2026-11-27", f"{datetime.now():%Y-%m-%d}") for line in commands("Restore a backup")]
    machine.run([back[0], *commands("Go back to the version before")])
    for file in (machine.folder / "var/lib/evenmatch").iterdir():
        file.unlink()
    machine.run(back[1:])
    assert machine.get("/ladders/later").status_code == 404
    assert machine.get("/v1/ladders/arena", Authorization=f"Bearer {key}").json()["matches"] == 24

    (machine.folder / "usr/local/lib/evenmatch/source/export.csv").write_text("Day;Won;Lost\n13/01/2026;ann;zoe\n")
    machine.at = machine.folder / "usr/local/lib/evenmatch/source"
    machine.run(commands("Matches from another program"))
    assert machine.get("/v1/ladders/arena", Authorization=f"Bearer {key}").json()["matches"] == 25
    assert set(machine.skipped) >= {"apt", "useradd", "chown", "systemctl"}


@pytest.mark.slow
def test_a_restored_database_does_not_start_without_the_secret_that_the_page_names(machine):
    machine.run(["cp -r --backup deploy/small/. /"])
    machine.start("evenmatch")
    machine.run(["evenmatch key create game --scope report", "systemctl start evenmatch-backup.service"])
    machine.stop("evenmatch")
    (machine.folder / "var/lib/evenmatch/evenmatch.db.secret").unlink()
    started = subprocess.run(
        ["evenmatch", "serve"], env=machine.environment, capture_output=True, text=True, check=False
    )
    assert started.returncode != 0
    assert "evenmatch.db.secret" in started.stderr
    copies = {path.suffix for path in (machine.folder / "var/lib/evenmatch-backups").iterdir()}
    assert copies == {".db", ".secret"}


def test_the_drill_follows_the_backup_and_allows_for_a_day_between_two_of_them():
    hours = {
        name: int(re.search(r"OnCalendar=\*-\*-\* (\d+):00:00", (UNITS / f"evenmatch-{name}.timer").read_text())[1])
        for name in ("backup", "drill")
    }
    drill = (UNITS / "evenmatch-drill.service").read_text()
    assert 0 < hours["drill"] - hours["backup"] <= int(re.search(r"--max-age (\d+)", drill)[1]) - 24
    assert "After=evenmatch-backup.service" in drill
    (written,) = re.findall(r"backup \"(\S+)/evenmatch-", (UNITS / "evenmatch-backup.service").read_text())
    assert f"drill {written} " in drill


def test_every_file_of_the_page_is_one_that_a_unit_or_the_page_makes():
    kept = re.findall(r"^\| `(/\S+)` \|", PAGE, re.M)
    files = "".join(path.read_text() for path in SMALL.rglob("*") if path.is_file())
    for path in kept:
        assert (SMALL / path[1:]).exists() or path.removesuffix(".secret") in files, path
    for setting in re.findall(r"EVENMATCH_\w+", PAGE):
        assert f"{setting}=" in (SMALL / "etc/evenmatch/evenmatch.env").read_text()


@pytest.mark.skipif(SYSTEMD is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("folder", [UNITS, ROOT / "deploy"], ids=["small", "PostgreSQL"])
def test_systemd_has_nothing_to_say_about_the_units(folder):
    units = sorted([*folder.glob("*.service"), *folder.glob("*.timer")])
    assert units
    told = subprocess.run([SYSTEMD, "verify", "--man=no", *units], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.skipif(proxies.CADDY is None, reason="caddy is not installed")
def test_caddy_accepts_the_small_configuration_which_has_six_lines():
    file = SMALL / "etc/caddy/Caddyfile"
    assert len(file.read_text().splitlines()) <= 6
    command = [proxies.CADDY, "validate", "--config", file, "--adapter", "caddyfile"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr


@pytest.mark.skipif(proxies.CADDY is None, reason="caddy is not installed")
def test_caddy_accepts_the_configuration_for_a_trial_without_a_domain(tmp_path):
    (text,) = re.findall(r"```caddyfile\n(.*?)```", PAGE, re.S)
    (tmp_path / "Caddyfile").write_text(text)
    told = subprocess.run(
        [proxies.CADDY, "validate", "--config", tmp_path / "Caddyfile"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(tmp_path))},
    )
    assert told.returncode == 0, told.stderr


@pytest.mark.skipif(proxies.NGINX is None, reason="nginx is not installed")
def test_nginx_accepts_the_site_within_the_http_block_of_another_configuration(tmp_path):
    main = (ROOT / "deploy" / "nginx-main.conf").read_text().replace("/var/tmp", str(tmp_path))
    (tmp_path / "nginx.conf").write_text(main.replace("include nginx.conf;", f"include {SITE};"))
    told = subprocess.run(
        [proxies.NGINX, "-t", "-c", tmp_path / "nginx.conf"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr


PROXIES = [
    pytest.param(proxies.small_caddy, marks=pytest.mark.skipif(proxies.CADDY is None, reason="caddy is not installed")),
    pytest.param(proxies.small_nginx, marks=pytest.mark.skipif(proxies.NGINX is None, reason="nginx is not installed")),
]


@pytest.mark.slow
@pytest.mark.parametrize("proxy", PROXIES)
def test_a_small_proxy_passes_on_pages_under_the_public_name_and_hides_the_figures(machine, tmp_path, proxy):
    machine.run(commands("A community server in ten minutes")[:8])
    address = machine.running["evenmatch"].address.removeprefix("http://")
    with proxy(tmp_path, address) as url:
        assert httpx.get(f"{url}/", headers={"Host": NAME}).status_code == 200
        assert httpx.get(f"{url}/", headers={"Host": "another.test"}).status_code == 421
        assert httpx.get(f"{url}/metrics", headers={"Host": NAME}).status_code == 404
