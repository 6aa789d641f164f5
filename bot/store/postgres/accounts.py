"""People, their rights and their tokens in Postgres."""

import hashlib
from datetime import datetime, timedelta

from asyncpg import Record

from bot.domain.accounts import DELETED_NAME, Person, Rights, Token, TokenHolder, TokenScope
from bot.domain.errors import StoreError
from bot.domain.finals import without_names
from bot.domain.ids import PersonId, SubmissionId, TokenId
from bot.domain.names import skeleton
from bot.domain.records import RightsGrant
from bot.domain.status import redacted
from bot.ports import Clock
from bot.store.postgres.database import Connection, Database, query
from runners.contract.evaluation import Evaluation


class PostgresTokens:
    """Tokens by digest."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(
        self,
        person: PersonId,
        digest: str,
        label: str,
        scope: TokenScope = TokenScope.PERSON,
        *,
        expires_at: datetime | None = None,
        begun_by: TokenId | None = None,
    ) -> Token:
        now = self._clock.now()
        row = await self._database.row(
            "tokens.add", person, digest, label, now, scope.value, expires_at, begun_by
        )
        if row is None:
            raise StoreError("the token could not be stored")
        return _token(row)

    async def find(self, digest: str) -> Token | None:
        row = await self._database.row("tokens.find", digest)
        return None if row is None else _token(row)

    async def find_holder(self, digest: str) -> TokenHolder | None:
        row = await self._database.row("tokens.find_holder", digest)
        if row is None:
            return None
        number, handle = PersonId(row["person"]), row["handle"] or ""
        person = Person(number, row["identity"], row["name"], row["joined_at"], handle)
        return TokenHolder(_token(row), person, _rights(row))

    async def of(self, person: PersonId) -> tuple[Token, ...]:
        rows = await self._database.rows("tokens.of", person, self._clock.now())
        return tuple(_token(row) for row in rows)

    async def sessions_of(self, person: PersonId) -> tuple[Token, ...]:
        return tuple(_token(row) for row in await self._database.rows("tokens.sessions_of", person))

    async def of_workers(self) -> tuple[Token, ...]:
        return tuple(_token(row) for row in await self._database.rows("tokens.of_workers"))

    async def revoke_worker(self, label: str) -> bool:
        row = await self._database.row("tokens.revoke_worker", label, self._clock.now())
        return row is not None

    async def revoke(self, person: PersonId, token: TokenId) -> bool:
        row = await self._database.row("tokens.revoke", person, token, self._clock.now())
        return row is not None


def _token(row: Record) -> Token:
    return Token(
        id=TokenId(row["id"]),
        person=PersonId(row["person"]),
        label=row["label"],
        created_at=row["created_at"],
        revoked_at=row["revoked_at"],
        scope=TokenScope(row["scope"]),
        expires_at=row["expires_at"],
        begun_by=None if row["begun_by"] is None else TokenId(row["begun_by"]),
    )


def _rights(row: Record) -> Rights:
    held = frozenset(row["credentials"])
    return Rights(held, is_admin=row["is_admin"], is_creator=row["is_creator"])


class PostgresRights:
    """Rights by person and source."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def replace(self, person: PersonId, source: str, rights: Rights) -> None:
        await self._database.row(
            "rights.replace",
            person,
            source,
            sorted(rights.credentials),
            rights.is_admin,
            rights.is_creator,
            self._clock.now(),
        )

    async def remove(self, person: PersonId, source: str) -> bool:
        return await self._database.row("rights.remove", person, source) is not None

    async def of(self, person: PersonId) -> Rights:
        found = Rights()
        for row in await self._database.rows("rights.of", person):
            found |= _rights(row)
        return found

    async def stale(self, kind: str, age: timedelta, limit: int) -> tuple[RightsGrant, ...]:
        before = self._clock.now() - age
        rows = await self._database.rows("rights.stale", f"{kind}:", before, limit)
        return tuple(RightsGrant(PersonId(row["person"]), row["source"]) for row in rows)


class PostgresPeople:
    """Accounts, by id and by identity."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def ensure(self, identity: str, name: str, handle: str = "") -> Person:
        values = identity, name, skeleton(name), handle or None, self._clock.now()
        row = await self._database.row("people.ensure", *values)
        if row is None:
            raise StoreError(f"the account {identity!r} could not be stored")
        return _person(row)

    async def rename(self, person: PersonId, name: str, pause: timedelta) -> Person | None:
        now = self._clock.now()
        values = person, name, now, now - pause, skeleton(name)
        row = await self._database.row("people.rename", *values)
        return None if row is None else _person(row)

    async def get(self, person: PersonId) -> Person | None:
        row = await self._database.row("people.get", person)
        return None if row is None else _person(row)

    async def find(self, identity: str) -> Person | None:
        row = await self._database.row("people.find", identity)
        return None if row is None else _person(row)

    async def deleted(self) -> frozenset[PersonId]:
        return frozenset(PersonId(row["id"]) for row in await self._database.rows("people.deleted"))

    async def reset_name(self, person: Person) -> Person | None:
        name = person.handle or person.identity
        values = person.id, person.name, name, skeleton(name), skeleton(person.name)
        row = await self._database.row("people.reset_name", *values)
        return None if row is None else _person(row)

    async def offer_notifications(self, person: PersonId, submission: SubmissionId) -> bool:
        row = await self._database.row("people.offer_notifications", person, submission)
        return row is not None and row["notices_offered"] == submission

    async def add_skeletons(self) -> int:
        added = 0
        while rows := await self._database.rows("people.without_skeleton"):
            for row in rows:
                name = row["name"]
                await self._database.row("people.set_skeleton", row["id"], name, skeleton(name))
            added += len(rows)
        return added

    async def erase(self, person: Person) -> tuple[str, ...]:
        async with self._database.transaction() as connection:
            await connection.execute(query("people.lock_all"), person.id)
            threads = await connection.fetch(query("people.threads_of"), person.id)
            own = set[int]()
            for row in await connection.fetch(query("people.evaluations_of"), person.id):
                own.add(row["submission"])
                kept = redacted(Evaluation.model_validate_json(row["evaluation"]))
                text = kept.model_dump_json()
                await connection.execute(query("people.redact"), row["job"], text)
            for row in await connection.fetch(query("people.final_rows_of"), person.id):
                rows = without_names(row["rows"], own, DELETED_NAME)
                await connection.execute(query("people.set_final_rows"), row["id"], rows)
            await _empty_sources(connection, person.id)
            values = person.id, person.identity, DELETED_NAME, skeleton(DELETED_NAME)
            await connection.execute(query("people.erase"), *values)
        return tuple(row["thread"] for row in threads)


async def _empty_sources(connection: Connection, person: PersonId) -> None:
    """Replace the person's sources by empty ones; equal ones of other people stay."""
    empty = hashlib.sha256(b"").hexdigest()
    rows = await connection.fetch(query("people.sources_of"), person, empty)
    await connection.execute(query("people.empty_source"), empty)
    await connection.execute(query("people.empty_submissions"), person, empty)
    await connection.execute(query("people.delete_sources"), [row["source"] for row in rows])


def _person(row: Record) -> Person:
    """Convert a row of `people`."""
    return Person(
        PersonId(row["id"]), row["identity"], row["name"], row["created_at"], row["handle"] or ""
    )
