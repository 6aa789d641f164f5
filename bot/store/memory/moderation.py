"""Bans, exclusions, limits and the pause, in memory."""

from dataclasses import replace
from datetime import datetime

from bot.domain.ids import BoardId, PersonId, SubmissionId
from bot.domain.moderation import Exclusion, RateLimit
from bot.store.memory.tables import Tables
from bot.store.text import storable
from runners.contract.task import Mode


class MemoryModeration:
    """What admins decide."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._bans: dict[PersonId, str] = {}
        self._notice: str | None = None
        self._rooms: set[tuple[str, str]] = set()

    async def ban(self, person: PersonId, reason: str) -> None:
        self._bans[person] = storable(reason)

    async def unban(self, person: PersonId) -> bool:
        return self._bans.pop(person, None) is not None

    async def ban_of(self, person: PersonId) -> str | None:
        return self._bans.get(person)

    async def exclude(self, exclusion: Exclusion) -> None:
        kept = replace(exclusion, reason=storable(exclusion.reason))
        self._tables.exclusions[exclusion.submission] = kept

    async def include(self, submission: SubmissionId) -> bool:
        return self._tables.exclusions.pop(submission, None) is not None

    async def exclusion_of(self, submission: SubmissionId) -> Exclusion | None:
        return self._tables.exclusions.get(submission)

    async def pause(self, notice: str) -> None:
        self._notice = storable(notice)

    async def resume(self) -> bool:
        was, self._notice = self._notice, None
        return was is not None

    async def pause_notice(self) -> str | None:
        return self._notice

    async def open_room(self, house: str, room: str) -> None:
        self._rooms.add((house, room))

    async def close_room(self, house: str, room: str) -> bool:
        was_open = (house, room) in self._rooms
        self._rooms.discard((house, room))
        return was_open

    async def rooms(self, house: str) -> tuple[str, ...]:
        return tuple(sorted(room for at, room in self._rooms if at == house))

    async def set_limit(self, limit: RateLimit) -> None:
        self._tables.limits[limit.board, limit.mode] = limit

    async def drop_limit(self, board: BoardId | None, mode: Mode | None) -> bool:
        return self._tables.limits.pop((board, mode), None) is not None

    async def limits(self) -> tuple[RateLimit, ...]:
        return tuple(
            sorted(
                self._tables.limits.values(), key=lambda each: (each.board or 0, each.mode or "")
            )
        )

    async def limited_by(
        self, person: PersonId, board: BoardId, mode: Mode, now: datetime
    ) -> tuple[RateLimit, datetime] | None:
        reached = [
            (limit, counted)
            for limit in self._tables.limits.values()
            if limit.board in {None, board} and limit.mode in {None, mode}
            if (counted := self._counted(limit, person, now)) is not None
        ]
        return max(reached, key=lambda each: each[1] + each[0].window, default=None)

    def _counted(self, limit: RateLimit, person: PersonId, now: datetime) -> datetime | None:
        """When the submission was made that would have to leave the window for one more."""
        made = sorted(
            one.created_at
            for one in self._tables.submissions.values()
            if one.person == person
            and limit.board in {None, one.board}
            and limit.mode in {None, one.mode}
            and one.created_at > now - limit.window
        )
        return made[-limit.most] if len(made) >= limit.most else None
