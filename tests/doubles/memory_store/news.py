"""Listeners and the outbox in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from bot.domain.ids import JobId, NewsId
from bot.domain.news import Letter, News, NewsKind
from bot.ports import Untold
from bot.store.text import storable
from tests.doubles.memory_store.tables import Posted, Tables


class MemoryListeners:
    """The kinds of each addressee."""

    def __init__(self) -> None:
        self._kinds: dict[str, frozenset[NewsKind]] = {}

    async def listen(self, addressee: str, kinds: frozenset[NewsKind]) -> None:
        self._kinds[storable(addressee)] = kinds

    async def kinds(self, addressee: str) -> frozenset[NewsKind]:
        return self._kinds.get(storable(addressee), frozenset())

    async def to(self, kind: NewsKind) -> tuple[str, ...]:
        return tuple(sorted(each for each, kinds in self._kinds.items() if kind in kinds))


class MemoryOutbox:
    """News by key; each is held under a lease."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def untold(self, limit: int = 100) -> tuple[Untold, ...]:
        return tuple(self._untold(job) for job in self._tables.untold[:limit])

    def _untold(self, job: JobId) -> Untold:
        gpu = self._tables.jobs[job].gpu
        submission = self._tables.submissions[self._tables.jobs[job].submission]
        return Untold(
            job,
            submission.id,
            submission.person,
            submission.board,
            submission.task_version,
            gpu,
        )

    async def settle(self, job: JobId, news: Sequence[News]) -> bool:
        if job not in self._tables.untold:
            return False
        self._tables.untold.remove(job)
        await self.put(news)
        return True

    async def put(self, news: Sequence[News]) -> int:
        known = {posted.news.key for posted in self._tables.outbox.values()}
        fresh = {each.key: each for each in news if each.board in self._tables.boards}
        kept = [each for key, each in fresh.items() if storable(key) not in known]
        for each in kept:
            number = NewsId(self._tables.next_id())
            stored = replace(each, key=storable(each.key), text=storable(each.text))
            self._tables.outbox[number] = Posted(stored, self._tables.clock.now())
        return len(kept)

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Letter, ...]:
        now = self._tables.clock.now()
        due = [
            number
            for number, posted in self._tables.outbox.items()
            if posted.done_at is None
            and posted.due <= now
            and (posted.lease_until is None or posted.lease_until <= now)
            and posted.news.addressee.startswith(door)
        ]
        due.sort(key=lambda number: (self._tables.outbox[number].due, number))
        return tuple(sorted((self._take(one, owner, lease) for one in due[:limit]), key=_number))

    def _take(self, number: NewsId, owner: str, lease: timedelta) -> Letter:
        posted = self._tables.outbox[number]
        until = self._tables.clock.now() + lease
        taken = replace(posted, owner=owner, lease_until=until, tries=posted.tries + 1)
        self._tables.outbox[number] = taken
        return Letter(number, posted.news, taken.tries)

    async def sent(self, news: NewsId, owner: str) -> bool:
        return self._leave(news, owner, done_at=self._tables.clock.now())

    async def refused(self, news: NewsId, owner: str, why: str) -> bool:
        return self._leave(news, owner, done_at=self._tables.clock.now(), refusal=storable(why))

    async def again(self, news: NewsId, owner: str, wait: timedelta) -> bool:
        return self._leave(news, owner, due=self._tables.clock.now() + wait)

    def _leave(self, news: NewsId, owner: str, **changes: object) -> bool:
        posted = self._tables.outbox.get(news)
        if posted is None or posted.owner != owner:
            return False
        left = replace(posted, owner=None, lease_until=None, **changes)  # type: ignore[arg-type]
        self._tables.outbox[news] = left
        return True

    async def forget(self, age: timedelta) -> int:
        before = self._tables.clock.now() - age
        old = [
            number
            for number, posted in self._tables.outbox.items()
            if posted.done_at is not None and posted.done_at < before
        ]
        for number in old:
            del self._tables.outbox[number]
        return len(old)


def _number(letter: Letter) -> int:
    return letter.id
