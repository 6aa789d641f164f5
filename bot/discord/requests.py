"""Limits requests to Discord: how many per second, how long each takes, which are repeated."""

import asyncio
import re
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import aiohttp
import discord
from discord.http import Route
from discord.webhook.async_ import AsyncWebhookAdapter

RESPONSE_TIMEOUT_S = 15.0
"""Seconds after which a request without a response is given up."""
REQUESTS_PER_S = 40
"""Requests per second. Discord allows a bot 50, and discord.py slows down only after a refusal."""
_WITHOUT_LIMIT = ("/interactions", "/webhooks")
"""The paths of replies to interactions, which do not count toward the limit and never wait."""


@dataclass(frozen=True, slots=True)
class _TimedSession:
    """A session whose requests have a timeout: one that hangs would block the answer."""

    session: aiohttp.ClientSession

    def request(self, method: str, url: str, **arguments: Any) -> Any:  # noqa: ANN401  aiohttp's
        return self.session.request(method, url, timeout=_timeout(), **arguments)


def _timeout() -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=None, sock_connect=RESPONSE_TIMEOUT_S, sock_read=RESPONSE_TIMEOUT_S
    )


_send_answer: Any = AsyncWebhookAdapter.request


async def _send_answer_in_time(
    adapter: AsyncWebhookAdapter,
    route: Route,
    session: aiohttp.ClientSession,
    **arguments: Any,  # noqa: ANN401  what discord.py passes
) -> Any:  # noqa: ANN401  what it returns
    """Send the answer to an interaction, for which discord.py waits five minutes."""
    return await _send_answer(adapter, route, _TimedSession(session), **arguments)


AsyncWebhookAdapter.request = _send_answer_in_time  # type: ignore[assignment,method-assign]


@dataclass(slots=True)
class RequestSpacer:
    """Allows `most` requests in any second, and one at a time per key.

    A slot is free again a second after the response, because Discord counts requests when they
    arrive, which is at the latest when it responds.
    """

    most: int = REQUESTS_PER_S
    slots: asyncio.Semaphore = field(init=False)
    locks: WeakValueDictionary[Hashable, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def __post_init__(self) -> None:
        """Start with all slots free."""
        self.slots = asyncio.Semaphore(self.most)

    @asynccontextmanager
    async def slot(self, key: Hashable | None = None) -> AsyncIterator[None]:
        """Wait for a slot; the key is free again when the block ends."""
        lock = nullcontext() if key is None else self.locks.setdefault(key, asyncio.Lock())
        async with lock:
            await self.slots.acquire()
            try:
                yield
            finally:
                asyncio.get_running_loop().call_later(1.0, self.slots.release)


def limit_requests(client: discord.Client) -> None:
    """Limit the requests per second, and send requests of one kind to a channel one by one.

    discord.py has no option for this. With several requests in flight, it can exceed a channel's
    limit: when the window restarts, it does not count the requests that are still unanswered.
    """
    http: Any = client.http
    http.http_trace = _threads_created_once()
    send = http.request
    spacer = RequestSpacer()

    async def request(route: Route, **arguments: Any) -> Any:  # noqa: ANN401  what discord.py passes
        if route.path.startswith(_WITHOUT_LIMIT):
            return await send(route, timeout=_timeout(), **arguments)
        in_channel = route.channel_id is not None
        key = (route.method, route.path, route.channel_id) if in_channel else None
        async with spacer.slot(key):
            return await send(route, timeout=_timeout(), **arguments)

    http.request = request


_CREATES_A_THREAD = re.compile(r"/channels/[0-9]+/threads$")


def _threads_created_once() -> aiohttp.TraceConfig:
    """Return a trace that keeps discord.py from repeating the creation of a thread.

    discord.py repeats a request after a response such as 502, although Discord may have carried it
    out. Discord recognizes a repeated message by its nonce, but creates a second thread. So the
    caller gets the error, and looks for the thread before it tries again.
    """

    async def raise_error(_session: object, _context: object, seen: Any) -> None:  # noqa: ANN401
        created = seen.method == "POST" and _CREATES_A_THREAD.search(seen.url.path)
        if created and seen.response.status >= 500:
            raise discord.DiscordServerError(seen.response, "a thread may have been created")

    trace = aiohttp.TraceConfig()
    trace.on_request_end.append(raise_error)
    return trace
