"""Prints how long judging takes beyond the kernel, and how much ten ranked runs of it differ.

python -m tests.benchmarks.judge [--runs 10] [--skip-spread]
"""

import argparse
import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import fmean, median
from typing import Any

import structlog

from bot.app.context import SystemClock
from bot.domain.board import NewBoard
from bot.domain.ids import JobId
from bot.domain.job import Claim, Job
from bot.domain.scoring import ScoreValue
from bot.ports import Store
from bot.ports.queue import Jobs
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.dispatcher import Dispatcher
from bot.services.dispatch.worker_queue import StoreQueue
from bot.store.postgres import open_store
from runners.backends import local_process
from runners.contract.evaluation import CPU, Evaluation, Measurement, RoundPolicy
from runners.contract.runner import Runner
from runners.contract.task import Mode, TaskDefinition, Workload
from tests.doubles.databases import fresh_database
from tests.doubles.evaluating import RIGHT, make_identity
from tests.doubles.judging import SORTED, make_judging, make_sort_task
from tests.doubles.stored import Scene

CAPPED = RoundPolicy(looks=(5,))
TARGETS_S = {Mode.TEST: 1.0, Mode.RANKED: 4.0}
REPEATS = {Mode.TEST: 15, Mode.RANKED: 5}

ADD = """
import torch

def generate_input(size: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, generator=generator), torch.randn(size, generator=generator)

def ref_kernel(data):
    return data[0] + data[1]

def check_implementation(data, output):
    return torch.equal(output, ref_kernel(data))
"""
ADDED = """
import torch

torch.set_num_threads(1)

def custom_kernel(data):
    return data[0] + data[1]
"""
KERNELS = {
    "sort, one thread": (
        make_sort_task(benchmarks=(Workload(args={"size": 100_000, "seed": 1}),)),
        SORTED.replace("def", "torch.set_num_threads(1)\ndef"),
    ),
    "add, one thread": (
        make_sort_task(ADD, benchmarks=(Workload(args={"size": 2_000_000, "seed": 1}),)),
        ADDED,
    ),
}


async def judged(
    runner: Runner, task: TaskDefinition, source: str, mode: Mode, rounds: RoundPolicy | None
) -> Evaluation:
    """One evaluation on the runner; RuntimeError when the kernel does not pass."""
    task = task.model_copy(update={"ranked_timeout": 60})
    request = make_judging(source, mode, task=task, rounds=rounds)
    found = await runner.wait(await runner.start(request), lambda _: None)
    if found.stage is not None:
        raise RuntimeError(f"{found.verdict}: {found.message}")
    return found


@asynccontextmanager
async def warm_runner() -> AsyncIterator[Runner]:
    """The runner of this machine, after its first evaluation."""
    runner = local_process.create(slots={CPU: 1})
    try:
        await judged(runner, make_identity(), RIGHT, Mode.TEST, None)
        yield runner
    finally:
        await runner.aclose()


class TimedJobs:
    """The queue; it records when a job was claimed and when its result was stored."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self.claimed = 0.0
        self.spent: asyncio.Queue[tuple[float, Evaluation]] = asyncio.Queue()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - every other operation
        return getattr(self._jobs, name)

    async def claim(self, claim: Claim) -> tuple[Job, ...]:
        found = await self._jobs.claim(claim)
        if found:
            self.claimed = time.perf_counter()
        return found

    async def accept(
        self, job: JobId, fence: int, evaluation: Evaluation, score: ScoreValue | None
    ) -> bool:
        stored = await self._jobs.accept(job, fence, evaluation, score)
        self.spent.put_nowait((time.perf_counter() - self.claimed, evaluation))
        return stored


@asynccontextmanager
async def dispatching(store: Store, runner: Runner) -> AsyncIterator[None]:
    """A worker of the store, as `podium up` has one."""
    stop = asyncio.Event()
    config = DispatchConfig(rounds=CAPPED)
    worker = Dispatcher(StoreQueue(store, config), [runner], SystemClock(), config)
    running = asyncio.create_task(worker.run(stop))
    try:
        yield
    finally:
        stop.set()
        await running


async def overhead(runner: Runner) -> None:
    """The identity task from its claim to its result in Postgres, and where the time goes."""
    print(f"overhead: identity task, one benchmark, load {os.getloadavg()[0]:.2f} (p50, slowest)")
    async with fresh_database() as dsn, open_store(dsn, SystemClock()) as store:
        jobs = TimedJobs(store.jobs)
        vars(store)["jobs"] = jobs
        scene = await set_up(store, make_identity(60))
        async with dispatching(store, runner):
            for mode, target in TARGETS_S.items():
                await print_overhead(scene, jobs, mode, target)


async def print_overhead(scene: Scene, jobs: TimedJobs, mode: Mode, target: float) -> None:
    """The rows of one mode."""
    spent, steps = [], Counter[str]()
    for number in range(REPEATS[mode]):
        await scene.submit(mode=mode, source=f"{RIGHT}# {number}\n")
        seconds, evaluation = await jobs.spent.get()
        spent.append(seconds)
        steps.update(evaluation.durations_s)
        if evaluation.stage is not None:
            raise RuntimeError(f"{evaluation.verdict}: {evaluation.message}")
    print(f"{mode:>8} {median(spent):7.3f} s {max(spent):7.3f} s   target {target:.1f} s")
    for step, seconds in steps.most_common():
        print(f"{step:>20} {seconds / REPEATS[mode]:7.3f} s")


async def set_up(store: Store, task: TaskDefinition) -> Scene:
    """Create a board of the task, and a person who can submit to it."""
    ada = await store.people.ensure("local:ada", "Ada")
    board = await store.boards.publish(NewBoard(task.name, (CPU,), None, ada.id), task, "digest-1")
    return Scene(store, board, ada)


async def spread(runner: Runner, runs: int) -> None:
    """Rank the same kernels repeatedly: how much times differ, and whether intervals are right."""
    print(f"spread of {runs} ranked runs, load {os.getloadavg()[0]:.2f}")
    print(f"{'kernel':>18} {'time ms':>9} {'max/min-1':>10} {'half-width':>11} {'covered':>8}")
    for name, (task, source) in KERNELS.items():
        found = []
        for _ in range(runs):
            evaluation = await judged(runner, task, source, Mode.RANKED, None)
            found += [case.measurement for case in evaluation.cases if case.measurement]
        print_spread(name, found)


def print_spread(name: str, found: list[Measurement]) -> None:
    """Print one row of the table, and every run below it."""
    times = [each.time_ns for each in found]
    centre = fmean(times)
    held = sum(abs(each.time_ns - centre) <= each.half_width_ns for each in found)
    width = median(each.half_width_ns / each.time_ns for each in found)
    print(
        f"{name:>18} {centre / 1e6:9.3f} {max(times) / min(times) - 1:10.2%} {width:11.2%}"
        f" {held:>5}/{len(found)}"
    )
    for each in found:
        print(
            f"{'':>18} {each.time_ns / 1e6:9.3f} {'':>10} {each.half_width_ns / each.time_ns:11.2%}"
            f" {each.rounds:>3} rounds, {each.stop_reason}"
        )


async def measure(runs: int, *, skip_spread: bool) -> None:
    """Print both tables."""
    async with warm_runner() as runner:
        await overhead(runner)
        if not skip_spread:
            await spread(runner, runs)


def main() -> None:
    """Measure on this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--skip-spread", action="store_true")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    asyncio.run(measure(arguments.runs, skip_spread=arguments.skip_spread))


if __name__ == "__main__":
    main()
