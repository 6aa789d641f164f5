"""Comparisons of submissions, and finals, in Postgres."""

import json
from collections.abc import Sequence

import asyncpg
from pydantic import TypeAdapter

from bot.domain.confirmation import MOST_ATTEMPTS, PRIORITY, Confirmation, ConfirmationState
from bot.domain.errors import StoreError
from bot.domain.finals import Final, FinalRow, NewFinal
from bot.domain.ids import (
    BoardId,
    ConfirmationId,
    FinalId,
    JobId,
    PersonId,
    SubmissionId,
    TaskVersionId,
)
from bot.domain.scoring import PairRatio, Score, ScoreValue
from bot.ports import Clock
from bot.store.postgres.database import Database, query

_COLUMNS = "time_ns", "half_width_ns", "resolution_ns", "claimed_ns"
_ROWS = TypeAdapter(tuple[FinalRow, ...])


class PostgresConfirmations:
    """Comparisons by number; a row also has the score that is held back, as it was in `scores`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def unfinished(self) -> tuple[tuple[TaskVersionId, str], ...]:
        found = await self._database.rows("confirmations.unfinished")
        return tuple((TaskVersionId(row["task_version"]), row["gpu"]) for row in found)

    async def lock(self, version: TaskVersionId, gpu: str) -> bool:
        row = await self._database.row("confirmations.lock", version, gpu)
        return row is not None and bool(row["locked"])

    async def hold(self, job: JobId, place: int) -> None:
        await self._database.rows("confirmations.hold", job, place, self._clock.now())

    async def of_run(self, run: SubmissionId) -> Confirmation | None:
        found = await self._read("confirmations.of_run", run)
        return found[0] if found else None

    async def of(self, submission: SubmissionId) -> tuple[Confirmation, ...]:
        return await self._read("confirmations.of", submission)

    async def concerning(self, submissions: Sequence[SubmissionId]) -> tuple[Confirmation, ...]:
        return await self._read("confirmations.concerning", list(submissions))

    async def pending(self, version: TaskVersionId, gpu: str) -> tuple[Confirmation, ...]:
        return await self._read("confirmations.pending", version, gpu)

    async def _read(self, name: str, *values: object) -> tuple[Confirmation, ...]:
        return await read_confirmations(self._database, name, *values)

    async def order(
        self,
        confirmation: ConfirmationId,
        rival: SubmissionId,
        system: PersonId,
        *,
        alone: SubmissionId | None = None,
    ) -> None:
        now = self._clock.now()
        values = confirmation, rival, alone, system, now, PRIORITY, MOST_ATTEMPTS
        await self._database.rows("confirmations.order", *values)

    async def count(self, confirmation: ConfirmationId, attempts: int, failures: int) -> None:
        await self._database.rows("confirmations.count", confirmation, attempts, failures)

    async def settle(
        self,
        confirmation: ConfirmationId,
        state: ConfirmationState,
        *,
        ratio: PairRatio | None = None,
        reason: str = "",
    ) -> None:
        measured = (None, None) if ratio is None else (ratio.ratio, ratio.half_width)
        values = confirmation, state.value, *measured, reason, self._clock.now()
        await self._database.rows("confirmations.settle", *values)

    async def enter(self, confirmation: Confirmation, value: ScoreValue) -> None:
        await self._database.rows("confirmations.enter", confirmation.id, *_columns(value))

    async def follow(self, confirmation: Confirmation, value: ScoreValue, place: int) -> None:
        values = *_columns(value), place, self._clock.now()
        await self._database.rows("confirmations.follow", confirmation.id, *values)

    async def refuse(self, confirmation: Confirmation) -> None:
        await self._database.rows("confirmations.refuse", confirmation.id)

    async def compare(self, final: FinalId, submission: SubmissionId, place: int) -> ConfirmationId:
        values = final, submission, place, self._clock.now()
        row = await self._database.row("confirmations.compare", *values)
        if row is None:
            raise StoreError(f"there is no final with id {final}")
        return ConfirmationId(row["id"])


class PostgresFinals:
    """Finals by number."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def start(self, new: NewFinal) -> Final | None:
        values = new.board, new.task_version, new.gpu, new.top, new.actor, self._clock.now()
        row = await self._database.row("confirmations.start_final", *values)
        return None if row is None else _final(row)

    async def of(self, board: BoardId) -> tuple[Final, ...]:
        return tuple(map(_final, await self._database.rows("confirmations.finals_of", board)))

    async def running(self, version: TaskVersionId, gpu: str) -> Final | None:
        row = await self._database.row("confirmations.running_final", version, gpu)
        return None if row is None else _final(row)

    async def unjudged(self, version: TaskVersionId, gpu: str) -> int:
        row = await self._database.row("confirmations.unjudged", version, gpu)
        return 0 if row is None else int(row["jobs"])

    async def begin(self, final: FinalId, entries: tuple[SubmissionId, ...]) -> None:
        await self._database.rows("confirmations.begin_final", final, list(entries))

    async def comparisons(self, final: FinalId) -> tuple[Confirmation, ...]:
        return await read_confirmations(self._database, "confirmations.of_final", final)

    async def rescore(self, score: Score) -> None:
        key = score.submission, score.gpu
        values = _columns(score.value)
        async with self._database.transaction() as connection:
            await connection.execute(query("confirmations.rescore"), *key, *values)
            await connection.execute(query("confirmations.recount"), *key)

    async def end(self, final: FinalId, rows: tuple[FinalRow, ...]) -> None:
        text = _ROWS.dump_json(rows).decode()
        await self._database.rows("confirmations.end_final", final, text, self._clock.now())

    async def cancel(self, final: FinalId) -> tuple[SubmissionId, ...]:
        runs = [each.run for each in await self.comparisons(final) if each.is_pending]
        gone = await self._database.row("confirmations.cancel_final", final)
        return () if gone is None else tuple(each for each in runs if each is not None)


async def read_confirmations(
    database: Database, name: str, *values: object
) -> tuple[Confirmation, ...]:
    """Return the comparisons whose ids the query of this name finds, oldest first."""
    found = [row["id"] for row in await database.rows(name, *values)]
    if not found:
        return ()
    return tuple(map(_confirmation, await database.rows("confirmations.read", found)))


def _columns(value: ScoreValue) -> tuple[float | None, ...]:
    """Return the columns of a score's value."""
    return value.time_ns, value.half_width_ns, value.resolution_ns, value.claimed_ns


def _confirmation(row: asyncpg.Record) -> Confirmation:
    ratio = None if row["ratio"] is None else PairRatio(row["ratio"], row["half_width"])
    held = row["score"] and json.loads(row["score"])
    return Confirmation(
        id=ConfirmationId(row["id"]),
        submission=SubmissionId(row["submission"]),
        person=PersonId(row["person"]),
        person_name=row["person_name"],
        task_version=TaskVersionId(row["task_version"]),
        gpu=row["gpu"],
        place=row["place"],
        state=ConfirmationState(row["state"]),
        created_at=row["created_at"],
        decided_at=row["decided_at"],
        submitted_at=row["submitted_at"],
        final=row["final"],
        held=None if held is None else ScoreValue(*(held[name] for name in _COLUMNS)),
        rival=row["rival"],
        rival_name=row["rival_name"],
        run=row["run"],
        alone=row["alone"],
        attempts=row["attempts"],
        failures=row["failures"],
        ratio=ratio,
        reason=row["reason"],
    )


def _final(row: asyncpg.Record) -> Final:
    entries: Sequence[int] | None = row["entries"]
    return Final(
        id=FinalId(row["id"]),
        board=BoardId(row["board"]),
        task_version=TaskVersionId(row["task_version"]),
        gpu=row["gpu"],
        top=row["top"],
        created_at=row["created_at"],
        entries=None if entries is None else tuple(map(SubmissionId, entries)),
        rows=None if row["rows"] is None else _ROWS.validate_json(row["rows"]),
        ended_at=row["ended_at"],
        compared=row["compared"],
        comparison_s=row["comparison_s"],
    )
