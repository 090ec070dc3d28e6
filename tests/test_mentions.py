"""Every command line, option, endpoint, path of the repository, setting and make target that a page mentions exists."""

import re
import shlex
from functools import cache
from pathlib import Path

import pytest
import typer
from benchmarks.__main__ import BENCHMARKS
from typer._click.exceptions import BadOptionUsage, MissingParameter, UsageError
from typer.main import get_command

from evenmatch import errors, systems
from evenmatch.cli.app import application
from evenmatch.cli.ladder import OFFERED
from evenmatch.discord.settings import PREFIX, VARIABLES
from evenmatch.http.options import Options

ROOT = Path(__file__).parents[1]
SOURCE = [path for kind in ("py", "jinja") for path in sorted((ROOT / "src").rglob(f"*.{kind}"))]
SOURCE += sorted((ROOT / "clients" / "python" / "src").rglob("*.py"))
DEPLOYED = [*sorted(path for path in (ROOT / "deploy").rglob("*") if path.is_file()), ROOT / "compose.yaml"]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
UNITS = [path for path in DEPLOYED if path.suffix == ".service"]
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SHELL = ("", "bash", "console", "sh", "text")
# Where a command may begin: a line, after another command, after variables, and in a unit of systemd.
COMMAND = re.compile(r"(?:^|[;&|(])\s*(?:\$ )?(?:\w+=\S* |ExecStart=|/usr/bin/env )*(?:[\w./]+/)?evenmatch (.+)")
INNER = re.compile(r"\$\(([^()]*)\)")  # a command whose output is part of another
PLACE = re.compile(r"(?<![\w./-])((?:benchmarks|deploy|docs|src|tests|tools)/[\w./-]*\w)")
MODULE = re.compile(r"`((?:\w+/)+\w+\.(?:py|jinja|js|css))`")  # in the package


def command_lines(text):
    """The words after `evenmatch` of the commands in blocks of a page, which are complete, and of those in its text."""
    for language, block in FENCE.findall(text):
        if language in SHELL:
            lines = block.replace("\\\n", " ").splitlines()
            shown = [line for line in lines if language != "console" or line.startswith("$ ")]
            yield from ((words, True) for line in shown for words in commands_in(line))
    for paragraph in re.split(r"\n\s*\n", FENCE.sub("", text)):
        for code in re.findall(r"`([^`]+)`", paragraph):
            yield from ((words, False) for words in commands_in(" ".join(code.split())))


def commands_in(line):
    for inner in INNER.findall(line):
        yield from commands_in(inner)
    for rest in COMMAND.findall(INNER.sub("inner", line)):
        lexer = shlex.shlex(rest, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = []
        for word in lexer:
            if set(word) <= set("();<>|&"):
                break
            words.append(word)
        yield words


def problem_of(words, complete):
    """What is wrong with a command line, which is parsed and not run; None if nothing is. Text may leave out parts."""
    if not complete:
        pairs = zip(["", *words[:-1]], words, strict=True)
        words = [word for before, word in pairs if word != "…" or before.startswith("-")]
    command = get_command(application())
    while words and not words[0].startswith("-") and hasattr(command, "commands"):
        if words[0] not in command.commands:
            return f"no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    try:
        given = command.make_context(command.name, [*words]).params if words or complete else {}
        for name in OFFERED.keys() & given.keys() - {"divisions"}:
            if command.name in ("create", "change") and given[name] is not None:
                OFFERED[name].read(given[name])
        named = given.get("systems") or given.get("system") or ""
        for name in named if isinstance(named, list) else named.split(","):
            if re.fullmatch("[a-z0-9]+", name) and name != "all":
                systems.find(name)
    except (MissingParameter, BadOptionUsage) as error:
        return str(error) if complete else None
    except (UsageError, errors.UsageError, ValueError, TypeError) as error:
        return str(error) or f"a setting has a value that it does not accept: {command.name} {shlex.join(words)}"
    except typer.Exit:  # of --version
        return None
    return None


@pytest.mark.parametrize("page", [*PAGES, *UNITS], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_line_of_a_page_parses(page):
    lines = list(command_lines(page.read_text() if page in PAGES else f"```\n{page.read_text()}\n```"))
    assert [(shlex.join(words), said) for words, whole in lines if (said := problem_of(words, whole))] == []


def options_of(command):
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return own.union(*map(options_of, getattr(command, "commands", {}).values()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_option_that_stands_alone_in_a_page_is_one_of_a_command(page):
    named = re.findall(r"`(--[a-z][a-z-]*)", FENCE.sub("", page.read_text()))
    assert set(named) - options_of(get_command(application())) == set()


ENDPOINT = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (/v1/[\w{}/.-]*\w}?)")


@cache
def endpoints():
    """Method and path, as a pattern, of every endpoint of the generated reference."""
    named = ENDPOINT.findall((ROOT / "docs" / "reference" / "http.md").read_text())
    return [(method, re.compile(re.sub(r"{\w+}", "[^/]+", path))) for method, path in named]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_endpoint_of_a_page_exists(page):
    named = set(ENDPOINT.findall(page.read_text()))
    known = {(how, path) for how, path in named for of, like in endpoints() if how == of and like.fullmatch(path)}
    assert named - known == set()


def test_enough_command_lines_are_found():
    assert sum(len(list(command_lines(page.read_text()))) for page in PAGES) > 300


def test_every_command_that_a_message_of_the_source_names_exists():
    wrong = []
    for path in SOURCE:
        text = re.sub(r'"\s*\n\s*f?"', "", path.read_text())  # texts that go on in the next line
        for code in re.findall(r"(?:`|<code>)(evenmatch [^`<]+)(?:`|</code>)", text):
            words = re.sub(r"{[^}]*}+", "VALUE", code).split()[1:]
            if said := problem_of(words, False):
                wrong.append((str(path.relative_to(ROOT)), code, said))
    assert wrong == []


@cache
def settings():
    """Every variable of the environment that something reads."""
    read = {f"EVENMATCH_{name.upper()}" for name in Options.model_fields}
    read.update({PREFIX.rstrip("_"), *(PREFIX + name.upper() for name in VARIABLES)})
    read.update(re.findall(r"\${(EVENMATCH_\w+)", (ROOT / "compose.yaml").read_text()))
    return read.union(*(re.findall(r'"(EVENMATCH_\w+)"', path.read_text()) for path in SOURCE))


def unknown_settings(text):
    return set(re.findall(r"EVENMATCH_[A-Z_]*[A-Z]", text)) - settings()


def test_every_setting_that_a_message_of_the_source_names_exists():
    assert set().union(*(unknown_settings(path.read_text()) for path in SOURCE)) == set()


@pytest.mark.parametrize("page", [*PAGES, *DEPLOYED], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_setting_and_target_of_make_of_a_page_exists(page):
    text = page.read_text()
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    paths = {path for path in PLACE.findall(text) if not (ROOT / path).exists() and f"/{path}" not in ignored}
    package = ROOT / "src" / "evenmatch"
    modules = {path for path in MODULE.findall(text) if not any((at / path).exists() for at in (ROOT, package))}
    targets = re.search(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    made = set(re.findall(r"(?:`|^)make (\w+)", text, re.MULTILINE)) - set(targets)
    measured = set(re.findall(r"python -m benchmarks (\w+)", text)) - BENCHMARKS.keys()
    assert (paths, modules, made, measured, unknown_settings(text)) == (set(), set(), set(), set(), set())
