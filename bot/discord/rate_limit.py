"""Orders all requests to Discord, keeps them below the global limit, and sets a timeout."""

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
"""Seconds after which a request without a response is given up."""
PER_S = 40
"""Requests per second; Discord allows a bot 50. discord.py slows down only once refused."""
_WITHOUT_LIMIT = ("/interactions", "/webhooks")
"""Replies to interactions do not count toward the limit, and never wait."""


@dataclass(slots=True)
class RequestSpacer:
    """Allows `most` requests in any second, and one at a time per key.

    A slot is returned a second after the response: the limit counts arrivals, and a request may
    take long to arrive.
    """

    most: int = PER_S
    leave: asyncio.Semaphore = field(init=False)
    locks: WeakValueDictionary[Hashable, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def __post_init__(self) -> None:
        """Start with one second's worth of slots."""
        self.leave = asyncio.Semaphore(self.most)

    @asynccontextmanager
    async def turn(self, key: Hashable | None = None) -> AsyncIterator[None]:
        """Wait for a slot; the key is free again when the block ends."""
        lock = nullcontext() if key is None else self.locks.setdefault(key, asyncio.Lock())
        async with lock:
            await self.leave.acquire()
            try:
                yield
            finally:
                asyncio.get_running_loop().call_later(1.0, self.leave.release)


def govern(client: discord.Client) -> None:
    """Order and limit the client's requests; discord.py has no option for this.

    If one of several requests in flight is answered, discord.py assumes that a window which has
    restarted is empty, and so exceeds the limit.
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
