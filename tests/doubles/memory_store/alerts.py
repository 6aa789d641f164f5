"""Alerts for admins in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.domain.alerts import AlertMessage, RankedSource
from bot.domain.ids import BoardId, PersonId, SubmissionId, is_system_submission
from runners.contract.task import Mode
from tests.doubles.memory_store.tables import Tables

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class AlertRow:
    """An alert, and whether it is reported only once."""

    key: str
    text: str
    began_at: datetime
    ended_at: datetime | None = None
    once: bool = False


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message about an alert, and the process that holds it."""

    due: datetime
    message: str | None = None
    has_ended: bool = False
    tries: int = 0
    owner: str | None = None


@dataclass(slots=True)
class MemoryAlerts:
    """Alerts by number, messages by alert and addressee."""

    tables: Tables
    rows: dict[int, AlertRow] = field(default_factory=dict)
    messages: dict[tuple[int, str], MessageRow] = field(default_factory=dict)
    prints: dict[SubmissionId, frozenset[int]] = field(default_factory=dict)

    async def begin(self, key: str, text: str, again_within: timedelta) -> None:
        now = self.tables.clock.now()
        known = {number: row for number, row in self.rows.items() if row.key == key}
        if any(row.ended_at is None for row in known.values()):
            return
        last = max(known, default=None)
        ended_at = None if last is None else known[last].ended_at
        if last is not None and ended_at is not None and ended_at > now - again_within:
            self.rows[last] = replace(known[last], ended_at=None)
        else:
            self.rows[self.tables.next_id()] = AlertRow(key, text, now)

    async def end_except(self, keys: Sequence[str]) -> int:
        ended = [
            number
            for number, row in self.rows.items()
            if row.ended_at is None and not row.once and row.key not in keys
        ]
        for number in ended:
            self.rows[number] = replace(self.rows[number], ended_at=self.tables.clock.now())
        return len(ended)

    async def report_once(self, key: str, text: str) -> None:
        if all(row.key != key for row in self.rows.values()):
            now = self.tables.clock.now()
            self.rows[self.tables.next_id()] = AlertRow(key, text, now, once=True)

    async def claim(
        self, addressees: Sequence[str], owner: str, lease: timedelta
    ) -> tuple[AlertMessage, ...]:
        now = self.tables.clock.now()
        for number, row in self.rows.items():
            if row.ended_at is None and (not row.once or row.began_at > now - _HOUR):
                for each in addressees:
                    self.messages.setdefault((number, each), MessageRow(now))
        found = [
            key for key, row in sorted(self.messages.items()) if self._is_due(key, row, addressees)
        ]
        for key in found[:5]:
            tries = self.messages[key].tries + 1
            self.messages[key] = replace(
                self.messages[key], owner=owner, due=now + lease, tries=tries
            )
        return tuple(self._message(*key) for key in found[:5])

    def _is_due(self, key: tuple[int, str], row: MessageRow, addressees: Sequence[str]) -> bool:
        has_ended = self.rows[key[0]].ended_at is not None
        if key[1] not in addressees or row.due > self.tables.clock.now():
            return False
        if row.message is None:
            return not has_ended or row.tries > 0
        return row.has_ended != has_ended

    def _message(self, number: int, addressee: str) -> AlertMessage:
        row, message = self.rows[number], self.messages[number, addressee]
        times = row.began_at, row.ended_at
        return AlertMessage(number, addressee, row.text, *times, message.message, message.tries)

    def _held(self, claimed: AlertMessage, owner: str) -> bool:
        return self.messages[claimed.alert, claimed.addressee].owner == owner

    async def mark_sent(self, claimed: AlertMessage, owner: str, message: str) -> bool:
        if not self._held(claimed, owner):
            return False
        now, has_ended = self.tables.clock.now(), claimed.ended_at is not None
        self.messages[claimed.alert, claimed.addressee] = MessageRow(now, message, has_ended, 1)
        return True

    async def retry_later(self, claimed: AlertMessage, owner: str, wait: timedelta) -> bool:
        if not self._held(claimed, owner):
            return False
        key, due = (claimed.alert, claimed.addressee), self.tables.clock.now() + wait
        self.messages[key] = replace(self.messages[key], owner=None, due=due)
        return True

    async def without_fingerprint(self) -> tuple[RankedSource, ...]:
        since, scored = self.tables.clock.now() - _DAY, {
            self.tables.jobs[job].submission for job in self.tables.scores
        }  # fmt: skip
        return tuple(
            self._ranked_source(number)
            for number, each in sorted(self.tables.submissions.items())
            if each.mode is Mode.RANKED and not is_system_submission(number)
            if each.created_at > since and number in scored and number not in self.prints
        )[:20]

    def _ranked_source(self, number: SubmissionId) -> RankedSource:
        made = self.tables.submissions[number]
        source = self.tables.sources[made.source_hash]
        return RankedSource(number, made.person, made.board, made.task_version, source)

    async def fingerprints_of_others(
        self, board: BoardId, person: PersonId, length: int
    ) -> tuple[tuple[RankedSource, frozenset[int]], ...]:
        newest: dict[PersonId, SubmissionId] = {}
        for number in sorted(self.prints):
            made = self.tables.submissions[number]
            if made.board == board and made.person != person:
                newest[made.person] = number
        return tuple(
            (replace(self._ranked_source(number), source=""), self.prints[number])
            for number in newest.values()
            if length // 2 <= len(self.prints[number]) <= 2 * length
        )

    async def save_fingerprint(self, of: RankedSource, fingerprint: frozenset[int]) -> None:
        self.prints.setdefault(of.submission, fingerprint)
