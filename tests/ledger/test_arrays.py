"""Arrays and rows that are packed here are those that PostgreSQL reads."""

import math

import numpy as np
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


TYPES = {arrays.INT8: "bigint", arrays.FLOAT8: "double precision", arrays.TEXT: "text", arrays.BYTEA: "bytea"}


def copied(store, same, columns, kinds, at_once):
    """What a table has after COPY of these rows, in their order."""
    names = [f"c{number}" for number in range(len(kinds))]
    listed = ", ".join(f"{name} {TYPES[kind]}" for name, kind in zip(names, kinds, strict=True))
    table = f"copied{'_'.join(str(oid) for _, oid in kinds)}"  # statements are prepared for the types of one
    store.run(f"CREATE TEMPORARY TABLE {table} (row bigserial, {listed}) ON COMMIT DROP")
    driver = store.connection.connection.driver_connection
    into = f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)"
    with driver.cursor() as cursor, cursor.copy(into) as copy:
        for data in arrays.copy_data(same, columns, kinds, at_once):
            copy.write(data)
    return store.all(f"SELECT {', '.join(names)} FROM {table} ORDER BY row")


@pytest.mark.parametrize("at_once", [1, 3, 100])
@pytest.mark.parametrize("kind", VALUES)
def test_rows_for_copy_come_back_as_they_went(server_database, kind, at_once):
    of, values = VALUES[kind]
    hashes = np.frombuffer(bytes(range(16 * len(values))), "V16")
    numbers = np.arange(len(values)) - 2
    kinds = [arrays.INT8, arrays.TEXT, arrays.BYTEA, of, arrays.BYTEA, arrays.INT8]
    with server_database.write() as store:
        rows = copied(store, [7, "same 名", None], [values, hashes, numbers], kinds, at_once)
    expected = [
        (7, "same 名", None, value, bytes(range(16 * row, 16 * row + 16)), row - 2) for row, value in enumerate(values)
    ]
    assert rows == expected
