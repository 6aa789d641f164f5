"""What is known of ended jobs and never changes, but for the name of its person."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from bot.domain.ids import JobId

MOST = 100_000
"""Jobs that are remembered, a few hundred bytes each; beyond them those wanted last."""


class Named(Protocol):
    """Something of a person."""

    @property
    def person_name(self) -> str: ...


Kept = TypeVar("Kept", bound=Named)
Read = Callable[[Sequence[JobId]], Awaitable[Mapping[JobId, Kept]]]
"""Reads what there is of some jobs."""


class Remembered(Generic[Kept]):
    """Something of each job, read once."""

    def __init__(self, read: "Read[Kept]", most: int = MOST) -> None:
        self._read, self._most = read, most
        self._known: dict[JobId, Kept] = {}

    async def of(self, wanted: Mapping[JobId, str]) -> dict[JobId, Kept]:
        """Of these jobs, each with the name that its person has now; deleted ones are left out."""
        known = self._known
        unknown = [
            job
            for job, name in wanted.items()
            if (kept := known.get(job)) is None or kept.person_name != name
        ]
        if unknown:
            found = await self._read(unknown)
            for gone in unknown:
                known.pop(gone, None)
            if len(known) + len(found) > self._most:
                self._known = known = {job: known[job] for job in wanted if job in known}
            known.update(found)
        return {job: known[job] for job in wanted if job in known}
