"""Every request to Discord: in order, spaced below the limit of all, and given up in silence."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import aiohttp
import discord
from discord.http import Route

SILENCE_S = 15.0
"""After which a request that Discord does not answer is given up."""
PER_S = 40
"""Requests a second; Discord allows 50 of a bot, and discord.py heeds that only once refused."""
_WITHOUT_LIMIT = ("/interactions", "/webhooks")
"""Answers to people do not count there, and wait for nobody."""


@dataclass(slots=True)
class RequestSpacer:
    """Lets `most` through in any second, and of one key one at a time.

    Leave comes back a second after the answer: what matters is when a request arrives, and one that
    is sent may be long on its way.
    """

    most: int = PER_S
    leave: asyncio.Semaphore = field(init=False)
    locks: WeakValueDictionary[Hashable, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def __post_init__(self) -> None:
        """As much leave as there is in a second."""
        self.leave = asyncio.Semaphore(self.most)

    @asynccontextmanager
    async def turn(self, key: Hashable | None = None) -> AsyncIterator[None]:
        """Waits for leave to go; the key is free again when the caller is done."""
        lock = nullcontext() if key is None else self.locks.setdefault(key, asyncio.Lock())
        async with lock:
            await self.leave.acquire()
            try:
                yield
            finally:
                asyncio.get_running_loop().call_later(1.0, self.leave.release)


def govern(client: discord.Client) -> None:
    """Bring order into the client's requests; discord.py has no option for any of it.

    Left alone it takes a window that starts again for empty as soon as one of several requests
    under way is answered, and sends more than the window holds.
    """
    http: Any = client.http
    send = http.request
    spacing = RequestSpacer()
    silence = aiohttp.ClientTimeout(total=None, sock_connect=SILENCE_S, sock_read=SILENCE_S)

    async def request(route: Route, **arguments: Any) -> Any:  # noqa: ANN401  what discord.py passes
        if route.path.startswith(_WITHOUT_LIMIT):
            return await send(route, timeout=silence, **arguments)
        in_channel = route.channel_id is not None
        key = (route.method, route.path, route.channel_id) if in_channel else None
        async with spacing.turn(key):
            return await send(route, timeout=silence, **arguments)

    http.request = request
