"""Structured logs: a line of JSON for each request and event, to standard error. Secrets never get so far."""

from __future__ import annotations

import logging
import sys

import structlog

from evenmatch.http.options import Options

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
log: structlog.typing.FilteringBoundLogger = structlog.get_logger("evenmatch")


def begin(options: Options) -> None:
    """Log as the options say; what libraries log goes the same way."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: structlog.typing.Processor = structlog.processors.JSONRenderer(ensure_ascii=False)
    if options.log_format == "text":
        last = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    level = LEVELS[options.log_level]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                last,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.INFO))
    for chatty in ("httpx", "httpcore", "uvicorn.access", "uvicorn.error", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
