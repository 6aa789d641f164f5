"""Runs the solutions of a check as jobs of the queue, which any worker can take."""

import asyncio
import hashlib
import itertools
import secrets
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

from bot.domain.errors import StoreError
from bot.domain.ids import JobId, PersonId, PublicationId
from bot.domain.job import JobState, QueuedRun
from bot.domain.publication import NewPublication
from bot.domain.tasks.task_file import digest
from bot.ports import Store
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import CallId, Capabilities, ProgressSink, Runner, RunnerError
from runners.contract.task import TaskDefinition
from runners.contract.verdict import Stage

POLL_S = 0.5
"""Seconds between two polls of a run."""
POLLS_PER_OFFER = 20
"""How many polls of a run pass between two checks whether a worker offers its GPU type."""
WORKER_S = 15.0
"""How long a check waits at its start for workers: they may be restarting with the bot."""
ABSENT_S = 600.0
"""How long a queued run may wait while no worker offers its GPU type."""
COMMAND = "command-line"
"""In place of a front end: a command, which shows the progress of its check itself."""
_ENDED = "the publication has ended, or another process has taken it over"
_COMMAND_LEASE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class QueuedRunner:
    """The runner of a live worker, which is reached through the queue.

    Any worker that offers the GPU type may claim a run, not just this one. A call is the number of
    its job. The job is deleted when its publication ends, not with this process: a process that
    takes over the publication finds the runs that were started before.
    """

    store: Store
    publication: PublicationId
    tasks: "_StoredTasks"
    name: str
    offer: Capabilities

    async def capabilities(self) -> Capabilities:
        """Return what the runner offered last."""
        return self.offer

    async def start(self, request: EvaluationRequest) -> CallId:
        """Queue the run, or find it if it was queued before.

        RunnerError when the publication has ended.
        """
        of_task = await self.tasks.digest_of(request.task)
        key = key_of(request, of_task)
        job = await self.store.check_runs.add(self.publication, key, request, of_task)
        if job is None:
            raise RunnerError(_ENDED)
        return CallId(str(job))

    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        """Return the evaluation; RunnerError if the job failed or no worker could take it."""
        reported: Progress | None = None
        absent_s = 0.0
        polls = itertools.cycle(range(POLLS_PER_OFFER))
        while True:
            run = await self.store.check_runs.get(JobId(int(call)))
            if run is None:
                raise RunnerError(_ENDED)
            if run.evaluation is not None:
                return run.evaluation
            _require_unfinished(run)
            found = _waiting(run) or run.progress
            if found is not None and found != reported:
                reported = found
                progress(reported)
            if run.state is JobState.RUNNING:
                absent_s = 0.0
            elif next(polls) == 0:
                offered = run.gpu in await _offered(self.store)
                absent_s = 0.0 if offered else absent_s + POLLS_PER_OFFER * POLL_S
            if absent_s > ABSENT_S:
                raise RunnerError(
                    f"no connected worker offered {run.gpu} for {ABSENT_S / 60:.0f} minutes"
                )
            await asyncio.sleep(POLL_S)

    async def cancel(self, call: CallId) -> None:
        """Do nothing: the publication's end stops the run."""

    async def aclose(self) -> None:
        """Do nothing: the runner belongs to its worker."""


def _waiting(run: QueuedRun) -> Progress | None:
    """Return the progress of a run that waits for a quota of GPU time; None for another run."""
    if run.state is not JobState.QUEUED or not run.waits:
        return None
    return Progress(stage=Stage.PREPARE, note=run.waits)


def _require_unfinished(run: QueuedRun) -> None:
    match run.state:
        case JobState.FAILED:
            raise RunnerError(run.error or "given up")
        case JobState.CANCELLED:
            raise RunnerError("the run was cancelled")
        case _:
            pass


def key_of(request: EvaluationRequest, digest: str) -> str:
    """Return a hash of what is run on the task of this digest; the request's id is random."""
    text = request.model_dump_json(exclude={"task", "request_id"})
    return hashlib.sha256(f"{digest} {text}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _StoredTasks:
    """The tasks of one check. A task may have megabytes, so it is stored once for all its runs."""

    store: Store
    publication: PublicationId
    digests: dict[int, tuple[TaskDefinition, str]] = field(default_factory=dict)
    """By the object's id. The object is kept, so that no other one gets its id."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def digest_of(self, task: TaskDefinition) -> str:
        """Return the digest under which the task is stored."""
        async with self.lock:
            if id(task) not in self.digests:
                found = await asyncio.to_thread(digest, task)
                definition = await asyncio.to_thread(task.model_dump_json)
                await self.store.check_runs.store_task(self.publication, found, definition)
                self.digests[id(task)] = task, found
            return self.digests[id(task)][1]


async def queued_runners(
    store: Store, publication: PublicationId, gpus: Collection[str], *, resumed: bool
) -> tuple[Runner, ...]:
    """Return a runner for each runner of the live workers.

    Wait up to `WORKER_S` for the first one; when a check is resumed, for every GPU type, because
    the workers may have been restarted too.
    """
    wanted = set(gpus) if resumed else set()
    waited_s = 0.0
    while waited_s < WORKER_S:
        offered = await _offered(store)
        if offered and wanted <= offered:
            break
        await asyncio.sleep(POLL_S)
        waited_s += POLL_S
    tasks = _StoredTasks(store, publication)
    return tuple(QueuedRunner(store, publication, tasks, *offer) for offer in await _offers(store))


async def has_workers(store: Store) -> bool:
    """Return whether a live worker offers anything."""
    return bool(await _offered(store))


@asynccontextmanager
async def command_publication(store: Store, person: PersonId) -> AsyncIterator[PublicationId]:
    """Yield a publication to which the runs of a command's check belong; delete both at the end.

    No engine claims it. `Publications.delete_ended` deletes that of a killed command.
    """
    owner = f"{COMMAND}-{secrets.token_hex(6)}"
    publication = await store.publications.add(NewPublication(owner, person, b"", "{}"))
    await store.publications.claim(owner, owner, _COMMAND_LEASE)
    try:
        yield publication
    finally:
        with suppress(StoreError):  # the command's own result or error counts
            await store.publications.finish(publication, owner)


async def _offers(store: Store) -> Sequence[tuple[str, Capabilities]]:
    return [
        (f"{worker.name}/{name}", offer)
        for worker in await store.workers.alive()
        for name, offer in worker.offers.items()
    ]


async def _offered(store: Store) -> set[str]:
    return {gpu for _, offer in await _offers(store) for gpu, slots in offer.gpus.items() if slots}
