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

    def __init__(self, runners: Sequence[Runner], ask_s: float, worker: str = "") -> None:
        self._runners = {runner.name: runner for runner in runners}
        if len(self._runners) != len(runners):
            raise ValueError("two runners have the same name")
        self._ask_s = ask_s
        self._worker = worker
        self._offers: dict[str, Capabilities] = {}
        self._taken: Counter[tuple[str, str]] = Counter()
        self._changed = asyncio.Event()
        self._asked = False
        self.doubtful = asyncio.Event()
        """Set when a runner failed to start a call, so that the offers are refreshed soon."""

    async def refresh(self) -> None:
        """Ask every runner for its offer; one that does not answer offers nothing."""
        self.doubtful.clear()
        await asyncio.gather(*(self._ask(runner) for runner in self._runners.values()))
        self._asked = True
        self._changed.set()

    async def _ask(self, runner: Runner) -> None:
        try:
            async with asyncio.timeout(self._ask_s):
                offer = await runner.capabilities()
        except (RunnerError, TimeoutError) as error:
            self._offers.pop(runner.name, None)
            _log.warning(
                "runner is away", action="runner-away", runner=runner.name, error=str(error)
            )
        else:
            self._tell_outages(runner.name, offer)
            self._offers[runner.name] = offer

    def _tell_outages(self, runner: str, offer: Capabilities) -> None:
        """Log which cards failed since the last answer, and which are back."""
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

    def may(self, name: str, pool: str) -> bool:
        """Return whether a job pinned to this pool, or to none, may run on the named runner."""
        return pool in {"", pool_of(self._worker, name)}

    def offers(self) -> dict[str, Capabilities] | None:
        """Return each reachable runner's current offer; None until every runner was asked once."""
        return dict(self._offers) if self._asked else None

    def named(self, name: str) -> Runner | None:
        """Return the runner of this name, reachable or not."""
        return self._runners.get(name)

    def doubt(self, runner: Runner) -> None:
        """Ignore the offer of a runner that failed to start a call until it is asked again."""
        self._offers.pop(runner.name, None)
        self.doubtful.set()

    @asynccontextmanager
    async def seat(self, task: TaskDefinition, gpu: str, pool: str = "") -> AsyncIterator[Runner]:
        """Wait for and hold a slot of a runner in the pool that can serve the task.

        CannotServeError when no runner can; RunnerError when one that might is unreachable, or when
        the pool has none.
        """
        name = await self._free_runner(task, gpu, pool)
        async with self.seat_on(name, gpu) as runner:
            yield runner

    @asynccontextmanager
    async def seat_on(self, name: str, gpu: str) -> AsyncIterator[Runner]:
        """Hold a slot of this runner, free or not, for work that it already runs or gets now."""
        self._taken[name, gpu] += 1
        try:
            yield self._runners[name]
        finally:
            self._taken[name, gpu] -= 1
            self._changed.set()

    async def _free_runner(self, task: TaskDefinition, gpu: str, pool: str) -> str:
        if not any(self.may(name, pool) for name in self._runners):
            raise RunnerError(f"this worker has no runner of pool {pool}")
        while True:
            free = self._free(task, gpu, pool)
            if not free:
                raise self._refusal(task, gpu, pool)
            name = max(free, key=lambda each: free[each])
            if free[name] > 0:
                return name
            self._changed.clear()
            await self._changed.wait()

    def _free(self, task: TaskDefinition, gpu: str, pool: str) -> dict[str, int]:
        return {
            name: offer.gpus[gpu] - self._taken[name, gpu]
            for name, offer in self._offers.items()
            if self.may(name, pool) and not missing(offer, task, gpu)
        }

    def _refusal(self, task: TaskDefinition, gpu: str, pool: str) -> Exception:
        its = {name for name in self._runners if self.may(name, pool)}
        away = sorted(its - self._offers.keys())
        if away:
            return RunnerError(f"away: runner {', '.join(away)}")
        offers = [offer for name, offer in self._offers.items() if name in its]
        lacks = least_missing(offers, task, gpu)
        return CannotServeError(f"no runner can run this task: missing {', '.join(lacks)}")
