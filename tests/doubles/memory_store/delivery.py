"""Displays and notifications in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from bot.domain.ids import JobId, NotificationId, PersonId, SubmissionId
from bot.domain.notifications import Delivery, Notification, NotificationKind
from bot.domain.records import UnannouncedScore
from bot.domain.submission import Display, ThreadKey
from bot.store.postgres.database import storable
from tests.doubles.memory_store.tables import Posted, Shown, Tables, ThreadRow


class MemoryDisplays:
    """Displays by submission; each is held under a lease."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1000
    ) -> tuple[Display, ...]:
        now = self._tables.clock.now()
        free = [
            number
            for number, shown in sorted(self._tables.displays.items())
            if shown.door == door
            and not shown.finished
            and (shown.lease_until is None or shown.lease_until <= now)
        ]
        for number in free[:limit]:
            claims = self._tables.displays[number].claims + 1
            self._put(number, owner=owner, lease_until=now + lease, claims=claims)
        return tuple(self._display(number) for number in free[:limit])

    async def renew(self, owner: str, lease: timedelta) -> tuple[SubmissionId, ...]:
        now = self._tables.clock.now()
        kept = tuple(
            number
            for number, shown in self._held(owner)
            if shown.lease_until is not None and shown.lease_until > now
        )
        for number in kept:
            self._put(number, lease_until=now + lease)
        return kept

    async def save_state(self, submission: SubmissionId, owner: str, place: str) -> bool:
        if submission not in dict(self._held(owner)):
            return False
        self._put(submission, place=storable(place))
        return True

    async def finish(self, submission: SubmissionId, owner: str, place: str) -> bool:
        if not await self.save_state(submission, owner, place):
            return False
        self._put(submission, owner=None, lease_until=None, finished=True)
        return True

    async def release_all(self, owner: str) -> int:
        held = [number for number, _ in self._held(owner)]
        for number in held:
            self._put(number, owner=None, lease_until=None)
        return len(held)

    async def find(self, submission: SubmissionId) -> Display | None:
        return self._display(submission) if submission in self._tables.displays else None

    async def save_conversation(self, person: PersonId, conversation: str) -> None:
        self._tables.conversations[person] = conversation

    async def conversation(self, person: PersonId) -> str | None:
        return self._tables.conversations.get(person)

    def _held(self, owner: str) -> Iterator[tuple[SubmissionId, Shown]]:
        for number, shown in sorted(self._tables.displays.items()):
            if shown.owner == owner and not shown.finished:
                yield number, shown

    def _put(self, number: SubmissionId, **changes: object) -> None:
        self._tables.displays[number] = replace(self._tables.displays[number], **changes)  # type: ignore[arg-type]

    def _display(self, number: SubmissionId) -> Display:
        shown = self._tables.displays[number]
        person = self._tables.submissions[number].person
        return Display(number, person, shown.door, shown.place, shown.claims)


class MemoryBoardThreads:
    """Threads by their keys; each is created under a lease."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def find(self, key: ThreadKey) -> str | None:
        row = self._tables.threads.get(key)
        return None if row is None else row.thread

    async def claim(
        self, key: ThreadKey, owner: str, lease: timedelta, lost: str | None = None
    ) -> int | None:
        now = self._tables.clock.now()
        row = self._tables.threads.get(key, ThreadRow(now))
        if row.thread not in {None, lost} or (row.lease_until and row.lease_until > now):
            return None
        claims = row.claims + 1
        self._put(key, row, owner=owner, lease_until=now + lease, claims=claims)
        return claims

    async def renew(self, key: ThreadKey, owner: str, lease: timedelta) -> bool:
        row = self._tables.threads.get(key)
        if row is None or row.owner != owner:
            return False
        self._put(key, row, lease_until=self._tables.clock.now() + lease)
        return True

    async def save(self, key: ThreadKey, owner: str, thread: str) -> bool:
        now = self._tables.clock.now()
        return self._end(key, owner, thread=thread, used_at=now)

    async def release(self, key: ThreadKey, owner: str) -> bool:
        return self._end(key, owner)

    async def use(self, key: ThreadKey) -> bool:
        row = self._tables.threads.get(key)
        if row is not None:
            self._put(key, row, used_at=self._tables.clock.now())
        return row is not None

    async def idle(self, door: str, guild: str) -> tuple[str, ...]:
        busy = {
            (self._tables.submissions[number].board, self._tables.submissions[number].person)
            for number, shown in self._tables.displays.items()
            if shown.door == door and not shown.finished
        }
        found = [
            (row.used_at, row.thread)
            for key, row in self._tables.threads.items()
            if (key.door, key.guild) == (door, guild)
            and key.person is not None
            and row.thread is not None
            and (key.board, key.person) not in busy
        ]
        return tuple(thread for _, thread in sorted(found))

    def _end(self, key: ThreadKey, owner: str, **changes: object) -> bool:
        row = self._tables.threads.get(key)
        if row is None or row.owner != owner:
            return False
        self._put(key, row, owner=None, lease_until=None, **changes)
        return True

    def _put(self, key: ThreadKey, row: ThreadRow, **changes: object) -> None:
        self._tables.threads[key] = replace(row, **changes)  # type: ignore[arg-type]


class MemoryListeners:
    """The kinds of each addressee."""

    def __init__(self) -> None:
        self._kinds: dict[str, frozenset[NotificationKind]] = {}

    async def listen(self, addressee: str, kinds: frozenset[NotificationKind]) -> None:
        self._kinds[storable(addressee)] = kinds

    async def kinds(self, addressee: str) -> frozenset[NotificationKind]:
        return self._kinds.get(storable(addressee), frozenset())

    async def to(self, kind: NotificationKind) -> tuple[str, ...]:
        return tuple(sorted(each for each, kinds in self._kinds.items() if kind in kinds))


class MemoryOutbox:
    """Notifications by key; each is held under a lease."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def unannounced(self, limit: int = 100) -> tuple[UnannouncedScore, ...]:
        return tuple(self._unannounced(job) for job in self._tables.unannounced[:limit])

    def _unannounced(self, job: JobId) -> UnannouncedScore:
        gpu = self._tables.jobs[job].gpu
        submission = self._tables.submissions[self._tables.jobs[job].submission]
        return UnannouncedScore(
            job,
            submission.id,
            submission.person,
            submission.board,
            submission.task_version,
            gpu,
        )

    async def mark_announced(self, job: JobId, notifications: Sequence[Notification]) -> bool:
        if job not in self._tables.unannounced:
            return False
        self._tables.unannounced.remove(job)
        await self.put(notifications)
        return True

    async def put(self, notifications: Sequence[Notification]) -> int:
        known = {posted.notification.key for posted in self._tables.outbox.values()}
        boards = {None, *self._tables.boards}
        fresh = {each.key: each for each in notifications if each.board in boards}
        kept = [each for key, each in fresh.items() if storable(key) not in known]
        for each in kept:
            number = NotificationId(self._tables.next_id())
            stored = replace(each, key=storable(each.key), text=storable(each.text))
            self._tables.outbox[number] = Posted(stored, self._tables.clock.now())
        return len(kept)

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Delivery, ...]:
        now = self._tables.clock.now()
        due = [
            number
            for number, posted in self._tables.outbox.items()
            if posted.done_at is None
            and posted.due <= now
            and (posted.lease_until is None or posted.lease_until <= now)
            and posted.notification.addressee.startswith(door)
        ]
        due.sort(key=lambda number: (self._tables.outbox[number].due, number))
        return tuple(sorted((self._take(one, owner, lease) for one in due[:limit]), key=_number))

    def _take(self, number: NotificationId, owner: str, lease: timedelta) -> Delivery:
        posted = self._tables.outbox[number]
        until = self._tables.clock.now() + lease
        taken = replace(posted, owner=owner, lease_until=until, tries=posted.tries + 1)
        self._tables.outbox[number] = taken
        return Delivery(number, posted.notification, taken.tries)

    async def mark_sent(self, notification: NotificationId, owner: str) -> bool:
        return self._leave(notification, owner, done_at=self._tables.clock.now())

    async def mark_refused(self, notification: NotificationId, owner: str, why: str) -> bool:
        return self._leave(
            notification, owner, done_at=self._tables.clock.now(), refusal=storable(why)
        )

    async def retry_later(self, notification: NotificationId, owner: str, wait: timedelta) -> bool:
        return self._leave(notification, owner, due=self._tables.clock.now() + wait)

    def _leave(self, notification: NotificationId, owner: str, **changes: object) -> bool:
        posted = self._tables.outbox.get(notification)
        if posted is None or posted.owner != owner:
            return False
        left = replace(posted, owner=None, lease_until=None, **changes)  # type: ignore[arg-type]
        self._tables.outbox[notification] = left
        return True

    async def delete_finished(self, age: timedelta) -> int:
        before = self._tables.clock.now() - age
        old = [
            number
            for number, posted in self._tables.outbox.items()
            if posted.done_at is not None and posted.done_at < before
        ]
        for number in old:
            del self._tables.outbox[number]
        return len(old)


def _number(delivery: Delivery) -> int:
    return delivery.id
