"""What a machine that judges from elsewhere, an agent, and its server tell each other, as JSON."""

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
"""Of every route for agents; what follows is the session, which is one life of one agent."""
HARNESS_HEADER = "Podium-Harness"
"""The version of the agent's harness, in every request: another one would measure otherwise."""
SESSION = re.compile(r"^[0-9a-f]{8,32}$")

BODY_MAX = 256 << 10
"""Bytes of every body but an evaluation."""
EVALUATION_MAX = 16 << 20
"""Bytes of an evaluation: as long a line as a harness may print."""
NOTICES_S = 20.0
"""How long an agent waits for a notice, with nothing said, before it asks again."""
MOST_NOTICES_S = 60.0

GpuName = Annotated[str, StringConstraints(pattern=GPU_NAME.pattern)]
Count = Annotated[int, Field(ge=1, le=1024)]
BigInt = Annotated[int, Field(ge=0, lt=1 << 63)]
"""What a database has room for."""
Runners = Annotated[
    dict[Annotated[str, StringConstraints(max_length=100)], Annotated[int, Field(ge=0, le=1024)]],
    Field(max_length=16),
]
Line = Annotated[str, StringConstraints(max_length=16 << 10)]


class WorkerConfig(Wire):
    """The server's answer to an agent that has just begun."""

    worker: str
    """The name under which it is known."""
    lease_s: float
    """How long what it holds stays its own without a sign of life."""


class WorkerOffers(Wire):
    """What the agent's runners offer, by name; None while they have not all been asked."""

    offers: Annotated[dict[str, Capabilities], Field(max_length=16)] | None


class FreeSlots(Wire):
    """How many evaluations the agent could begin now, by GPU type."""

    slots: Annotated[dict[GpuName, Count], Field(min_length=1, max_length=64)]
    runners: Annotated[dict[GpuName, Runners], Field(max_length=64)] | None = None
    """The same by runner, where several have slots of one GPU type; None of an older agent.

    A job that is pinned to a pool goes to a runner of that pool alone.
    """

    @model_serializer(mode="wrap")
    def _without_none(self, inner: SerializerFunctionWrapHandler) -> dict[str, object]:
        """As an older server reads it, wherever it can be."""
        return {key: value for key, value in inner(self).items() if value is not None}


class ClaimedJob(Wire):
    """One job that is the agent's from here on."""

    id: int
    submission: int
    gpu: str
    mode: Mode
    fence: int
    call: str | None
    created_at: datetime
    pool: str | None = None
    """The pool that alone may do it."""

    @classmethod
    def of(cls, job: LeasedJob, *, with_pool: bool) -> "ClaimedJob":
        """The job as it travels; with its pool only to an agent that knows of pools."""
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
        """As an older agent reads it, unless the job is pinned."""
        found: dict[str, object] = inner(self)
        return {key: value for key, value in found.items() if key != "pool" or value}

    @property
    def leased(self) -> LeasedJob:
        """The job as a dispatcher knows it."""
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
    """What a claim gave; nothing when nothing is due."""

    jobs: tuple[ClaimedJob, ...] = ()


class HeldJob(Wire):
    """A job that the agent takes for its own."""

    id: BigInt
    fence: BigInt


class Held(Wire):
    """Everything that the agent takes for its own."""

    jobs: Annotated[tuple[HeldJob, ...], Field(max_length=4096)]


class JobBeat(Wire):
    """A job that is still the agent's; those that are not told of are lost."""

    id: int
    cancel_requested: bool


class Beats(Wire):
    """The answer to a sign of life."""

    jobs: tuple[JobBeat, ...] = ()


class JobNotice(Wire):
    """A hint, as `bot.ports.Notice`."""

    topic: str
    payload: str


class JobNotices(Wire):
    """The hints that came while the agent waited."""

    notices: tuple[JobNotice, ...] = ()


class RunnerCall(Wire):
    """The id by which the agent's runner knows a started evaluation."""

    call: Annotated[str, StringConstraints(min_length=1, max_length=500)]


class GivenUp(Wire):
    """How an attempt ended that gave no evaluation."""

    why: GiveUpReason
    error: Line = ""


class LogLines(Wire):
    """Events of the agent, each one line of JSON."""

    lines: Annotated[tuple[Line, ...], Field(max_length=200)]
    lost: Annotated[int, Field(ge=0)] = 0
    """How many were dropped since the last time, because there were too many."""
