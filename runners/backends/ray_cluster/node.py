"""What a slot's actor does on its node: keeps a harness warm, and what came of the last call."""

import asyncio

from runners.backends.ray_cluster.wire import POLL_S, Assignment, Fault, News
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import CallId, Capabilities, RunnerError, RunnerLostError
from runners.slots.harness import (
    Gpu,
    Harness,
    Order,
    UnfitError,
    UnreachedError,
    Walls,
    start_harness,
)

IDLE_S = 60.0
"""After which a slot that nobody uses ends, and its GPUs are free for others."""
KEPT_S = 300.0
"""For how long an answer waits for the worker that takes over from a killed one."""


class NodeHarness:
    """One warm harness, and the last call."""

    def __init__(self, gpus: tuple[Gpu, ...], walls: Walls) -> None:
        self._gpus = gpus
        self._walls = walls
        self._starting = asyncio.Lock()
        self._harness: Harness | None = None
        self._work: asyncio.Task[None] | None = None
        self._call: str | None = None
        self._news = News()
        self._newer = asyncio.Event()
        self._fetched = True

    @property
    def patience_s(self) -> float | None:
        """How long it waits to be asked again before it ends; None while it evaluates."""
        if self._busy():
            return None
        return IDLE_S if self._fetched else KEPT_S

    def _busy(self) -> bool:
        return self._work is not None and not self._work.done()

    async def offer(self) -> Capabilities:
        """What the harness offers; RunnerError when it cannot begin."""
        async with self._starting:
            if self._harness is None:
                self._harness = await start_harness(self._gpus, self._walls)
            return self._harness.capabilities

    async def begin(self, assignment: Assignment) -> None:
        """Evaluate; `news` tells what becomes of it. RunnerError while it does another."""
        if self._busy():
            raise RunnerError("the slot is busy")
        self._call, self._news, self._fetched = assignment.call, News(), False
        self._work = asyncio.create_task(self._evaluate(assignment))

    def knows(self, call: str) -> bool:
        """Whether this is the last call."""
        return call == self._call

    async def news(self, call: str, seen: int) -> News:
        """What is newer than the first `seen` news; what there is when nothing comes for a while.

        RunnerError for a call that is not known.
        """
        if not self.knows(call):
            raise RunnerError(f"the slot does not know call {call}")
        if self._news.number <= seen:
            newer = asyncio.ensure_future(self._newer.wait())
            await asyncio.wait({newer}, timeout=POLL_S)
            newer.cancel()
        self._fetched = self._news.ended
        return self._news

    async def stop(self) -> None:
        """End the harness, everything beneath it, and the evaluation, which then tells nothing."""
        work = self._work
        if work is not None and work is not asyncio.current_task() and not work.done():
            work.cancel()
            await asyncio.wait({work})
        harness, self._harness = self._harness, None
        if harness is not None:
            await harness.stop()

    async def _evaluate(self, assignment: Assignment) -> None:
        try:
            evaluation = await asyncio.wait_for(self._answer(assignment), assignment.limit_s)
        except UnreachedError as error:
            await self._give_up(Fault.UNREACHED, str(error))
        except UnfitError as error:
            await self._give_up(Fault.UNFIT, str(error))
        except RunnerLostError as error:
            await self._give_up(Fault.LOST, str(error))
        except RunnerError as error:
            await self._give_up(Fault.ERROR, str(error))
        except TimeoutError:
            words = f"the harness gave no evaluation within {assignment.limit_s:.0f} s"
            await self._give_up(Fault.ERROR, words)
        else:
            self._say(News(evaluation=evaluation))

    async def _answer(self, assignment: Assignment) -> Evaluation:
        request = EvaluationRequest.model_validate_json(assignment.request)
        line = assignment.request.encode()
        await self.offer()
        if self._harness is None:
            raise UnreachedError("the slot was stopped")
        return await self._harness.evaluate(
            Order(CallId(assignment.call), request, line), self._progress
        )

    async def _give_up(self, fault: Fault, words: str) -> None:
        await self.stop()
        self._say(News(fault=fault, words=words))

    def _progress(self, progress: Progress) -> None:
        self._say(News(progress=progress))

    def _say(self, news: News) -> None:
        self._news = news.model_copy(update={"number": self._news.number + 1})
        self._newer.set()
        self._newer = asyncio.Event()
