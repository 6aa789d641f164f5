"""The worker's interface to the queue, directly on the store."""

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import assert_never

from bot.domain.ids import PersonId
from bot.domain.job import Claim, GiveUpReason, Heartbeat, LeasedJob, Notice, Topic
from bot.domain.reference_times import as_candidate
from bot.domain.requirements import in_service
from bot.domain.scoring import pool_of, score
from bot.domain.tasks.task_file import own_rounds
from bot.ports import NO_RUNNERS, Store
from bot.services.dispatch.config import DispatchConfig
from runners.contract.evaluation import (
    Evaluation,
    EvaluationRequest,
    ProfileOptions,
    Progress,
    RoundPolicy,
)
from runners.contract.runner import Capabilities
from runners.contract.task import Mode

_TOPICS = frozenset({Topic.READY, Topic.CANCEL})


class StoreQueue:
    """What the worker named in the config may do with the store's queue."""

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

    async def request(self, job: LeasedJob) -> EvaluationRequest:
        submission = await self._store.submissions.get(job.submission)
        if submission is None:
            raise LookupError(f"submission {job.submission} of a job is not there")
        version = await self._store.boards.version(submission.task_version)
        if version is None:
            raise LookupError(f"task version {submission.task_version} of a job is not there")
        task = version.definition
        own, asked = job.of_the_house, submission.profile or ProfileOptions()
        return EvaluationRequest(
            request_id=f"job-{job.id}",
            task=as_candidate(task) if own else asked.chosen(task),
            source=await self._store.submissions.source(submission.id),
            mode=job.mode,
            gpu=job.gpu,
            nonce=secrets.token_hex(16) if job.mode is Mode.RANKED else None,
            rounds=own_rounds(task) or (None if own else self._rounds_of(submission.person)),
            limits=self._config.limits,
            profile=asked,
        )

    def _rounds_of(self, person: PersonId) -> RoundPolicy | None:
        hurried = self._config.hurried
        return self._config.rounds if hurried is None or person in hurried else None

    async def beat(self, held: Sequence[LeasedJob]) -> tuple[Heartbeat, ...]:
        pairs = tuple((job.id, job.fence) for job in held)
        return await self._store.jobs.beat(self._config.worker, pairs, self._config.lease)

    async def attach(self, job: LeasedJob, call: str) -> bool:
        return await self._store.jobs.attach(job.id, job.fence, call)

    async def tell(self, job: LeasedJob, progress: Progress) -> bool:
        body: dict[str, str | int] = {"done": progress.done, "total": progress.total}
        if progress.note:
            body["note"] = progress.note
        return await self._store.jobs.tell(job.id, job.fence, progress.stage, body)

    async def accept(
        self, job: LeasedJob, request: EvaluationRequest, evaluation: Evaluation
    ) -> bool:
        value = score(request.task, evaluation)
        return await self._store.jobs.accept(job.id, job.fence, evaluation, value)

    async def give_up(self, job: LeasedJob, why: GiveUpReason, error: str = "") -> bool:
        jobs = self._store.jobs
        match why:
            case GiveUpReason.FAILED | GiveUpReason.HOPELESS:
                final = why is GiveUpReason.HOPELESS
                return await jobs.release(job.id, job.fence, error, final=final)
            case GiveUpReason.LOST:
                return await jobs.lose(job.id, job.fence, error)
            case GiveUpReason.UNTOUCHED:
                return await jobs.give_back(job.id, job.fence)
            case GiveUpReason.CANCELLED:
                return await jobs.end_cancelled(job.id, job.fence)
            case _:
                assert_never(why)


def _by_pool(worker: str, free: Mapping[str, int]) -> dict[str, int]:
    """Return the free slots of a worker's runners, summed by pool."""
    pools: Counter[str] = Counter()
    for runner, slots in free.items():
        pools[pool_of(worker, runner)] += slots
    return dict(pools)
