"""The pages for game developers: every command and program on them runs, in its order, against a real service."""

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from evenmatch_client import Client, calls

CLIENT = Path(__file__).parents[2] / "clients" / "python" / "src"
PAGES = Path(__file__).parents[2] / "docs" / "how-to"
LUA = "cjson", "socket.http", "openssl.digest"
URL = "http://127.0.0.1:8080"
AS_A_READER_HAS_IT = {name: value for name, value in os.environ.items() if name != "EVENMATCH_SECRET"}


def blocks(page, *languages):
    """The language and text of each block of these languages, in order."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", (PAGES / page).read_text(), re.M | re.S)
    return [(language, text) for language, text in found if language in languages]


@contextmanager
def served(folder, **environment):
    """The address of `evenmatch serve` in a folder."""
    command = [sys.executable, "-m", "evenmatch", "serve", "--port", "0"]
    env = {**AS_A_READER_HAS_IT, **environment}
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder, env=env) as run,
    ):
        try:
            yield run.stdout.readline().split()[-1]
        finally:
            run.send_signal(signal.SIGTERM)
            try:
                run.wait(30)
            except subprocess.TimeoutExpired:
                run.kill()


def shell(script, folder, **environment):
    """What a script prints that must not fail."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**AS_A_READER_HAS_IT, "PATH": path, **environment}
    told = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=env,
        timeout=240,
    )
    assert told.returncode == 0, f"{script}\n{told.stdout}\n{told.stderr}"
    return told.stdout


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_page_about_the_service_leads_to_a_rated_match_on_a_fresh_installation(tmp_path, tmp_path_factory):
    """From an empty kernel cache: what a reader of the page waits for is what it says they wait for."""
    fresh = {"NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("kernels"))}
    listed = blocks("service.md", "bash", "py")
    begin = [text for _, text in listed].index("evenmatch serve\n")
    shell("".join(text for _, text in listed[:begin]), tmp_path, **fresh)
    with served(tmp_path, **fresh) as url:
        commands = "".join(text for language, text in listed[begin + 1 :] if language == "bash").replace(URL, url)
        printed = shell(commands, tmp_path, **fresh)
        assert "getting ready" in printed  # the reader came before the matchmaker was compiled
        assert '"state":"matched"' in printed
        assert printed.count('"change":0.05') >= 2  # of 1.00, wager wins a twentieth
        assert "\n304\n" in printed
        assert '"type":"urn:evenmatch:problem:unknown-name"' in printed
        program = "".join(text for language, text in listed if language == "py")
        key = (tmp_path / "auth").read_text().split()[-1]
        (tmp_path / "program.py").write_text(program + CHECK)
        told = shell(
            f"{sys.executable} program.py",
            tmp_path,
            EVENMATCH_URL=url,
            EVENMATCH_KEY=key,
            PYTHONPATH=str(CLIENT),
            **fresh,
        )
    before, after = re.search(r"^ann (\d\.\d\d) → (\d\.\d\d)$", told, re.M).groups()
    headline = "won .* so your rating rose by" if after > before else "lost .* so your rating fell by"
    assert re.search(rf"^Your team {headline} 0\.\d\d\b", told, re.M)


# What the service signs for the secret whs_x at second 1795300000, by `openssl dgst -sha256 -hmac whs_x`.
SIGNED = "97768c2f661baff0f755b15a4692c11d22d199448feebac580c4ab192d7fa177"
CHECK = f"""
time.time = lambda: 1795300100
headers = {{"Evenmatch-Timestamp": "1795300000", "Evenmatch-Signature": "v1={SIGNED}"}}
body = '{{"event":"match.rated","player":"Zoë"}}'.encode()
assert is_ours("whs_x", headers, body)
assert not is_ours("whs_x", headers, body + b" ")
assert not is_ours("whs_y", headers, body)
time.time = lambda: 1795300301
assert not is_ours("whs_x", headers, body)
"""


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    """A service with a ladder and a queue: its address, an admin's key, and a folder for files."""
    folder = tmp_path_factory.mktemp("arena")
    key = shell("evenmatch ladder create arena --system wager >&2; evenmatch key create all --scope admin", folder)
    with served(folder) as url:
        rules = {"tick": 0.2, "accept_within": 60}
        policy = {"preset": "quick", "team_size": 1, "steps": [[0, 100]], "even_spread": 100, "newcomer_wait": 0}
        with Client(url, key.strip()) as client:
            client.send(calls.put("/v1/ladders/arena/queues/main", {"policy": policy, "rules": rules}))
        yield url, key.strip(), folder


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="curl or openssl is not installed")
def test_a_match_is_reported_with_curl_by_a_key_and_signed(arena):
    url, key, folder = arena
    commands = [text for _, text in blocks("game-clients.md", "bash")]
    printed = shell("\n".join(commands), folder, EVENMATCH_URL=url, EVENMATCH_KEY=key)
    assert printed.count('"match_id":"curl-1"') == 2
    assert "Bearer" not in commands[1]


def lua():
    """The interpreter that has all that the examples need; None: none does."""
    for name in ("lua5.4", "lua5.3", "lua", "luajit"):
        if shutil.which(name):
            needed = "".join(f"require '{one}' " for one in LUA)
            if subprocess.run([name, "-e", needed], capture_output=True, check=False).returncode == 0:
                return name
    return None


def write_lua(folder, *changes):
    """Write the page's programs into files, each of the name that it begins with."""
    for _, text in blocks("game-clients.md", "lua"):
        changed = text
        for before, after in changes:
            changed = changed.replace(before, after)
        (folder / text.split()[1]).write_text(changed)


@pytest.mark.skipif(lua() is None, reason="no Lua with luasocket, lua-cjson and luaossl is installed")
def test_the_lua_programs_report_by_a_key_and_signed_and_play(arena):
    url, key, folder = arena
    write_lua(folder)
    reported = shell(f"{lua()} server.lua", folder, EVENMATCH_URL=url, EVENMATCH_KEY=key)
    assert re.fullmatch(r"(\w+ \d\.\d\d [+-]\d\.\d\d \(not placed yet\)\n){4}", reported)
    write_lua(folder, ('return "Bearer "', 'error("not signed") --'), ("lua-1", "lua-2"))
    assert shell(f"{lua()} signed.lua", folder, EVENMATCH_URL=url, EVENMATCH_KEY=key).count("not placed yet") == 4
    write_lua(folder)
    with Client(url, key) as client:
        token = client.send(calls.issue_token("ann")).token
        rival = client.send(calls.join_queue("arena", ["main"], [{"player": "zoe"}])).ticket
        ended = []
        waiting = threading.Thread(
            target=lambda: ended.append(client.wait_for_match("arena", rival, accept=True, timeout=60))
        )
        waiting.start()
        played = shell(f"{lua()} player.lua", folder, EVENMATCH_URL=url, EVENMATCH_KEY=token)
        waiting.join(60)
    assert played.splitlines()[-1] == ended[0].match.match_id


CSHARP_PROGRAM = """
using System;
using System.Text.RegularExpressions;
using System.Threading.Tasks;

public static class Program
{
    public static void Main(string[] given)
    {
        Run(given[0], given[1], given[2]).Wait();
    }

    private static async Task Run(string url, string key, string token)
    {
        string now = DateTime.UtcNow.ToString("s") + "Z";
        string match = "{\\"id\\": \\"ID\\", \\"played_at\\": \\"" + now + "\\", \\"teams\\": ["
            + "{\\"score\\": 7, \\"players\\": [{\\"player\\": \\"cs-1\\"}]},"
            + "{\\"score\\": 4, \\"players\\": [{\\"player\\": \\"cs-2\\"}]}]}";
        using (Evenmatch plain = new Evenmatch(url, key), signed = new Evenmatch(url, key, true))
        using (Evenmatch player = new Evenmatch(url, token))
        {
            Console.WriteLine(await plain.Report("arena", match.Replace("ID", "cs-plain")));
            Console.WriteLine(await signed.Report("arena", match.Replace("ID", "cs-signed")));
            try
            {
                await plain.Report("nowhere", match);
            }
            catch (EvenmatchException refused)
            {
                Console.WriteLine("refused " + refused.Status);
            }
            string party = "{\\"queues\\": [\\"main\\"], \\"members\\": [{\\"player\\": \\"cs-1\\"}]}";
            long ticket = long.Parse(Field(await player.Join("arena", party), "ticket"));
            long? change = null;
            string state = "waiting";
            while (state != "matched" && state != "gone")
            {
                string seen = await player.Look("arena", ticket, change);
                state = Field(seen, "ticket\\":" + ticket + ",\\"state");
                change = long.Parse(Field(seen, "state\\":\\"" + state + "\\",\\"change"));
                if (state == "offered" && seen.Contains("\\"cs-1\\":false"))
                {
                    await player.Accept("arena", ticket);
                }
                Console.WriteLine(state == "matched" ? Field(seen, "match_id") : state);
            }
        }
    }

    private static string Field(string json, string name)
    {
        return Regex.Match(json, "\\"" + name + "\\":\\"?([^\\",}]+)").Groups[1].Value;
    }
}
"""


@pytest.mark.skipif(not (shutil.which("mcs") and shutil.which("mono")), reason="Mono's compiler mcs is not installed")
def test_the_csharp_client_compiles_with_mono_reports_by_a_key_and_signed_and_plays(arena):
    """Server.cs and Player.cs need the .NET SDK, so a program in C# 7 does the same here."""
    url, key, folder = arena
    (source,) = [text for _, text in blocks("game-clients.md", "csharp") if text.startswith("// Evenmatch.cs")]
    (folder / "Evenmatch.cs").write_text(source)
    (folder / "Program.cs").write_text(CSHARP_PROGRAM)
    shell("mcs -warnaserror -out:program.exe -r:System.Net.Http.dll Evenmatch.cs Program.cs", folder)
    with Client(url, key) as client:
        token = client.send(calls.issue_token("cs-1")).token
        rival = client.send(calls.join_queue("arena", ["main"], [{"player": "yan"}])).ticket
        ended = []
        waiting = threading.Thread(
            target=lambda: ended.append(client.wait_for_match("arena", rival, accept=True, timeout=60))
        )
        waiting.start()
        plain, signed, refused, *played = shell(f"mono program.exe {url} {key} {token}", folder).splitlines()
        waiting.join(60)
    assert ['"match_id":"cs-plain"' in plain, '"match_id":"cs-signed"' in signed] == [True, True]
    assert refused == "refused 404"
    assert played[-1] == ended[0].match.match_id


def test_the_gdscript_programs_have_the_syntax_of_godot_4():
    """They do not run, because Godot 4 is in no package registry: gdtoolkit parses them, which no lock has."""
    parser = pytest.importorskip("gdtoolkit.parser", reason="gdtoolkit is not installed").parser
    programs = [text for _, text in blocks("game-clients.md", "gdscript")]
    assert len(programs) == 3
    for text in programs:
        is_whole = text.startswith("# evenmatch.gd")
        parser.parse(text if is_whole else "func play() -> void:\n" + textwrap.indent(text, "\t"))
