"""What a remote worker may do, and the tokens that allow it."""

import re
import secrets
from collections.abc import Mapping
from datetime import timedelta

import structlog

from bot.domain.accounts import PREFIX, Token, TokenScope, digest_of
from bot.domain.errors import UserError, unknown_name
from bot.domain.ids import JobId, PersonId
from bot.domain.job import GiveUpReason, Heartbeat, Job, JobState, LeasedJob
from bot.domain.scoring import mismatch
from bot.ports import NO_RUNNERS, Clock, Store
from bot.services.audit import audited
from bot.services.dispatch import DispatchConfig, StoreQueue
from bot.services.tokens import NewToken
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import Capabilities

_log = structlog.get_logger(__name__)


class RemoteWorker:
    """One run of a remote worker program, under a unique worker name.

    Job and fence can be guessed, so each action on a job checks who holds it: UserError
    `lease-lost` when another worker has the job or will get it.
    """

    def __init__(self, store: Store, worker: str, lease: timedelta) -> None:
        self.worker = worker
        self.lease = lease
        self._store = store
        self._queue = StoreQueue(store, DispatchConfig(worker=worker, lease=lease))

    async def announce(self, offers: Mapping[str, Capabilities] | None) -> None:
        """Register the worker as live, with its offers."""
        await self._queue.announce(offers)

    async def leave(self) -> None:
        """Remove the worker from the live ones."""
        await self._queue.leave()

    async def claim(
        self, slots: Mapping[str, int], runners: Mapping[str, Mapping[str, int]] = NO_RUNNERS
    ) -> tuple[LeasedJob, ...]:
        """Claim due jobs; a GPU type with no runners named uses the only runner that offers it."""
        jobs = await self._queue.claim(slots, {**await self._only_runners(slots), **runners})
        for job in jobs:
            _log.info("claimed", action="job-claimed", gpu=job.gpu, **self._ids(job))
        return jobs

    async def _only_runners(self, slots: Mapping[str, int]) -> dict[str, dict[str, int]]:
        """Return, for each GPU type that only one runner offers, the runner and its slots."""
        workers = await self._store.workers.alive()
        offers = next((each.offers for each in workers if each.name == self.worker), {})
        found: dict[str, dict[str, int]] = {}
        for gpu, free in slots.items():
            names = [name for name, offer in offers.items() if gpu in offer.gpus]
            if len(names) == 1:
                found[gpu] = {names[0]: free}
        return found

    async def beat(self, held: Mapping[JobId, int]) -> tuple[Heartbeat, ...]:
        """Renew the leases of these jobs, given by id and fence."""
        pairs = tuple(held.items())
        return await self._store.jobs.beat(self.worker, pairs, self.lease)

    async def request(self, job: JobId, fence: int) -> EvaluationRequest:
        """Return the evaluation request of a job that it holds."""
        return await self._order(job, (await self._own(job, fence)).leased)

    async def attach(self, job: JobId, fence: int, call: str) -> None:
        """Record its runner's call id."""
        own = (await self._own(job, fence)).leased
        _must_hold(job, held=await self._queue.attach(own, call))

    async def tell(self, job: JobId, fence: int, progress: Progress) -> None:
        """Record one progress update."""
        own = (await self._own(job, fence)).leased
        _must_hold(job, held=await self._queue.tell(own, progress))

    async def accept(self, job: JobId, fence: int, evaluation: Evaluation) -> None:
        """Store an evaluation once; a repeated one was stored before, but its reply was lost."""
        own = await self._own(job, fence, also=JobState.SUCCEEDED)
        if own.state is JobState.SUCCEEDED:
            return
        request = await self._order(job, own.leased)
        wrong = mismatch(request, evaluation)
        if wrong is not None:
            raise UserError("no-answer", f"job {job}: {wrong}")
        stored = await self._queue.accept(own.leased, request, evaluation)
        action = "job-accepted" if stored else "result-dropped"
        verdict = evaluation.verdict
        _log.info("evaluation", action=action, verdict=verdict, **self._ids(own.leased))
        if not stored and await self._running(job, fence):
            raise _lost(job)

    async def give_up(self, job: JobId, fence: int, why: GiveUpReason, error: str) -> None:
        """End an attempt without an evaluation."""
        own = (await self._own(job, fence)).leased
        _log.info("attempt ended", action=f"job-{why}", error=error, **self._ids(own))
        _must_hold(job, held=await self._queue.give_up(own, why, error))

    def _ids(self, job: LeasedJob) -> dict[str, object]:
        """Return what each log event of a job contains, so that one submission can be followed."""
        return {
            "submission": job.submission,
            "job": job.id,
            "fence": job.fence,
            "worker": self.worker,
        }

    async def _running(self, job: JobId, fence: int) -> bool:
        """Return False when the same request, sent twice, has already stored the evaluation."""
        found = await self._own(job, fence, also=JobState.SUCCEEDED)
        return found.state is JobState.RUNNING

    async def _own(self, job: JobId, fence: int, also: JobState = JobState.RUNNING) -> Job:
        found = await self._store.jobs.get(job)
        if found is None or (found.worker, found.fence) != (self.worker, fence):
            raise _lost(job)
        if found.state not in {JobState.RUNNING, also}:
            raise _lost(job)
        return found

    async def _order(self, job: JobId, leased: LeasedJob) -> EvaluationRequest:
        try:
            return await self._queue.request(leased)
        except LookupError as error:  # the board and its job were deleted meanwhile
            raise _lost(job) from error


def _must_hold(job: JobId, *, held: bool) -> None:
    if not held:
        raise _lost(job)


def _lost(job: JobId) -> UserError:
    return UserError(
        "lease-lost", f"job {job} no longer belongs to this worker; stop it, and claim the next one"
    )


MOST_DAYS = 3650
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


async def issue(
    store: Store, clock: Clock, actor: PersonId, name: str, *, lifetime: timedelta
) -> NewToken:
    """Create a token for the machine of this name; UserError if it has one or a bad name."""
    if not _NAME.fullmatch(name):
        raise UserError(
            "bad-name",
            f"{name!r} is not a valid worker name; use 1 to 40 of a-z, 0-9, '.', '-' and '_', "
            "such as gpu-box-1",
        )
    if any(each.label == name for each in await store.tokens.of_workers()):
        raise UserError(
            "has-token",
            f"worker {name} already has a token; revoke it first with `podium token revoke {name}`",
        )
    secret = f"{PREFIX}worker_{secrets.token_urlsafe(32)}"
    until = clock.now() + lifetime
    async with audited(store, actor, "worker-token", f"worker {name}") as tx:
        token = await tx.tokens.add(
            actor, digest_of(secret), name, TokenScope.WORKER, expires_at=until
        )
    return NewToken(token, secret)


async def worker_tokens(store: Store) -> tuple[Token, ...]:
    """Return every token of a worker that is not revoked, by name."""
    return await store.tokens.of_workers()


async def revoke(store: Store, actor: PersonId, name: str) -> None:
    """End a worker's token: its next request is refused, including for jobs it holds."""
    async with audited(store, actor, "revoke-worker-token", f"worker {name}") as tx:
        if not await tx.tokens.revoke_worker(name):
            raise unknown_name("worker", name, [each.label for each in await worker_tokens(tx)])


async def admitted(store: Store, clock: Clock, secret: str) -> str:
    """Return the name of the worker with this token; UserError for any other token."""
    token = await store.tokens.find(digest_of(secret))
    if token is None or not token.of_worker or not token.is_live(clock.now()):
        raise UserError(
            "bad-token",
            "this worker token is unknown, expired or revoked; an admin can create one with "
            "`podium token create --worker NAME`",
        )
    return token.label
