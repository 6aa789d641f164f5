"""The JSON messages between a remote worker and its server; the routes say "agents"."""

import re
from datetime import datetime
from typing import Annotated

from pydantic import Field, SerializerFunctionWrapHandler, StringConstraints, model_serializer

from bot.domain.ids import JobId, SubmissionId
from bot.domain.job import GiveUpReason, LeasedJob
from runners.contract.runner import Capabilities
from runners.contract.task import GPU_NAME, Mode
from runners.contract.wire import Wire

PATH = "/api/v1/agents"
"""The prefix of every route for workers; the session comes next, new for each run of a worker."""
HARNESS_HEADER = "Podium-Harness"
"""The version of the worker's harness, in every request; another version may time differently."""
SESSION = re.compile(r"^[0-9a-f]{8,32}$")

BODY_MAX = 256 << 10
"""The maximum bytes of every body except an evaluation."""
EVALUATION_MAX = 16 << 20
"""The maximum bytes of an evaluation: the longest line that a harness may print."""
NOTICES_S = 20.0
"""How long a worker waits for a notice before it requests again."""
MOST_NOTICES_S = 60.0

GpuName = Annotated[str, StringConstraints(pattern=GPU_NAME.pattern)]
Count = Annotated[int, Field(ge=1, le=1024)]
BigInt = Annotated[int, Field(ge=0, lt=1 << 63)]
"""The range that a database can store."""
Runners = Annotated[
    dict[Annotated[str, StringConstraints(max_length=100)], Annotated[int, Field(ge=0, le=1024)]],
    Field(max_length=16),
]
Line = Annotated[str, StringConstraints(max_length=16 << 10)]


class WorkerConfig(Wire):
    """The server's response to a worker that has just started."""

    worker: str
    """The worker's name on the server."""
    lease_s: float
    """How long the worker keeps its jobs without a heartbeat."""


class WorkerOffers(Wire):
    """What the worker's runners offer, by name; None until all have answered."""

    offers: Annotated[dict[str, Capabilities], Field(max_length=16)] | None


class FreeSlots(Wire):
    """How many evaluations the worker can start now, by GPU type."""

    slots: Annotated[dict[GpuName, Count], Field(min_length=1, max_length=64)]
    runners: Annotated[dict[GpuName, Runners], Field(max_length=64)] | None = None
    """The same by runner, when several serve one GPU type; None from an older worker.

    A job pinned to a pool goes only to a runner of that pool.
    """

    @model_serializer(mode="wrap")
    def _without_none(self, inner: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Omit None, because an older server refuses the unknown key."""
        return {key: value for key, value in inner(self).items() if value is not None}


class ClaimedJob(Wire):
    """A job that the worker holds from now on."""

    id: int
    submission: int
    gpu: str
    mode: Mode
    fence: int
    call: str | None
    created_at: datetime
    pool: str | None = None
    """The only pool that may run it."""

    @classmethod
    def of(cls, job: LeasedJob, *, with_pool: bool) -> "ClaimedJob":
        """Return the job as sent; with its pool only to a worker that knows pools."""
        return cls(
            id=job.id,
            submission=job.submission,
            gpu=job.gpu,
            mode=job.mode,
            fence=job.fence,
            call=job.call,
            created_at=job.created_at,
            pool=(job.pool or None) if with_pool else None,
        )

    @model_serializer(mode="wrap")
    def _without_pool(self, inner: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Omit the pool for older workers, unless the job is pinned."""
        fields: dict[str, object] = inner(self)
        return {key: value for key, value in fields.items() if key != "pool" or value}

    @property
    def leased(self) -> LeasedJob:
        """Return the job as a dispatcher uses it."""
        return LeasedJob(
            id=JobId(self.id),
            submission=SubmissionId(self.submission),
            gpu=self.gpu,
            mode=self.mode,
            fence=self.fence,
            call=self.call,
            created_at=self.created_at,
            pool=self.pool or "",
        )


class Claimed(Wire):
    """The claimed jobs; empty when none is due."""

    jobs: tuple[ClaimedJob, ...] = ()


class HeldJob(Wire):
    """A job that the worker reports as its own; its lease may have expired."""

    id: BigInt
    fence: BigInt


class Held(Wire):
    """All jobs that the worker reports as its own."""

    jobs: Annotated[tuple[HeldJob, ...], Field(max_length=4096)]


class JobHeartbeat(Wire):
    """A job that the worker still holds; jobs that are not listed are lost."""

    id: int
    cancel_requested: bool


class Heartbeats(Wire):
    """The response to a heartbeat."""

    jobs: tuple[JobHeartbeat, ...] = ()


class JobNotice(Wire):
    """A hint, like `bot.ports.Notice`."""

    topic: str
    payload: str


class JobNotices(Wire):
    """The notices that arrived while the worker waited."""

    notices: tuple[JobNotice, ...] = ()


class RunnerCall(Wire):
    """The runner's id of a started evaluation."""

    call: Annotated[str, StringConstraints(min_length=1, max_length=500)]


class GivenUp(Wire):
    """How an attempt without an evaluation ended."""

    why: GiveUpReason
    error: Line = ""
    used_s: Annotated[float, Field(ge=0)] = 0.0
    """Seconds that the attempt spent evaluating."""


class LogLines(Wire):
    """Log events of the worker, one JSON line each."""

    lines: Annotated[tuple[Line, ...], Field(max_length=200)]
    lost: Annotated[int, Field(ge=0)] = 0
    """How many were dropped since the last request, because there were too many."""
