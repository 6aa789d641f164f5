"""What many readers ask for at once: made by one of them, and kept for a moment for the others."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from bot.services.cache import Latest

MOST = 256
_LAG = 2
"""So many times the age at which a value is made anew it is still given while somebody does."""

Made = TypeVar("Made")


class Kept:
    """Values by key; a key says all that its value depends on, who may see it included."""

    def __init__(self, most: int = MOST) -> None:
        self._values = Latest[Any](most)
        self._making: set[asyncio.Task[Any]] = set()

    async def get_within(
        self, key: object, fresh_s: float, limit_s: float, make: Callable[[], Awaitable[Made]]
    ) -> Made:
        """The same as `get`; TimeoutError after so many seconds, whatever still hangs then.

        A driver may take its time to give up on a server that says nothing: nobody waits for that.
        """
        making = asyncio.ensure_future(self.get(key, fresh_s, make))
        self._making.add(making)
        making.add_done_callback(self._ended)
        try:
            done, _ = await asyncio.wait({making}, timeout=limit_s)
        finally:
            making.cancel()
        if not done:
            raise TimeoutError(f"no answer within {limit_s:g} s")
        return making.result()

    def _ended(self, making: asyncio.Task[Any]) -> None:
        self._making.discard(making)
        if not making.cancelled():
            making.exception()  # seen, also where nobody waits for it any more

    async def get(self, key: object, fresh_s: float, make: Callable[[], Awaitable[Made]]) -> Made:
        """The value of a key, at most `fresh_s` seconds old, or thrice as old while it is made.

        What `make` raises is not kept: whoever waits for it tries next.
        """
        made: Made = await self._values.get(
            key, make, current=lambda _, age: age < fresh_s, lag_s=_LAG * fresh_s
        )
        return made
