"""Failures on purpose: answers that are wrong, late or never come."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from tests.doubles.discord.errors import ApiError, RateLimitedError

ANY = "*"


class NoAnswerError(Exception):
    """The client gets nothing."""


@dataclass(eq=False)
class Fault:
    """What happens to requests of a route, this often or until it is lifted."""

    method: str = ANY
    path: str = ANY
    status: int | None = 500
    """None: nothing is answered; the connection breaks when the fault is lifted."""
    count: int | None = None
    carried_out: bool = False
    """Whether the request does its work and only the answer is lost."""
    code: int = 0
    retry_after: float = 0.2
    scope: str = "user"
    hits: int = 0
    lifted: asyncio.Event = field(default_factory=asyncio.Event)

    def meets(self, method: str, path: str) -> bool:
        spent = self.lifted.is_set() or (self.count is not None and self.hits >= self.count)
        return not spent and self.method in (method, ANY) and self.path in (path, ANY)

    async def strike(self) -> NoReturn:
        """Raise the error to answer with, or `NoAnswerError` in the end."""
        if self.status is None:
            await self.lifted.wait()
            raise NoAnswerError
        if self.status == 429:
            raise RateLimitedError(self.retry_after, self.scope)
        raise ApiError(self.status, self.code, "a fault that the test asked for")


class Faults:
    """Every fault that is on; the first that meets a request takes it."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    @contextmanager
    def during(self, fault: Fault) -> Iterator[Fault]:
        """The fault while the block runs."""
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

    def meeting(self, method: str, path: str) -> Fault | None:
        """The fault for this request, counted."""
        fault = next((fault for fault in self._faults if fault.meets(method, path)), None)
        if fault:
            fault.hits += 1
        return fault
