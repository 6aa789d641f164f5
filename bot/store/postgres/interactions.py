"""What people asked a door for, in Postgres."""

from datetime import timedelta

from bot.domain.interaction import KEPT, TOKEN_LIVES, Asked, Unfinished
from bot.ports import Clock
from bot.store.postgres.database import Database


class PostgresInteractions:
    """Commands, clicks and forms by id; each is held under a lease."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def claim(self, asked: Asked, owner: str, lease: timedelta) -> bool:
        now = self._clock.now()
        told = asked.id, asked.door, asked.request, asked.token, asked.at
        row = await self._database.row("interactions.claim", *told, owner, now, now + lease)
        return row is not None

    async def unfinished(
        self, door: str, owner: str, lease: timedelta, silent: timedelta
    ) -> tuple[Unfinished, ...]:
        now = self._clock.now()
        since = now - TOKEN_LIVES
        found = await self._database.rows(
            "interactions.unfinished", door, owner, now - silent, now + lease, since
        )
        taken = [
            Unfinished(row["id"], row["request"], row["token"], row["asked_at"], row["tries"])
            for row in found
        ]
        return tuple(sorted(taken, key=lambda each: each.at))

    async def keep(self, interaction: str, owner: str, lease: timedelta) -> bool:
        return await self._changed("interactions.keep", interaction, owner, lease)

    async def leave(self, interaction: str, owner: str, pause: timedelta) -> bool:
        return await self._changed("interactions.leave", interaction, owner, pause)

    async def finish(self, interaction: str, owner: str) -> bool:
        return await self._changed("interactions.finish", interaction, owner, timedelta())

    async def _changed(self, name: str, interaction: str, owner: str, after: timedelta) -> bool:
        now = self._clock.now()
        return await self._database.row(name, interaction, owner, now + after) is not None

    async def forget(self) -> int:
        now = self._clock.now()
        found = await self._database.rows("interactions.forget", now - TOKEN_LIVES, now - KEPT)
        return len(found)
