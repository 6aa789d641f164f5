"""Counts over everything that is kept, for whoever runs an installation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from bot.domain.ids import BoardId
from runners.contract.verdict import Verdict


@dataclass(frozen=True, slots=True)
class DayCount:
    """A day in UTC: how much was submitted, and by how many people."""

    day: date
    submissions: int
    people: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What one person's evaluations for one board needed of one GPU type; the house is a person."""

    board: str
    person: str
    gpu: str
    evaluations: int
    seconds: float
    """For which they had a GPU, or so many GPUs as many times."""


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
