"""The fingerprint of a system: what changes it, and what does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenmatch import systems
from evenmatch.systems.fingerprint import fingerprint

OWN_FILE = Path(__file__).parents[2] / "docs" / "how-to" / "league_points.py"
PROGRAM = """
from evenmatch.systems import find
from evenmatch.systems.fingerprint import fingerprint
print(fingerprint(find("mine.py")))
"""
HELPER = """from evenmatch.systems.system import kernel

HALF = 0.5


@kernel
def lift(x):
    return x + HALF
"""
# The same code: a docstring for the module, the function and the constant, a comment, other line breaks and quotes.
REWORDED = '''"""Helps."""
from evenmatch.systems.system import (
    kernel,
)

HALF = 0.50
"""A half."""

@kernel
def lift(x):
    """Lift it."""
    return (x + HALF)  # a little
'''


@pytest.fixture
def fingerprint_with(tmp_path):
    """A function (helper, MORE): the fingerprint of a user's system that calls this helper module, by a new process."""
    text = OWN_FILE.read_text().replace("(record.rating + 1.5)", "(record.rating + prior.lift(1.0) + MORE)")
    text = text.replace("import numpy as np", "import numpy as np\nimport prior\nfrom more import MORE")
    (tmp_path / "mine.py").write_text(text)

    def run(helper, more=0.0):
        (tmp_path / "prior.py").write_text(helper)
        (tmp_path / "more.py").write_text(f"MORE = {more}\n")
        environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        command = [sys.executable, "-B", "-c", PROGRAM]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return ended.stdout.strip()

    return run


def test_docstrings_comments_and_formatting_of_another_module_do_not_count(fingerprint_with):
    first = fingerprint_with(HELPER)
    assert len(first) == 64
    assert fingerprint_with(HELPER) == first
    assert fingerprint_with(REWORDED) == first


def test_a_changed_constant_or_statement_of_another_module_counts(fingerprint_with):
    first = fingerprint_with(HELPER)
    assert fingerprint_with(HELPER.replace("HALF = 0.5", "HALF = 0.6")) != first
    assert fingerprint_with(HELPER.replace("x + HALF", "x - HALF")) != first
    assert fingerprint_with(HELPER.replace("    return", "    x = x * 2.0\n    return")) != first
    assert fingerprint_with(HELPER, more=0.1) != first


def test_a_users_file_goes_by_its_code_and_not_by_its_place_or_its_docstrings(tmp_path):
    text = OWN_FILE.read_text()
    texts = {
        "a": text,
        "b": text,
        "docstring": text.replace('"""', '"""A system: ', 1),
        "comment": f"{text}\n# The end.\n",
        "constant": text.replace("+ 1.5", "+ 2.5"),
        "statement": text.replace("+ 1.5", "- 1.5"),
    }
    known = {}
    for name, contents in texts.items():
        assert name == "b" or list(texts.values()).count(contents) == 1 + (name == "a")
        (tmp_path / f"{name}.py").write_text(contents)
        known[name] = fingerprint(systems.find(str(tmp_path / f"{name}.py")))
    assert known["a"] == known["b"] == known["docstring"] == known["comment"]
    assert len({known["a"], known["constant"], known["statement"]}) == 3


def test_every_system_has_a_fingerprint_of_its_own():
    names = systems.names()
    assert len({fingerprint(systems.find(name)) for name in names}) == len(names)
