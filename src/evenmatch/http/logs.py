"""Structured logs: one JSON line for each request and event, to standard error. Secrets are never logged."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from evenmatch.http.options import Options

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
log: structlog.typing.FilteringBoundLogger = structlog.get_logger("evenmatch")


def begin(options: Options) -> None:
    """Configure logging by the options. Libraries log in the same format.

    With several serving processes, each line names its process.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if options.workers > 1:
        shared.append(_name_process)
    renderer: structlog.typing.Processor = structlog.processors.JSONRenderer(ensure_ascii=False)
    if options.log_format == "text":
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    level = LEVELS[options.log_level]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(
            sys.stderr
        ),  # writes each line at once, since several processes share the stream
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.INFO))
    for library in ("httpx", "httpcore", "uvicorn.access", "uvicorn.error", "alembic"):
        logging.getLogger(library).setLevel(logging.WARNING)


def _name_process(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    event["process"] = os.getpid()
    return event


LINE_EVERY = 60.0  # seconds between two lines of a repeated event


@dataclass
class _Repeated:
    """Events that were counted since the last line: their number, and the fields of the latest one."""

    since: float
    count: int
    fields: dict[str, object]


class RepeatedLog:
    """Logs frequent events: the first one at once, then one line per minute with a count.

    Thread-safe. Call `flush` every few seconds, and at the end.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._events: dict[str, _Repeated] = {}

    def warning(self, event: str, **fields: object) -> None:
        """Log an event, or count it if it was logged in the last minute. The fields are an example."""
        with self._guard:
            repeated = self._events.get(event)
            if repeated is not None:
                repeated.count += 1
                repeated.fields = fields
                return
            self._events[event] = _Repeated(self._clock(), 0, {})
        log.warning(event, count=1, **fields)

    def flush(self, *, everything: bool = False) -> None:
        """Log the events that were counted for at least a minute; with `everything`, all of them."""
        now = self._clock()
        with self._guard:
            due = {name: seen for name, seen in self._events.items() if everything or now - seen.since >= LINE_EVERY}
            for name, seen in due.items():
                if seen.count and not everything:
                    self._events[name] = _Repeated(now, 0, {})
                else:
                    del self._events[name]
        for name, seen in due.items():
            if seen.count:
                log.warning(name, count=seen.count, seconds=round(now - seen.since), **seen.fields)


repeated = RepeatedLog()


class RepeatedWarnings(logging.Filter):
    """Counts a library's warnings about its clients instead of logging each. Records with a traceback pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged as it is."""
        if record.levelno != logging.WARNING or record.exc_info:
            return True
        repeated.warning(record.getMessage()[:200], library=record.name)
        return False
