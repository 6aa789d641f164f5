"""How the store is, and what it has seen, for whoever keeps an installation running."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from bot.domain.records import Schema
from bot.domain.tally import Tally


class Operations(Protocol):
    """Counts that only grow, and answers that cost next to nothing."""

    async def schema(self) -> Schema:
        """How new the database is; StoreError while it does not answer."""

    async def tallies(self) -> tuple[Tally, ...]:
        """What became of every evaluation so far, by GPU type, mode and verdict.

        The counts of what was deleted since stay: they are for rates, which must not be negative.
        """

    async def lost_leases(self) -> Mapping[str, int]:
        """How many leases have run out so far, by GPU type."""

    async def waiting_since(self) -> Mapping[str, datetime]:
        """When the longest waiting of the queued jobs that are due was stored, by GPU type."""
