"""The guide for contributors names every layer, and says how to add each kind of thing."""

import re
from pathlib import Path

from test_layers import BELOW

ROOT = Path(__file__).parents[1]
KINDS = (
    "a rating system",
    "an option of the matchmaker",
    "a setting of a ladder",
    "a command",
    "an endpoint",
    "a page",
)


def test_the_guide_says_how_to_add_each_kind_of_thing_with_a_list_of_files():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for kind in (*KINDS, "an event of the ledger"):
        section = text.partition(f"\n### {kind}\n")[2].partition("\n### ")[0]
        assert len(re.findall(r"`(?:src|tests|docs)/", section)) >= 3, kind


def test_the_guide_names_every_layer():
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## The layers")[2].partition("## How we test")[0]
    named = set(re.findall(r"^\| ((?:`\w+`(?:, )?)+)", table, re.M))
    assert {name for row in named for name in re.findall(r"\w+", row)} == set(BELOW) - {"__main__"}
