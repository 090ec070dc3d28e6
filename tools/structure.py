"""Count what makes the source hard to read: `.venv/bin/python tools/structure.py [folder]`.

Modules, lines, public names, class names in several modules, and words that CONTRIBUTING.md asks to leave out.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "evenmatch"
IDENTIFIERS = ("one", "at", "found", "told", "so", "mine", "kept")
PROSE = {
    "a docstring that begins with who or what": r"^(?:Who|What|Whoever|Whom|Whose)\b",
    "anew": r"\banew\b",
    "likewise": r"\blikewise\b",
    "so many, so much": r"\bso (?:many|much)\b",
    "somebody, nobody": r"\b(?:some|no)body\b",
    "whom, of which": r"\b(?:whom|of which)\b",
    "is told, are told": r"\b(?:is|are) told\b",
    "accepted is, accepted are": r"\baccepted (?:is|are)\b",
}


def texts(path: Path) -> Iterator[str]:
    """The docstrings, other strings and comments of a module."""
    source = path.read_text()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# ")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def names(path: Path) -> Iterator[str]:
    """Every identifier of a module, as often as it stands there."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.NAME:
            yield token.string


def measure(package: Path = PACKAGE) -> dict[str, int]:
    """The counts by name, for all modules of a package."""
    modules = sorted(package.rglob("*.py"))
    classes: Counter[str] = Counter()
    public = 0
    words: Counter[str] = Counter()
    identifiers: Counter[str] = Counter()
    for module in modules:
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith(
                "_"
            ):
                public += 1
                classes[node.name] += isinstance(node, ast.ClassDef)
        written = list(texts(module))
        for word, pattern in PROSE.items():
            words[word] += sum(len(re.findall(pattern, text)) for text in written)
        identifiers.update(name for name in names(module) if name in IDENTIFIERS)
    return {
        "modules": len(modules),
        "lines": sum(len(module.read_text().splitlines()) for module in modules),
        "public classes and functions": public,
        "class names in several modules": sum(count > 1 for count in classes.values()),
        **{f"words: {word}": words[word] for word in PROSE},
        **{f"identifier: {name}": identifiers[name] for name in IDENTIFIERS},
    }


def main() -> None:
    """Print the counts, one per line."""
    counts = measure(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
    for name, count in counts.items():
        print(f"{count:8,}  {name}")


if __name__ == "__main__":
    main()
