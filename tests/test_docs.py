"""Nothing is undocumented: commands, systems, parameters, names, errors, columns."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from evenmatch import errors, systems
from evenmatch.cli.app import application
from evenmatch.options import options_of
from evenmatch.policy import Policy, presets
from evenmatch.tables import COLUMNS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def test_the_reference_says_what_the_code_says():
    run = [sys.executable, str(ROOT / "tools" / "reference.py"), "--check"]
    told = subprocess.run(run, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr + "\nrun tools/reference.py"


@pytest.mark.parametrize("name", systems.names())
def test_every_system_has_a_page_that_names_its_parameters_presets_and_factors(name):
    page = (DOCS / "systems" / f"{name}.md").read_text()
    system = systems.find(name)
    words = [*options_of(system.parameters), *system.presets, *(factor.name for factor in system.factors)]
    assert [word for word in words if f"`{word}`" not in page] == []
    assert f"systems/{name}.md" in (DOCS / "README.md").read_text()


def test_every_option_and_preset_of_a_policy_is_explained():
    page = (DOCS / "matchmaking.md").read_text()
    words = [*options_of(Policy), *presets()]
    assert [word for word in words if f"`{word}`" not in page] == []


def test_every_command_is_in_the_reference_and_the_tutorials():
    pages = "".join(page.read_text() for page in DOCS.rglob("*.md") if page.parent.name != "reference")
    for name in typer.main.get_command(application()).commands:
        assert f"evenmatch {name}" in pages
        assert f"## evenmatch {name}\n" in (DOCS / "reference" / "commands.md").read_text()


def test_every_error_is_in_the_reference():
    page = (DOCS / "reference" / "errors.md").read_text()
    raised = [name for name, thing in vars(errors).items() if isinstance(thing, type) and issubclass(thing, Exception)]
    assert [name for name in raised if f"`{name}`" not in page] == []


def test_every_column_of_a_match_file_is_described():
    page = (DOCS / "how-to" / "your-matches.md").read_text()
    assert [column for column in COLUMNS if f"`{column}`" not in page] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def headings(page):
    """The anchors of a page's headings, as they are made of them on a site such as GitHub."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.name)
def test_links_to_a_heading_lead_to_one(page):
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", page.read_text()):
        assert anchor in headings(page.parent / target if target else page), (target, anchor)


def test_every_test_that_the_page_of_the_articles_names_exists():
    named = re.findall(r"`(tests/[\w/.]+\.py)(?:::(test_\w+))?`", (DOCS / "articles.md").read_text())
    assert len(named) > 30
    for path, test in named:
        assert (ROOT / path).exists(), path
        assert f"def {test}" in (ROOT / path).read_text(), (path, test)
