"""The queue for a worker: directly on the store, or for a remote worker with its token."""

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import assert_never

import structlog

from bot.domain.errors import UserError
from bot.domain.ids import JobId
from bot.domain.job import Claim, GiveUpReason, Heartbeat, Job, JobState, LeasedJob, Notice, Topic
from bot.domain.reference_times import at_usual_speed, measured_ns
from bot.domain.requirements import in_service
from bot.domain.scoring import mismatch, pool_of, score
from bot.domain.tasks.task_file import REFERENCE, own_rounds
from bot.ports import NO_RUNNERS, Store
from bot.services.contests import hold_if_contested
from bot.services.dispatch.config import DispatchConfig
from runners.contract.evaluation import CPU, Evaluation, EvaluationRequest, ProfileOptions, Progress
from runners.contract.runner import Capabilities
from runners.contract.task import Mode

_log = structlog.get_logger(__name__)
_TOPICS = frozenset({Topic.READY, Topic.CANCEL})


class StoreQueue:
    """The queue of the worker named in the config, directly on the store."""

    def __init__(self, store: Store, config: DispatchConfig) -> None:
        self._store = store
        self._config = config

    async def announce(self, offers: Mapping[str, Capabilities] | None) -> None:
        config = self._config
        gpus = None if offers is None else in_service(offers.values())
        await self._store.workers.announce(config.worker, gpus, config.lease, offers or {})

    async def leave(self) -> None:
        await self._store.workers.leave(self._config.worker)

    def notices(self) -> AbstractAsyncContextManager[AsyncIterator[Notice | None]]:
        return self._store.events.subscribe(_TOPICS)

    async def claim(
        self, slots: Mapping[str, int], runners: Mapping[str, Mapping[str, int]] = NO_RUNNERS
    ) -> tuple[LeasedJob, ...]:
        worker = self._config.worker
        pools = {gpu: _by_pool(worker, free) for gpu, free in runners.items()}
        claim = Claim(worker, dict(slots), self._config.lease, pools)
        return tuple(job.leased for job in await self._store.jobs.claim(claim))

    async def request(self, job: LeasedJob) -> EvaluationRequest | None:
        if job.check_run is None:
            return await self._submission_request(job)
        request = await self._store.check_runs.request(job.check_run)
        return None if request is None else self._for_attempt(job, request)

    def _for_attempt(self, job: LeasedJob, request: EvaluationRequest) -> EvaluationRequest:
        """Return the request with what is different in each attempt."""
        return request.model_copy(
            update={
                "request_id": f"job-{job.id}",
                "nonce": secrets.token_hex(16) if job.mode is Mode.RANKED else None,
                "limits": self._config.limits,
                "used_s": job.used_s,
            }
        )

    async def _submission_request(self, job: LeasedJob) -> EvaluationRequest | None:
        submission = await self._store.submissions.get(job.submission)
        if submission is None:
            raise LookupError(f"submission {job.submission} of job {job.id} is missing")
        version = await self._store.boards.version(submission.task_version)
        if version is None:
            raise LookupError(f"task version {submission.task_version} of job {job.id} is missing")
        task = version.definition
        profile = submission.profile or ProfileOptions()
        is_reference, rival = job.is_system_job and submission.file_name == REFERENCE, None
        if job.is_system_job and not is_reference:
            confirmation = await self._store.confirmations.of_run(job.submission)
            if confirmation is None or confirmation.rival is None:
                return None  # its final was cancelled meanwhile
            # Who failed is compared with itself: no kernel can tell that from another comparison.
            compared = confirmation.alone or confirmation.rival
            rival = await self._store.submissions.source(compared)
        request = EvaluationRequest(
            request_id=f"job-{job.id}",
            task=task.with_all_files_shared if is_reference else profile.select_benchmark(task),
            source=await self._store.submissions.source(submission.id),
            mode=job.mode,
            gpu=job.gpu,
            rounds=own_rounds(task)
            or (None if job.is_system_job else self._config.rounds_of(submission.person)),
            profile=profile,
            rival=rival,
        )
        return self._for_attempt(job, request)

    async def heartbeat(self, held: Sequence[LeasedJob]) -> tuple[Heartbeat, ...]:
        pairs = tuple((job.id, job.fence) for job in held)
        return await self._store.jobs.heartbeat(self._config.worker, pairs, self._config.lease)

    async def attach(self, job: LeasedJob, call: str) -> bool:
        return await self._store.jobs.attach(job.id, job.fence, call)

    async def report_progress(self, job: LeasedJob, progress: Progress) -> bool:
        if job.check_run is not None:
            return await self._store.check_runs.save_progress(job.id, job.fence, progress)
        body: dict[str, str | int] = {"done": progress.done, "total": progress.total}
        if progress.note:
            body["note"] = progress.note
        return await self._store.jobs.add_progress(job.id, job.fence, progress.stage, body)

    async def accept(
        self, job: LeasedJob, request: EvaluationRequest, evaluation: Evaluation
    ) -> bool:
        if job.check_run is not None:
            return await self._store.check_runs.accept(job.id, job.fence, evaluation)
        evaluation = await self._at_usual_speed(job, request, evaluation)
        value = score(request.task, evaluation, ranked=not job.is_system_job)
        if request.rival is not None:
            value = None  # `bot.services.confirmations` decides by the ratio
        if value is None or job.is_system_job or request.rounds is not None:
            return await self._store.jobs.accept(job.id, job.fence, evaluation, value)
        async with self._store.transaction() as tx:
            accepted = await tx.jobs.accept(job.id, job.fence, evaluation, value)
            submission = await tx.submissions.get(job.submission)
            if accepted and submission is not None and self._config.confirm_places:
                await hold_if_contested(tx, submission, job.id, job.gpu)
        return accepted

    async def _at_usual_speed(
        self, job: LeasedJob, request: EvaluationRequest, evaluation: Evaluation
    ) -> Evaluation:
        """Return a ranked run on the CPU with the times that its ratio to the reference gives."""
        if job.gpu != CPU or score(request.task, evaluation) is None:
            return evaluation
        measured = measured_ns(evaluation)
        submission = await self._store.submissions.get(job.submission)
        if not measured or submission is None:
            return evaluation
        version = submission.task_version
        usual = await self._store.references.usual(version, measured)
        return at_usual_speed(evaluation, usual) if len(usual) == len(measured) else evaluation

    async def give_up(
        self, job: LeasedJob, reason: GiveUpReason, error: str = "", used_s: float = 0.0
    ) -> bool:
        jobs = self._store.jobs
        match reason:
            case GiveUpReason.FAILED | GiveUpReason.HOPELESS:
                final = reason is GiveUpReason.HOPELESS
                return await jobs.release(job.id, job.fence, error, final=final, used_s=used_s)
            case GiveUpReason.LOST:
                return await jobs.mark_lost(job.id, job.fence, error)
            case GiveUpReason.UNTOUCHED:
                return await jobs.return_to_queue(job.id, job.fence)
            case GiveUpReason.CANCELLED:
                return await jobs.end_cancelled(job.id, job.fence, used_s)
            case _:
                assert_never(reason)


def _by_pool(worker: str, free: Mapping[str, int]) -> dict[str, int]:
    """Return the free slots of a worker's runners, summed by pool."""
    pools: Counter[str] = Counter()
    for runner, slots in free.items():
        pools[pool_of(worker, runner)] += slots
    return dict(pools)


class RemoteWorker:
    """One run of a remote worker program, under a unique worker name.

    Job and fence can be guessed, so each action on a job checks who holds it: UserError
    `lease-lost` when another worker has the job or will get it.
    """

    def __init__(
        self, store: Store, worker: str, lease: timedelta, *, confirm_places: bool = True
    ) -> None:
        self.worker = worker
        self.lease = lease
        self._store = store
        config = DispatchConfig(worker=worker, lease=lease, confirm_places=confirm_places)
        self._queue = StoreQueue(store, config)

    async def announce(self, offers: Mapping[str, Capabilities] | None) -> None:
        """Register the worker as live, with its offers."""
        await self._queue.announce(offers)

    async def leave(self) -> None:
        """Remove the worker from the live ones."""
        await self._queue.leave()

    async def claim(
        self, slots: Mapping[str, int], runners: Mapping[str, Mapping[str, int]] = NO_RUNNERS
    ) -> tuple[LeasedJob, ...]:
        """Claim due jobs; if no runner is named for a GPU type, its only runner is assumed."""
        jobs = await self._queue.claim(slots, {**await self._only_runners(slots), **runners})
        for job in jobs:
            _log.info("claimed", action="job-claimed", gpu=job.gpu, **self._ids(job))
        return jobs

    async def _only_runners(self, slots: Mapping[str, int]) -> dict[str, dict[str, int]]:
        """Return, for each GPU type that only one runner offers, the runner and its slots."""
        workers = await self._store.workers.alive()
        offers = next((each.offers for each in workers if each.name == self.worker), {})
        runners: dict[str, dict[str, int]] = {}
        for gpu, free in slots.items():
            names = [name for name, offer in offers.items() if gpu in offer.gpus]
            if len(names) == 1:
                runners[gpu] = {names[0]: free}
        return runners

    async def heartbeat(self, held: Mapping[JobId, int]) -> tuple[Heartbeat, ...]:
        """Renew the leases of these jobs, given by id and fence."""
        pairs = tuple(held.items())
        return await self._store.jobs.heartbeat(self.worker, pairs, self.lease)

    async def request(self, job: JobId, fence: int) -> EvaluationRequest:
        """Return the evaluation request of a job that this worker holds."""
        return await self._evaluation_request(job, (await self._held_job(job, fence)).leased)

    async def attach(self, job: JobId, fence: int, call: str) -> None:
        """Record the runner's call id of a job."""
        held = (await self._held_job(job, fence)).leased
        _must_hold(job, held=await self._queue.attach(held, call))

    async def report_progress(self, job: JobId, fence: int, progress: Progress) -> None:
        """Record one progress update of a job."""
        held = (await self._held_job(job, fence)).leased
        _must_hold(job, held=await self._queue.report_progress(held, progress))

    async def accept(self, job: JobId, fence: int, evaluation: Evaluation) -> None:
        """Store an evaluation; a repeated request, whose first reply was lost, changes nothing."""
        held = await self._held_job(job, fence, also=JobState.SUCCEEDED)
        if held.state is JobState.SUCCEEDED:
            return
        request = await self._evaluation_request(job, held.leased)
        problem = mismatch(request, evaluation)
        if problem is not None:
            raise UserError("no-answer", f"job {job}: {problem}")
        stored = await self._queue.accept(held.leased, request, evaluation)
        action = "job-accepted" if stored else "result-dropped"
        verdict = evaluation.verdict
        _log.info("evaluation", action=action, verdict=verdict, **self._ids(held.leased))
        if not stored and await self._still_running(job, fence):
            raise _lease_lost(job)

    async def give_up(
        self, job: JobId, fence: int, reason: GiveUpReason, error: str, *, used_s: float = 0.0
    ) -> None:
        """End an attempt without an evaluation."""
        held = (await self._held_job(job, fence)).leased
        _log.info("attempt ended", action=f"job-{reason}", error=error, **self._ids(held))
        _must_hold(job, held=await self._queue.give_up(held, reason, error, used_s))

    def _ids(self, job: LeasedJob) -> dict[str, object]:
        """Return what each log event of a job contains, so that one submission can be followed."""
        return {
            "submission": job.submission,
            "job": job.id,
            "fence": job.fence,
            "worker": self.worker,
        }

    async def _still_running(self, job: JobId, fence: int) -> bool:
        """Return False when the same request, sent twice, has already stored the evaluation."""
        held = await self._held_job(job, fence, also=JobState.SUCCEEDED)
        return held.state is JobState.RUNNING

    async def _held_job(self, job: JobId, fence: int, also: JobState = JobState.RUNNING) -> Job:
        """Return a job of this worker that is running, or in the state `also`."""
        held = await self._store.jobs.get(job)
        if held is None or (held.worker, held.fence) != (self.worker, fence):
            raise _lease_lost(job)
        if held.state not in {JobState.RUNNING, also}:
            raise _lease_lost(job)
        return held

    async def _evaluation_request(self, job: JobId, leased: LeasedJob) -> EvaluationRequest:
        try:
            request = await self._queue.request(leased)
        except LookupError as error:  # the board and its job were deleted meanwhile
            raise _lease_lost(job) from error
        if request is None:
            raise _lease_lost(job)
        return request


def _must_hold(job: JobId, *, held: bool) -> None:
    if not held:
        raise _lease_lost(job)


def _lease_lost(job: JobId) -> UserError:
    return UserError(
        "lease-lost", f"job {job} no longer belongs to this worker; stop it, and claim the next one"
    )
