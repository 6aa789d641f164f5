"""The runner over a Ray cluster: creates slots there, which outlive this process."""

import asyncio
from collections.abc import Mapping

from typing_extensions import override

from runners.backends.ray_cluster.bridge import Bridge
from runners.backends.ray_cluster.protocol import Command, DriverOperation, Resources, SlotNames
from runners.backends.ray_cluster.slot import RaySlot, RemoteHarness, join
from runners.contract.evaluation import CPU, Evaluation, EvaluationRequest
from runners.contract.runner import (
    CallId,
    Capabilities,
    ProgressSink,
    RunnerError,
    UnknownCallError,
)
from runners.slots.runner import RANKS_ON_CPU, SlotRunner, gpus_of, telling

NAME = "ray_cluster"
_OFFER_S = 90.0
_SOON_S = 5.0


class RayRunner(SlotRunner[RaySlot]):
    """Runs calls in slots on the cluster.

    It refuses a request at once if no node has the GPUs, and continues calls of a killed worker.
    """

    def __init__(
        self, bridge: Bridge, slots: Mapping[str, int], version: str | None, *, strict: bool
    ) -> None:
        made = {
            kind: tuple(RaySlot(bridge, kind, version, strict=strict) for _ in range(count))
            for kind, count in slots.items()
        }
        super().__init__(NAME, made, join, "PODIUM_RUNNERS")
        self._bridge = bridge
        self._version = version

    @override
    async def capabilities(self) -> Capabilities:
        """The capabilities of a node's harness, for the types that nodes have now.

        RunnerError if they have none of the requested types.
        """
        there = await self._resources()
        kinds = [kind for kind in self._slots if there.most(kind)]
        if not kinds:
            _require(there, next(iter(self._slots)), 1)
        try:
            offered = await asyncio.wait_for(self._offered(telling(kinds)), _OFFER_S)
        except TimeoutError as error:
            raise RunnerError(f"no slot on Ray was free within {_OFFER_S:.0f} s") from error
        return self._told(
            offered,
            {
                kind: RANKS_ON_CPU if kind == CPU else min(len(self._slots[kind]), there.most(kind))
                for kind in kinds
            },
        )

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        _require(await self._resources(), request.gpu, gpus_of(request))
        return await super().start(request)

    @override
    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        if not self._calls.knows(call):
            harness = await self._found(call)
            self._calls.resume(call, lambda _, tell: self._follow(harness, call, tell))
        return await super().wait(call, progress)

    @override
    async def cancel(self, call: CallId) -> None:
        if self._calls.knows(call):
            await super().cancel(call)
            return
        try:
            await (await self._found(call)).stop()
        except UnknownCallError:
            return

    @override
    async def aclose(self) -> None:
        await super().aclose()
        await self._bridge.aclose()

    async def _resources(self) -> Resources:
        text = await self._bridge.ask(Command(deed=DriverOperation.RESOURCES))
        return Resources.model_validate_json(text)

    async def _there(self) -> list[RemoteHarness]:
        """Every slot on the cluster, including those of other and of killed workers."""
        text = await self._bridge.ask(Command(deed=DriverOperation.SLOTS))
        return [
            RemoteHarness(self._bridge, name) for name in SlotNames.model_validate_json(text).names
        ]

    @override
    async def _asked(self, kind: str) -> Capabilities:
        """The capabilities from any existing slot, because a new one may have to wait for GPUs."""
        asking = [harness.offer(_SOON_S) for harness in await self._there()]
        answers = await asyncio.gather(*asking, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, Capabilities) and self._version in {None, answer.harness_version}:
                return answer
        return await super()._asked(kind)

    async def _found(self, call: CallId) -> RemoteHarness:
        """The slot with a call of an earlier process; UnknownCallError if none has it."""
        there = await self._there()
        known = await asyncio.gather(*(harness.knows(call) for harness in there))
        for harness, knows in zip(there, known, strict=True):
            if knows:
                return harness
        raise UnknownCallError(f"no slot on Ray knows call {call}")

    async def _follow(self, harness: RemoteHarness, call: CallId, tell: ProgressSink) -> Evaluation:
        """Follow a call of another worker to its end, then end its slot."""
        try:
            return await harness.follow(call, tell)
        finally:
            await asyncio.shield(harness.stop())


def _require(there: Resources, kind: str, gpus: int) -> None:
    most = there.most(kind)
    if most == 0:
        named = ", ".join(there.kinds()) or "none"
        raise RunnerError(f"no node on Ray has GPU type {kind}; announced are: {named}")
    if kind != CPU and gpus > most:
        raise RunnerError(f"{gpus} {kind} at once are asked for; a node on Ray has {most}")
