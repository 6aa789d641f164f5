"""The runners of one worker: their current offers, and which slots are taken."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import structlog

from bot.domain.requirements import least_missing, missing
from bot.domain.scoring import pool_of
from runners.contract.runner import Capabilities, Runner, RunnerError
from runners.contract.task import TaskDefinition

_log = structlog.get_logger(__name__)


class CannotServeError(Exception):
    """No runner can ever serve this task on this GPU type; the message says what is missing."""


class RunnerPool:
    """Hands out slots of those runners that can serve a task."""

    def __init__(self, runners: Sequence[Runner], offer_s: float, worker: str = "") -> None:
        self._runners = {runner.name: runner for runner in runners}
        if len(self._runners) != len(runners):
            raise ValueError("two runners have the same name")
        self._offer_s = offer_s
        self._worker = worker
        self._offers: dict[str, Capabilities] = {}
        self._taken: Counter[tuple[str, str]] = Counter()
        self._changed = asyncio.Event()
        self._refreshed = False
        self.offer_dropped = asyncio.Event()
        """Set when a runner failed to start a call, so that the offers are refreshed soon."""

    async def refresh(self) -> None:
        """Read every runner's offer; a runner that does not answer offers nothing."""
        self.offer_dropped.clear()
        await asyncio.gather(*(self._refresh_one(runner) for runner in self._runners.values()))
        self._refreshed = True
        self._changed.set()

    async def _refresh_one(self, runner: Runner) -> None:
        try:
            async with asyncio.timeout(self._offer_s):
                offer = await runner.capabilities()
        except (RunnerError, TimeoutError) as error:
            self._offers.pop(runner.name, None)
            _log.warning(
                "a runner is unavailable",
                action="runner-away",
                runner=runner.name,
                error=str(error),
            )
        else:
            self._log_outages(runner.name, offer)
            self._offers[runner.name] = offer

    def _log_outages(self, runner: str, offer: Capabilities) -> None:
        """Log which cards failed since the last refresh, and which work again."""
        old = self._offers.get(runner)
        before = {(each.gpu, each.card): each.why for each in old.out_of_service} if old else {}
        now = {(each.gpu, each.card): each.why for each in offer.out_of_service}
        for (gpu, card), why in now.items() - before.items():
            _log.error(
                "out of service", action="gpu-out", runner=runner, gpu=gpu, card=card, why=why
            )
        for gpu, card in before.keys() - now.keys():
            _log.warning("back in service", action="gpu-back", runner=runner, gpu=gpu, card=card)

    def slots(self) -> dict[str, int]:
        """Return how many evaluations may run at once, by GPU type, over all reachable runners."""
        total: Counter[str] = Counter()
        for offer in self._offers.values():
            total.update(offer.gpus)
        return dict(total)

    def free(self, gpu: str) -> dict[str, int]:
        """Return the free slots of every runner for a GPU type."""
        offered = ((name, self._offers.get(name)) for name in self._runners)
        return {
            name: max(0, offer.gpus.get(gpu, 0) - self._taken[name, gpu]) if offer else 0
            for name, offer in offered
        }

    def in_pool(self, name: str, pool: str) -> bool:
        """Return whether a job pinned to this pool, or to none, may run on the named runner."""
        return pool in {"", pool_of(self._worker, name)}

    def offers(self) -> dict[str, Capabilities] | None:
        """Return each reachable runner's current offer; None before the first refresh."""
        return dict(self._offers) if self._refreshed else None

    def named(self, name: str) -> Runner | None:
        """Return the runner of this name, reachable or not."""
        return self._runners.get(name)

    def drop_offer(self, runner: Runner) -> None:
        """Drop the offer of a runner that failed to start a call, until the next refresh."""
        self._offers.pop(runner.name, None)
        self.offer_dropped.set()

    @asynccontextmanager
    async def hold_slot(
        self, task: TaskDefinition, gpu: str, pool: str = ""
    ) -> AsyncIterator[Runner]:
        """Wait for and hold a slot of a runner in the pool that can serve the task.

        CannotServeError when no runner can; RunnerError when a runner that might is unavailable, or
        when this worker has no runner of the pool.
        """
        name = await self._free_runner(task, gpu, pool)
        async with self.hold_slot_on(name, gpu) as runner:
            yield runner

    @asynccontextmanager
    async def hold_slot_on(self, name: str, gpu: str) -> AsyncIterator[Runner]:
        """Hold a slot of this runner, free or not, for work that it already runs or gets now."""
        self._taken[name, gpu] += 1
        try:
            yield self._runners[name]
        finally:
            self._taken[name, gpu] -= 1
            self._changed.set()

    async def _free_runner(self, task: TaskDefinition, gpu: str, pool: str) -> str:
        if not any(self.in_pool(name, pool) for name in self._runners):
            raise RunnerError(f"this worker has no runner of pool {pool}")
        while True:
            able = self._able_runners(task, gpu, pool)
            if not able:
                raise self._refusal(task, gpu, pool)
            name = max(able, key=lambda each: able[each])
            if able[name] > 0:
                return name
            self._changed.clear()
            await self._changed.wait()

    def _able_runners(self, task: TaskDefinition, gpu: str, pool: str) -> dict[str, int]:
        """Return each runner that can serve the task, with its free slots, perhaps none."""
        return {
            name: offer.gpus[gpu] - self._taken[name, gpu]
            for name, offer in self._offers.items()
            if self.in_pool(name, pool) and not missing(offer, task, gpu)
        }

    def _refusal(self, task: TaskDefinition, gpu: str, pool: str) -> Exception:
        """Return the error when no reachable runner can serve the task."""
        in_this_pool = {name for name in self._runners if self.in_pool(name, pool)}
        unreachable = sorted(in_this_pool - self._offers.keys())
        if unreachable:
            return RunnerError(f"unavailable: runner {', '.join(unreachable)}")
        offers = [offer for name, offer in self._offers.items() if name in in_this_pool]
        missing_parts = least_missing(offers, task, gpu)
        return CannotServeError(f"no runner can run this task: missing {', '.join(missing_parts)}")
