"""Writing JSON files."""

from __future__ import annotations

import json
from pathlib import Path

from evenmatch.errors import UsageError
from evenmatch.whole_file import whole_file


def write_json(document: object, path: Path) -> None:
    """Write a .json file, completely or not at all. Raises UsageError if the path cannot be written."""
    if path.suffix.lower() != ".json":
        raise UsageError(f"{path}: suffix {path.suffix!r}; expected .json")
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")
