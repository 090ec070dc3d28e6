"""Bring the catalogues of the web site up to date with its texts; with --check only say what is missing or stale."""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import jinja2
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po
from jinja2 import nodes
from jinja2.ext import babel_extract

from evenmatch import systems
from evenmatch.http.problems import TABLE as PROBLEMS
from evenmatch.ladders.descriptions import STATES
from evenmatch.ladders.settings import SETTINGS
from evenmatch.options import options_of
from evenmatch.queues.endings import ENDINGS
from evenmatch.queues.experiment_audit import FIGURES
from evenmatch.systems import wording
from evenmatch.web.pages.lab import KINDS
from evenmatch.web.pages.operate_files import TABLES
from evenmatch.web.pages.operate_queues import MEANT, OPTIONS
from evenmatch.web.pages.players import NOT_PLAYING
from evenmatch.web.view_models import COUNTED, LETTERS

WEB = Path(__file__).parents[1] / "src" / "evenmatch" / "web"
FOLDER = WEB / "texts"
PLURALS = ("plural", "_forms")  # calls in Python, beside `text`
AS_AT_RUN_TIME = {"trimmed": "true", "newstyle_gettext": "true"}

LETTER = re.compile(r"[^\W\d_]")

Message = str | tuple[str, str]  # with its plural, if it has one


def _message(found: object) -> Message | None:
    """What an extractor found: a text, or the arguments of a call; None if they are no literals."""
    texts = [one for one in (found if isinstance(found, tuple | list) else (found,)) if isinstance(one, str)]
    return None if not texts else texts[0] if len(texts) == 1 else (texts[0], texts[1])


def of_templates() -> Iterator[Message]:
    """The messages of the templates: marked ones, and nouns that are counted."""
    environment = jinja2.Environment(extensions=["jinja2.ext.i18n"])
    for path in sorted((WEB / "templates").glob("*.jinja")):
        content = path.read_text("utf-8")
        keywords = ["_", "gettext", "ngettext"]
        for _, _, found, _ in babel_extract(io.BytesIO(content.encode()), keywords, [], AS_AT_RUN_TIME):
            if (message := _message(found)) is not None:
                yield message
        for used in environment.parse(content).find_all(nodes.Filter):
            if used.name == "count" and used.args:
                words = [argument.as_const() for argument in used.args]
                yield f"%(n)s {words[0]}", f"%(n)s {words[1] if len(words) > 1 else words[0] + 's'}"


def of_python() -> Iterator[Message]:
    """The messages of the modules of the web site."""
    for path in sorted(WEB.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call):
                name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                given = [list(_literals(argument)) for argument in call.args]
                if name == "text" and given:
                    yield from given[0]
                elif name in PLURALS and len(given) > 1 and given[0] and given[1]:
                    yield given[0][0], given[1][0]


def _literals(argument: ast.expr) -> Iterator[str]:
    """The texts that an argument may be."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value
    elif isinstance(argument, ast.IfExp):
        yield from _literals(argument.body)
        yield from _literals(argument.orelse)


def of_tables() -> Iterator[str]:
    """The words of tables, which are translated where they are shown: of choices, options and rating systems."""
    yield from (*COUNTED.values(), *LETTERS, *LETTERS.values(), *KINDS.values(), *TABLES.values(), *MEANT.values())
    yield from (NOT_PLAYING, "line", "row", "waiting for its turn", "reading the matches")
    yield from ("it was sent as an unrated match", "the ladder's ratings are being recalculated", "it cannot be rated")
    yield "recorded late, and rated as of the time it was played"
    yield from wording.messages()
    yield from ENDINGS
    yield from (kind.title for _, kind in PROBLEMS)
    yield from (figure.label for figure in FIGURES)
    declared = [*SETTINGS.values(), *OPTIONS.values()]
    for option in declared:
        yield from (str(choice).replace("_", " ") for choice in getattr(option, "choices", ()))
    for name in systems.names():
        system = systems.find(name)
        declared += options_of(system.parameters).values()
        yield from (system.title, system.needs)
        for factor in system.factors:
            yield from (factor.name.replace("_", " "), factor.meaning, *factor.labels)
    for option in declared:
        yield from (option.meaning.rstrip("."), option.accepts)
    for meaning in STATES.values():
        yield meaning or ""


def of_sentences() -> Iterator[str]:
    """The templates of the sentences that the layers below the web site say."""
    for path in sorted(WEB.parent.rglob("*.py")):
        content = path.read_text("utf-8")
        for call in ast.walk(ast.parse(content)) if "Sentence(" in content else ():
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Sentence":
                yield from _literals(call.args[0])


def template() -> Catalog:
    """All messages, without translations."""
    catalog = Catalog()
    for message in (*of_templates(), *of_python()):
        catalog.add(message)
    for message in (*of_tables(), *of_sentences()):
        if LETTER.search(message) and message not in catalog:
            catalog.add(message)
            catalog[message].flags.discard("python-format")  # shown as it is
    return catalog


def updated(content: bytes, language: str, messages: Catalog) -> bytes:
    """A catalogue with these messages: those that it translates already keep their translation."""
    catalog = read_po(io.BytesIO(content), locale=language.replace("-", "_"))
    catalog.update(messages, no_fuzzy_matching=True)
    body = io.BytesIO()
    write_po(body, catalog, width=0, no_location=True, omit_header=True, sort_output=True, ignore_obsolete=True)
    header = {
        "Language": language,
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": catalog.plural_forms,
    }
    lines = ['msgid ""', 'msgstr ""', *(f'"{name}: {value}\\n"' for name, value in header.items()), "", ""]
    return "\n".join(lines).encode() + body.getvalue()


def main(*arguments: str) -> int:
    """Write every catalogue of the package, or check it; further arguments: languages to begin."""
    messages, complaints = template(), []
    new = [FOLDER / f"{language}.po" for language in arguments if not language.startswith("-")]
    for path in [*sorted(FOLDER.glob("*.po")), *(path for path in new if not path.exists())]:
        before = path.read_bytes() if path.exists() else b""
        after = updated(before, path.stem, messages)
        if after != before and "--check" in arguments:
            complaints.append(f"{path.name} is out of date: run python tools/texts.py")
        elif after != before:
            path.write_bytes(after)
        for message in read_po(io.BytesIO(after)):
            forms = [message.string] if isinstance(message.string, str) else message.string or [""]
            complaints += [] if all(forms) else [f"{path.name} does not translate {message.id!r}"]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
