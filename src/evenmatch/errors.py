"""All errors that evenmatch raises deliberately. Any other exception is a bug."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Future


class EvenmatchError(Exception):
    """Base class of all evenmatch errors."""

    # By default an exception is pickled as a call of its class with `args`, which these constructors do not accept.
    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[EvenmatchError], arguments: tuple[object, ...], state: dict[str, object]) -> EvenmatchError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


class UsageError(EvenmatchError):
    """An invalid name, option or value; the command line exits with status 2."""


def similar_names(name: str, known: Iterable[str], count: int = 1) -> list[str]:
    """The known names most similar to `name`, ignoring case, best match first."""
    folded: dict[str, str] = {}
    for other in known:
        folded.setdefault(other.casefold(), other)
    return [folded[match] for match in get_close_matches(name.casefold(), folded, n=count)]


class UnknownNameError(UsageError):
    """A system, preset, parameter, ladder or match that does not exist; the message lists the known names.

    close  the most similar known name; None if there is none
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        self.close = next(iter(similar_names(name, self.known)), None)
        hint = f" (did you mean {self.close!r}?)" if self.close else ""
        shown = ", ".join(self.known[:20]) + (", …" if len(self.known) > 20 else "")
        listing = f"; known: {shown}" if shown else ""
        thing, of, owner = kind.partition(" of ")
        label = f"{thing} {name!r}{of}{owner}" if "'" in owner else f"{kind} {name!r}"  # of ladder 'duel', of elo
        super().__init__(f"unknown {label}{hint}{listing}")


class BadParameterError(UsageError):
    """A parameter value outside the allowed range."""


class KernelError(UsageError):
    """A rating system of your own does not compile or its methods fail; the message names file and line.

    details  the compiler's own report
    """

    def __init__(self, message: str, details: str = "") -> None:
        self.details = details
        super().__init__(message)


class MissingExtraError(UsageError):
    """An optional part of evenmatch needs a missing library; the message names the extra that installs it."""

    def __init__(self, part: str, extra: str, library: str) -> None:
        self.extra, self.library = extra, library
        super().__init__(
            f"{part} needs {library}, which is not installed; to install it: pip install 'evenmatch[{extra}]'"
        )


@contextmanager
def needing(extra: str, part: str) -> Iterator[None]:
    """Wrap the imports of an optional part of evenmatch; a missing library raises MissingExtraError."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in ("", "evenmatch"):
            raise
        raise MissingExtraError(part, extra, library) from None


class InputError(EvenmatchError):
    """Invalid contents of a file, a data frame or a match; the command line exits with status 1."""


class MissingColumnsError(InputError):
    """A file or data frame lacks columns that are needed; another form of file may hold the same matches."""


@dataclass(frozen=True, slots=True)
class RowProblem:
    """One reason why a match cannot be read or rated, with its location."""

    line: int | None  # counted from 1: a line of a file or a row of a table, see `unit`
    match_id: str | None
    reason: str
    unit: str = "line"

    def __str__(self) -> str:
        where = [] if self.line is None else [f"{self.unit} {self.line}"]
        if self.match_id is not None:
            where.append(f"match {self.match_id!r}")
        return f"{', '.join(where) or 'input'}: {self.reason}"


_VALUES = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\b\d[\d.,:T+-]*(?:e[+-]?\d+)?Z?\b|\b(?:nan|inf)\b""")
LISTED_SINGLY = 20  # up to this many problems are listed one by one; more are grouped by kind
EXAMPLES_PER_GROUP = 3  # problems shown per group
MATCH_IDS_SHOWN = 10  # match ids shown


@dataclass(frozen=True)
class ProblemGroup:
    """Problems of one kind; in `reason`, … stands for the values that differ."""

    reason: str
    problems: tuple[RowProblem, ...]

    @property
    def matches(self) -> list[str]:
        """The ids of the matches concerned, without duplicates."""
        return matches_of(self.problems)


def group_problems(problems: Iterable[RowProblem]) -> list[ProblemGroup]:
    """Group problems by column and reason, the most frequent first."""
    groups: dict[str, list[RowProblem]] = {}
    for problem in problems:
        fault, semicolon, expected = problem.reason.partition(";")
        groups.setdefault(_VALUES.sub("…", fault) + semicolon + expected, []).append(problem)
    grouped = [ProblemGroup(reason, tuple(members)) for reason, members in groups.items()]
    return sorted(grouped, key=lambda group: -len(group.problems))


def matches_of(problems: Iterable[RowProblem]) -> list[str]:
    """The ids of the matches with these problems, in order, without duplicates."""
    return list(dict.fromkeys(problem.match_id for problem in problems if problem.match_id is not None))


def problem_lines(problems: Sequence[RowProblem]) -> list[str]:
    """Problems as lines of text: one line each if there are few, otherwise groups with examples and match ids."""
    if len(problems) <= LISTED_SINGLY:
        return [f"  {problem}" for problem in problems]
    lines = []
    for group in group_problems(problems):
        lines.append(f"  {len(group.problems):,} × {group.reason}")
        lines += [f"      {str(problem).partition(';')[0]}" for problem in group.problems[:EXAMPLES_PER_GROUP]]
    ids = matches_of(problems)
    more = f", and {len(ids) - MATCH_IDS_SHOWN:,} more" if len(ids) > MATCH_IDS_SHOWN else ""
    return [*lines, f"  bad matches: {', '.join(map(repr, ids[:MATCH_IDS_SHOWN]))}{more}"] if ids else lines


class BadRowsError(InputError):
    """Some rows cannot be read or rated; `problems` lists them all. The valid rows were not rated or added either.

    all_bad  every match has a bad row, so skipping bad matches would leave nothing
    outcome  what happened to the operation, for the message; callers may set it
    of       what one bad row invalidates, for the message; callers may set it
    advice   what may help, for the message; callers may set it
    """

    outcome = "nothing was rated"
    of = "match"
    advice = ""

    def __init__(self, source: str, problems: Sequence[RowProblem], *, all_bad: bool = False) -> None:
        self.source, self.problems, self.all_bad = source, tuple(problems), all_bad
        super().__init__("\n".join((f"{source}: {self.count}", *problem_lines(self.problems))))

    @property
    def count(self) -> str:
        """The number of problems as text: "3 problems"."""
        return f"{len(self.problems):,} problem{'' if len(self.problems) == 1 else 's'}"


class RatingRangeError(InputError):
    """A rating left the range in which the system can represent it exactly, or became infinite."""


class ConflictError(InputError):
    """An id reused with different content, or a correction that contradicts the ledger. Nothing was changed."""


class StillRunningError(ConflictError):
    """A request with this Idempotency-Key is still running. `retry_after`: seconds until the next attempt."""

    def __init__(self, message: str, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class JobCancelledError(ConflictError):
    """A job was cancelled before it changed anything."""


class JobStoppedError(JobCancelledError):
    """A job was stopped together with its process, before it changed anything."""


class NotYetError(ConflictError):
    """Not allowed yet: the player has a penalty or is in a match. `until`: microseconds since the epoch."""

    def __init__(self, message: str, until: int) -> None:
        self.until = until
        super().__init__(message)


class AccessError(EvenmatchError):
    """Authentication failed: key or token missing, invalid, revoked or expired."""


class ForbiddenError(AccessError):
    """The caller is authenticated but lacks the permission."""


class HostError(AccessError):
    """A browser reached the service under a host name that it does not accept."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"this service does not answer browsers under the name {host[:100]!r}; use its address, or ask the "
            "operator to add the name to EVENMATCH_HOSTS"
        )


class RateLimitError(AccessError):
    """Too many requests. `retry_after`: seconds until the next request is allowed."""

    def __init__(self, message: str, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class BusyError(EvenmatchError):
    """Too much work of this kind is waiting already. `retry_after`: seconds to wait before trying again."""

    def __init__(self, message: str, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class IssuerError(BusyError):
    """An identity provider does not answer as OpenID Connect, OAuth or OpenID require."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 10)


class StoreError(EvenmatchError):
    """The database cannot be opened, read or written; the command line exits with status 3.

    Writes are atomic: anything not acknowledged can be sent again under the same id.
    """


class UnansweredError(StoreError):
    """A request was not answered in time. `work`: done once the thread that carries the request out has ended."""

    def __init__(self, message: str, work: Future[Any]) -> None:
        self.work = work
        super().__init__(message)


class TransactionTimeoutError(StoreError):
    """The database server ended a transaction that was idle for too long; nothing in it was saved."""


class DamageError(StoreError):
    """Stored data is damaged. `evenmatch verify` lists the damage and says how to repair it."""


class FollowerError(EvenmatchError):
    """A write was sent to a read-only process. writes_at: the address that accepts writes; empty if unknown."""

    def __init__(self, writes_at: str) -> None:
        self.writes_at = writes_at
        where = f"send it to {writes_at}" if writes_at else "send it to a process that serves the primary database"
        super().__init__(f"this process is read-only, because EVENMATCH_FOLLOWER is set; {where}")


class SecretError(StoreError):
    """The master secret is missing, too short, or not the one that encrypted the database's secrets."""


class ClusterError(EvenmatchError):
    """A cluster is unreachable, a worker is incompatible or workers were lost too often; exits with status 4.

    Partial results are never marked complete.
    """


class EvenmatchWarning(UserWarning):
    """A problem that was reported but did not stop the operation."""
