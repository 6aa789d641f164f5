"""The queue as one worker sees it: the store's own, or that of a server far away."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Protocol

from bot.domain.job import Ending, Heartbeat, LeasedJob, Notice
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import Capabilities

NO_RUNNERS: Mapping[str, Mapping[str, int]] = MappingProxyType({})


class WorkerQueue(Protocol):
    """Claims, leases and what comes of them; StoreError while the queue is away.

    UserError when it will not have this worker any more, as one elsewhere may say.

    What gives a bool gives False when the lease was lost: then nothing was changed.
    """

    async def announce(self, offers: Mapping[str, Capabilities] | None) -> None:
        """Count this worker among the living, with what each of its runners offers.

        None while they have not all been asked.
        """

    async def leave(self) -> None:
        """Count it no more."""

    def notices(self) -> AbstractAsyncContextManager[AsyncIterator[Notice | None]]:
        """Hints that work is there or is to be stopped; some may be lost."""

    async def claim(
        self, slots: Mapping[str, int], runners: Mapping[str, Mapping[str, int]] = NO_RUNNERS
    ) -> tuple[LeasedJob, ...]:
        """Take due jobs for so many free slots by GPU type.

        `runners` has the free slots of each runner by GPU type, for jobs that are pinned to a pool.
        """

    async def request(self, job: LeasedJob) -> EvaluationRequest | None:
        """The complete order for a job; None when the lease was lost.

        LookupError when something of the job is not there.
        """

    async def beat(self, held: Sequence[LeasedJob]) -> tuple[Heartbeat, ...]:
        """Prolong leases; a job absent from the answer is lost."""

    async def attach(self, job: LeasedJob, call: str) -> bool:
        """Note the runner's call id."""

    async def tell(self, job: LeasedJob, progress: Progress) -> bool:
        """Note one step."""

    async def accept(
        self, job: LeasedJob, request: EvaluationRequest, evaluation: Evaluation
    ) -> bool:
        """Store the evaluation with its score, and end the job."""

    async def give_up(self, job: LeasedJob, why: Ending, error: str = "") -> bool:
        """End the attempt without an evaluation."""
