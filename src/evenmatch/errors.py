"""Every error evenmatch raises on purpose. Anything else is a bug."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches


class EvenmatchError(Exception):
    """The root: catching it catches every error raised on purpose."""


class UsageError(EvenmatchError):
    """A wrong name, option or value; the command line exits with 2."""


def similar_names(name: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Those of the known names that are most like this one, whatever their case; the most similar first."""
    folded: dict[str, str] = {}
    for other in known:
        folded.setdefault(other.casefold(), other)
    return [folded[found] for found in get_close_matches(name.casefold(), folded, n=count)]


class UnknownNameError(UsageError):
    """A system, preset, parameter, ladder or match that does not exist; names those that do.

    close  the known name that is most like it; None where none is
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        self.close = next(iter(similar_names(name, self.known)), None)
        hint = f" (did you mean {self.close!r}?)" if self.close else ""
        shown = ", ".join(self.known[:20]) + (", …" if len(self.known) > 20 else "")
        known_ones = f"; known: {shown}" if shown else ""
        what, of, whose = kind.partition(" of ")
        named = f"{what} {name!r}{of}{whose}" if "'" in whose else f"{kind} {name!r}"  # of ladder 'duel', of elo
        super().__init__(f"unknown {named}{hint}{known_ones}")


class BadParameterError(UsageError):
    """A parameter's value outside what it accepts."""


class MissingExtraError(UsageError):
    """An optional part of evenmatch needs a library that is not installed; names the extra that installs it."""

    def __init__(self, part: str, extra: str, library: str) -> None:
        self.extra, self.library = extra, library
        super().__init__(
            f"{part} needs {library}, which is not installed; to install it: pip install 'evenmatch[{extra}]'"
        )


@contextmanager
def needing(extra: str, part: str) -> Iterator[None]:
    """Import what an optional part of evenmatch needs. Raises MissingExtraError where a library of its is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in ("", "evenmatch"):
            raise
        raise MissingExtraError(part, extra, library) from None


class InputError(EvenmatchError):
    """The contents of a file, a data frame or a match; the command line exits with 1."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why a match cannot be read or rated, and where it stands."""

    line: int | None  # counted from 1: the line of a file, the row of a table (`unit` says which)
    match_id: str | None
    reason: str
    unit: str = "line"

    def __str__(self) -> str:
        where = [] if self.line is None else [f"{self.unit} {self.line}"]
        if self.match_id is not None:
            where.append(f"match {self.match_id!r}")
        return f"{', '.join(where) or 'input'}: {self.reason}"


_VALUES = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\b\d[\d.,:T+-]*(?:e[+-]?\d+)?Z?\b|\b(?:nan|inf)\b""")
LISTED = 20  # problems that are listed one by one; of more, those of a kind are told together
EXAMPLES = 3
NAMED = 10  # matches


@dataclass(frozen=True)
class ProblemGroup:
    """Problems of one kind: `reason` has … where they differ in a value."""

    reason: str
    problems: tuple[Problem, ...]

    @property
    def matches(self) -> list[str]:
        """The ids of their matches, each once."""
        return matches_of(self.problems)


def group_problems(problems: Iterable[Problem]) -> list[ProblemGroup]:
    """Problems by column and reason, the most frequent first."""
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        said, semicolon, expected = problem.reason.partition(";")
        groups.setdefault(_VALUES.sub("…", said) + semicolon + expected, []).append(problem)
    listed = [ProblemGroup(reason, tuple(found)) for reason, found in groups.items()]
    return sorted(listed, key=lambda group: -len(group.problems))


def matches_of(problems: Iterable[Problem]) -> list[str]:
    """The ids of the matches that have these problems, each once, in order."""
    return list(dict.fromkeys(problem.match_id for problem in problems if problem.match_id is not None))


def problem_lines(problems: Sequence[Problem]) -> list[str]:
    """Problems for people: each in a line where they are few, else by kind with examples; and their matches."""
    if len(problems) <= LISTED:
        return [f"  {problem}" for problem in problems]
    lines = []
    for group in group_problems(problems):
        lines.append(f"  {len(group.problems):,} × {group.reason}")
        lines += [f"      {str(problem).partition(';')[0]}" for problem in group.problems[:EXAMPLES]]
    ids = matches_of(problems)
    more = f", and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
    return [*lines, f"  bad matches: {', '.join(map(repr, ids[:NAMED]))}{more}"] if ids else lines


class BadRowsError(InputError):
    """Rows that cannot be read or rated: all of them, in `problems`. None of the others was rated or added either.

    `all_bad` says that without them nothing would be left. Whoever passes it on may say what became of the work in
    `outcome`, and in `of` what a bad row spoils.
    """

    outcome = "nothing was rated"
    of = "match"

    def __init__(self, source: str, problems: Sequence[Problem], *, all_bad: bool = False) -> None:
        self.source, self.problems, self.all_bad = source, tuple(problems), all_bad
        super().__init__("\n".join((f"{source}: {self.count}", *problem_lines(self.problems))))

    @property
    def count(self) -> str:
        """How many problems there are, in words."""
        return f"{len(self.problems):,} problem{'' if len(self.problems) == 1 else 's'}"


class RatingRangeError(InputError):
    """A rating left the range in which the system's numbers are exact or finite."""


class ConflictError(InputError):
    """The same id with other content, or a correction that contradicts what the ledger holds. Nothing was changed."""


class NotYetError(ConflictError):
    """What may be done later: a player waits out a penalty, or is in a match. `until`: microseconds since the epoch."""

    def __init__(self, message: str, until: int) -> None:
        self.until = until
        super().__init__(message)


class AccessError(EvenmatchError):
    """Nobody who is known asks: no key or token, or one that is wrong, revoked or expired."""


class ForbiddenError(AccessError):
    """Somebody who is known asks for what they may not do."""


class RateLimitError(AccessError):
    """Somebody asks too often. `retry_after`: seconds until they may again."""

    def __init__(self, message: str, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class StoreError(EvenmatchError):
    """The database cannot be opened, read or written; the command line exits with 3.

    Nothing was half done: what was not acknowledged can be sent again under the same id.
    """


class EvenmatchWarning(UserWarning):
    """Something that was noticed and did not stop the work."""
