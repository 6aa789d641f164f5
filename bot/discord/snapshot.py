"""Keeps data for autocompletion and checks of roles in memory, at most a few seconds old."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import structlog

from bot.domain.board import NOBODY, Board, Viewer
from bot.domain.errors import StoreError
from bot.domain.ids import PersonId
from bot.ports import Store
from bot.services.cache import ResponseCache

EVERY_S = 2.0
"""Seconds between two readings of the store."""
OLDEST_S = 6.0
"""With an older reading, no boards are suggested: people may have been uninvited since."""
_OTHER_S = 3.0
"""How old in seconds other data may be; three times that while it is read again."""
_MOST_PEOPLE = 2000
_log = structlog.get_logger(__name__)
Found = TypeVar("Found")


@dataclass(slots=True)
class Snapshot:
    """The boards, and the chosen roles and channels of the guilds; each process has a snapshot."""

    parts: Mapping[tuple[str, str], str] | None = None
    """The ids of roles and channels by guild and purpose; None until the store was read."""
    _boards: tuple[Board, ...] = ()
    _creators: Mapping[str, PersonId] = field(default_factory=dict)
    _read_at: float = -math.inf
    _own: ResponseCache = field(default_factory=lambda: ResponseCache(_MOST_PEOPLE))

    async def refresh(self, store: Store) -> None:
        """Read the store."""
        began_at = _now()
        parts, boards = await store.moderation.parts(), await store.boards.all()
        creators = {}
        for creator in {each.creator for each in boards}:
            person = await store.people.get(creator)
            if person is not None:
                creators[person.identity] = creator
        self.parts, self._boards, self._creators = parts, boards, creators
        self._read_at = began_at

    async def run(self, store: Store) -> None:
        """Read the store regularly until cancelled."""
        while True:
            try:
                await self.refresh(store)
            except StoreError as error:
                message = "the store is unavailable"
                _log.warning(message, action="snapshot_wait", error=str(error))
            await asyncio.sleep(EVERY_S)

    def boards_for(self, viewer: Viewer, identity: str) -> list[Board]:
        """Return the boards that a person may see, by name; none while the store is unavailable."""
        if _now() - self._read_at > OLDEST_S:
            return []
        person = self._creators.get(identity)
        if viewer.person == NOBODY and person is not None:
            viewer = replace(viewer, person=person)
        return [each for each in self._boards if each.visible_to(viewer)]

    async def cached(self, key: object, make: Callable[[], Awaitable[Found]]) -> Found:
        """Return other data, such as one person's, by `key`; `make` reads it every few seconds."""
        return await self._own.get(key, _OTHER_S, make)


def _now() -> float:
    return asyncio.get_running_loop().time()
