"""The TypeScript package is built from the document of a live service, and its example plays a match there."""

import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).parents[2] / "clients" / "typescript"


# Follows ticket 7 and prints the states that it sees, and the error.
FOLLOW = """
import { connect, follow } from "./dist/src/index.js";
const [url, patience] = process.argv.slice(2);
try {
  for await (const { data } of follow(connect(url, "em_k"), "arena", 7, Number(patience))) console.log(data.state);
} catch (error) {
  console.log(`${error.name}: ${error.message}`);
}
"""


def reply(status, body, missing=0):
    """An answer that ends the connection, `missing` bytes too early."""
    return f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(body) + missing}\r\n\r\n{body}".encode()


GONE = 'id: 1\nevent: ticket\ndata: {"state": "gone"}\n\n'
DROPPED = reply("200 OK", GONE[:-9], missing=9)
RESTARTING = reply("503 Service Unavailable", "the service restarts")
UNKNOWN = reply("404 Not Found", '{"status": 404, "detail": "no ticket 7"}')


@contextmanager
def answering(*answers):
    """The address of a server that gives these answers, in order, and the list of those not yet given."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.wfile.write(left.pop(0))

        def log_message(self, *_):
            """Keep the output of the tests clean."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", left
        finally:
            server.shutdown()
            thread.join()


def run(folder, *command, **environment):
    ended = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, env={**os.environ, **environment}, check=False
    )
    return ended.returncode, ended.stdout + ended.stderr


def blocks(language):
    """The texts of the README's blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (PACKAGE / "README.md").read_text(), re.M | re.S)


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


def test_the_example_plays_a_match_from_the_login_to_the_rating(package, serving, tmp_path):
    setup = next(text for text in blocks("sh") if "ladder create" in text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    code, told = run(tmp_path, "bash", "-euc", setup, EVENMATCH_DB=serving.database, PATH=path)
    assert code == 0, told
    key = re.search(r"^em_\S+$", told, re.M)[0]
    environment = {"EVENMATCH_URL": serving.url, "EVENMATCH_KEY": key}
    code, told = run(package, "npm", "run", "--silent", "example", **environment)
    assert code == 0, told
    lines = sorted(told.splitlines())
    connects = [line for line in lines if "connects" in line]
    assert connects == [f"{name} connects to 203.0.113.7:7777 with {name}'s token" for name in ("ann", "bob")]
    rated = {line.split()[0]: line for line in lines if "→" in line}
    assert sorted(float(re.search(r"→ ([\d.]+),", line)[1]) for line in rated.values()) == [1484.0, 1516.0]
    assert all(re.search(rf"/ladders/arena/matches/main-\S+/results/{name}$", rated[name]) for name in ("ann", "bob"))
    sentences = sorted(line.split(": ")[1] for line in lines if ": " in line)
    assert sentences == [
        "You beat an evenly matched opponent, so your rating rose by 16.00. A loss would have cost you 16.00.",
        "You lost to an evenly matched opponent, so your rating fell by 16.00. A win would have earned you 16.00.",
    ]


def test_the_example_names_the_variable_without_which_it_cannot_run(package):
    assert run(package, "npm", "run", "--silent", "example", EVENMATCH_KEY="") == (1, "EVENMATCH_KEY is not set\n")


def test_the_programs_of_the_readme_fit_the_service(package):
    (package / "examples" / "readme.ts").write_text("declare const key: string;\n" + "".join(blocks("ts")))
    assert run(package, "npx", "tsc", "--noEmit") == (0, "")


def test_following_a_ticket_survives_a_restart_of_the_service(package):
    (package / "follow.mjs").write_text(FOLLOW)
    with answering(DROPPED, b"", RESTARTING, reply("200 OK", GONE)) as (url, left):
        assert run(package, "node", "follow.mjs", url, "300") == (0, "gone\n")
        assert not left


# what the service answers, for how many seconds `follow` tries again, and the error that it throws
GIVING_UP = [
    (b"", "0", "TypeError: fetch failed"),
    (RESTARTING, "0", "Error: {url}/v1/ladders/arena/tickets/7/events: 503 Service Unavailable"),
    (UNKNOWN, "300", "Error: no ticket 7"),
]


@pytest.mark.parametrize(("answer", "patience", "error"), GIVING_UP)
def test_following_a_ticket_throws_the_error_that_it_cannot_wait_out(package, answer, patience, error):
    (package / "follow.mjs").write_text(FOLLOW)
    with answering(answer, reply("200 OK", GONE)) as (url, left):
        assert run(package, "node", "follow.mjs", url, patience) == (0, error.format(url=url) + "\n")
        assert len(left) == 1


def test_the_package_has_no_lock_and_names_no_registry():
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "node_modules" not in path.parts]
    assert not [path for path in files if path.name in ("package-lock.json", "yarn.lock", "pnpm-lock.yaml")]
    assert "registry" not in (PACKAGE / ".npmrc").read_text()
