"""Publications, and the runs of their checks, in memory."""

import json
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count

from bot.domain.costs import limit_and_cards
from bot.domain.ids import NO_SUBMISSION, CheckRunId, JobId, PersonId, PublicationId
from bot.domain.job import CHECK_ATTEMPTS, CHECK_PRIORITY, Job, JobState, QueuedRun
from bot.domain.publication import PER_PERSON, NewPublication, Publication, PublicationSummary
from bot.services.publishing.queued_runner import COMMAND
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.task import TaskDefinition
from runners.contract.verdict import Verdict
from tests.doubles.memory_store.tables import StoredRun, Tables


@dataclass(slots=True)
class _Row:
    """A publication, and the process of its front end that holds it."""

    door: str
    publication: Publication
    owner: str | None = None
    lease_until: datetime | None = None
    ended_at: datetime | None = None
    cancelled: str | None = None


class MemoryPublications:
    """Publications by number; each is held under a lease."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._clock = tables.clock
        self._numbers = count(1)
        self._rows: dict[PublicationId, _Row] = {}

    def open_person(self, publication: PublicationId) -> PersonId | None:
        """The person of a publication that has not ended and is not cancelled."""
        row = self._rows.get(publication)
        ended = row is None or row.ended_at is not None or row.cancelled is not None
        return None if row is None or ended else row.publication.person

    async def add(self, publication: NewPublication) -> PublicationId:
        number = PublicationId(next(self._numbers))
        stored = Publication(
            number,
            publication.person,
            publication.zip,
            publication.wish,
            publication.place,
            tries=0,
        )
        self._rows[number] = _Row(publication.door, stored)
        return number

    async def claim(
        self, door: str, owner: str, lease: timedelta, limit: int = 1
    ) -> tuple[Publication, ...]:
        now = self._clock.now()
        rows = [row for row in self._rows.values() if row.door == door and row.ended_at is None]
        free, places = [], Counter(row.publication.person for row in rows if _is_held(row, now))
        for row in rows:
            if not _is_held(row, now):
                places[row.publication.person] += 1
                if places[row.publication.person] <= PER_PERSON:
                    free.append(row)
        for row in free[:limit]:
            row.owner, row.lease_until = owner, now + lease
            row.publication = replace(row.publication, tries=row.publication.tries + 1)
        return tuple(row.publication for row in free[:limit])

    async def renew(self, owner: str, lease: timedelta) -> tuple[PublicationId, ...]:
        now = self._clock.now()
        held = [row for row in self._held(owner) if row.lease_until and row.lease_until > now]
        for row in held:
            row.lease_until = now + lease
        return tuple(row.publication.id for row in held)

    async def save_state(
        self,
        publication: PublicationId,
        owner: str,
        *,
        state: str | None = None,
        place: str | None = None,
    ) -> bool:
        row = self._rows.get(publication)
        if row is None or row.owner != owner:
            return False
        before = row.publication
        row.publication = replace(before, state=state or before.state, place=place or before.place)
        return True

    async def cancel(
        self, person: PersonId, why: str, publication: PublicationId | None = None
    ) -> tuple[PublicationId, ...]:
        found = [
            number
            for number, row in self._rows.items()
            if row.publication.person == person
            and publication in {None, number}
            and row.ended_at is None
            and row.cancelled is None
            and not _has_passed(row.publication.state)
        ]
        for number in found:
            self._rows[number].cancelled = why
        return tuple(found)

    async def cancellation(self, publication: PublicationId) -> str | None:
        row = self._rows.get(publication)
        return None if row is None else row.cancelled

    async def finish(self, publication: PublicationId, owner: str) -> bool:
        row = self._rows.get(publication)
        if row is None or row.owner != owner:
            return False
        del self._rows[publication]
        self._tables.forget_check_runs(publication)
        return True

    async def end(self, publication: PublicationId, owner: str, *, keep_zip: bool = False) -> bool:
        if not await self.save_state(publication, owner):
            return False
        row = self._rows[publication]
        for each in self._rows.values():
            same = (each.door, each.publication.person) == (row.door, row.publication.person)
            if (each is row and not keep_zip) or (
                each is not row and keep_zip and same and each.ended_at is not None
            ):
                each.publication = replace(each.publication, zip=b"")
        row.ended_at, row.owner, row.lease_until = self._clock.now(), None, None
        self._tables.forget_check_runs(publication)
        return True

    async def repeat(
        self, door: str, publication: PublicationId, request: str
    ) -> PublicationId | None:
        row = self._rows.get(publication)
        if row is None or row.door != door or row.ended_at is None or not row.publication.zip:
            return None
        kept = row.publication
        row.publication = replace(kept, zip=b"")
        return await self.add(NewPublication(door, kept.person, kept.zip, request, kept.place))

    async def kept_zip(self, door: str, publication: PublicationId) -> bytes | None:
        row = self._rows.get(publication)
        if row is None or row.door != door or row.ended_at is None:
            return None
        return row.publication.zip or None

    async def summary(
        self, door: str | None, publication: PublicationId
    ) -> PublicationSummary | None:
        row = self._rows.get(publication)
        return None if row is None or door not in {None, row.door} else _note(row)

    async def summaries_of(self, door: str, person: PersonId) -> tuple[PublicationSummary, ...]:
        rows = reversed(self._rows.values())
        found = [each for each in rows if (each.door, each.publication.person) == (door, person)]
        return tuple(map(_note, found[:100]))

    async def delete_ended(self, ended_before: datetime) -> int:
        old = [n for n, row in self._rows.items() if _is_old(row, ended_before)]
        for number in old:
            del self._rows[number]
            self._tables.forget_check_runs(number)
        return len(old)

    async def release_all(self, owner: str) -> int:
        held = self._held(owner)
        for row in held:
            row.owner = row.lease_until = None
            row.publication = replace(row.publication, tries=row.publication.tries - 1)
        return len(held)

    def _held(self, owner: str) -> list[_Row]:
        return [row for row in self._rows.values() if row.owner == owner]


def _is_held(row: _Row, now: datetime) -> bool:
    return row.lease_until is not None and row.lease_until > now


def _has_passed(state: str) -> bool:
    read = json.loads(state)
    return bool(read.get("publishing")) or read.get("outcome") is not None


def _is_old(row: _Row, before: datetime) -> bool:
    of_command = row.door.startswith(f"{COMMAND}-")
    until = row.lease_until if of_command else row.ended_at
    return until is not None and until < before


def _note(row: _Row) -> PublicationSummary:
    one = row.publication
    return PublicationSummary(
        one.id, one.person, one.wish, one.state, one.tries, row.ended_at, bool(one.zip)
    )


class MemoryCheckRuns:
    """Runs by the number of their job, which is also their own."""

    def __init__(self, tables: Tables, publications: MemoryPublications) -> None:
        self._tables = tables
        self._publications = publications
        self._tasks: dict[tuple[PublicationId, str], TaskDefinition] = {}

    async def store_task(self, publication: PublicationId, digest: str, definition: str) -> None:
        if self._publications.open_person(publication) is not None:
            self._tasks[publication, digest] = TaskDefinition.model_validate_json(definition)

    async def add(
        self, publication: PublicationId, key: str, request: EvaluationRequest, digest: str
    ) -> JobId | None:
        person = self._publications.open_person(publication)
        if person is None:
            return None
        for number, run in self._tables.check_runs.items():
            if (run.publication, run.key) == (publication, key):
                return number
        job = self._new_job(person, request)
        request = request.model_copy(update={"task": self._tasks[publication, digest]})
        self._tables.check_runs[job.id] = StoredRun(publication, key, request.model_dump_json())
        self._tables.put(job)
        return job.id

    def _new_job(self, person: PersonId, request: EvaluationRequest) -> Job:
        number, now = self._tables.next_id(), self._tables.clock.now()
        limit_s, cards = limit_and_cards(request.task, request.mode, request.gpu)
        return Job(
            id=JobId(number),
            submission=NO_SUBMISSION,
            person=person,
            gpu=request.gpu,
            mode=request.mode,
            priority=CHECK_PRIORITY,
            turn=self._tables.next_turn(person, request.gpu, CHECK_PRIORITY),
            state=JobState.QUEUED,
            attempt=0,
            max_attempts=CHECK_ATTEMPTS,
            fence=0,
            worker=None,
            call=None,
            cancel_requested=False,
            error=None,
            run_at=now,
            created_at=now,
            started_at=None,
            finished_at=None,
            check_run=CheckRunId(number),
            limit_s=limit_s,
            cards=cards,
        )

    async def get(self, job: JobId) -> QueuedRun | None:
        run = self._tables.check_runs.get(job)
        if run is None or self._publications.open_person(run.publication) is None:
            return None
        found = self._tables.jobs[job]
        state, error, waits = found.state, found.error, found.waits
        return QueuedRun(job, found.gpu, state, error, run.progress, run.evaluation, waits)

    async def request(self, run: CheckRunId) -> EvaluationRequest | None:
        found = self._tables.check_runs.get(JobId(run))
        return None if found is None else EvaluationRequest.model_validate_json(found.request)

    async def save_progress(self, job: JobId, fence: int, progress: Progress) -> bool:
        if self._tables.held(job, fence) is None:
            return False
        self._tables.check_runs[job] = replace(self._tables.check_runs[job], progress=progress)
        return True

    async def accept(self, job: JobId, fence: int, evaluation: Evaluation) -> bool:
        held = self._tables.held(job, fence)
        if held is None:
            return False
        kept = evaluation.model_copy(update={"files": ()})
        self._tables.check_runs[job] = replace(self._tables.check_runs[job], evaluation=kept)
        fault = evaluation.verdict is Verdict.TASK_ERROR
        self._tables.add_gpu_time(held, evaluation.gpu_s, by_fault=fault)
        now = self._tables.clock.now()
        self._tables.put(replace(held, state=JobState.SUCCEEDED, error=None, finished_at=now))
        return True
