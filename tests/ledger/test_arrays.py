"""Arrays that are packed here are the arrays that PostgreSQL reads."""

import math

import pytest

from evenmatch.ledger import postgres_store
from evenmatch.operations.service import Service
from postgres import postgres  # noqa: F401

WIDE = 2**63 - 1
VALUES = {
    "int8": (postgres_store.INT8, [0, -1, WIDE, -WIDE - 1]),
    "int8 with nothing": (postgres_store.INT8, [7, None, -7]),
    "float8": (postgres_store.FLOAT8, [0.1, -1e300, 5e-324, math.inf]),
    "float8 with nothing": (postgres_store.FLOAT8, [None, 0.1]),
    "text": (postgres_store.TEXT, ["", "a,b", '"{}\\', "ünï 🎮 名前", "x" * 256]),
    "text with nothing": (postgres_store.TEXT, ["NULL", None]),
    "bytea": (postgres_store.BYTEA, [b"", b"\0\xff", bytes(range(256)) * 20]),
    "bytea with nothing": (postgres_store.BYTEA, [None, b"a"]),
}


@pytest.fixture(scope="module")
def server_database(postgres):  # noqa: F811
    with Service.open(postgres.fresh_database()) as service:
        yield service.database


@pytest.mark.parametrize("kind", VALUES)
def test_an_array_comes_back_as_it_went(server_database, kind):
    of, values = VALUES[kind]
    with server_database.read() as store:
        assert store.all("SELECT ?", postgres_store.pack(values, of)) == [(values,)]


def test_a_number_that_is_none_comes_back_as_none(server_database):
    with server_database.read() as store:
        ((found,),) = store.all("SELECT ?", postgres_store.pack([1.5, math.nan], postgres_store.FLOAT8))
    assert found[0] == 1.5
    assert math.isnan(found[1])
