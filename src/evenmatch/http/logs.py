"""Structured logs: one JSON line for each request and event, to standard error. Secrets are never logged."""

from __future__ import annotations

import logging
import os
import sys

import structlog

from evenmatch.http.options import Options

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
log: structlog.typing.FilteringBoundLogger = structlog.get_logger("evenmatch")


def begin(options: Options) -> None:
    """Configure logging as the options say; log records of libraries use the same format.

    Each line of one of several serving processes names its process.
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
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # a line in one piece: several processes may write
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
