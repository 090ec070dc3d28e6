"""The documentation site, built as `make docs` builds it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def build_docs(folder, config=ROOT / "mkdocs.yml"):
    """Build the site into a folder; a broken link is an error. Returns the finished process.

    Skips the test if the generator is not installed.
    """
    if importlib.util.find_spec("material") is None:
        pytest.skip("MkDocs is not installed; `make docs` installs it")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", config, "--site-dir", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False)
