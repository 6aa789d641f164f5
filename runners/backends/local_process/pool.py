"""The runner over the harness processes of this machine: slots, calls, limits."""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from runners.backends.local_process.gpus import Gpu
from runners.backends.local_process.harness import (
    LINE_MAX,
    Harness,
    UnreachedError,
    start_harness,
)
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import (
    CallId,
    Capabilities,
    ProgressSink,
    RunnerError,
    UnknownCallError,
)

NAME = "local_process"
GRACE_S = 20.0
"""What a harness may take beyond the task's time limits before its slot is killed."""
_REMEMBERED = 256
"""How many ended calls can still be waited for; the oldest are forgotten first."""

_log = logging.getLogger(__name__)


class Slot:
    """A place for one evaluation at a time, with a harness that is kept warm."""

    def __init__(self, kind: str, gpu: Gpu | None, *, strict: bool) -> None:
        self.kind = kind
        self._gpu = gpu
        self._strict = strict
        self.harness: Harness | None = None

    async def warm(self) -> Harness:
        """The slot's harness, started when there is none or the last one died."""
        if self.harness is not None and not self.harness.alive:
            _log.warning("harness %d died while idle; starting another", self.harness.pid)
            await self.cool()
        if self.harness is None:
            self.harness = await start_harness(self._gpu, strict=self._strict)
        return self.harness

    async def cool(self) -> None:
        """Stop the harness, if there is one."""
        harness, self.harness = self.harness, None
        if harness is not None:
            await harness.stop()


@dataclass(slots=True)
class _Call:
    """One evaluation asked for: its task, and those who listen to its progress."""

    task: asyncio.Task[Evaluation]
    sinks: list[ProgressSink] = field(default_factory=list)
    last: Progress | None = None

    def tell(self, progress: Progress) -> None:
        self.last = progress
        for sink in self.sinks:
            sink(progress)


def hard_limit_s(request: EvaluationRequest) -> float:
    """Seconds after which a harness counts as lost: its own limits have failed by then."""
    return request.task.test_timeout + request.task.timeout_s(request.mode) + GRACE_S


class LocalRunner:
    """Runs each call in a free slot of its GPU type, in the order of their starts."""

    name = NAME

    def __init__(self, slots: Mapping[str, tuple[Slot, ...]]) -> None:
        self._slots = slots
        self._free: dict[str, asyncio.Queue[Slot]] = {}
        for kind, members in slots.items():
            self._free[kind] = asyncio.Queue()
            for slot in members:
                self._free[kind].put_nowait(slot)
        self._calls: dict[CallId, _Call] = {}
        self._started = 0
        self._life = secrets.token_hex(4)  # so that no call of an earlier process is taken for ours
        self._closed = False
        self._offered: Capabilities | None = None

    async def capabilities(self) -> Capabilities:
        if self._offered is None:
            kind = next(iter(self._slots))
            slot = await self._free[kind].get()
            try:
                offered = (await slot.warm()).capabilities
            finally:
                self._free[kind].put_nowait(slot)
            if offered is None:
                raise RunnerError("the harness did not say what it offers")
            counts = {each: len(members) for each, members in self._slots.items()}
            self._offered = offered.model_copy(update={"gpus": counts})
        return self._offered

    async def start(self, request: EvaluationRequest) -> CallId:
        if self._closed:
            raise RunnerError("the local runner is closed")
        if request.gpu not in self._slots:
            there = ", ".join(self._slots)
            raise RunnerError(f"this machine has no GPU type {request.gpu}; it has {there}")
        line = request.model_dump_json().encode()
        if len(line) > LINE_MAX:
            raise RunnerError(f"the request has {len(line)} bytes; at most {LINE_MAX} are taken")
        self._started += 1
        call = CallId(f"{self._life}-{self._started}")
        task = asyncio.create_task(self._evaluate(call, request, line), name=call)
        task.add_done_callback(_look_at)
        self._calls[call] = _Call(task)
        self._forget_old()
        return call

    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        known = self._calls.get(call)
        if known is None:
            raise UnknownCallError(f"the local runner does not know call {call}")
        known.sinks.append(progress)
        if known.last is not None:
            progress(known.last)
        try:
            await asyncio.wait({known.task})
        finally:
            known.sinks.remove(progress)
        if known.task.cancelled():
            raise RunnerError(f"call {call} was cancelled")
        return known.task.result()

    async def cancel(self, call: CallId) -> None:
        known = self._calls.get(call)
        if known is not None:
            known.task.cancel()
            await asyncio.wait({known.task})

    async def aclose(self) -> None:
        self._closed = True
        tasks = [call.task for call in self._calls.values()]
        self._calls.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        slots = [slot for members in self._slots.values() for slot in members]
        await asyncio.gather(*(slot.cool() for slot in slots))

    def _forget_old(self) -> None:
        ended = [call for call, known in self._calls.items() if known.task.done()]
        for call in ended[: max(0, len(ended) - _REMEMBERED)]:
            del self._calls[call]

    async def _evaluate(self, call: CallId, request: EvaluationRequest, line: bytes) -> Evaluation:
        slot = await self._free[request.gpu].get()
        try:
            try:
                return await self._within_limit(await slot.warm(), call, request, line)
            except UnreachedError:  # it had died while it was idle: a fresh one can begin
                await slot.cool()
                return await self._within_limit(await slot.warm(), call, request, line)
        except BaseException:  # a cancellation too: what the slot still does is of no use
            await asyncio.shield(slot.cool())
            raise
        finally:
            self._free[request.gpu].put_nowait(slot)

    async def _within_limit(
        self, harness: Harness, call: CallId, request: EvaluationRequest, line: bytes
    ) -> Evaluation:
        limit = hard_limit_s(request)
        try:
            tell = self._calls[call].tell
            return await asyncio.wait_for(harness.evaluate(request, line, tell), limit)
        except TimeoutError as error:
            raise RunnerError(f"the harness gave no evaluation within {limit:.0f} s") from error


def _look_at(task: asyncio.Task[Evaluation]) -> None:
    """Retrieve the exception: asyncio reports one that nobody waited for."""
    if not task.cancelled():
        task.exception()
