"""The TypeScript package is built from the document of a live service, and its example plays a match there."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from evenmatch_client import calls

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).parents[2] / "clients" / "typescript"
ANYBODY = {"max_odds": "none", "even_spread": 100.0, "steps": [[0, 100]], "rematch_wait": 0.0, "party_wait": 0.0}


def run(folder, *command, **environment):
    ended = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, env={**os.environ, **environment}, check=False
    )
    return ended.returncode, ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def package(tmp_path_factory, serving):
    """A built copy of the package. Its tests are skipped where its dependencies cannot be installed."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, so the TypeScript package cannot be built")
    folder = tmp_path_factory.mktemp("packages") / "typescript"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "schema.ts"))
    code, told = run(folder, "npm", "install", "--no-audit", "--no-fund", "--fetch-retries=0")
    if code != 0 and re.search(r"ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|ECONNRESET|network", told):
        pytest.skip("the npm registry cannot be reached, so the TypeScript package cannot be built")
    assert code == 0, told
    code, told = run(folder, "npm", "run", "build", EVENMATCH_URL=serving.url)
    assert code == 0, told
    return folder


def test_the_example_plays_a_match_from_the_login_to_the_rating(package, serving, admin):
    admin.send(calls.post("/v1/ladders", {"name": "arena", "system": "elo", "settings": {"placement": 1}}))
    queue = {"policy": {**ANYBODY, "team_size": 1}, "rules": {"accept_within": 300, "heartbeat": 600, "tick": 0.1}}
    admin.send(calls.put("/v1/ladders/arena/queues/main", queue))
    key = admin.send(calls.post("/v1/keys", {"name": "studio", "scopes": ["queue", "report"], "ladders": ["arena"]}))
    environment = {"EVENMATCH_URL": serving.url, "EVENMATCH_KEY": key["text"]}
    code, told = run(package, "npm", "run", "--silent", "example", **environment)
    assert code == 0, told
    lines = sorted(told.splitlines())
    connects = [line for line in lines if "connects" in line]
    assert connects == [f"{name} connects to 203.0.113.7:7777 with {name}'s token" for name in ("ann", "bob")]
    rated = {line.split()[0]: line for line in lines if "→" in line}
    assert sorted(float(re.search(r"→ ([\d.]+),", line)[1]) for line in rated.values()) == [1484.0, 1516.0]
    assert all(re.search(rf"/ladders/arena/matches/main-\S+/results/{name}$", rated[name]) for name in ("ann", "bob"))


def test_the_example_names_the_variable_without_which_it_cannot_run(package):
    assert run(package, "npm", "run", "--silent", "example", EVENMATCH_KEY="") == (1, "EVENMATCH_KEY is not set\n")


def test_the_package_has_no_lock_and_names_no_registry():
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "node_modules" not in path.parts]
    assert not [path for path in files if path.name in ("package-lock.json", "yarn.lock", "pnpm-lock.yaml")]
    assert "registry" not in (PACKAGE / ".npmrc").read_text()
