"""What stands in a database, read by plain SQL and not by the code under test."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from crash.numbered_matches import LADDER


@contextmanager
def connect(url: str) -> Iterator[sa.Connection]:
    """A connection of its own, committed at the end."""
    engine = sa.create_engine(url if "://" in url else f"sqlite:///{url}", poolclass=NullPool)
    with engine.begin() as connection:
        yield connection


def select_rows(url: str, sql: str, **values: object) -> Sequence[sa.Row[tuple[object, ...]]]:
    with connect(url) as connection:
        return connection.execute(sa.text(sql), values).all()


def check_events(url: str, acknowledged: set[str], ladder: str = LADDER) -> list[str]:
    """Positions are 1, 2, 3 … as the ladder says, and all acknowledged matches are there once; the kinds in order.

    One statement reads the events and the last position: jobs may still write.
    """
    sql = (
        "SELECT e.position, e.id, e.kind, l.position FROM event e JOIN ladder l ON l.ladder = e.ladder "
        "WHERE l.name = :ladder ORDER BY e.position"
    )
    rows = select_rows(url, sql, ladder=ladder)
    assert [position for position, *_ in rows] == list(range(1, rows[-1][3] + 1))
    ids = [match_id for _, match_id, kind, _ in rows if kind == "match-recorded"]
    assert len(set(ids)) == len(ids)
    assert acknowledged <= set(ids), f"lost: {sorted(acknowledged - set(ids))[:5]}"
    return [kind for _, _, kind, _ in rows]


def dead_rows(url: str) -> dict[str, int]:
    """How many rows of each table belong to generations that nobody reads."""
    return {
        table: int(
            str(
                select_rows(
                    url,
                    f"SELECT COUNT(*) FROM {table} t JOIN ladder l ON l.ladder = t.ladder "
                    "WHERE t.generation <> l.generation",
                )[0][0]
            )
        )
        for table in ("state", "journal", "checkpoint")
    }
