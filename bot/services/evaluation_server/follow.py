"""Follows a request to its end, and has its job killed when its caller is about to hang up."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from bot.domain.access import Viewer
from bot.domain.errors import StoreError, UserError
from bot.domain.evaluation_server.record import RECORD, recorded
from bot.domain.evaluation_server.request import Request
from bot.domain.ids import SubmissionId
from bot.domain.job import FINAL_STATES, Job, JobState, Topic
from bot.domain.submission import Submission
from bot.ports import Store
from runners.contract.evaluation import Evaluation
from runners.contract.verdict import Stage

_RETRY_S = 0.5
"""Between tries to read from a database that is away."""
_STAGES = frozenset(str(stage) for stage in Stage)


@dataclass(frozen=True, slots=True)
class Served:
    """A request as far as it has got, without its kernels; its evaluation once it was judged."""

    submission: Submission
    request: Request
    job: Job
    stage: Stage | None = None
    evaluation: Evaluation | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing will move any more."""
        return self.job.state in FINAL_STATES

    @property
    def ran_out(self) -> bool:
        """Whether it was stopped because its time was over, and not by a person before."""
        if self.job.state is not JobState.CANCELLED or self.job.finished_at is None:
            return False
        lasted_s = (self.job.finished_at - self.job.created_at).total_seconds()
        return lasted_s >= self.request.timeout - 2 * margin_s(self.request)


class ClosingError(Exception):
    """The door closes while somebody waits; the job goes on."""


def margin_s(request: Request) -> float:
    """How long before the caller hangs up the answer is sent, in seconds."""
    return min(2.0, request.timeout / 10)


async def served(store: Store, viewer: Viewer, number: SubmissionId) -> Served:
    """One's own request of this number; UserError `unknown-job` when there is none."""
    submission = await store.submissions.get(number)
    own = submission is not None and (viewer.sees_all or submission.person == viewer.person)
    version = None
    if submission is not None and own:
        version = await store.boards.version(submission.task_version)
    if submission is None or version is None or RECORD not in version.definition.files:
        raise _unknown(number)
    request = recorded(version.definition)
    # The job before the evaluation: one that is seen as ended then has its evaluation.
    jobs = await store.jobs.of(number)
    if not jobs:  # forgotten meanwhile
        raise _unknown(number)
    stage, evaluation = await _stage(store, jobs[0]), await _evaluation(store, number, request)
    return Served(submission, request, jobs[0], stage, evaluation)


def _unknown(number: SubmissionId) -> UserError:
    return UserError("unknown-job", f"Job {number} not found")


async def _evaluation(store: Store, number: SubmissionId, request: Request) -> Evaluation | None:
    """The evaluation, with its files where the profiler was asked to count."""
    stored = await store.results.evaluations(number)
    if not stored:
        return None
    files = await store.results.files(number) if request.device_metrics else ()
    return stored[0].evaluation.model_copy(update={"files": tuple(each.file for each in files)})


async def _stage(store: Store, job: Job) -> Stage | None:
    if job.state is not JobState.RUNNING:
        return None
    latest = await store.jobs.latest(job.submission)
    return next((Stage(each.kind) for each in latest if each.kind in _STAGES), None)


async def wait(
    store: Store, number: SubmissionId, until: float, closing: Callable[[], bool]
) -> bool:
    """Wait for the end of a request's job; at the loop's time `until` have it killed.

    Gives whether it ended by itself. A database that is away is waited for. ClosingError once
    `closing` gives true.
    """
    try:
        async with asyncio.timeout_at(until):
            while not await _ended(store, number, closing):  # noqa: ASYNC110 - the database is away
                await asyncio.sleep(_RETRY_S)
    except TimeoutError:
        with suppress(StoreError):
            await store.jobs.request_cancel(number)
        return False
    return True


async def _ended(store: Store, number: SubmissionId, closing: Callable[[], bool]) -> bool:
    """True once the job has ended; False when the database went away meanwhile."""
    with suppress(StoreError):
        async with store.events.subscribe(frozenset({Topic.PROGRESS})) as hints:
            if await _is_final(store, number):
                return True
            async for hint in hints:
                if closing():
                    raise ClosingError
                if (hint is None or hint.payload == str(number)) and await _is_final(store, number):
                    return True
    return False


async def _is_final(store: Store, number: SubmissionId) -> bool:
    return all(job.state in FINAL_STATES for job in await store.jobs.of(number))
