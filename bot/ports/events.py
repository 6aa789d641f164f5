"""Hints that something changed, and the time of day."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from bot.domain.job import Notice, Topic


class Clock(Protocol):
    """The time of day."""

    def now(self) -> datetime:
        """The present, aware and in UTC."""


class Events(Protocol):
    """Hints from the store; they may be lost, so every waiter polls slowly as well."""

    def subscribe(
        self, topics: frozenset[Topic]
    ) -> AbstractAsyncContextManager[AsyncIterator[Notice | None]]:
        """Yields notices, and None at least about every second, be there notices or not."""
