"""Accounts, rights and tokens in memory."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.domain.accounts import DELETED_NAME, Person, Rights, Token, TokenHolder, TokenScope
from bot.domain.board import SourceVisibility
from bot.domain.errors import StoreError
from bot.domain.ids import PersonId, SubmissionId, TokenId
from bot.domain.names import skeleton
from bot.domain.records import RightsGrant
from bot.domain.status import redacted
from bot.ports import Clock
from bot.store.postgres.database import storable
from bot.store.postgres.submissions import source_hash
from tests.doubles.memory_store.tables import Tables

_OF_BROWSERS = frozenset({TokenScope.SESSION, TokenScope.ADMIN_SESSION})


class MemoryPeople:
    """Accounts, by id and by identity."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._named_at: dict[PersonId, datetime] = {}

    async def rename(self, person: PersonId, name: str, pause: timedelta) -> Person | None:
        now, known = self._tables.clock.now(), self._tables.people.get(person)
        last = self._named_at.get(person)
        if known is None or known.identity.startswith("deleted:"):
            return None
        if last is not None and last > now - pause:
            return None
        if self._tables.refused_skeletons.get(person) == skeleton(name):
            return None
        self._named_at[person] = now
        self._tables.people[person] = replace(known, name=storable(name))
        return self._tables.people[person]

    async def ensure(self, identity: str, name: str, handle: str = "") -> Person:
        known = await self.find(identity)
        if known is None:
            person_id = PersonId(self._tables.next_id())
            now = self._tables.clock.now()
            known = Person(person_id, storable(identity), storable(name), now)
        person = replace(known, handle=handle or known.handle)
        is_refused = self._tables.refused_skeletons.get(person.id) == skeleton(name)
        if person.id not in self._named_at and not is_refused:
            person = replace(person, name=storable(name))
        self._tables.people[person.id] = person
        return person

    async def get(self, person: PersonId) -> Person | None:
        return self._tables.people.get(person)

    async def find(self, identity: str) -> Person | None:
        wanted = storable(identity)
        people = self._tables.people.values()
        return next((person for person in people if person.identity == wanted), None)

    async def reset_name(self, person: Person) -> Person | None:
        known = self._tables.people[person.id]
        if known.name != person.name:
            return None
        self._tables.refused_skeletons[person.id] = skeleton(person.name)
        known = replace(known, name=person.handle or person.identity)
        self._tables.people[person.id] = known
        return known

    async def offer_notifications(self, person: PersonId, submission: SubmissionId) -> bool:
        return self._tables.notices_offered.setdefault(person, submission) == submission

    async def add_skeletons(self) -> int:
        return 0

    async def deleted(self) -> frozenset[PersonId]:
        people = self._tables.people.values()
        return frozenset(each.id for each in people if each.identity.startswith("deleted:"))

    async def erase(self, person: Person) -> tuple[str, ...]:
        tables = self._tables
        own = {each.id for each in tables.submissions.values() if each.person == person.id}
        for number in own:
            made = tables.submissions[number]
            tables.submissions[number] = replace(
                made,
                source_hash=source_hash(""),
                file_name="deleted",
                warning="",
                note="",
                profile=None,
                consent=SourceVisibility.NEVER,
            )
            tables.displays.pop(number, None)
        tables.sources[source_hash("")] = ""
        used = {each.source_hash for each in tables.submissions.values()}
        for digest in [each for each in tables.sources if each not in used]:
            del tables.sources[digest]
        for job, stored in list(tables.evaluations.items()):
            if tables.jobs[job].submission in own:
                kept = redacted(stored.evaluation)
                tables.evaluations[job] = replace(stored, evaluation=kept)
                tables.files.pop(job, None)
        threads = [row.thread for key, row in tables.threads.items() if key.person == person.id]
        for key in [key for key in tables.threads if key.person == person.id]:
            del tables.threads[key]
        tables.conversations.pop(person.id, None)
        self._named_at.pop(person.id, None)
        identity = f"deleted:{person.id}"
        tables.people[person.id] = replace(person, identity=identity, name=DELETED_NAME, handle="")
        tables.refused_skeletons.pop(person.id, None)
        return tuple(each for each in threads if each is not None)


@dataclass(slots=True)
class MemoryRights:
    """Rights by person and source."""

    clock: Clock
    _rows: dict[tuple[PersonId, str], tuple[Rights, datetime]] = field(default_factory=dict)

    async def replace(self, person: PersonId, source: str, rights: Rights) -> None:
        self._rows[person, source] = rights, self.clock.now()

    async def remove(self, person: PersonId, source: str) -> bool:
        return self._rows.pop((person, source), None) is not None

    async def of(self, person: PersonId) -> Rights:
        found = Rights()
        for (owner, _), (rights, _) in self._rows.items():
            if owner == person:
                found |= rights
        return found

    async def stale(self, kind: str, age: timedelta, limit: int) -> tuple[RightsGrant, ...]:
        before = self.clock.now() - age
        found = sorted(
            (seen_at, person, source)
            for (person, source), (_, seen_at) in self._rows.items()
            if source.startswith(f"{kind}:") and seen_at < before
        )
        return tuple(RightsGrant(person, source) for _, person, source in found[:limit])


class MemoryTokens:
    """Tokens by digest."""

    def __init__(self, tables: Tables, rights: MemoryRights) -> None:
        self._tables, self._rights = tables, rights
        self._tokens: dict[str, Token] = {}

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
        if scope is TokenScope.WORKER and self._of_worker(label):
            raise StoreError(f"worker {label} has a token")
        number, now = TokenId(self._tables.next_id()), self._tables.clock.now()
        token = Token(number, person, storable(label), now, None, scope, expires_at, begun_by)
        self._tokens[digest] = token
        return token

    async def find(self, digest: str) -> Token | None:
        token = self._tokens.get(digest)
        return None if token is None or token.revoked_at is not None else token

    async def find_holder(self, digest: str) -> TokenHolder | None:
        token = await self.find(digest)
        if token is None:
            return None
        return TokenHolder(
            token, self._tables.people[token.person], await self._rights.of(token.person)
        )

    async def of(self, person: PersonId) -> tuple[Token, ...]:
        now = self._tables.clock.now()
        own = (each for each in self._live() if each.person == person and each.is_personal)
        return tuple(sorted((each for each in own if each.is_live(now)), key=_number))

    async def sessions_of(self, person: PersonId) -> tuple[Token, ...]:
        own = (
            each for each in self._live() if each.person == person and each.scope in _OF_BROWSERS
        )
        return tuple(sorted(own, key=_number, reverse=True))

    async def of_workers(self) -> tuple[Token, ...]:
        return tuple(sorted((each for each in self._live() if each.is_worker_token), key=_label))

    async def revoke(self, person: PersonId, token: TokenId) -> bool:
        own = (*await self.of(person), *await self.sessions_of(person))
        return self._end([each for each in own if each.id == token])

    async def revoke_worker(self, label: str) -> bool:
        return self._end(self._of_worker(label))

    def _live(self) -> list[Token]:
        return [each for each in self._tokens.values() if each.revoked_at is None]

    def _of_worker(self, label: str) -> list[Token]:
        wanted = storable(label)
        return [each for each in self._live() if each.is_worker_token and each.label == wanted]

    def _end(self, tokens: list[Token]) -> bool:
        now = self._tables.clock.now()
        ended = {each.id for each in tokens}
        for digest, each in self._tokens.items():
            if each.id in ended or each.begun_by in ended:
                self._tokens[digest] = replace(each, revoked_at=now)
        return bool(tokens)


def _number(token: Token) -> int:
    return token.id


def _label(token: Token) -> str:
    return token.label
