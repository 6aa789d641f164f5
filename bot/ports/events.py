"""Hints that something changed, and the time of day."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class Clock(Protocol):
    """The time of day."""

    def now(self) -> datetime:
        """The present, aware and in UTC."""


class Topic(StrEnum):
    """What a subscriber can wait for."""

    READY = "ready"
    """Work became claimable; the payload is the GPU type."""
    CANCEL = "cancel"
    """A running job should stop; the payload is the job's id."""
    PROGRESS = "progress"
    """A submission's job moved; the payload is the submission's id."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A hint that something changed: never the truth itself, which is read from the store."""

    topic: Topic
    payload: str


class Events(Protocol):
    """Hints from the store; they may be lost, so every waiter polls slowly as well."""

    def subscribe(
        self, topics: frozenset[Topic]
    ) -> AbstractAsyncContextManager[AsyncIterator[Notice | None]]:
        """Yields notices, and None at least about every second, be there notices or not."""
