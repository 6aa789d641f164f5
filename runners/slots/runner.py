"""A runner over slots on the operator's own machines, and the fitness of their GPUs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, Protocol, TypeVar

from runners.calls import Calls
from runners.contract.evaluation import CPU, Evaluation, EvaluationRequest
from runners.contract.runner import CallId, Capabilities, OutOfService, ProgressSink, RunnerError
from runners.slots.harness import LINE_MAX, START_S, HarnessCall, UnfitError, UnreachedError

_log = logging.getLogger(__name__)


class Fitness:
    """Whether one slot is fit for evaluations; `cards` are its GPUs by UUID or index, if known."""

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
    def noted(self) -> Iterator[None]:
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


GRACE_S = 30.0
"""Seconds by which a harness may exceed the task's time limits before it is killed; more than the
harness's own grace, after which it returns a verdict."""

RECHECK_S = 60.0
"""Seconds between checks of a GPU that is out of service."""

RANKS_ON_CPU = 8
"""The most ranks of a multi-GPU task on the CPU, where each rank is only a process."""


class WarmHarness(Protocol):
    """A harness that evaluates one request after another."""

    async def evaluate(self, order: HarnessCall, tell: ProgressSink) -> Evaluation:
        """Evaluate a request and return its evaluation.

        UnreachedError if the harness had already ended, RunnerError for any other failure.
        """
        ...


class Slot(Protocol):
    """Room for one evaluation at a time, with a harness that is kept warm."""

    offered: Capabilities | None
    """The capabilities that its harness reported; None before the first start."""

    fitness: Fitness
    """Whether its machine is fit, according to its harness's last report."""

    async def warm(self) -> WarmHarness:
        """Return the slot's harness; start one if there is none or the last one has ended.

        UnfitError if its GPU is not fit.
        """
        ...

    async def rest(self) -> None:
        """Wait until the harness, if any, is ready for the next call.

        UnfitError if its GPU is not fit.
        """
        ...

    async def cool(self) -> None:
        """Stop the harness, if any."""
        ...


SlotT = TypeVar("SlotT", bound=Slot)


def hard_limit_s(request: EvaluationRequest) -> float:
    """Seconds after which a harness counts as lost, because its own limits did not work."""
    return request.task.limit_s(request.mode) + GRACE_S


def gpus_of(request: EvaluationRequest) -> int:
    """How many slots one evaluation needs: one per GPU; on the CPU one slot runs all ranks."""
    return 1 if request.gpu == CPU else request.task.world_size


def telling(kinds: Iterable[str]) -> str:
    """The GPU type whose harness reports the capabilities; on a GPU it may offer more languages."""
    return next((kind for kind in kinds if kind != CPU), CPU)


class SlotRunner(Generic[SlotT]):
    """Runs each call in a free slot of its GPU type, in the order in which the calls started.

    `join` combines several slots for an evaluation that uses all their GPUs. `place` names in
    messages what has the slots.
    """

    def __init__(
        self,
        name: str,
        slots: Mapping[str, Sequence[SlotT]],
        join: Callable[[Sequence[SlotT]], SlotT],
        place: str,
    ) -> None:
        self.name = name
        self._slots = slots
        self._join = join
        self._place = place
        self._free: dict[str, asyncio.Queue[SlotT]] = {}
        self._joining: dict[str, asyncio.Lock] = {}
        self._resting: set[asyncio.Task[None]] = set()
        for kind, members in slots.items():
            self._free[kind] = asyncio.Queue()
            self._joining[kind] = asyncio.Lock()
            for slot in members:
                self._free[kind].put_nowait(slot)
        self._calls = Calls(name)

    async def capabilities(self) -> Capabilities:
        found = await self._offered(telling(self._slots))
        counts = {kind: len(slots) for kind, slots in self._slots.items()}
        at_once = {kind: RANKS_ON_CPU if kind == CPU else count for kind, count in counts.items()}
        return self._told(found, at_once)

    def _told(self, offered: Capabilities, at_once: Mapping[str, int]) -> Capabilities:
        """The capabilities for the types in `at_once`, without slots that are out of service."""
        slots = {kind: self._slots[kind] for kind in at_once}
        out = [each for of in slots.values() for slot in of for each in slot.fitness.outages]
        gpus = {kind: sum(not slot.fitness.unfit for slot in of) for kind, of in slots.items()}
        return offered.model_copy(
            update={"gpus": gpus, "at_once": dict(at_once), "out_of_service": tuple(out)}
        )

    async def _offered(self, kind: str) -> Capabilities:
        """The capabilities that a harness reports on a slot of this type."""
        offered = next((slot.offered for slot in self._slots[kind] if slot.offered), None)
        return offered or await self._asked(kind)

    async def _asked(self, kind: str) -> Capabilities:
        """The capabilities if no harness has reported any yet: waits for a slot and starts one."""
        try:
            slot = await asyncio.wait_for(self._free[kind].get(), START_S)
        except TimeoutError as error:
            raise RunnerError(f"no slot of {kind} was free for {START_S:.0f} s") from error
        try:
            with slot.fitness.noted():
                await slot.warm()
        finally:
            self._give_back(slot, kind)
        if slot.offered is None:
            raise RunnerError("the harness did not say what it offers")
        return slot.offered

    async def start(self, request: EvaluationRequest) -> CallId:
        if request.gpu not in self._slots:
            there = ", ".join(self._slots)
            raise RunnerError(f"{self._place} has no GPU type {request.gpu}; it has {there}")
        count, wanted = len(self._slots[request.gpu]), gpus_of(request)
        if wanted > count:
            raise RunnerError(f"{wanted} {request.gpu} at once are asked for; there are {count}")
        if all(slot.fitness.unfit for slot in self._slots[request.gpu]):
            why = self._slots[request.gpu][0].fitness.unfit
            raise RunnerError(f"{request.gpu} is out of service: {why}")
        line = request.model_dump_json().encode()
        if len(line) > LINE_MAX:
            raise RunnerError(f"the request has {len(line)} bytes; at most {LINE_MAX} are allowed")
        return self._calls.start(
            lambda call, tell: self._evaluate(HarnessCall(call, request, line), tell)
        )

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

    async def _evaluate(self, order: HarnessCall, tell: ProgressSink) -> Evaluation:
        async with self._slot(order.request) as slot:
            try:
                try:
                    return await self._within_limit(slot, order, tell)
                except UnreachedError:  # the harness ended while idle: start another
                    await slot.cool()
                    return await self._within_limit(slot, order, tell)
            except BaseException:  # also cancellation: nothing needs the running evaluation now
                await asyncio.shield(slot.cool())
                raise

    @asynccontextmanager
    async def _slot(self, request: EvaluationRequest) -> AsyncIterator[SlotT]:
        """The next free slot, or several joined into one for a multi-GPU evaluation.

        Only one call at a time takes slots, because two calls that each hold half of what they need
        would deadlock.
        """
        free, wanted = self._free[request.gpu], gpus_of(request)
        taken: list[SlotT] = []
        try:
            async with self._joining[request.gpu]:
                while len(taken) < wanted:
                    taken.append(await free.get())
            if wanted == 1:
                yield taken[0]
                return
            await asyncio.gather(*(slot.cool() for slot in taken))  # their judges occupy the GPUs
            joined = self._join(taken)
            try:
                yield joined
            finally:
                await asyncio.shield(joined.cool())
        finally:
            for slot in taken:
                self._give_back(slot, request.gpu)

    def _give_back(self, slot: SlotT, kind: str) -> None:
        """Make the slot available again as soon as it is ready and fit."""
        resting = asyncio.create_task(self._rest(slot, kind), name=f"rest of {kind}")
        self._resting.add(resting)
        resting.add_done_callback(self._resting.discard)

    async def _rest(self, slot: SlotT, kind: str) -> None:
        await self._check(slot)
        while slot.fitness.unfit:
            await asyncio.sleep(RECHECK_S)
            await self._check(slot)
        self._free[kind].put_nowait(slot)

    async def _check(self, slot: SlotT) -> None:
        """Wait until a slot is ready; if it was unfit, a fresh harness checks it again."""
        try:
            with slot.fitness.noted():
                await (slot.warm() if slot.fitness.unfit else slot.rest())
        except RunnerError:  # the next call starts another harness and reports the error
            await slot.cool()

    async def _within_limit(
        self, slot: SlotT, order: HarnessCall, tell: ProgressSink
    ) -> Evaluation:
        limit = hard_limit_s(order.request)
        with slot.fitness.noted():
            harness = await slot.warm()
            try:
                return await asyncio.wait_for(harness.evaluate(order, tell), limit)
            except TimeoutError as error:
                words = f"the harness gave no evaluation within {limit:.0f} s"
                raise RunnerError(words) from error
