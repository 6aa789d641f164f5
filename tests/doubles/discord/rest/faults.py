"""Failures that tests request: error responses, or no response."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from tests.doubles.discord.errors import ApiError, RateLimitedError

ANY = "*"


class NoAnswerError(Exception):
    """The connection must break without a response."""


@dataclass(eq=False)
class Fault:
    """A failure of the requests to a route, `count` times or until the fault is lifted."""

    method: str = ANY
    path: str = ANY
    status: int | None = 500
    """The status of the response; None: no response until the fault is lifted, then a broken
    connection."""
    count: int | None = None
    carried_out: bool = False
    """Whether the request is carried out, so that only its response is lost."""
    code: int = 0
    retry_after: float = 0.2
    scope: str = "user"
    hits: int = 0
    lifted: asyncio.Event = field(default_factory=asyncio.Event)

    def applies_to(self, method: str, path: str) -> bool:
        spent = self.lifted.is_set() or (self.count is not None and self.hits >= self.count)
        return not spent and self.method in (method, ANY) and self.path in (path, ANY)

    async def fail(self) -> NoReturn:
        """Raise the error to respond with; without one, wait and raise `NoAnswerError`."""
        if self.status is None:
            await self.lifted.wait()
            raise NoAnswerError
        if self.status == 429:
            raise RateLimitedError(self.retry_after, self.scope)
        raise ApiError(self.status, self.code, "a fault that the test asked for")


class Faults:
    """The active faults; the first that applies to a request fails it."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    @contextmanager
    def during(self, fault: Fault) -> Iterator[Fault]:
        """Apply a fault while the block runs."""
        self.add(fault)
        try:
            yield fault
        finally:
            fault.lifted.set()

    def lift(self) -> None:
        """End all of them."""
        for fault in self._faults:
            fault.lifted.set()
        self._faults.clear()

    def find(self, method: str, path: str) -> Fault | None:
        """Return the fault that applies to this request, and count the hit."""
        fault = next((fault for fault in self._faults if fault.applies_to(method, path)), None)
        if fault:
            fault.hits += 1
        return fault
