"""Parses a submission as Python in a separate process, to refuse invalid ones early.

Untrusted text is parsed there and never run.
"""

import re
import sys
from collections.abc import Iterable

from bot.domain.errors import UserError
from bot.domain.tasks.lint import python_fault
from bot.ports import Store
from bot.services.apart import Apart, BusyError, TooHardError

SOURCES = Apart(5.0, patience_s=10.0)
HERE = sys.version_info[:2]
"""The Python version that parses."""
_VERSION = re.compile(r"(\d+)\.(\d+)")


async def check_syntax(store: Store, source: str, gpus: Iterable[str]) -> str:
    """Raise UserError for invalid Python; return a warning if the runners' Python may be newer.

    Empty when there is nothing to warn about.
    """
    fault = await fault_of(source)
    if fault is None:
        return ""
    pythons = await _pythons(store, frozenset(gpus))
    if pythons and max(pythons) <= HERE:
        raise UserError(
            "syntax-error", f"the file is not valid Python: {fault}; fix it and submit again"
        )
    here = ".".join(map(str, HERE))
    return (
        f"this may not be valid Python: {fault}. Python {here} rejects it, but the runner may "
        "have a newer version, so it is judged anyway"
    )


async def fault_of(source: str) -> str | None:
    """Return the parser's error with its line; None for a valid source."""
    try:
        return await SOURCES.do(python_fault, source)
    except (TooHardError, BusyError):  # the judge reports it instead
        return None


async def _pythons(store: Store, gpus: frozenset[str]) -> list[tuple[int, int]]:
    """Return the Python versions of live runners that offer one of the GPU types, if known."""
    offers = [
        offer
        for worker in await store.workers.alive()
        for offer in worker.offers.values()
        if gpus & offer.gpus.keys()
    ]
    found = [_VERSION.match(offer.python) for offer in offers]
    if not all(found):
        return []
    return [(int(each[1]), int(each[2])) for each in found if each]
