"""The tables could be spread over several servers by ladder (docs/scale.md): their keys and joins allow it."""

import ast
import re
from pathlib import Path

import pytest
import sqlalchemy as sa

import evenmatch.ledger
from evenmatch.ledger import live_schema  # noqa: F401 - its tables join the others
from evenmatch.ledger.schema import METADATA

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
DISTRIBUTED = re.findall(r"create_distributed_table\('(\w+)', 'ladder'", PAGE)
REFERENCE = re.findall(r"create_reference_table\('(\w+)'\)", PAGE)
SOURCES = sorted(Path(evenmatch.ledger.__file__).parent.rglob("*.py"))
# `JOIN table alias ON condition`, up to the next join or clause
JOIN = re.compile(
    r"\bJOIN (\w+)(?: (?!ON\b)(\w+))? ON (.*?)(?=\bJOIN\b|\bLEFT\b|\bWHERE\b|\bORDER\b|\bGROUP\b|$)", re.S
)
FROM = re.compile(r"\bFROM (\w+)(?: (?!JOIN\b|LEFT\b|WHERE\b|ON\b)(\w+))?")


def statements():
    """Every text with a join in the modules of the ledger, with what f-strings insert left out."""
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
                yield file.name, "".join(parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n\n" not in node.value:
                yield file.name, node.value


def test_the_page_places_every_table_once_and_the_large_ones_by_ladder():
    assert len(DISTRIBUTED) == len(set(DISTRIBUTED))
    assert {"event", "appearance", "state", "journal", "checkpoint"} <= set(DISTRIBUTED)
    assert set(DISTRIBUTED).isdisjoint(REFERENCE)
    assert {*DISTRIBUTED, *REFERENCE} == set(METADATA.tables)


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_every_unique_constraint_and_key_of_a_distributed_table_contains_the_ladder(name):
    table = METADATA.tables[name]
    assert isinstance(table.c.ladder.type, sa.BigInteger)
    unique = [one for one in table.constraints if isinstance(one, sa.UniqueConstraint | sa.PrimaryKeyConstraint)]
    unique += [index for index in table.indexes if index.unique]
    assert unique
    for one in unique:
        assert "ladder" in {column.name for column in one.columns}


def test_distributed_tables_are_joined_by_ladder():
    """With one another: every join to one from another compares both ladders; to reference tables any will do."""
    seen = 0
    for file, text in statements():
        places = {alias or name: name for name, alias in FROM.findall(text)}
        for name, alias, condition in JOIN.findall(text):
            here = alias or name
            others = {place for place, of in places.items() if of in DISTRIBUTED}
            if name in DISTRIBUTED and others:
                pairs = {frozenset(pair) for pair in re.findall(r"(\w+)\.ladder = (\w+)\.ladder", condition)}
                assert any(frozenset((here, other)) in pairs for other in others), f"{file}: {text}"
                seen += 1
            places[here] = name
    assert seen >= 5  # the expressions above still find statements
