"""A server that is away for a while: it is asked again and again, and who waits is told so."""

import asyncio
from collections.abc import Callable

from bot.domain.errors import SetupError, StoreError

PATIENCE_S = 120.0
"""How long a server may be away before who waits is told so."""
BUSY = "too-many-requests"
"""The code of a refusal that passes by itself."""
_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 5.0

Say = Callable[[str], None]
"""Tells a person a line, apart from the results."""


class Outage:
    """How long a server has been away, told once when it begins and once when it is over."""

    def __init__(self, url: str, say: Say, patience_s: float) -> None:
        self._url = url
        self._say = say
        self._patience_s = patience_s
        self._since: float | None = None
        self._wait_s = _FIRST_WAIT_S

    def over(self) -> None:
        """The server answers."""
        if self._since is not None:
            self._say(f"{self._url} answers again")
        self._since, self._wait_s = None, _FIRST_WAIT_S

    async def wait(self, error: StoreError) -> None:
        """Wait a while before it is asked again; SetupError when that was long enough."""
        now = asyncio.get_running_loop().time()
        if self._since is None:
            self._since = now
            self._say(f"{error}; asking on for {self._patience_s:.0f} s")
        if now - self._since >= self._patience_s:
            words = f"{error}; it was asked for {self._patience_s:.0f} s"
            raise SetupError(words) from error
        await asyncio.sleep(self._wait_s)
        self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)
