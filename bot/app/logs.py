"""Where events are logged: in the data folder's file, or on stderr while none is open."""

import fcntl
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from typing_extensions import override

_log = structlog.get_logger(__name__)

MOST_BYTES = 10 << 20
"""The most bytes of one file; it then becomes `podium.log.1`, and that one `podium.log.2`."""
OLD_FILES = 2
SHORTEST_SECRET = 4
"""The fewest characters of a masked secret; shorter strings occur in many ordinary words."""
_CREDENTIALS = re.compile(
    r"podium_[A-Za-z0-9_-]{20,}"
    r"|(?<=://)[^/\s@\"\\]+(?=@)"
    r"|(?:(?<=/interactions/)|(?<=/webhooks/))[0-9]+/[^/\s?\"'\\]+"
)
"""Our tokens, user and password of any URL, and the tokens in Discord's reply addresses."""
_MASK = "***"


def log_to_stderr() -> None:
    """Log warnings and worse to stderr: for commands that open no data folder."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


def log_to(
    path: Path,
    copy: Callable[[str], None] | None = None,
    secrets: Iterable[str] = (),
    level: str = "info",
) -> None:
    """Log every event from now on as a line of JSON in a file, including those of libraries.

    `copy` is called with each line. No line contains one of `secrets`, a token, or a URL's
    password, whatever its source. Events below `level` are dropped. Libraries log warnings and,
    with `debug`, info messages; their debug messages are dropped: they contain whole requests.
    """
    least = logging.getLevelNamesMapping()[level.upper()]
    of_libraries = logging.INFO if least == logging.DEBUG else max(least, logging.WARNING)
    logging.basicConfig(handlers=[_LibraryHandler()], level=of_libraries, force=True)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Without the values of local variables, which include passwords, sources and nonces.
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(),
            _MaskSecrets(secrets),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=_LogFile(path, copy),
        cache_logger_on_first_use=False,
    )


def to_stderr(line: str) -> None:
    """Write a line to stderr, where a container logs; for `log_to`."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class _LibraryHandler(logging.Handler):
    """Converts log records of libraries to events; they would otherwise go to the terminal."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        action = "library-warning" if record.levelno >= logging.WARNING else "library"
        words = record.getMessage()
        level = min(logging.CRITICAL, max(logging.DEBUG, record.levelno // 10 * 10))
        _log.log(level, words, action=action, library=record.name, exc_info=record.exc_info)


class _MaskSecrets:
    """The last step for each line: masks secrets in it.

    Nothing logs a secret on purpose, but a library's message or an error may quote one.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        masked = {each for each in secrets if len(each) >= SHORTEST_SECRET}
        written = masked | {json.dumps(each)[1:-1] for each in masked}
        words = (re.escape(each) for each in sorted(written, key=len, reverse=True))
        self._pattern = re.compile("|".join((*words, _CREDENTIALS.pattern)))

    def __call__(self, _: object, __: str, line: object) -> str:
        return self._pattern.sub(_MASK, str(line))


class _LogFile:
    """A log file that is opened for each line, so it needs no closing and may be renamed.

    Only its owner may read it. Several processes write to it, and one of them renames it when it is
    full.
    """

    def __init__(self, path: Path, copy: Callable[[str], None] | None) -> None:
        self._path = path
        self._copy = copy

    def __call__(self, *_: object) -> "_LogFile":
        return self

    def msg(self, line: str) -> None:
        if self._copy is not None:
            self._copy(line)
        try:
            log = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(log, "a", encoding="utf-8") as file:
                os.fchmod(log, 0o600)
                file.write(f"{line}\n")
                file.flush()
                if os.fstat(log).st_size > MOST_BYTES:
                    self._rotate(log)
        except OSError:
            sys.stderr.write(f"{line}\n")

    def _rotate(self, log: int) -> None:
        """Rename the file if it is still the log; another process may just have renamed it."""
        fcntl.flock(log, fcntl.LOCK_EX)
        if not self._is_current(log):
            return
        old = [self._path.with_name(f"{self._path.name}.{n}") for n in range(1, OLD_FILES + 1)]
        for newer, older in reversed(list(pairwise((self._path, *old)))):
            if newer.exists():
                newer.replace(older)

    def _is_current(self, log: int) -> bool:
        return self._path.exists() and os.path.samestat(self._path.stat(), os.fstat(log))

    log = debug = info = warning = error = critical = exception = msg
