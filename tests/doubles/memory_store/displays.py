"""Who shows which submission, in memory."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from bot.domain.display import Display
from bot.domain.ids import SubmissionId
from bot.store.text import storable
from tests.doubles.memory_store.tables import Shown, Tables


class MemoryDisplays:
    """Displays by submission; each is held under a lease."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1000
    ) -> tuple[Display, ...]:
        now = self._tables.clock.now()
        free = [
            number
            for number, shown in sorted(self._tables.displays.items())
            if shown.door == door
            and not shown.finished
            and (shown.lease_until is None or shown.lease_until <= now)
        ]
        for number in free[:limit]:
            claims = self._tables.displays[number].claims + 1
            self._put(number, owner=owner, lease_until=now + lease, claims=claims)
        return tuple(self._display(number) for number in free[:limit])

    async def keep(self, owner: str, lease: timedelta) -> tuple[SubmissionId, ...]:
        now = self._tables.clock.now()
        kept = tuple(
            number
            for number, shown in self._held(owner)
            if shown.lease_until is not None and shown.lease_until > now
        )
        for number in kept:
            self._put(number, lease_until=now + lease)
        return kept

    async def note(self, submission: SubmissionId, owner: str, place: str) -> bool:
        if submission not in dict(self._held(owner)):
            return False
        self._put(submission, place=storable(place))
        return True

    async def finish(self, submission: SubmissionId, owner: str, place: str) -> bool:
        if not await self.note(submission, owner, place):
            return False
        self._put(submission, owner=None, lease_until=None, finished=True)
        return True

    async def let_go(self, owner: str) -> int:
        held = [number for number, _ in self._held(owner)]
        for number in held:
            self._put(number, owner=None, lease_until=None)
        return len(held)

    async def find(self, submission: SubmissionId) -> Display | None:
        return self._display(submission) if submission in self._tables.displays else None

    def _held(self, owner: str) -> Iterator[tuple[SubmissionId, Shown]]:
        for number, shown in sorted(self._tables.displays.items()):
            if shown.owner == owner and not shown.finished:
                yield number, shown

    def _put(self, number: SubmissionId, **changes: object) -> None:
        self._tables.displays[number] = replace(self._tables.displays[number], **changes)  # type: ignore[arg-type]

    def _display(self, number: SubmissionId) -> Display:
        shown = self._tables.displays[number]
        person = self._tables.submissions[number].person
        return Display(number, person, shown.door, shown.place, shown.claims)
