"""Counts over everything that is kept, for whoever runs an installation."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from bot.domain.ids import BoardId
from bot.domain.records import DayCount, Usage
from runners.contract.verdict import Verdict


class Statistics(Protocol):
    """Counts, made by the store so that nothing has to be read for them."""

    async def people(self) -> int:
        """How many accounts there are."""

    async def participants(self) -> Mapping[BoardId, int]:
        """How many people have submitted to each board; boards without any are absent."""

    async def days(self, since: datetime) -> tuple[DayCount, ...]:
        """The days since then on which something was submitted, oldest first."""

    async def verdicts(self, since: datetime) -> Mapping[Verdict, int]:
        """How often each verdict was given since then; those never given are absent."""

    async def usage(self, since: datetime) -> tuple[Usage, ...]:
        """What evaluations that ended since then needed of the GPUs, by board, person and type."""
