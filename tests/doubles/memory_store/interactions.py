"""Unfinished Discord interactions, in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.domain.records import (
    REQUEST_TTL,
    TOKEN_TTL,
    InteractionRequest,
    OpenRequest,
    Question,
)
from bot.domain.submission import KeptAnswer, UntoldOutcome
from bot.ports import Clock
from bot.store.postgres.database import storable

_MOST = 10
"""The most interactions that one process claims at once."""


@dataclass(slots=True)
class _Row:
    """An interaction, and the process that handles it."""

    door: str
    told: OpenRequest = field(repr=False)
    owner: str | None
    lease_until: datetime
    done_at: datetime | None = None


@dataclass(slots=True)
class _Untold:
    """An outcome, and the interaction whose answer begins with it."""

    outcome: UntoldOutcome
    at: datetime
    teller: str | None = None


class MemoryInteractions:
    """Commands, clicks and forms by id; each is held under a lease."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[str, _Row] = {}
        self._questions: dict[str, Question] = {}
        self._answers: dict[str, str] = {}
        self._untold: dict[str, _Untold] = {}

    async def claim(self, request: InteractionRequest, owner: str, lease: timedelta) -> bool:
        now = self._clock.now()
        row = self._rows.get(request.id)
        if row is None:
            told = OpenRequest(
                request.id, storable(request.request), request.token, request.at, tries=1
            )
            self._rows[request.id] = _Row(request.door, told, owner, now + lease)
            return True
        if row.done_at is not None or row.lease_until > now:
            return False
        self._take(row, owner, now + lease)
        return True

    async def claim_unfinished(
        self, door: str, owner: str, lease: timedelta, silent: timedelta
    ) -> tuple[OpenRequest, ...]:
        now = self._clock.now()
        free = [
            row
            for row in self._rows.values()
            if row.door == door and row.done_at is None and row.lease_until <= now - silent
        ]
        free.sort(key=lambda row: row.told.at)
        for row in free[:_MOST]:
            row.owner, row.lease_until = owner, now + lease
            if row.told.at <= now - TOKEN_TTL:
                row.told = replace(row.told, token=None)
        return tuple(row.told for row in free[:_MOST])

    async def begin(self, interaction: str, owner: str, lease: timedelta) -> bool:
        row = self._held(interaction, owner)
        if row is not None:
            self._take(row, owner, self._clock.now() + lease)
        return row is not None

    async def renew(self, interaction: str, owner: str, lease: timedelta) -> bool:
        row = self._held(interaction, owner)
        if row is not None:
            row.lease_until = self._clock.now() + lease
        return row is not None

    async def release(self, interaction: str, owner: str, pause: timedelta) -> bool:
        row = self._held(interaction, owner)
        if row is not None:
            row.owner, row.lease_until = None, self._clock.now() + pause
            row.told = replace(row.told, tries=row.told.tries - 1)
        return row is not None

    async def save_request(self, interaction: str, owner: str, request: str) -> bool:
        row = self._held(interaction, owner)
        if row is not None:
            row.told = replace(row.told, request=storable(request))
        return row is not None

    async def finish(
        self,
        interaction: str,
        owner: str,
        *,
        keep_token: bool = False,
        told: bool = False,
        untold: UntoldOutcome | None = None,
    ) -> bool:
        row = self._held(interaction, owner)
        if row is None:
            return False
        row.owner, row.done_at = None, self._clock.now()
        token = row.told.token if keep_token else None
        row.told = replace(row.told, request="", token=token)
        if told:
            rest = {key: each for key, each in self._untold.items() if each.teller != interaction}
            self._untold = rest
        if untold is not None:
            stored = replace(untold, said=storable(untold.said))
            self._untold.setdefault(interaction, _Untold(stored, row.done_at))
        return True

    async def take_untold(self, addressee: str, interaction: str) -> str | None:
        since = self._clock.now() - REQUEST_TTL
        free = [
            (each.teller != interaction, each.at, key)
            for key, each in self._untold.items()
            if each.outcome.addressee == addressee
            and each.at > since
            and (each.teller in {None, interaction} or not self._is_open(each.teller))
        ]
        if not free:
            return None
        taken = self._untold[min(free)[2]]
        taken.teller = interaction
        return taken.outcome.said

    def _is_open(self, interaction: str | None) -> bool:
        row = self._rows.get(interaction or "")
        return row is not None and row.done_at is None

    async def answer_of(self, interaction: str) -> KeptAnswer:
        row = self._rows.get(interaction)
        if row is None:
            return KeptAnswer()
        is_valid = row.told.at > self._clock.now() - TOKEN_TTL
        return KeptAnswer(row.done_at is not None, row.told.token if is_valid else None)

    async def drop_token(self, interaction: str) -> bool:
        row = self._rows.get(interaction)
        if row is None or row.done_at is None or row.told.token is None:
            return False
        row.told = replace(row.told, token=None)
        return True

    async def ask(self, question: Question) -> None:
        stored = replace(question, request=storable(question.request))
        self._questions.setdefault(question.id, stored)

    async def question(self, interaction: str) -> Question | None:
        found = self._questions.get(interaction)
        is_valid = found is not None and found.at > self._clock.now() - TOKEN_TTL
        return found if is_valid else None

    async def choose(self, interaction: str, offered: Sequence[str], chosen: Sequence[str]) -> None:
        found = self._questions.get(interaction)
        if found is not None:
            kept = [each for each in found.chosen if each not in offered]
            self._questions[interaction] = replace(found, chosen=(*kept, *chosen))

    async def answer_question(self, interaction: str, by: str) -> bool:
        if interaction not in self._questions:
            return False
        return self._answers.setdefault(interaction, by) == by

    async def delete_finished(self) -> int:
        now = self._clock.now()
        rows = self._rows.values()
        stale = [row for row in rows if row.told.token and row.told.at <= now - TOKEN_TTL]
        for row in stale:
            row.told = replace(row.told, token=None)
        old = [
            each
            for each, row in self._rows.items()
            if row.done_at and row.done_at <= now - REQUEST_TTL
        ]
        for each in old:
            del self._rows[each]
        expired = [each for each, row in self._questions.items() if row.at <= now - TOKEN_TTL]
        for each in expired:
            del self._questions[each]
            self._answers.pop(each, None)
        unread = [key for key, each in self._untold.items() if each.at <= now - REQUEST_TTL]
        for each in unread:
            del self._untold[each]
        return len(stale) + len(old) + len(expired) + len(unread)

    @staticmethod
    def _take(row: _Row, owner: str, until: datetime) -> None:
        row.owner, row.lease_until = owner, until
        row.told = replace(row.told, tries=row.told.tries + 1)

    def _held(self, interaction: str, owner: str) -> _Row | None:
        row = self._rows.get(interaction)
        return None if row is None or row.owner != owner or row.done_at is not None else row
