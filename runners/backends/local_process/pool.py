"""The runner over the harness processes of this machine: slots, calls, limits."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from runners.backends.local_process.gpus import Gpu
from runners.backends.local_process.harness import (
    LINE_MAX,
    START_S,
    Harness,
    UnfitError,
    UnreachedError,
    Walls,
    start_harness,
)
from runners.calls import Calls
from runners.contract.evaluation import CPU, Evaluation, EvaluationRequest
from runners.contract.runner import (
    CallId,
    Capabilities,
    OutOfService,
    ProgressSink,
    RunnerError,
)

NAME = "local_process"
GRACE_S = 30.0
"""What a harness may take beyond the task's time limits before its slot is killed: more than the
grace after which it gives up by itself, and says whose doing it was."""

RECHECK_S = 60.0
"""Between looks at a GPU that is out of service."""

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
        self.unfit = ""
        """Why the slot is out of service; empty when it is not."""

    @property
    def outages(self) -> tuple[OutOfService, ...]:
        """Its cards, where they are out of service."""
        cards = [gpu.handle for gpu in self.gpus] or [self.kind]
        return tuple(OutOfService(gpu=self.kind, card=card, why=self.unfit) for card in cards)

    async def warm(self) -> Harness:
        """The slot's harness, started when there is none or the last one died.

        UnfitError when its GPU is not fit; the slot is out of service then.
        """
        if self.harness is not None and not self.harness.alive:
            _log.warning("harness %d died while idle; starting another", self.harness.pid)
            await self.cool()
        if self.harness is None:
            with self._noted():
                self.harness = await start_harness(self.gpus, self.walls)
            self.offered = self.harness.capabilities
        return self.harness

    async def rest(self) -> None:
        """Wait until the harness is ready for the next call, or find out that it cannot be."""
        try:
            if self.unfit:
                await self.warm()
            elif self.harness is not None:
                with self._noted():
                    await self.harness.rest()
        except RunnerError:  # the next call starts another harness, which says why it cannot
            await self.cool()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Take note of whether the slot's GPU is fit."""
        before = self.unfit
        try:
            yield
        except UnfitError as error:
            self.unfit = str(error)
            if not before:
                _log.error("%s is out of service: %s", self.kind, error)
            raise
        self.unfit = ""
        if before:
            _log.warning("%s is back in service", self.kind)

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
        self._resting: set[asyncio.Task[None]] = set()
        for kind, members in slots.items():
            self._free[kind] = asyncio.Queue()
            self._joining[kind] = asyncio.Lock()
            for slot in members:
                self._free[kind].put_nowait(slot)
        self._calls = Calls(NAME)

    async def capabilities(self) -> Capabilities:
        members = [slot for slots in self._slots.values() for slot in slots]
        offered = next((slot.offered for slot in members if slot.offered), None)
        counts = {kind: len(slots) for kind, slots in self._slots.items()}
        at_once = {kind: RANKS_ON_CPU if kind == CPU else count for kind, count in counts.items()}
        out = tuple(each for slot in members if slot.unfit for each in slot.outages)
        fit = {
            kind: count - sum(each.gpu == kind for each in out) for kind, count in counts.items()
        }
        found = offered or await self._asked()
        return found.model_copy(update={"gpus": fit, "at_once": at_once, "out_of_service": out})

    async def _asked(self) -> Capabilities:
        """What a harness offers, when none was started yet or the first is only starting."""
        kind = next(iter(self._slots))
        try:
            slot = await asyncio.wait_for(self._free[kind].get(), START_S)
        except TimeoutError as error:
            raise RunnerError(f"no slot of {kind} was free for {START_S:.0f} s") from error
        try:
            return (await slot.warm()).capabilities
        finally:
            self._give_back(slot)

    async def start(self, request: EvaluationRequest) -> CallId:
        if request.gpu not in self._slots:
            there = ", ".join(self._slots)
            raise RunnerError(f"this machine has no GPU type {request.gpu}; it has {there}")
        count, wanted = len(self._slots[request.gpu]), _gpus_of(request)
        if wanted > count:
            raise RunnerError(f"{wanted} {request.gpu} at once are asked for; there are {count}")
        if all(slot.unfit for slot in self._slots[request.gpu]):
            why = self._slots[request.gpu][0].unfit
            raise RunnerError(f"{request.gpu} is out of service: {why}")
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
        for resting in tuple(self._resting):
            resting.cancel()
        await asyncio.gather(*self._resting, return_exceptions=True)
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
            await asyncio.gather(*(slot.cool() for slot in taken))  # their judges use the GPUs
            gpus = tuple(gpu for slot in taken for gpu in slot.gpus)
            joined = Slot(request.gpu, gpus, taken[0].walls)
            try:
                yield joined
            finally:
                await asyncio.shield(joined.cool())
        finally:
            for slot in taken:
                self._give_back(slot)

    def _give_back(self, slot: Slot) -> None:
        """Free the slot once it is ready again, and fit."""
        resting = asyncio.create_task(self._rest(slot), name=f"rest of {slot.kind}")
        self._resting.add(resting)
        resting.add_done_callback(self._resting.discard)

    async def _rest(self, slot: Slot) -> None:
        await slot.rest()
        while slot.unfit:
            await asyncio.sleep(RECHECK_S)
            await slot.rest()
        self._free[slot.kind].put_nowait(slot)

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
