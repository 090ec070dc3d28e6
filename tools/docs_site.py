"""Hooks of MkDocs, which builds the documentation site: navigation, lists, links that leave docs/, scripts as files."""

from __future__ import annotations

import hashlib
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

INDEX = "README.md"
ABSOLUTE = ("404.html", "sitemap.xml")  # templates that only work at an address known when they are built
LINK = re.compile(r"\[([^\[\]]+)\]\(([^()#\s]+)(#[^()\s]*)?\)")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")
FIRST_ITEM = re.compile(r"(?:[-*]|1\.) ")  # one that may follow a line of a paragraph
SCRIPT = re.compile(r"<script>(.+?)</script>", re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Derive the navigation from the index."""
    config.nav = navigation((Path(config.docs_dir) / INDEX).read_text())
    return config


def navigation(index: str) -> list[dict[str, object]]:
    """Return one section for each item of the list in the index, with the pages that the item links to."""
    sections: list[dict[str, object]] = [{"Overview": INDEX}]
    for item in index.split("\n- **")[1:]:
        title = item.partition("**")[0]
        pages = [
            {label[:1].upper() + " ".join(label[1:].split()): path}
            for label, path, anchor in LINK.findall(item)
            if path.endswith(".md") and not path.startswith("..") and not anchor
        ]
        if pages:
            sections.append({title: pages})
    return sections


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace links to files outside docs/, which the site does not contain, by their paths in the repository."""
    folder = posixpath.dirname(page.file.src_uri)

    def replace(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[2]))
        if not path.startswith("../"):
            return link[0]
        name = path.removeprefix("../")
        return link[1] if name in link[1] else f"{link[1]} (`{name}`)"

    return LINK.sub(replace, as_python_markdown(markdown).replace("<details>", '<details markdown="1">'))


def as_python_markdown(markdown: str) -> str:
    """Rewrite lists of CommonMark for Python-Markdown: a blank line before a list, four spaces for each level."""
    lines = [""]
    marker = 0  # width of the marker of the current list; 0: outside lists
    in_code, in_item, level, shift = False, False, 0, 0  # in_item: in the first paragraph of an item
    for line in markdown.split("\n"):
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        if not in_code and text:
            is_item = (ITEM if marker else FIRST_ITEM).match(text) is not None
            if is_item and not indent:
                marker = text.index(" ") + 1
            elif not indent and not lines[-1]:
                marker = 0
            if is_item:
                lines += [""] if lines[-1] and (indent < level or not in_item) else []
                level = indent
            in_item = is_item or (in_item and bool(lines[-1]))
            shift = indent // marker * 4 + indent % marker - indent if marker else 0
        in_code ^= text.startswith("```")
        lines.append(" " * shift + line if text else line)
    return "\n".join(lines[1:])


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Move inline scripts into files, since the content security policy of /docs forbids them."""

    def move(script: re.Match[str]) -> str:
        name = f"assets/javascripts/inline-{hashlib.sha256(script[1].encode()).hexdigest()[:12]}.js"
        path = Path(config.site_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script[1])
        return f'<script src="{get_relative_url(name, page.url)}"></script>'

    return SCRIPT.sub(move, output)


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Drop the templates that contain absolute addresses."""
    return "" if template_name in ABSOLUTE else output_content
