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


def stored_events(url: str, ladder: str = LADDER) -> list[tuple[int, str, str]]:
    """(position, id, kind) of a ladder's events, in order."""
    sql = (
        "SELECT e.position, e.id, e.kind FROM event e JOIN ladder l ON l.ladder = e.ladder "
        "WHERE l.name = :ladder ORDER BY e.position"
    )
    return [
        (int(position), str(match_id), str(kind)) for position, match_id, kind in select_rows(url, sql, ladder=ladder)
    ]


def check_events(url: str, acknowledged: set[str], ladder: str = LADDER) -> list[str]:
    """Positions are 1, 2, 3 … as the ladder says, and all acknowledged matches are there once; the kinds in order."""
    found = stored_events(url, ladder)
    last = select_rows(url, "SELECT position FROM ladder WHERE name = :ladder", ladder=ladder)[0][0]
    assert [position for position, _, _ in found] == list(range(1, last + 1))
    ids = [match_id for _, match_id, kind in found if kind == "match-recorded"]
    assert len(set(ids)) == len(ids)
    assert acknowledged <= set(ids), f"lost: {sorted(acknowledged - set(ids))[:5]}"
    return [kind for _, _, kind in found]


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
