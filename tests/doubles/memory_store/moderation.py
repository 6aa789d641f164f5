"""Bans, exclusions, limits, pauses and the audit log, in memory."""

from dataclasses import replace
from datetime import datetime, timedelta

from bot.domain.ids import AuditId, BoardId, PersonId, SubmissionId
from bot.domain.records import AuditEntry
from bot.domain.submission import Ban, Exclusion, RateLimit
from bot.ports.records import AUDIT_REQUEST
from bot.store.postgres.database import storable
from runners.contract.task import Mode
from tests.doubles.memory_store.tables import Pool, Tables


class MemoryModeration:
    """Bans, exclusions, limits and pauses."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._notice: str | None = None
        self._channels: set[tuple[str, str]] = set()
        self._parts: dict[tuple[str, str], str] = {}
        self._claims: dict[tuple[str, str], datetime] = {}

    async def ban(self, person: PersonId, ban: Ban) -> None:
        self._tables.bans[person] = replace(ban, reason=storable(ban.reason))

    async def unban(self, person: PersonId) -> bool:
        lasted = self._tables.ban_of(person) is not None
        self._tables.bans.pop(person, None)
        return lasted

    async def ban_of(self, person: PersonId) -> Ban | None:
        return self._tables.ban_of(person)

    async def bans(self) -> dict[PersonId, Ban]:
        found = {person: self._tables.ban_of(person) for person in self._tables.bans}
        return {person: ban for person, ban in found.items() if ban is not None}

    async def exclude(self, exclusion: Exclusion) -> None:
        if exclusion.submission in self._tables.submissions:
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

    async def pause_board(self, board: BoardId, notice: str) -> None:
        self._tables.board_pauses[board] = storable(notice)

    async def resume_board(self, board: BoardId) -> bool:
        return self._tables.board_pauses.pop(board, None) is not None

    async def board_pauses(self) -> dict[BoardId, str]:
        return dict(self._tables.board_pauses)

    async def pause_gpu(self, gpu: str, notice: str) -> None:
        pool = self._tables.pools.get(gpu, Pool())
        self._tables.pools[gpu] = replace(pool, paused=True, notice=storable(notice))

    async def resume_gpu(self, gpu: str) -> bool:
        pool = self._tables.pools.get(gpu, Pool())
        if not pool.paused:
            return False
        self._tables.pools[gpu] = replace(pool, paused=False, notice="")
        self._tables.announce(gpu)
        return True

    async def gpu_pauses(self) -> dict[str, str]:
        pools = sorted(self._tables.pools.items())
        return {gpu: pool.notice for gpu, pool in pools if pool.paused}

    async def open_channel(self, guild: str, channel: str) -> None:
        self._channels.add((guild, channel))

    async def close_channel(self, guild: str, channel: str) -> bool:
        was_open = (guild, channel) in self._channels
        self._channels.discard((guild, channel))
        return was_open

    async def claim_part(self, guild: str, kind: str, lease: timedelta) -> bool:
        now = self._tables.clock.now()
        if (guild, kind) in self._parts or self._claims.get((guild, kind), now) > now:
            return False
        self._claims[guild, kind] = now + lease
        return True

    async def keep_part(self, guild: str, kind: str, part: str) -> None:
        self._parts[guild, kind] = part

    async def parts(self) -> dict[tuple[str, str], str]:
        return dict(self._parts)

    async def channels(self, guild: str) -> tuple[str, ...]:
        return tuple(sorted(channel for at, channel in self._channels if at == guild))

    async def set_limit(self, limit: RateLimit) -> None:
        kept = replace(limit, reason=storable(limit.reason))
        self._tables.limits[limit.board, limit.mode, limit.person] = kept

    async def drop_limit(
        self, board: BoardId | None, mode: Mode | None, person: PersonId | None = None
    ) -> bool:
        found = self._tables.limits.pop((board, mode, person), None)
        return found is not None and found.lasts(self._tables.clock.now())

    async def limits(self) -> tuple[RateLimit, ...]:
        now = self._tables.clock.now()
        lasting = [each for each in self._tables.limits.values() if each.lasts(now)]
        lasting.sort(key=lambda each: (each.person or 0, each.board or 0, each.mode or ""))
        return tuple(lasting)

    async def limited_by(
        self, person: PersonId, board: BoardId, mode: Mode, now: datetime
    ) -> tuple[RateLimit, datetime] | None:
        return self._tables.limited_by(person, board, mode, now)


class MemoryAudit:
    """Audit entries, which are added and never changed."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def record(self, actor: PersonId | None, action: str, subject: str, reason: str) -> None:
        request, tables = AUDIT_REQUEST.get(), self._tables
        last = next((each for each in reversed(tables.audit) if each.subject == subject), None)
        before = None if last is None else (last.action, tables.audit_requests.get(last.id))
        if request is not None and before == (action, request):
            return
        tables.decided(actor, action, subject, reason)
        tables.audit_requests[tables.audit[-1].id] = request

    async def rows(
        self, limit: int = 100, skip: int = 0, before: AuditId | None = None
    ) -> tuple[AuditEntry, ...]:
        newest = reversed(self._tables.audit)
        found = [row for row in newest if before is None or row.id < before]
        return tuple(found[skip : skip + limit])
