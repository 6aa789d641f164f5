"""Alerts for admins, their messages, and fingerprints of sources, in Postgres."""

from collections.abc import Sequence
from datetime import timedelta

from bot.domain.alerts import AlertMessage, RankedSource
from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from bot.ports import Clock
from bot.store.postgres.database import Database

_DAY = timedelta(days=1)
_KEPT = timedelta(days=30)


class PostgresAlerts:
    """Alerts by key; each message is held by one process at a time."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def begin(self, key: str, text: str, again_within: timedelta) -> None:
        now = self._clock.now()
        if await self._database.row("alerts.go_on", key, now - again_within) is None:
            await self._database.rows("alerts.begin", key, text, now)

    async def end_except(self, keys: Sequence[str]) -> int:
        now = self._clock.now()
        await self._database.rows("alerts.delete_old", now - _KEPT)
        return len(await self._database.rows("alerts.end_except", list(keys), now))

    async def report_once(self, key: str, text: str) -> None:
        await self._database.rows("alerts.report_once", key, text, self._clock.now())

    async def claim(
        self, addressees: Sequence[str], owner: str, lease: timedelta
    ) -> tuple[AlertMessage, ...]:
        now = self._clock.now()
        await self._database.rows("alerts.add_messages", list(addressees), now)
        rows = await self._database.rows("alerts.claim", list(addressees), owner, now, now + lease)
        return tuple(
            AlertMessage(
                alert=row["alert"],
                addressee=row["addressee"],
                text=row["text"],
                began_at=row["began_at"],
                ended_at=row["ended_at"],
                message=row["message"],
                tries=row["tries"],
            )
            for row in rows
        )

    async def mark_sent(self, claimed: AlertMessage, owner: str, message: str) -> bool:
        now, has_ended = self._clock.now(), claimed.ended_at is not None
        key = claimed.alert, claimed.addressee, owner
        return (
            await self._database.row("alerts.mark_sent", *key, message, has_ended, now) is not None
        )

    async def retry_later(self, claimed: AlertMessage, owner: str, wait: timedelta) -> bool:
        key = claimed.alert, claimed.addressee, owner
        due = self._clock.now() + wait
        return await self._database.row("alerts.retry_later", *key, due) is not None

    async def without_fingerprint(self) -> tuple[RankedSource, ...]:
        rows = await self._database.rows("alerts.without_fingerprint", self._clock.now() - _DAY)
        return tuple(
            RankedSource(
                SubmissionId(row["submission"]),
                PersonId(row["person"]),
                BoardId(row["board"]),
                TaskVersionId(row["task_version"]),
                row["source"].decode(errors="replace"),
            )
            for row in rows
        )

    async def fingerprints_of_others(
        self, board: BoardId, person: PersonId, length: int
    ) -> tuple[tuple[RankedSource, frozenset[int]], ...]:
        rows = await self._database.rows("alerts.fingerprints_of_others", board, person, length)
        return tuple(
            (
                RankedSource(
                    SubmissionId(row["submission"]),
                    PersonId(row["person"]),
                    board,
                    TaskVersionId(row["task_version"]),
                ),
                frozenset(row["prints"]),
            )
            for row in rows
        )

    async def save_fingerprint(self, of: RankedSource, fingerprint: frozenset[int]) -> None:
        await self._database.rows("alerts.save_fingerprint", of.submission, sorted(fingerprint))
