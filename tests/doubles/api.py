"""The routes of `/api/v1` without a network, over a store in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

import httpx

from bot.domain.accounts import TokenScope
from bot.domain.api.base import PATH
from bot.services.tokens import create_local_token
from bot.web.context import WebContext
from tests.doubles.agents import make_door, way_to
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place

ROOT = f"http://podium.test{PATH}"


@dataclass(frozen=True)
class Api:
    """A place with its web server; `asking` returns a client with a person's token."""

    place: Place
    door: WebContext

    @cached_property
    def way(self) -> httpx.ASGITransport:
        """The application, created once because that takes longer than most requests."""
        return way_to(self.door)

    @asynccontextmanager
    async def asking(
        self, name: str | None = None, scope: TokenScope = TokenScope.PERSON
    ) -> AsyncIterator[httpx.AsyncClient]:
        """A client with a new token of this person; without a name it has no token."""
        headers = {} if name is None else await self.headers(name, scope)
        async with httpx.AsyncClient(transport=self.way, base_url=ROOT, headers=headers) as client:
            yield client

    async def headers(self, name: str, scope: TokenScope = TokenScope.PERSON) -> dict[str, str]:
        """The headers of this person's requests."""
        place, day = self.place, timedelta(days=1)
        made = await create_local_token(
            place.store, place.clock, place.ada, name, scope=scope, lifetime=day
        )
        return {"Authorization": f"Bearer {made.secret}"}


async def make_api(requests_per_minute: int = 0) -> Api:
    """A place with Ada's board, and the web server for it."""
    clock = ManualClock()
    store = MemoryStore(clock)
    door = replace(make_door(store, clock), requests_per_minute=requests_per_minute)
    return Api(await make_place(store, clock), door)
