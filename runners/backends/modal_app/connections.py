"""The connections of this process to Modal: one for all it does, and more where many calls wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import modal
from modal.config import config

QUESTIONS_MOST = 90
"""How many questions may wait at one connection: it has a hundred streams, and who gets none would
not hear of an end that came long ago."""


class Connections:
    """As many connections as the questions of a runner need that wait at once."""

    def __init__(self) -> None:
        self._waiting: list[int] = [0]
        """How many questions wait at each connection."""
        self._more: list[modal.Client] = []
        """All but the first one, which others of this process use as well."""
        self._opening = asyncio.Lock()
        self._used = False

    async def first(self) -> modal.Client:
        """The connection for everything else, opened when there is none."""
        opened = await modal.Client.from_env.aio()
        self._used = True
        return opened

    @asynccontextmanager
    async def for_a_question(self) -> AsyncIterator[modal.Client]:
        """A connection with a stream to spare; another is opened where none has."""
        number = self._spare()
        self._waiting[number] += 1
        try:
            yield await self._connection(number)
        finally:
            self._waiting[number] -= 1

    def _spare(self) -> int:
        for number, waiting in enumerate(self._waiting):
            if waiting < QUESTIONS_MOST:
                return number
        self._waiting.append(0)
        return len(self._waiting) - 1

    async def _connection(self, number: int) -> modal.Client:
        if number == 0:
            return await self.first()
        async with self._opening:
            while len(self._more) < number:
                self._more.append(await _another() or await self.first())
        return self._more[number - 1]

    async def aclose(self) -> None:
        """Close all that were used; who uses the first one later opens it again."""
        for client in (await self.first(), *self._more) if self._used else ():
            await client.close.aio()
        self._more.clear()
        self._used = False


async def _another() -> modal.Client | None:
    """One more connection of the same account; None where it signs in without a token."""
    token, secret = config.get("token_id"), config.get("token_secret")
    return await modal.Client.from_credentials.aio(token, secret) if token and secret else None
