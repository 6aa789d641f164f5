"""Where events are logged: in the data folder's file, or on stderr while none is open."""

import fcntl
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from typing_extensions import override

_log = structlog.get_logger(__name__)

MOST_BYTES = 10 << 20
"""Of one file; then it becomes `podium.log.1`, and what was there `podium.log.2`."""
OLD_FILES = 2
SHORTEST_SECRET = 4
"""Characters; what is shorter stands in many words that are none."""
_CREDENTIALS = re.compile(
    r"podium_[A-Za-z0-9_-]{20,}"
    r"|(?<=://)[^/\s@\"\\]+(?=@)"
    r"|(?:(?<=/interactions/)|(?<=/webhooks/))[0-9]+/[^/\s?\"'\\]+"
)
"""Tokens of ours, user and password of any URL, and what Discord's addresses of answers hold."""
_MASK = "***"


def log_to_stderr() -> None:
    """Warnings and worse to stderr: for commands that open no data folder."""
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
    """From here on every event as one line of JSON in a file, those of libraries as well.

    `copy` is handed each line too. No line holds one of `secrets`, a token, or a URL's password,
    whoever wrote it. An event below `level` stays out. Libraries' warnings are kept, and with
    `debug` what they tell besides; never their own debugging, which has whole messages in it.
    """
    least = logging.getLevelNamesMapping()[level.upper()]
    of_libraries = logging.INFO if least == logging.DEBUG else max(least, logging.WARNING)
    logging.basicConfig(handlers=[_Forwarding()], level=of_libraries, force=True)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Not the values of local variables: passwords, sources and nonces are among them.
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(),
            _Masking(secrets),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=_LogFile(path, copy),
        cache_logger_on_first_use=False,
    )


def to_stderr(line: str) -> None:
    """For `log_to`: where a container is asked for its events."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class _Forwarding(logging.Handler):
    """Makes an event of what a library logs, which else would end up on a person's terminal."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        action = "library-warning" if record.levelno >= logging.WARNING else "library"
        words = record.getMessage()
        level = min(logging.CRITICAL, max(logging.DEBUG, record.levelno // 10 * 10))
        _log.log(level, words, action=action, library=record.name, exc_info=record.exc_info)


class _Masking:
    """The last step of each line: what is secret in it is made unreadable.

    Nothing logs a secret on purpose; a library's message or an error's text may quote one.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        kept = {each for each in secrets if len(each) >= SHORTEST_SECRET}
        written = kept | {json.dumps(each)[1:-1] for each in kept}
        words = (re.escape(each) for each in sorted(written, key=len, reverse=True))
        self._pattern = re.compile("|".join((*words, _CREDENTIALS.pattern)))

    def __call__(self, _: object, __: str, line: object) -> str:
        return self._pattern.sub(_MASK, str(line))


class _LogFile:
    """A log that is opened for each line: nobody has to close it, and it may be moved away.

    Its owner alone may read it. Several processes write to it, and one of them moves it away once
    it is full.
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
                    self._move_away(log)
        except OSError:
            sys.stderr.write(f"{line}\n")

    def _move_away(self, log: int) -> None:
        """Only while it is still the log: another process may have moved it a moment ago."""
        fcntl.flock(log, fcntl.LOCK_EX)
        if not self._is_at_its_place(log):
            return
        names = [self._path, *(self._old(number) for number in range(1, OLD_FILES + 1))]
        for older, newer in reversed(list(zip(names[1:], names[:-1], strict=True))):
            if newer.exists():
                newer.replace(older)

    def _is_at_its_place(self, log: int) -> bool:
        return self._path.exists() and os.path.samestat(self._path.stat(), os.fstat(log))

    def _old(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    log = debug = info = warning = error = critical = exception = msg
