"""Rights in memory."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.domain.ids import PersonId
from bot.domain.rights import Rights
from bot.ports import Clock
from bot.ports.rights import Vouched


@dataclass(slots=True)
class MemoryRights:
    """Rights by person and source."""

    clock: Clock
    _rows: dict[tuple[PersonId, str], tuple[Rights, datetime]] = field(default_factory=dict)

    async def note(self, person: PersonId, source: str, rights: Rights) -> None:
        self._rows[person, source] = rights, self.clock.now()

    async def forget(self, person: PersonId, source: str) -> bool:
        return self._rows.pop((person, source), None) is not None

    async def of(self, person: PersonId) -> Rights:
        found = Rights()
        for (owner, _), (rights, _) in self._rows.items():
            if owner == person:
                found |= rights
        return found

    async def stale(self, kind: str, age: timedelta, limit: int) -> tuple[Vouched, ...]:
        before = self.clock.now() - age
        found = sorted(
            (seen_at, person, source)
            for (person, source), (_, seen_at) in self._rows.items()
            if source.startswith(f"{kind}:") and seen_at < before
        )
        return tuple(Vouched(person, source) for _, person, source in found[:limit])
