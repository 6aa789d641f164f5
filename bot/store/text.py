"""Texts as the database stores and returns them: no NUL, no lone surrogate, no worker's name."""

import re

_NAMED_WORKER = re.compile(r"\Aworker \S+ vanished")
_REFUSED = re.compile("[\x00\ud800-\udfff]")


def without_worker(error: str | None) -> str | None:
    """Return a job's stored error without the worker's name that older versions included."""
    return None if error is None else _NAMED_WORKER.sub("the worker vanished", error)


def storable(text: str) -> str:
    """Return the text with each NUL as U+2400 and each lone surrogate as U+FFFD."""
    return _REFUSED.sub(lambda found: "\u2400" if found[0] == "\0" else "\ufffd", text)
