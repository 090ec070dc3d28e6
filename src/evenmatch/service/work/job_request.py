"""Requests for jobs, by which equal ones are recognized."""

from __future__ import annotations

from typing import NamedTuple


class JobRequest(NamedTuple):
    """A requested job; one that does the same already is joined instead.

    request  equal for equal requests of a kind on a ladder; empty: all requests of the kind are equal
    as_of    what the result depends on: a finished job with the same value is reused; None: none is
    """

    kind: str
    ladder: str
    request: str = ""
    as_of: str | None = None
