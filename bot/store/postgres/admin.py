"""What admins decide and read in Postgres: moderation, the audit log, and counts."""

from datetime import datetime, timedelta

from asyncpg import Record

from bot.domain.accounts import SYSTEM_IDENTITY
from bot.domain.ids import AuditId, BoardId, PersonId, SubmissionId
from bot.domain.records import AuditEntry, DayCount, Schema, Tally
from bot.domain.submission import Ban, Exclusion, ExclusionKind, NewSubmission, RateLimit
from bot.ports import Clock
from bot.ports.records import AUDIT_REQUEST
from bot.store.migrate import known_migrations
from bot.store.postgres.database import Connection, Database, query
from runners.contract.task import Mode
from runners.contract.verdict import Verdict


class PostgresModeration:
    """The decisions of admins."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def ban(self, person: PersonId, ban: Ban) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(query("moderation.lock_person"), person)
            values = person, ban.reason, self._clock.now(), ban.until
            await connection.execute(query("moderation.ban"), *values)

    async def unban(self, person: PersonId) -> bool:
        row = await self._database.row("moderation.unban", person, self._clock.now())
        return row is not None and bool(row["lasted"])

    async def ban_of(self, person: PersonId) -> Ban | None:
        row = await self._database.row("moderation.ban_of", person, self._clock.now())
        return None if row is None else Ban(row["reason"], row["until"])

    async def bans(self) -> dict[PersonId, Ban]:
        found = await self._database.rows("moderation.bans", self._clock.now())
        return {PersonId(row["person"]): Ban(row["reason"], row["until"]) for row in found}

    async def exclude(self, exclusion: Exclusion) -> None:
        kind, reason = exclusion.kind.value, exclusion.reason
        now = self._clock.now()
        await self._database.rows("moderation.exclude", exclusion.submission, kind, reason, now)

    async def include(self, submission: SubmissionId) -> bool:
        return await self._database.row("moderation.include", submission) is not None

    async def exclusion_of(self, submission: SubmissionId) -> Exclusion | None:
        row = await self._database.row("moderation.exclusion_of", submission)
        if row is None:
            return None
        return Exclusion(submission, ExclusionKind(row["kind"]), row["reason"])

    async def pause(self, notice: str) -> None:
        await self._database.rows("moderation.pause", notice, self._clock.now())

    async def resume(self) -> bool:
        return await self._database.row("moderation.resume") is not None

    async def pause_notice(self) -> str | None:
        row = await self._database.row("moderation.pause_notice")
        return None if row is None else str(row["notice"])

    async def pause_board(self, board: BoardId, notice: str) -> None:
        await self._database.rows("moderation.pause_board", board, notice, self._clock.now())

    async def resume_board(self, board: BoardId) -> bool:
        return await self._database.row("moderation.resume_board", board) is not None

    async def board_pauses(self) -> dict[BoardId, str]:
        found = await self._database.rows("moderation.board_pauses")
        return {BoardId(row["board"]): row["notice"] for row in found}

    async def pause_gpu(self, gpu: str, notice: str) -> None:
        await self._database.rows("moderation.pause_gpu", gpu, notice)

    async def resume_gpu(self, gpu: str) -> bool:
        return await self._database.row("moderation.resume_gpu", gpu) is not None

    async def gpu_pauses(self) -> dict[str, str]:
        found = await self._database.rows("moderation.gpu_pauses")
        return {row["gpu"]: row["notice"] for row in found}

    async def open_channel(self, guild: str, channel: str) -> None:
        await self._database.rows("moderation.open_channel", guild, channel)

    async def close_channel(self, guild: str, channel: str) -> bool:
        return await self._database.row("moderation.close_channel", guild, channel) is not None

    async def channels(self, guild: str) -> tuple[str, ...]:
        return tuple(row["room"] for row in await self._database.rows("moderation.channels", guild))

    async def claim_part(self, guild: str, kind: str, lease: timedelta) -> bool:
        now = self._clock.now()
        row = await self._database.row("moderation.claim_part", guild, kind, now, now + lease)
        return row is not None

    async def keep_part(self, guild: str, kind: str, part: str) -> None:
        await self._database.rows("moderation.keep_part", guild, kind, part, self._clock.now())

    async def parts(self) -> dict[tuple[str, str], str]:
        found = await self._database.rows("moderation.parts")
        return {(row["guild"], row["kind"]): row["part"] for row in found}

    async def set_limit(self, limit: RateLimit) -> None:
        mode = None if limit.mode is None else limit.mode.value
        key, window_s = (limit.board, mode, limit.person), limit.window.total_seconds()
        values = *key, limit.most, window_s, limit.reason, limit.until
        await self._database.rows("moderation.set_limit", *values)

    async def drop_limit(
        self, board: BoardId | None, mode: Mode | None, person: PersonId | None = None
    ) -> bool:
        key = board, None if mode is None else mode.value, person
        row = await self._database.row("moderation.drop_limit", *key, self._clock.now())
        return row is not None and bool(row["lasted"])

    async def limits(self) -> tuple[RateLimit, ...]:
        found = await self._database.rows("moderation.limits", self._clock.now())
        return tuple(map(_limit, found))

    async def limited_by(
        self, person: PersonId, board: BoardId, mode: Mode, now: datetime
    ) -> tuple[RateLimit, datetime] | None:
        async with self._database.connection() as connection:
            return await _limited_by(connection, (person, board, mode, now))


async def admit(connection: Connection, new: NewSubmission, now: datetime) -> None:
    """Raise UserError for a ban or a limit; the person's lock lasts for the transaction.

    The count is a separate statement: it must see what the previous lock holder committed.
    """
    await connection.execute(query("moderation.lock_person"), new.person)
    ban = await connection.fetchrow(query("moderation.ban_of"), new.person, now)
    if ban is not None:
        raise Ban(ban["reason"], ban["until"]).refusal
    reached = await _limited_by(connection, (new.person, new.board, new.mode, now))
    if reached is not None:
        limit, counted = reached
        raise limit.refusal(counted, now)


async def _limited_by(
    connection: Connection, request: tuple[PersonId, BoardId, Mode, datetime]
) -> tuple[RateLimit, datetime] | None:
    """Return the reached limit that lifts last, and the oldest submission it counts."""
    person, board, mode, now = request
    row = await connection.fetchrow(query("moderation.limited_by"), person, board, mode.value, now)
    return None if row is None else (_limit(row), row["counted_at"])


def _limit(row: Record) -> RateLimit:
    return RateLimit(
        most=row["most"],
        window=timedelta(seconds=row["window_s"]),
        board=None if row["board"] is None else BoardId(row["board"]),
        mode=None if row["mode"] is None else Mode(row["mode"]),
        person=None if row["person"] is None else PersonId(row["person"]),
        reason=row["reason"],
        until=row["until"],
    )


class PostgresAudit:
    """Rows that a trigger protects from changes."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def record(self, actor: PersonId | None, action: str, subject: str, reason: str) -> None:
        request, now = AUDIT_REQUEST.get(), self._clock.now()
        await self._database.rows("audit.record", actor, action, subject, reason, now, request)

    async def rows(
        self, limit: int = 100, skip: int = 0, before: AuditId | None = None
    ) -> tuple[AuditEntry, ...]:
        found = await self._database.rows("audit.rows", limit, skip, before)
        return tuple(
            AuditEntry(
                id=AuditId(row["id"]),
                actor=None if row["actor"] is None else PersonId(row["actor"]),
                action=row["action"],
                subject=row["subject"],
                reason=row["reason"],
                at=row["at"],
            )
            for row in found
        )


class PostgresStatistics:
    """Counts, one query each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def people(self) -> int:
        row = await self._database.row("statistics.people", SYSTEM_IDENTITY)
        return 0 if row is None else int(row["count"])

    async def participants(self) -> dict[BoardId, int]:
        found = await self._database.rows("statistics.participants")
        return {BoardId(row["board"]): row["people"] for row in found}

    async def days(self, since: datetime) -> tuple[DayCount, ...]:
        found = await self._database.rows("statistics.days", since)
        return tuple(DayCount(row["day"], row["submissions"], row["people"]) for row in found)

    async def verdicts(self, since: datetime) -> dict[Verdict, int]:
        found = await self._database.rows("statistics.verdicts", since)
        return {Verdict(row["verdict"]): row["count"] for row in found}


class PostgresOperations:
    """Counters maintained by triggers: reading them costs the same at any size."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def schema(self) -> Schema:
        row = await self._database.row("operations.schema")
        return Schema(0 if row is None else row["present"], known_migrations())

    async def tallies(self) -> tuple[Tally, ...]:
        return tuple(
            Tally(
                gpu=row["gpu"],
                mode=row["mode"],
                verdict=row["verdict"],
                evaluations=row["evaluations"],
                judged_s=row["judged_s"],
                waited_s=row["waited_s"],
                judged=tuple(row["judged"]),
                waited=tuple(row["waited"]),
            )
            for row in await self._database.rows("operations.tallies")
        )

    async def lost_leases(self) -> dict[str, int]:
        found = await self._database.rows("operations.lost_leases")
        return {row["gpu"]: row["jobs"] for row in found}

    async def waiting_since(self) -> dict[str, datetime]:
        found = await self._database.rows("operations.waiting_since", self._clock.now())
        return {row["gpu"]: row["since"] for row in found}
