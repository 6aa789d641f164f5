"""The runner over a Ray cluster, and its slots on the nodes, which outlive this process.

A slot is an actor with a harness, on any node with enough free GPUs.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import TypeVar

from pydantic import ValidationError
from typing_extensions import override

from runners.backends.ray_cluster import protocol
from runners.backends.ray_cluster.bridge import Bridge, ClusterUnavailableError
from runners.contract.evaluation import CPU, RANKS_ON_CPU, Evaluation, EvaluationRequest
from runners.contract.runner import (
    CallId,
    Capabilities,
    ProgressSink,
    RunnerError,
    RunnerLostError,
    UnknownCallError,
)
from runners.contract.wire import Wire
from runners.slots.harness import START_S, HarnessCall, UnfitError, UnreachedError
from runners.slots.runner import Fitness, SlotRunner, gpus_of, reporting_kind

NAME = "ray_cluster"
NODE_GRACE_S = 25.0
"""Seconds by which a harness may exceed the task's time limits before its node kills it; more than
the harness's own grace, less than the grace after which this process kills its slot."""
PLACEMENT_S = 1500.0
"""Seconds that a slot may wait for a node with free GPUs, because a cluster has other users."""
UNREACHABLE_S = 120.0
"""Seconds that a node may be unreachable before its call counts as lost."""
_RETRY_S = 1.0
_REQUEST_S = 20.0
_CAPABILITIES_S = 90.0
_EXISTING_S = 5.0
"""Seconds for the slots that exist to report their capabilities."""

W = TypeVar("W", bound=Wire)


class RemoteHarness:
    """The harness of the actor with this name."""

    def __init__(self, bridge: Bridge, name: str) -> None:
        self.name = name
        self._bridge = bridge

    async def offer(self, within_s: float = PLACEMENT_S + START_S) -> Capabilities:
        """Its capabilities, once its actor runs on a node and it is ready.

        RunnerError if no node had room for it in time; RunnerLostError if its node was lost.
        """
        began = time.monotonic()
        try:
            text = await self._request("offer", within_s=within_s)
        except ClusterUnavailableError as error:
            if time.monotonic() - began < within_s:
                raise
            raise RunnerError(f"no node had a slot ready: {error}") from error
        return _read(Capabilities, text)

    async def evaluate(self, call: HarnessCall, progress: ProgressSink) -> Evaluation:
        """Return the evaluation of a request; UnreachedError if the actor had already ended."""
        request = call.request
        limit_s = request.left_s + NODE_GRACE_S
        assignment = protocol.Assignment(call=call.id, request=call.line.decode(), limit_s=limit_s)
        try:
            await self._request("begin", assignment.model_dump_json())
        except RunnerLostError as error:
            raise UnreachedError(str(error)) from error
        evaluation = await self.follow(call.id, progress)
        if evaluation.request_id != request.request_id:
            raise RunnerError("the harness answered another request")
        return evaluation

    async def follow(self, call: CallId, progress: ProgressSink) -> Evaluation:
        """Wait for a started call and return its evaluation.

        While the node is unreachable, retry for `UNREACHABLE_S`, then raise
        ClusterUnavailableError.
        """
        update, reached = protocol.CallUpdate(), time.monotonic()
        while not update.ended:
            try:
                text = await self._request(
                    "next_update", call, str(update.number), within_s=protocol.POLL_S + _REQUEST_S
                )
            except ClusterUnavailableError:
                if time.monotonic() - reached > UNREACHABLE_S:
                    raise
                await asyncio.sleep(_RETRY_S)
                continue
            reached, seen = time.monotonic(), update.number
            update = _read(protocol.CallUpdate, text)
            if update.progress is not None and update.number > seen:
                progress(update.progress)
        return _evaluation(update)

    async def knows(self, call: CallId) -> bool:
        """Whether the call is its current or last one."""
        try:
            return await self._request("knows", call) == call
        except RunnerError:
            return False

    async def stop(self) -> None:
        """End the actor, its harness and all their processes."""
        command = protocol.Command(operation=protocol.DriverOperation.END, slot=self.name)
        await self._bridge.request(command)

    async def _request(self, method: str, *arguments: str, within_s: float = _REQUEST_S) -> str:
        command = protocol.Command(
            operation=protocol.DriverOperation.CALL,
            slot=self.name,
            method=method,
            arguments=arguments,
            within_s=within_s,
        )
        reply = _read(protocol.DriverReply, await self._bridge.request(command))
        if reply.fault is protocol.DriverFault.UNFIT:
            raise UnfitError(reply.text)
        if reply.fault is not None:
            raise RunnerError(reply.text)
        return reply.text


class RaySlot:
    """A slot for one evaluation at a time; if several slots are joined, it `replaces` them."""

    def __init__(
        self,
        bridge: Bridge,
        kind: str,
        version: str | None,
        *,
        strict: bool,
        replaces: Sequence["RaySlot"] = (),
    ) -> None:
        self.bridge = bridge
        self.kind = kind
        self.version = version
        self.strict = strict
        self.replaces = tuple(replaces)
        self.offered: Capabilities | None = None
        self.fitness = Fitness(kind)
        self._harness: RemoteHarness | None = None

    async def warm_harness(self) -> RemoteHarness:
        if self._harness is None:
            await asyncio.gather(*(slot.stop() for slot in self.replaces))
            harness = RemoteHarness(self.bridge, f"slot-{secrets.token_hex(8)}")
            try:
                await self.bridge.request(self._place_command(harness.name))
                self.offered = self._require_version(await harness.offer())
            except BaseException:
                await asyncio.shield(_end(harness))
                raise
            self._harness = harness
        return self._harness

    async def wait_ready(self) -> None:
        return  # the harness on the node waits for this itself before its next call

    async def stop(self) -> None:
        harness, self._harness = self._harness, None
        if harness is not None:
            await _end(harness)

    def _place_command(self, name: str) -> protocol.Command:
        gpus = max(1, len(self.replaces))
        return protocol.Command(
            operation=protocol.DriverOperation.PLACE,
            slot=name,
            kind=self.kind,
            gpus=gpus,
            strict=self.strict,
        )

    def _require_version(self, offered: Capabilities) -> Capabilities:
        if self.version not in {None, offered.harness_version}:
            raise RunnerError(
                f"the node has harness {offered.harness_version}, this is {self.version}; "
                "no other `runners` may be installed on the nodes"
            )
        return offered


def join(slots: Sequence[RaySlot]) -> RaySlot:
    """One slot with as many GPUs on one node as there are slots; it stops the slots' harnesses."""
    first = slots[0]
    return RaySlot(first.bridge, first.kind, first.version, strict=first.strict, replaces=slots)


async def _end(harness: RemoteHarness) -> None:
    """End a harness; an unreachable one ends itself when it is idle."""
    try:
        await harness.stop()
    except RunnerError:
        return


def _read(kind: type[W], text: str) -> W:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise RunnerError(f"the node broke the contract: {error}") from error


def _evaluation(update: protocol.CallUpdate) -> Evaluation:
    match update.fault:
        case None if update.evaluation is not None:
            return update.evaluation
        case protocol.DriverFault.UNREACHED:
            raise UnreachedError(update.message)
        case protocol.DriverFault.UNFIT:
            raise UnfitError(update.message)
        case protocol.DriverFault.LOST | protocol.DriverFault.UNAVAILABLE:
            raise RunnerLostError(update.message)
        case _:
            raise RunnerError(update.message)


class RayRunner(SlotRunner[RaySlot]):
    """Runs calls in slots on the cluster.

    It refuses a request at once if no node has the GPUs, and continues calls of a killed worker.
    """

    def __init__(
        self, bridge: Bridge, slots: Mapping[str, int], version: str | None, *, strict: bool
    ) -> None:
        slots_of = {
            kind: tuple(RaySlot(bridge, kind, version, strict=strict) for _ in range(count))
            for kind, count in slots.items()
        }
        super().__init__(NAME, slots_of, join, "PODIUM_RUNNERS")
        self._bridge = bridge
        self._version = version

    @override
    async def capabilities(self) -> Capabilities:
        """The capabilities of a node's harness, for the types that nodes have now.

        RunnerError if they have none of the requested types.
        """
        resources = await self._resources()
        kinds = [kind for kind in self._slots if resources.most(kind)]
        if not kinds:
            _require(resources, next(iter(self._slots)), 1)
        try:
            async with asyncio.timeout(_CAPABILITIES_S):
                offered = await self._offered(reporting_kind(kinds))
        except TimeoutError as error:
            raise RunnerError(f"no slot on Ray was free within {_CAPABILITIES_S:.0f} s") from error
        at_once = {kind: min(len(self._slots[kind]), resources.most(kind)) for kind in kinds}
        if CPU in at_once:
            at_once[CPU] = RANKS_ON_CPU
        return self._in_service(offered, at_once)

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        _require(await self._resources(), request.gpu, gpus_of(request))
        return await super().start(request)

    @override
    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        if not self._calls.knows(call):
            harness = await self._find(call)
            self._calls.resume(call, lambda _, report: self._follow(harness, call, report))
        return await super().wait(call, progress)

    @override
    async def cancel(self, call: CallId) -> None:
        if self._calls.knows(call):
            await super().cancel(call)
            return
        try:
            await (await self._find(call)).stop()
        except UnknownCallError:
            return

    @override
    async def aclose(self) -> None:
        await super().aclose()
        await self._bridge.aclose()

    async def _resources(self) -> protocol.Resources:
        command = protocol.Command(operation=protocol.DriverOperation.RESOURCES)
        text = await self._bridge.request(command)
        return protocol.Resources.model_validate_json(text)

    async def _all_harnesses(self) -> list[RemoteHarness]:
        """The harness of every slot on the cluster, including slots of other or killed workers."""
        command = protocol.Command(operation=protocol.DriverOperation.SLOTS)
        text = await self._bridge.request(command)
        return [
            RemoteHarness(self._bridge, name)
            for name in protocol.SlotNames.model_validate_json(text).names
        ]

    @override
    async def _first_offer(self, kind: str) -> Capabilities:
        """The capabilities from any existing slot, because a new one may have to wait for GPUs."""
        requests = [harness.offer(_EXISTING_S) for harness in await self._all_harnesses()]
        answers = await asyncio.gather(*requests, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, Capabilities) and self._version in {None, answer.harness_version}:
                return answer
        return await super()._first_offer(kind)

    async def _find(self, call: CallId) -> RemoteHarness:
        """The harness that has a call of an earlier process; UnknownCallError if none has it."""
        harnesses = await self._all_harnesses()
        known = await asyncio.gather(*(harness.knows(call) for harness in harnesses))
        for harness, knows in zip(harnesses, known, strict=True):
            if knows:
                return harness
        raise UnknownCallError(f"no slot on Ray knows call {call}")

    async def _follow(
        self, harness: RemoteHarness, call: CallId, progress: ProgressSink
    ) -> Evaluation:
        """Follow a call of another worker to its end, then end its slot."""
        try:
            return await harness.follow(call, progress)
        finally:
            await asyncio.shield(harness.stop())


def _require(resources: protocol.Resources, kind: str, gpus: int) -> None:
    most = resources.most(kind)
    if most == 0:
        kinds = ", ".join(resources.kinds()) or "none"
        raise RunnerError(f"no node on Ray has GPU type {kind}; the nodes announce: {kinds}")
    if kind != CPU and gpus > most:
        raise RunnerError(
            f"the evaluation needs {gpus} {kind} at once; a node on Ray has at most {most}"
        )
