"""The documentation site: its links, its navigation, and what its pages load. Skipped where MkDocs is not installed."""

import re
import shutil
from html.parser import HTMLParser

import pytest

from built_docs import ROOT, build_docs
from evenmatch import errors

pytestmark = pytest.mark.slow
LOADING = {"script", "link", "img", "iframe", "source", "object", "embed", "video", "audio", "form"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs") / "site"
    finished = build_docs(folder)
    assert finished.returncode == 0, finished.stderr
    return folder


class Loaded(HTMLParser):
    """What a page loads, and the scripts and handlers that stand in the page itself."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.inline = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in LOADING:
            names = ("src", "href", "srcset", "action", "data", "poster")
            self.addresses += [given[name] for name in names if given.get(name)]
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.inline.append(tag)
        self.inline += [name for name in given if name.startswith("on")]


def test_every_page_is_built_and_the_index_leads_to_it(built):
    index = (built / "index.html").read_text()
    navigation = index[index.index('<nav class="md-nav md-nav--primary"') :]
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix("")
        if str(name) != "README":
            assert (built / name / "index.html").is_file()
            assert f'href="{name}/"' in navigation


def test_no_page_loads_anything_from_another_host_or_has_a_script_of_its_own(built):
    pages = list(built.rglob("*.html"))
    assert len(pages) >= 50
    for page in pages:
        loaded = Loaded(page.read_text())
        assert loaded.addresses
        assert [address for address in loaded.addresses if re.match(r"\w+:|//", address)] == []
        assert loaded.inline == []
    for sheet in built.rglob("*.css"):
        assert re.findall(r"url\(['\"]?(?:https?:)?//[^)]*\)|@import[^;]*", sheet.read_text()) == []


def test_a_link_that_leaves_the_documentation_becomes_a_path_of_the_repository(built):
    page = (built / "index.html").read_text()
    assert "contributing (<code>CONTRIBUTING.md</code>)" in page
    assert "../CONTRIBUTING.md" not in page


def test_a_notebook_is_linked_as_a_file(built):
    assert 'href="notebooks/simulate-a-queue.ipynb"' in (built / "index.html").read_text()
    assert (built / "notebooks" / "simulate-a-queue.ipynb").is_file()


def test_no_list_or_table_is_left_as_text(built):
    for page in built.rglob("*.html"):
        article = re.search(r"<article.*?</article>", page.read_text(), re.DOTALL)[0]
        text = re.sub(r"<pre.*?</pre>", "", article, flags=re.DOTALL)
        assert re.findall(r"^ *(?:<p>)?(?:[-*] |\||```).*", text, re.MULTILINE) == []


def test_the_list_of_errors_nests_as_the_classes_do(built):
    class Depths(HTMLParser):
        def __init__(self):
            super().__init__()
            self.depth, self.found = 0, {}

        def handle_starttag(self, tag, attrs):
            self.depth += tag == "ul"

        def handle_endtag(self, tag):
            self.depth -= tag == "ul"

        def handle_data(self, data):
            if re.fullmatch(r"\w+(Error|Warning)", data):
                self.found.setdefault(data, self.depth)

    page = (built / "reference" / "errors" / "index.html").read_text()
    nested = Depths()
    nested.feed(re.search(r"<article.*?</article>", page, re.DOTALL)[0])
    for name, depth in nested.found.items():
        if hasattr(errors, name):
            bases = getattr(errors, name).__mro__
            assert depth == len([one for one in bases if one.__module__ == errors.__name__]), name
    assert {"EvenmatchError", "InputError", "StillRunningError"} <= nested.found.keys()


def test_broken_links_fail_the_build(tmp_path):
    for name in ("docs", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    with (tmp_path / "docs" / "tutorial.md").open("a") as page:
        page.write("\n[page](how-to/gone.md) [heading](how-to/live.md#gone)\n")
    finished = build_docs(tmp_path / "site", tmp_path / "mkdocs.yml")
    assert finished.returncode != 0
    assert "contains a link 'how-to/gone.md', but the target" in finished.stderr
    assert "'how-to/live.md' does not contain an anchor '#gone'" in finished.stderr
