"""A runner over slots on the operator's own machines, and the fitness of their GPUs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, Protocol, TypeVar

from runners.calls import Calls
from runners.contract.evaluation import CPU, RANKS_ON_CPU, Evaluation, EvaluationRequest
from runners.contract.runner import CallId, Capabilities, OutOfService, ProgressSink, RunnerError
from runners.slots.harness import LINE_MAX, START_S, HarnessCall, UnfitError, UnreachedError

_log = logging.getLogger(__name__)


class Fitness:
    """Whether one slot is fit for evaluations; `cards` are the UUIDs or indices of its GPUs."""

    def __init__(self, kind: str, cards: tuple[str, ...] = ()) -> None:
        self.unfit = ""
        """Why the slot is out of service; empty if it is in service."""
        self._kind = kind
        self._cards = cards

    @property
    def outages(self) -> tuple[OutOfService, ...]:
        """Its cards that are out of service."""
        cards = self._cards or (self._kind,)
        return tuple(
            OutOfService(gpu=self._kind, card=card, why=self.unfit) for card in cards if self.unfit
        )

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the slot as unfit if the block raises UnfitError, as fit if it succeeds."""
        try:
            yield
        except UnfitError as error:
            if not self.unfit:
                _log.error("%s is out of service: %s", self._kind, error)
            self.unfit = str(error)
            raise
        if self.unfit:
            _log.warning("%s is back in service", self._kind)
        self.unfit = ""


RECHECK_S = 60.0
"""Seconds between checks of a GPU that is out of service."""


class WarmHarness(Protocol):
    """A harness that evaluates one request after another."""

    async def evaluate(self, call: HarnessCall, progress: ProgressSink) -> Evaluation:
        """Evaluate a request and return its evaluation.

        UnreachedError if the harness ended before its first answer, RunnerError for any other
        failure.
        """
        ...


class Slot(Protocol):
    """Room for one evaluation at a time, with a harness that stays warm between evaluations."""

    offered: Capabilities | None
    """The capabilities that its harness reported; None before the first start."""

    fitness: Fitness
    """Whether its machine is fit, as its harness last reported."""

    async def warm_harness(self) -> WarmHarness:
        """Return the slot's harness; start one if there is none or the last one has ended.

        UnfitError if its GPU is unfit.
        """
        ...

    async def wait_ready(self) -> None:
        """Wait until the harness, if any, is ready for the next call.

        UnfitError if its GPU is unfit.
        """
        ...

    async def stop(self) -> None:
        """Stop the harness, if any."""
        ...


SlotT = TypeVar("SlotT", bound=Slot)


def gpus_of(request: EvaluationRequest) -> int:
    """How many slots one evaluation needs: one per GPU; on the CPU one slot runs all ranks."""
    return 1 if request.gpu == CPU else request.task.world_size


def reporting_kind(kinds: Iterable[str]) -> str:
    """The GPU type whose harness is asked for its capabilities: one with a GPU, if there is one.

    A harness with a GPU may offer more languages.
    """
    return next((kind for kind in kinds if kind != CPU), CPU)


class SlotRunner(Generic[SlotT]):
    """Runs each call in a free slot of its GPU type, in the order in which the calls started.

    `join` combines several slots for an evaluation that uses all their GPUs. `place` says in error
    messages where the slots are. If they are all on `one_machine`, nothing else is evaluated while
    two submissions are compared on its CPU.
    """

    def __init__(
        self,
        name: str,
        slots: Mapping[str, Sequence[SlotT]],
        join: Callable[[Sequence[SlotT]], SlotT],
        place: str,
        *,
        one_machine: bool = False,
    ) -> None:
        self.name = name
        self._slots = slots
        self._join = join
        self._place = place
        self._free: dict[str, asyncio.Queue[SlotT]] = {}
        self._joining: dict[str, asyncio.Lock] = {}
        self._returning: set[asyncio.Task[None]] = set()
        """Used slots that are not ready yet."""
        self._one_machine = one_machine
        self._turn = asyncio.Lock()
        """Held by a call that waits until the machine is idle, and while it has it to itself."""
        self._busy: set[SlotT] = set()
        """The slots in which something of a submission may run."""
        self._idle = asyncio.Event()
        self._idle.set()
        for kind, members in slots.items():
            self._free[kind] = asyncio.Queue()
            self._joining[kind] = asyncio.Lock()
            for slot in members:
                self._free[kind].put_nowait(slot)
        self._calls = Calls(name)

    async def capabilities(self) -> Capabilities:
        offered = await self._offered(reporting_kind(self._slots))
        counts = {kind: len(slots) for kind, slots in self._slots.items()}
        at_once = {kind: RANKS_ON_CPU if kind == CPU else count for kind, count in counts.items()}
        return self._in_service(offered, at_once)

    def _in_service(self, offered: Capabilities, at_once: Mapping[str, int]) -> Capabilities:
        """The capabilities for the types in `at_once`, without slots that are out of service."""
        gpus = {kind: sum(not slot.fitness.unfit for slot in self._slots[kind]) for kind in at_once}
        outages = [
            outage
            for kind in at_once
            for slot in self._slots[kind]
            for outage in slot.fitness.outages
        ]
        return offered.model_copy(
            update={"gpus": gpus, "at_once": dict(at_once), "out_of_service": tuple(outages)}
        )

    async def _offered(self, kind: str) -> Capabilities:
        """The capabilities that a harness on a slot of this type has reported."""
        offered = next((slot.offered for slot in self._slots[kind] if slot.offered), None)
        return offered or await self._first_offer(kind)

    async def _first_offer(self, kind: str) -> Capabilities:
        """Wait for a slot, start its harness and return the capabilities that it reports."""
        try:
            async with asyncio.timeout(START_S):
                slot = await self._free[kind].get()
        except TimeoutError as error:
            raise RunnerError(f"no slot of {kind} was free for {START_S:.0f} s") from error
        try:
            with slot.fitness.recorded():
                await slot.warm_harness()
        finally:
            self._give_back(slot, kind)
        if slot.offered is None:
            raise RunnerError("the harness has not reported its capabilities")
        return slot.offered

    async def start(self, request: EvaluationRequest) -> CallId:
        if request.gpu not in self._slots:
            kinds = ", ".join(self._slots)
            raise RunnerError(f"{self._place} has no GPU type {request.gpu}; it has {kinds}")
        slots, needed = self._slots[request.gpu], gpus_of(request)
        if needed > len(slots):
            raise RunnerError(
                f"the evaluation needs {needed} {request.gpu} at once; there are {len(slots)}"
            )
        if all(slot.fitness.unfit for slot in slots):
            raise RunnerError(f"{request.gpu} is out of service: {slots[0].fitness.unfit}")
        line = request.model_dump_json().encode()
        if len(line) > LINE_MAX:
            raise RunnerError(f"the request has {len(line)} bytes; at most {LINE_MAX} are allowed")
        return self._calls.start(
            lambda call, progress: self._evaluate(HarnessCall(call, request, line), progress)
        )

    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        return await self._calls.wait(call, progress)

    async def cancel(self, call: CallId) -> None:
        await self._calls.cancel(call)

    async def aclose(self) -> None:
        await self._calls.aclose()
        for task in tuple(self._returning):
            task.cancel()
        await asyncio.gather(*self._returning, return_exceptions=True)
        slots = [slot for members in self._slots.values() for slot in members]
        await asyncio.gather(*(slot.stop() for slot in slots))

    async def _evaluate(self, call: HarnessCall, progress: ProgressSink) -> Evaluation:
        async with self._slot(call.request) as slot:
            try:
                try:
                    return await self._within_limit(slot, call, progress)
                except UnreachedError:  # the harness ended while idle: start another
                    await slot.stop()
                    return await self._within_limit(slot, call, progress)
            except BaseException:  # also cancellation, after which the evaluation must not run on
                await asyncio.shield(slot.stop())
                raise

    @asynccontextmanager
    async def _slot(self, request: EvaluationRequest) -> AsyncIterator[SlotT]:
        """The next free slot, or several joined into one for a multi-GPU evaluation.

        Only one call at a time takes slots, because two calls that each hold half of what they need
        would deadlock.
        """
        free, needed = self._free[request.gpu], gpus_of(request)
        taken: list[SlotT] = []
        try:
            async with self._joining[request.gpu]:
                while len(taken) < needed:
                    taken.append(await free.get())
            async with self._admitted(taken, request):
                if needed == 1:
                    yield taken[0]
                    return
                await asyncio.gather(*(slot.stop() for slot in taken))  # they occupy the GPUs
                joined = self._join(taken)
                try:
                    yield joined
                finally:
                    await asyncio.shield(joined.stop())
        finally:
            for slot in taken:
                self._give_back(slot, request.gpu)

    @asynccontextmanager
    async def _admitted(
        self, taken: Sequence[SlotT], request: EvaluationRequest
    ) -> AsyncIterator[None]:
        """Wait until a call may run in its slots, in the order in which the calls got theirs.

        A comparison on the CPU runs alone: an accomplice in another slot could otherwise use the
        machine in the rounds of one of the two. It waits for the calls that run, within their
        limits, and later calls wait for it.
        """
        async with self._turn:
            if self._one_machine and request.gpu == CPU and request.rival is not None:
                await self._idle.wait()
                yield
                return
            self._busy.update(taken)
            self._idle.clear()
        yield

    def _give_back(self, slot: SlotT, kind: str) -> None:
        """Make the slot available again as soon as it is ready and fit."""
        task = asyncio.create_task(self._return(slot, kind), name=f"return of a {kind} slot")
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)

    async def _return(self, slot: SlotT, kind: str) -> None:
        try:
            await self._check(slot)
        finally:
            self._busy.discard(slot)
            if not self._busy:
                self._idle.set()
        while slot.fitness.unfit:
            await asyncio.sleep(RECHECK_S)
            await self._check(slot)
        self._free[kind].put_nowait(slot)

    async def _check(self, slot: SlotT) -> None:
        """Wait until a slot is ready; if it was unfit, a fresh harness checks it again."""
        try:
            with slot.fitness.recorded():
                await (slot.warm_harness() if slot.fitness.unfit else slot.wait_ready())
        except RunnerError:  # the next call starts another harness and reports the error
            await slot.stop()

    async def _within_limit(
        self, slot: SlotT, call: HarnessCall, progress: ProgressSink
    ) -> Evaluation:
        limit_s = call.request.hard_limit_s
        with slot.fitness.recorded():
            harness = await slot.warm_harness()
            try:
                async with asyncio.timeout(limit_s):
                    return await harness.evaluate(call, progress)
            except TimeoutError as error:
                message = f"the harness returned no evaluation within {limit_s:.0f} s"
                raise RunnerError(message) from error
