"""What is counted over requests, and GPUs, from what is stored."""

import asyncio
from datetime import timedelta

import pytest

from bot.domain.job import JobState
from bot.domain.records import RequestCount, RequestRun
from bot.web.compat.evaluation_server.jobs import accept, wait
from bot.web.compat.evaluation_server.metrics import (
    compilation,
    job_stats,
    newest,
    profiling,
    slots,
    tallies,
    throughput,
    utilization,
)
from runners.contract.verdict import Stage, Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import until
from tests.doubles.eval_server import eval_server, make_request
from tests.doubles.factories import NOON
from tests.doubles.memory_store import MemoryStore


def run(verdict: Verdict | None, stage: Stage | None = None, **changes: object) -> RequestRun:
    """A request that waited for 2 s and was judged for 8, 3 of them building."""
    values: dict[str, object] = {
        "gpu": "H100",
        "state": JobState.SUCCEEDED,
        "created_at": NOON,
        "started_at": NOON + timedelta(seconds=2),
        "finished_at": NOON + timedelta(seconds=10),
        "verdict": verdict,
        "stage": stage,
        "used_s": 8.0,
        "durations_s": {"build": 3.0, "run": 4.0},
    }
    return RequestRun(**(values | changes))  # type: ignore[arg-type]


RIGHT = run(Verdict.PASSED)
WRONG = run(Verdict.WRONG_ANSWER, Stage.TEST, used_s=4.0)
UNBUILT = run(Verdict.BUILD_FAILED, Stage.BUILD, used_s=3.0)
OUR_FAULT = run(Verdict.TASK_ERROR, Stage.PREPARE, used_s=1.0, durations_s={})
WAITS = run(None, state=JobState.QUEUED, started_at=None, finished_at=None, used_s=0.0)
RUNS = (RIGHT, WRONG, UNBUILT, OUR_FAULT, WAITS)


def test_requests_are_counted_by_state_with_their_age() -> None:
    tallies = {
        JobState.QUEUED: RequestCount(1, 10.0), JobState.SUCCEEDED: RequestCount(3, 50.0),
        JobState.FAILED: RequestCount(1, 20.0), JobState.CANCELLED: RequestCount(1, 20.0),
    }  # fmt: skip
    assert job_stats(tallies) == {
        "total_jobs": 6,
        "by_status": {"submitted": 1, "completed": 3, "failed": 2},
        "average_age": pytest.approx(200 / 6),
    }
    assert job_stats({})["average_age"] == 0.0


def test_compilations_are_those_that_were_tried() -> None:
    found = compilation(RUNS)
    assert (found["total_compilations"], found["failed_compilations"]) == (3, 1)
    assert found["success_rate"] == pytest.approx(2 / 3)
    assert (found["total_time_seconds"], found["average_time_seconds"]) == (9.0, 3.0)
    assert (found["cache_hits"], found["cache_misses"]) == (0, 3)


def test_profilings_are_those_that_compiled() -> None:
    found = profiling(RUNS)
    assert (found["total_profilings"], found["correctness_passed"]) == (2, 1)
    assert (found["success_rate"], found["correctness_rate"]) == (0.5, 0.5)
    assert found["gpu_usage_times"] == {"H100": 12.0}
    assert (found["min_time_seconds"], found["max_time_seconds"]) == (1.0, 5.0)


def test_gpus_are_counted_from_the_moment_a_job_has_one() -> None:
    found = utilization((*RUNS, run(None, state=JobState.RUNNING, finished_at=None, used_s=0.0)))
    assert (found["gpu_acquisitions"], found["gpu_releases"], found["active_sessions"]) == (5, 4, 1)
    assert (found["total_gpu_time_seconds"], found["average_wait_time_seconds"]) == (16.0, 2.0)
    assert found["utilization_by_gpu"] == {"H100": 16.0}


def test_throughput_is_of_what_is_kept() -> None:
    tallies = {
        JobState.SUCCEEDED: RequestCount(3, 1.0), JobState.CANCELLED: RequestCount(1, 1.0),
        JobState.QUEUED: RequestCount(1, 1.0),
    }  # fmt: skip
    found = throughput(tallies, RUNS, NOON + timedelta(seconds=120), 600.0)
    assert (found["total_requests"], found["completed_requests"], found["failed_requests"]) == (
        5,
        3,
        1,
    )
    assert (found["success_rate"], found["server_uptime_minutes"]) == (0.75, 10.0)
    assert (found["requests_per_minute"], found["recent_throughput_per_minute"]) == (2.5, 0.8)
    assert found["average_end_to_end_time_seconds"] == 10.0


def test_nothing_is_counted_where_nothing_was_asked() -> None:
    assert (compilation(())["total_compilations"], compilation(())["success_rate"]) == (0, 1.0)
    assert profiling(())["average_time_seconds"] == utilization(())["gpu_acquisitions"] == 0
    assert throughput({}, (), NOON, 1.0)["requests_per_minute"] == 0


async def test_nothing_is_counted_before_anything_was_asked(memory_store: MemoryStore) -> None:
    assert await tallies(memory_store) == {}
    assert await newest(memory_store) == ()
    assert (await slots(memory_store)).gpus == 0


async def test_requests_are_counted_with_the_gpus_that_they_have(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    async with eval_server(memory_store, clock, {"H100": 2, "CPU": 1}):
        done = await accept(memory_store, clock, ada.id, make_request("verdict=wrong_answer"))
        await wait(memory_store, done.id, asyncio.get_running_loop().time() + 10, lambda: False)
        await accept(memory_store, clock, ada.id, make_request("seconds=99"))

        async def is_running() -> bool:
            return JobState.RUNNING in await tallies(memory_store)

        await until(is_running)
        found = await slots(memory_store)
        assert (found.gpus, found.offered["CPU"]) == (2, 1)
        assert found.free == {"H100": 1, "CPU": 1}
        counted = await tallies(memory_store)
        runs = await newest(memory_store)
    assert {state: each.requests for state, each in counted.items()} == {
        JobState.SUCCEEDED: 1,
        JobState.RUNNING: 1,
    }
    assert [run.verdict for run in runs] == [None, Verdict.WRONG_ANSWER]
