"""A slot's actor on its node: keeps a harness warm and stores the result of the last call."""

import asyncio
import os
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import ray

from runners.backends.ray_cluster import protocol
from runners.contract.evaluation import CPU, Evaluation, EvaluationRequest, Progress
from runners.contract.runner import CallId, Capabilities, RunnerError, RunnerLostError
from runners.slots.harness import (
    Gpu,
    Harness,
    HarnessCall,
    SandboxOptions,
    UnfitError,
    UnreachedError,
    start_harness,
)

IDLE_S = 60.0
"""Seconds after which an unused slot ends and frees its GPUs."""
KEPT_S = 300.0
"""Seconds after which a slot with a result ends if no worker fetches it. In that time another
worker can take over from one that was killed."""


class NodeHarness:
    """One warm harness and the state of its last call."""

    def __init__(self, gpus: tuple[Gpu, ...], sandbox: SandboxOptions) -> None:
        self._gpus = gpus
        self._sandbox = sandbox
        self._starting = asyncio.Lock()
        self._harness: Harness | None = None
        self._work: asyncio.Task[None] | None = None
        self._call: str | None = None
        self._update = protocol.CallUpdate()
        self._changed = asyncio.Event()
        self._fetched = True

    @property
    def idle_limit_s(self) -> float | None:
        """Seconds without a request after which the slot ends; None while it evaluates."""
        if self._busy():
            return None
        return IDLE_S if self._fetched else KEPT_S

    def _busy(self) -> bool:
        return self._work is not None and not self._work.done()

    async def offer(self) -> Capabilities:
        """The harness's capabilities; RunnerError if it cannot start."""
        async with self._starting:
            if self._harness is None:
                self._harness = await start_harness(self._gpus, self._sandbox)
            return self._harness.capabilities

    async def begin(self, assignment: protocol.Assignment) -> None:
        """Start an evaluation, which `next_update` follows; RunnerError while another runs."""
        if self._busy():
            raise RunnerError("the slot is busy")
        self._call, self._update, self._fetched = assignment.call, protocol.CallUpdate(), False
        self._work = asyncio.create_task(self._evaluate(assignment))

    def knows(self, call: str) -> bool:
        """Whether this is the last call."""
        return call == self._call

    async def next_update(self, call: str, seen: int) -> protocol.CallUpdate:
        """The latest update after number `seen`; after `POLL_S` without one, the current update.

        RunnerError for an unknown call.
        """
        if not self.knows(call):
            raise RunnerError(f"the slot does not know call {call}")
        if self._update.number <= seen:
            changed = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait({changed}, timeout=protocol.POLL_S)
            changed.cancel()
        self._fetched = self._update.ended
        return self._update

    async def stop(self) -> None:
        """Stop the harness, all its processes and the evaluation, which then reports nothing."""
        work = self._work
        if work is not None and work is not asyncio.current_task() and not work.done():
            work.cancel()
            await asyncio.wait({work})
        harness, self._harness = self._harness, None
        if harness is not None:
            await harness.stop()

    async def _evaluate(self, assignment: protocol.Assignment) -> None:
        try:
            async with asyncio.timeout(assignment.limit_s):
                evaluation = await self._run(assignment)
        except RunnerError as error:
            await self._give_up(_fault_of(error), str(error))
        except TimeoutError:
            message = f"the harness returned no evaluation within {assignment.limit_s:.0f} s"
            await self._give_up(protocol.DriverFault.ERROR, message)
        else:
            self._publish(protocol.CallUpdate(evaluation=evaluation))

    async def _run(self, assignment: protocol.Assignment) -> Evaluation:
        request = EvaluationRequest.model_validate_json(assignment.request)
        line = assignment.request.encode()
        await self.offer()
        if self._harness is None:
            raise UnreachedError("the slot was stopped")
        return await self._harness.evaluate(
            HarnessCall(CallId(assignment.call), request, line), self._progress
        )

    async def _give_up(self, fault: protocol.DriverFault, message: str) -> None:
        await self.stop()
        self._publish(protocol.CallUpdate(fault=fault, message=message))

    def _progress(self, progress: Progress) -> None:
        self._publish(protocol.CallUpdate(progress=progress))

    def _publish(self, update: protocol.CallUpdate) -> None:
        self._update = update.model_copy(update={"number": self._update.number + 1})
        self._changed.set()
        self._changed = asyncio.Event()


def _fault_of(error: RunnerError) -> protocol.DriverFault:
    match error:
        case UnreachedError():
            return protocol.DriverFault.UNREACHED
        case UnfitError():
            return protocol.DriverFault.UNFIT
        case RunnerLostError():
            return protocol.DriverFault.LOST
        case _:
            return protocol.DriverFault.ERROR


_CHECK_S = 1.0
_STOP_S = 30.0
_T = TypeVar("_T")


class SlotActor:
    """Ray's actor. Each method returns a `DriverReply` as JSON, because Ray pickles exceptions."""

    def __init__(self, kind: str, strict: str) -> None:
        self._loop = asyncio.SelectorEventLoop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._node = NodeHarness(assigned_gpus(kind), SandboxOptions(strict=bool(strict)))
        self._last_used = time.monotonic()
        threading.Thread(target=self._end_when_idle, daemon=True).start()

    def offer(self) -> str:
        """Return its harness's capabilities."""
        return self._reply(self._offer())

    def begin(self, assignment: str) -> str:
        """Start the evaluation of an `Assignment`."""
        return self._reply(self._begin(assignment))

    def next_update(self, call: str, seen: str) -> str:
        """Return the latest `CallUpdate` of a call, as soon as it is newer than number `seen`."""
        return self._reply(self._next_update(call, int(seen)))

    def knows(self, call: str) -> str:
        """Return the call's id if it is the last call, otherwise an empty text."""
        return protocol.DriverReply(
            number=0, text=call if self._node.knows(call) else ""
        ).model_dump_json()

    async def _offer(self) -> str:
        return (await self._node.offer()).model_dump_json()

    async def _begin(self, assignment: str) -> str:
        await self._node.begin(protocol.Assignment.model_validate_json(assignment))
        return ""

    async def _next_update(self, call: str, seen: int) -> str:
        return (await self._node.next_update(call, seen)).model_dump_json()

    def _reply(self, work: Coroutine[Any, Any, str]) -> str:
        self._last_used = time.monotonic()
        try:
            reply = protocol.DriverReply(number=0, text=self._await(work))
        except RunnerError as error:
            reply = protocol.DriverReply(number=0, text=str(error), fault=_fault_of(error))
        finally:
            self._last_used = time.monotonic()
        return reply.model_dump_json()

    def _await(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_when_idle(self) -> None:
        """End this process after `idle_limit_s` seconds without requests, which frees its GPUs."""
        never_set = threading.Event()
        while not never_set.wait(_CHECK_S):
            limit_s = self._node.idle_limit_s
            if limit_s is None:
                self._last_used = time.monotonic()
            elif time.monotonic() - self._last_used > limit_s:
                asyncio.run_coroutine_threadsafe(self._node.stop(), self._loop).result(_STOP_S)
                os._exit(0)


def assigned_gpus(kind: str) -> tuple[Gpu, ...]:
    """The GPUs that Ray has assigned to this actor."""
    handles = [] if kind == CPU else [str(gpu) for gpu in ray.get_gpu_ids()]
    return tuple(
        Gpu(int(handle) if handle.isdigit() else position, handle, kind)
        for position, handle in enumerate(handles)
    )
