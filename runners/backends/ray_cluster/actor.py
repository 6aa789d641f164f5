"""The actor of a slot: answers Ray's questions for a `NodeHarness` that lives in a loop of its own.

No submitted code comes into its process, where Ray's token is.
"""

import asyncio
import os
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import ray

from runners.backends.ray_cluster.node import NodeHarness
from runners.backends.ray_cluster.wire import Assignment, Fault, Reply
from runners.contract.evaluation import CPU
from runners.contract.runner import RunnerError
from runners.slots.harness import Gpu, UnfitError, Walls

_LOOK_S = 1.0
_STOP_S = 30.0
_T = TypeVar("_T")


class SlotActor:
    """Each method gives a `Reply`: what Ray carries as an exception, it pickles."""

    def __init__(self, kind: str, strict: str) -> None:
        self._loop = asyncio.SelectorEventLoop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._node = self._within(_made(visible(kind), Walls(strict=bool(strict))))
        self._asked_at = time.monotonic()
        threading.Thread(target=self._end_when_idle, daemon=True).start()

    def offer(self) -> str:
        """What its harness offers."""
        return self._reply(self._offer())

    def begin(self, assignment: str) -> str:
        """Begin an `Assignment`."""
        return self._reply(self._begin(assignment))

    def news(self, call: str, seen: str) -> str:
        """The `News` of a call."""
        return self._reply(self._news(call, int(seen)))

    def knows(self, call: str) -> str:
        """The call, when it is the last one; else nothing."""
        return Reply(number=0, text=call if self._node.knows(call) else "").model_dump_json()

    async def _offer(self) -> str:
        return (await self._node.offer()).model_dump_json()

    async def _begin(self, assignment: str) -> str:
        await self._node.begin(Assignment.model_validate_json(assignment))
        return ""

    async def _news(self, call: str, seen: int) -> str:
        return (await self._node.news(call, seen)).model_dump_json()

    def _reply(self, doing: Coroutine[Any, Any, str]) -> str:
        self._asked_at = time.monotonic()
        try:
            reply = Reply(number=0, text=self._within(doing))
        except UnfitError as error:
            reply = Reply(number=0, text=str(error), fault=Fault.UNFIT)
        except RunnerError as error:
            reply = Reply(number=0, text=str(error), fault=Fault.ERROR)
        finally:
            self._asked_at = time.monotonic()
        return reply.model_dump_json()

    def _within(self, doing: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result()

    def _end_when_idle(self) -> None:
        """End this process, so that its GPUs are free, when nobody has asked for long enough."""
        never = threading.Event()
        while not never.wait(_LOOK_S):
            patience = self._node.patience_s
            if patience is None:
                self._asked_at = time.monotonic()
            elif time.monotonic() - self._asked_at > patience:
                asyncio.run_coroutine_threadsafe(self._node.stop(), self._loop).result(_STOP_S)
                os._exit(0)


def visible(kind: str) -> tuple[Gpu, ...]:
    """The GPUs that Ray has given this actor."""
    handles = [] if kind == CPU else [str(each) for each in ray.get_gpu_ids()]
    return tuple(
        Gpu(int(handle) if handle.isdigit() else place, handle, kind)
        for place, handle in enumerate(handles)
    )


async def _made(gpus: tuple[Gpu, ...], walls: Walls) -> NodeHarness:
    return NodeHarness(gpus, walls)
