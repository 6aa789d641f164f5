"""Requests as jobs: accepts them, waits for their ends, deletes them.

Each request is a submission to a hidden board of Podium, with a task version created for it. Queue,
judge, sandbox and retries are the same as for every submission.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from bot.domain import acceptance, accounts, requirements
from bot.domain.board import HIDDEN, Access, Board, NewBoard, SourceVisibility, Viewer, Visibility
from bot.domain.costs import GpuTime, jobs_need
from bot.domain.errors import StoreError, UserError, unknown_name
from bot.domain.ids import PersonId, SubmissionId
from bot.domain.job import FINAL_STATES, PRIORITIES, Job, JobState, Topic
from bot.domain.submission import NewSubmission, Submission
from bot.domain.tasks.task_file import MAX_TASK, digest
from bot.ports import Clock, Store
from bot.services.submissions import admit, require_gpu_time
from bot.web.compat.evaluation_server import requests, translate
from runners.contract.evaluation import CPU, Evaluation
from runners.contract.gpus import find_gpu_type
from runners.contract.runner import Capabilities
from runners.contract.task import PYTHON, Mode, TaskDefinition
from runners.contract.verdict import Stage

BOARD = f"{HIDDEN}eval"
PRIORITY = PRIORITIES[Mode.BENCHMARK]
"""After quick tests and before ranked runs, because a caller waits with a timeout."""
_NO_TASK = TaskDefinition(
    name=translate.TASK, lang=PYTHON, description="Each request brings a task of its own.", files={}
)
_NAME = "Podium"


class NoRunnerError(Exception):
    """No live runner can serve a request; the message says what is missing."""

    def __init__(self, message: str, *, has_runners: bool) -> None:
        super().__init__(message)
        self.has_runners = has_runners
        """Whether there are runners; if there are none, one may be about to start."""


async def accept(
    store: Store, clock: Clock, person: PersonId, request: requests.Request
) -> Submission:
    """Store a request with its job; UserError says what to change, NoRunnerError what is missing.

    It runs on the GPU type that it names, otherwise on the first one that a runner offers for it.
    """
    # Serializing a large request must not block the event loop.
    task, source, mode = await asyncio.to_thread(_order, request)
    gpu = _choose(await _offers(store), task, request.gpu)
    board = await requests_board(store)
    await admit(store, clock, person, board=board, mode=mode)
    needs = jobs_need(task, mode, (gpu,), GpuTime(person, board.id, gpu))
    await require_gpu_time(store, clock, needs)
    new = NewSubmission(
        person=person,
        board=board.id,
        task_version=board.task_version,
        file_name=task.submission_file,
        source=source,
        mode=mode,
        gpus=(gpu,),
        priority=PRIORITY,
        limit_s=task.limit_s(mode),
        cards=task.world_size,
    )
    return await store.requests.add(new, task, digest(task))


async def requests_board(store: Store) -> Board:
    """Return the board of all requests: no list shows it, and only admins can see it."""
    board = await store.boards.find(BOARD)
    if board is not None:
        return board
    system = await store.people.ensure(accounts.SYSTEM_IDENTITY, _NAME)
    access = Access(Visibility.PRIVATE, source=SourceVisibility.NEVER)
    new = NewBoard(BOARD, (), None, system.id, access)
    try:
        return await store.boards.publish(new, _NO_TASK, digest(_NO_TASK))
    except UserError:  # another process has created it
        board = await store.boards.find(BOARD)
        if board is None:
            raise
        return board


def _order(request: requests.Request) -> tuple[TaskDefinition, str, Mode]:
    """Return the task, source and mode of a request; UserError if it cannot be stored or run."""
    requests.require_limits(request)
    texts = [_text(kernel.source_code) for kernel in requests.kernels_of(request)]
    order = translate.order_of(request, seconds=int(request.timeout - margin_s(request)))
    task = translate.with_record(order.task, request)
    length = len(task.model_dump_json().encode())
    if length > MAX_TASK:
        raise UserError(
            "too-large",
            f"the stored request would have {length:,} bytes; at most {MAX_TASK:,} are allowed, "
            "so give large tensors an init instead of data",
        )
    return task, texts[-1], order.mode


def _text(source: str) -> str:
    return acceptance.source_text(source.encode("utf-8", "surrogatepass"))


async def _offers(store: Store) -> list[Capabilities]:
    return [offer for each in await store.workers.alive() for offer in each.offers.values()]


def _choose(offers: list[Capabilities], task: TaskDefinition, wanted: str | None) -> str:
    offered = requirements.in_service(offers)
    if not offered:
        raise NoRunnerError("no runner is connected", has_runners=False)
    chosen = None if wanted is None else find_gpu_type(wanted, offered)
    if wanted is not None and chosen is None:
        raise unknown_name("gpu", wanted, offered)
    among = offered if chosen is None else (chosen,)
    able = [
        gpu for gpu in among if any(not requirements.missing(each, task, gpu) for each in offers)
    ]
    if not able:
        missing_parts = min(
            (requirements.least_missing(offers, task, gpu) for gpu in among), key=len
        )
        message = f"no runner can serve this kernel: missing {', '.join(missing_parts)}"
        if all(gpu == CPU for gpu in offered):
            message += "; start a worker on a machine with a GPU"
        raise NoRunnerError(message, has_runners=True)
    return min(able, key=lambda gpu: (gpu == CPU, gpu))


_RETRY_S = 0.5
"""Seconds between attempts to reach the database."""
_STAGES = frozenset(str(stage) for stage in Stage)


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """A stored request, without its kernels, and the state of its job."""

    submission: Submission
    request: requests.Request
    job: Job
    stage: Stage | None = None
    evaluation: Evaluation | None = None

    @property
    def is_final(self) -> bool:
        """Return whether its job has ended for good."""
        return self.job.state in FINAL_STATES

    @property
    def timed_out(self) -> bool:
        """Return whether it was stopped by its timeout, not by a person."""
        if self.job.state is not JobState.CANCELLED or self.job.finished_at is None:
            return False
        lasted_s = (self.job.finished_at - self.job.created_at).total_seconds()
        return lasted_s >= self.request.timeout - 2 * margin_s(self.request)


class ClosingError(Exception):
    """The web server shuts down while a caller waits; the job continues."""


def margin_s(request: requests.Request) -> float:
    """Return how long before the caller's timeout the answer is sent, in seconds."""
    return min(2.0, request.timeout / 10)


async def find_request(store: Store, viewer: Viewer, number: SubmissionId) -> StoredRequest:
    """Return the viewer's request with this number; UserError `unknown-job` if there is none."""
    submission = await store.submissions.get(number)
    own = submission is not None and (viewer.sees_all or submission.person == viewer.person)
    version = None
    if submission is not None and own:
        version = await store.boards.version(submission.task_version)
    if submission is None or version is None or translate.RECORD not in version.definition.files:
        raise _unknown(number)
    request = translate.recorded(version.definition)
    # Read the job before the evaluation, so that an ended job has its evaluation.
    jobs = await store.jobs.of(number)
    if not jobs:  # deleted meanwhile
        raise _unknown(number)
    stage, evaluation = await _stage(store, jobs[0]), await _evaluation(store, number, request)
    return StoredRequest(submission, request, jobs[0], stage, evaluation)


def _unknown(number: SubmissionId) -> UserError:
    return UserError("unknown-job", f"Job {number} not found")


async def _evaluation(
    store: Store, number: SubmissionId, request: requests.Request
) -> Evaluation | None:
    """Return the evaluation, with its files if counters were requested."""
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
    """Wait for the end of a request's job; cancel it at the event loop's time `until`.

    Return whether it ended by itself. An unreachable database does not end the wait. ClosingError
    as soon as `closing` returns true.
    """
    try:
        async with asyncio.timeout_at(until):
            while not await _ended(store, number, closing):  # noqa: ASYNC110 - no event
                await asyncio.sleep(_RETRY_S)
    except TimeoutError:
        with suppress(StoreError):
            await store.jobs.request_cancel(number)
        return False
    return True


async def _ended(store: Store, number: SubmissionId, closing: Callable[[], bool]) -> bool:
    """True once the job has ended; False if the database became unreachable."""
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


KEPT = timedelta(hours=1)
"""How long the result of a request is kept."""
KEPT_LEAST = timedelta(seconds=300)
"""How long it is kept even if its owner removes old jobs."""


async def upkeep(store: Store) -> None:
    """Delete requests that ended more than `KEPT` ago, and stop those that wait longer than that.

    A request waits so long only if its web server was killed and no runner can serve it.
    """
    board = await store.boards.find(BOARD)
    if board is None:
        return
    for number in await store.requests.overdue(board.id, KEPT):
        await store.jobs.request_cancel(number)
    await delete_ended(store)


async def delete_ended(store: Store, age: timedelta = KEPT, person: PersonId | None = None) -> int:
    """Delete a person's, or all, requests that ended more than `age` ago; return their number."""
    board = await store.boards.find(BOARD)
    return 0 if board is None else await store.requests.delete_ended(board.id, age, person)
