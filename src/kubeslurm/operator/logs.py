"""Logs: one JSON object per line in a cluster, coloured text in a terminal."""

import logging
import sys
from typing import Any

import structlog

from kubeslurm.engine.context import add_pass

# They report every request at info; the interesting ones are logged by us.
NOISY = ("asyncio", "hpack", "httpcore2", "httpx2", "uvicorn", "uvicorn.access", "uvicorn.error")


def configure(level: str, form: str) -> None:
    """Sets up structlog, and formats the logs of libraries the same way."""
    shared: list[Any] = [
        add_pass,
        structlog.stdlib.add_logger_name,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers[:] = [_handler(shared, form)]
    root.setLevel(level.upper())
    for name in NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def _handler(shared: list[Any], form: str) -> logging.Handler:
    """Writes to standard error as JSON or text."""
    as_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    renderer: list[Any] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
        if as_json
        else [structlog.dev.ConsoleRenderer()]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    return handler
