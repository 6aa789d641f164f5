"""Task zips which are being proven, in memory."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count

from bot.domain.ids import PersonId, ReleaseId
from bot.domain.release import NewRelease, Release, ReleaseNote
from bot.ports import Clock


@dataclass(slots=True)
class _Row:
    """A release, and which process of its door holds it."""

    door: str
    release: Release
    owner: str | None = None
    lease_until: datetime | None = None
    ended_at: datetime | None = None


class MemoryReleases:
    """Releases by number; each is held under a lease."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._numbers = count(1)
        self._rows: dict[ReleaseId, _Row] = {}

    async def add(self, release: NewRelease) -> ReleaseId:
        number = ReleaseId(next(self._numbers))
        stored = Release(number, release.person, release.zip, release.wish, release.place, tries=0)
        self._rows[number] = _Row(release.door, stored)
        return number

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Release, ...]:
        now = self._clock.now()
        free = [
            row
            for row in self._rows.values()
            if row.door == door
            and row.ended_at is None
            and (row.lease_until is None or row.lease_until <= now)
        ]
        for row in free[:limit]:
            row.owner, row.lease_until = owner, now + lease
            row.release = replace(row.release, tries=row.release.tries + 1)
        return tuple(row.release for row in free[:limit])

    async def keep(self, owner: str, lease: timedelta) -> tuple[ReleaseId, ...]:
        now = self._clock.now()
        held = [row for row in self._held(owner) if row.lease_until and row.lease_until > now]
        for row in held:
            row.lease_until = now + lease
        return tuple(row.release.id for row in held)

    async def note(
        self,
        release: ReleaseId,
        owner: str,
        *,
        state: str | None = None,
        place: str | None = None,
    ) -> bool:
        row = self._rows.get(release)
        if row is None or row.owner != owner:
            return False
        before = row.release
        row.release = replace(before, state=state or before.state, place=place or before.place)
        return True

    async def finish(self, release: ReleaseId, owner: str) -> bool:
        row = self._rows.get(release)
        if row is None or row.owner != owner:
            return False
        del self._rows[release]
        return True

    async def end(self, release: ReleaseId, owner: str) -> bool:
        if not await self.note(release, owner):
            return False
        row = self._rows[release]
        row.release = replace(row.release, zip=b"")
        row.ended_at, row.owner, row.lease_until = self._clock.now(), None, None
        return True

    async def told(self, door: str, release: ReleaseId) -> ReleaseNote | None:
        row = self._rows.get(release)
        return None if row is None or row.door != door else _note(row)

    async def told_to(self, door: str, person: PersonId) -> tuple[ReleaseNote, ...]:
        rows = reversed(self._rows.values())
        found = [each for each in rows if (each.door, each.release.person) == (door, person)]
        return tuple(map(_note, found[:100]))

    async def forget(self, ended_before: datetime) -> int:
        old = [n for n, row in self._rows.items() if row.ended_at and row.ended_at < ended_before]
        for number in old:
            del self._rows[number]
        return len(old)

    async def let_go(self, owner: str) -> int:
        held = self._held(owner)
        for row in held:
            row.owner = row.lease_until = None
            row.release = replace(row.release, tries=row.release.tries - 1)
        return len(held)

    def _held(self, owner: str) -> list[_Row]:
        return [row for row in self._rows.values() if row.owner == owner]


def _note(row: _Row) -> ReleaseNote:
    one = row.release
    return ReleaseNote(one.id, one.person, one.wish, one.state, one.tries, row.ended_at)
