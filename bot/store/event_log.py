"""Where events are logged: in the data folder's file, or on stderr while none is open."""

import logging
import sys
from pathlib import Path

import structlog
from typing_extensions import override

_log = structlog.get_logger(__name__)


def log_to_stderr() -> None:
    """Warnings and worse to stderr: for commands that open no data folder."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


def log_to(path: Path) -> None:
    """From here on every event as one line of JSON in a file, those of libraries as well."""
    logging.basicConfig(handlers=[_Forwarding()], level=logging.WARNING, force=True)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=_LogFile(path),
        cache_logger_on_first_use=False,
    )


class _Forwarding(logging.Handler):
    """Makes an event of what a library logs, which else would end up on a person's terminal."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        _log.warning(record.getMessage(), action="library-warning", library=record.name)


class _LogFile:
    """A log that is opened for each line: nobody has to close it, and it may be moved away."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, *_: object) -> "_LogFile":
        return self

    def msg(self, line: str) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except OSError:
            sys.stderr.write(f"{line}\n")

    log = debug = info = warning = error = critical = exception = msg
