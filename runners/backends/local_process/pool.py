"""The runner over the harness processes of this machine: slots, calls, limits."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from runners.backends.local_process.gpus import Gpu
from runners.backends.local_process.harness import (
    LINE_MAX,
    START_S,
    Harness,
    UnreachedError,
    Walls,
    start_harness,
)
from runners.calls import Calls
from runners.contract.evaluation import CPU, Evaluation, EvaluationRequest
from runners.contract.runner import CallId, Capabilities, ProgressSink, RunnerError

NAME = "local_process"
GRACE_S = 30.0
"""What a harness may take beyond the task's time limits before its slot is killed: more than the
grace after which it gives up by itself, and says whose doing it was."""

RANKS_ON_CPU = 8
"""The most ranks that a task of several GPUs may have where they are processes on the CPU."""

_log = logging.getLogger(__name__)


class Slot:
    """A place for one evaluation at a time, with a harness that is kept warm.

    It has one GPU, or none; or several, joined for one evaluation that spreads over them.
    """

    def __init__(self, kind: str, gpus: tuple[Gpu, ...], walls: Walls) -> None:
        self.kind = kind
        self.gpus = gpus
        self.walls = walls
        self.harness: Harness | None = None
        self.offered: Capabilities | None = None

    async def warm(self) -> Harness:
        """The slot's harness, started when there is none or the last one died."""
        if self.harness is not None and not self.harness.alive:
            _log.warning("harness %d died while idle; starting another", self.harness.pid)
            await self.cool()
        if self.harness is None:
            self.harness = await start_harness(self.gpus, self.walls)
            self.offered = self.harness.capabilities
        return self.harness

    async def cool(self) -> None:
        """Stop the harness, if there is one."""
        harness, self.harness = self.harness, None
        if harness is not None:
            await harness.stop()


def hard_limit_s(request: EvaluationRequest) -> float:
    """Seconds after which a harness counts as lost: its own limits have failed by then."""
    return request.task.limit_s(request.mode) + GRACE_S


def _gpus_of(request: EvaluationRequest) -> int:
    """How many slots one evaluation takes: on the CPU ranks are processes of one."""
    return 1 if request.gpu == CPU else request.task.world_size


class LocalRunner:
    """Runs each call in a free slot of its GPU type, in the order of their starts."""

    name = NAME

    def __init__(self, slots: Mapping[str, tuple[Slot, ...]]) -> None:
        self._slots = slots
        self._free: dict[str, asyncio.Queue[Slot]] = {}
        self._joining: dict[str, asyncio.Lock] = {}
        for kind, members in slots.items():
            self._free[kind] = asyncio.Queue()
            self._joining[kind] = asyncio.Lock()
            for slot in members:
                self._free[kind].put_nowait(slot)
        self._calls = Calls(NAME)

    @property
    def _telling(self) -> str:
        """The kind of slot whose harness is asked: one with a GPU may offer more languages."""
        return next((kind for kind in self._slots if kind != CPU), CPU)

    async def capabilities(self) -> Capabilities:
        offered = next((slot.offered for slot in self._slots[self._telling] if slot.offered), None)
        counts = {kind: len(slots) for kind, slots in self._slots.items()}
        at_once = {kind: RANKS_ON_CPU if kind == CPU else count for kind, count in counts.items()}
        found = offered or await self._asked()
        return found.model_copy(update={"gpus": counts, "at_once": at_once})

    async def _asked(self) -> Capabilities:
        """What a harness offers, when none was started yet or the first is only starting."""
        kind = self._telling
        try:
            slot = await asyncio.wait_for(self._free[kind].get(), START_S)
        except TimeoutError as error:
            raise RunnerError(f"no slot of {kind} was free for {START_S:.0f} s") from error
        try:
            return (await slot.warm()).capabilities
        finally:
            self._free[kind].put_nowait(slot)

    async def start(self, request: EvaluationRequest) -> CallId:
        if request.gpu not in self._slots:
            there = ", ".join(self._slots)
            raise RunnerError(f"this machine has no GPU type {request.gpu}; it has {there}")
        count, wanted = len(self._slots[request.gpu]), _gpus_of(request)
        if wanted > count:
            raise RunnerError(f"{wanted} {request.gpu} at once are asked for; there are {count}")
        line = request.model_dump_json().encode()
        if len(line) > LINE_MAX:
            raise RunnerError(f"the request has {len(line)} bytes; at most {LINE_MAX} are taken")
        return self._calls.start(lambda _, tell: self._evaluate(request, line, tell))

    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        return await self._calls.wait(call, progress)

    async def cancel(self, call: CallId) -> None:
        await self._calls.cancel(call)

    async def aclose(self) -> None:
        await self._calls.aclose()
        slots = [slot for members in self._slots.values() for slot in members]
        await asyncio.gather(*(slot.cool() for slot in slots))

    async def _evaluate(
        self, request: EvaluationRequest, line: bytes, tell: ProgressSink
    ) -> Evaluation:
        async with self._slot(request) as slot:
            return await self._evaluate_in(slot, request, line, tell)

    @asynccontextmanager
    async def _slot(self, request: EvaluationRequest) -> AsyncIterator[Slot]:
        """The next free slot; or so many joined, which no other call then has.

        One call at a time joins slots: two, each holding half of what it needs, would wait for
        ever.
        """
        free, wanted = self._free[request.gpu], _gpus_of(request)
        taken: list[Slot] = []
        try:
            async with self._joining[request.gpu]:
                while len(taken) < wanted:
                    taken.append(await free.get())
            if wanted == 1:
                yield taken[0]
                return
            gpus = tuple(gpu for slot in taken for gpu in slot.gpus)
            joined = Slot(request.gpu, gpus, taken[0].walls)
            try:
                yield joined
            finally:
                await asyncio.shield(joined.cool())
        finally:
            for slot in taken:
                free.put_nowait(slot)

    async def _evaluate_in(
        self, slot: Slot, request: EvaluationRequest, line: bytes, tell: ProgressSink
    ) -> Evaluation:
        try:
            try:
                return await self._within_limit(await slot.warm(), request, line, tell)
            except UnreachedError:  # it had died while it was idle: a fresh one can begin
                await slot.cool()
                return await self._within_limit(await slot.warm(), request, line, tell)
        except BaseException:  # a cancellation too: what the slot still does is of no use
            await asyncio.shield(slot.cool())
            raise

    async def _within_limit(
        self, harness: Harness, request: EvaluationRequest, line: bytes, tell: ProgressSink
    ) -> Evaluation:
        limit = hard_limit_s(request)
        try:
            return await asyncio.wait_for(harness.evaluate(request, line, tell), limit)
        except TimeoutError as error:
            raise RunnerError(f"the harness gave no evaluation within {limit:.0f} s") from error
