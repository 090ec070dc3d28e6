"""A JSON document as a file."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from evenmatch.errors import UsageError


def write_json(document: object, path: Path) -> None:
    """Write a document, whole or not at all. Raises UsageError where the path cannot be written."""
    if path.suffix.lower() != ".json":
        raise UsageError(f"{path}: suffix {path.suffix!r}; accepted is .json")
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    draft: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        draft = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)
