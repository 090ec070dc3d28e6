"""Arrays that are packed here are the arrays that PostgreSQL reads."""

import math

import pytest

from evenmatch.ledger import arrays
from evenmatch.service.service import Service
from postgres import postgres  # noqa: F401

WIDE = 2**63 - 1
VALUES = {
    "int8": (arrays.INT8, [0, -1, WIDE, -WIDE - 1]),
    "int8 with nothing": (arrays.INT8, [7, None, -7]),
    "float8": (arrays.FLOAT8, [0.1, -1e300, 5e-324, math.inf]),
    "float8 with nothing": (arrays.FLOAT8, [None, 0.1]),
    "text": (arrays.TEXT, ["", "a,b", '"{}\\', "ünï 🎮 名前", "x" * 256]),
    "text with nothing": (arrays.TEXT, ["NULL", None]),
    "bytea": (arrays.BYTEA, [b"", b"\0\xff", bytes(range(256)) * 20]),
    "bytea with nothing": (arrays.BYTEA, [None, b"a"]),
}


@pytest.fixture(scope="module")
def server_database(postgres):  # noqa: F811
    with Service.open(postgres.fresh_database()) as service:
        yield service.database


@pytest.mark.parametrize("kind", VALUES)
def test_an_array_comes_back_as_it_went(server_database, kind):
    of, values = VALUES[kind]
    with server_database.read() as store:
        assert store.all("SELECT ?", arrays.pack(values, of)) == [(values,)]


def test_a_number_that_is_none_comes_back_as_none(server_database):
    with server_database.read() as store:
        ((found,),) = store.all("SELECT ?", arrays.pack([1.5, math.nan], arrays.FLOAT8))
    assert found[0] == 1.5
    assert math.isnan(found[1])
