"""Statistics over the stored requests, and the free GPUs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from typing import TypedDict

from bot.domain.job import FINAL_STATES, JobState
from bot.domain.records import RequestCount, RequestRun
from bot.ports import Store
from bot.web.compat.evaluation_server.jobs import BOARD
from runners.contract.evaluation import CPU
from runners.contract.verdict import Stage, Verdict

RECENT_S = 300
_UNBUILT = {Verdict.BUILD_FAILED, Verdict.INVALID_SUBMISSION}
_RIGHT = {Verdict.PASSED, Verdict.TIMING_REJECTED, Verdict.AUDIT}
_BUILDING = ("build", "compile")
_WORDS = {
    JobState.QUEUED: "submitted",
    JobState.RUNNING: "running",
    JobState.SUCCEEDED: "completed",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "failed",
}

Number = int | float
Numbers = dict[str, Number]


class JobStats(TypedDict):
    """Statistics over all stored requests."""

    total_jobs: int
    by_status: dict[str, int]
    average_age: float


def job_stats(tallies: Mapping[JobState, RequestCount]) -> JobStats:
    """Return the number of requests by state, and their average age."""
    total = sum(each.requests for each in tallies.values())
    ages = sum(each.requests * each.age_s for each in tallies.values())
    by_status: dict[str, int] = {}
    for state, each in sorted(tallies.items()):
        by_status[_WORDS[state]] = by_status.get(_WORDS[state], 0) + each.requests
    return JobStats(
        total_jobs=total, by_status=by_status, average_age=ages / total if total else 0.0
    )


def compilation(runs: Sequence[RequestRun]) -> Numbers:
    """Compilation statistics; the judge caches no compiled kernels, so there are no cache hits."""
    judged = [run for run in runs if _was_built(run)]
    failed = sum(run.verdict in _UNBUILT for run in judged)
    return {
        "total_compilations": len(judged),
        "successful_compilations": len(judged) - failed,
        "failed_compilations": failed,
        "success_rate": _rate(len(judged) - failed, len(judged)),
        "cache_hits": 0,
        "cache_misses": len(judged),
        "cache_hit_rate": 0.0,
        **_times("time_seconds", [_building_s(run) for run in judged]),
    }


def profiling(runs: Sequence[RequestRun]) -> dict[str, Number | dict[str, Number]]:
    """Statistics of checks and times of the kernels that compiled."""
    tried = [run for run in runs if _was_built(run) and run.verdict not in _UNBUILT]
    right = sum(run.verdict in _RIGHT for run in tried)
    passed = sum(run.verdict is Verdict.PASSED for run in tried)
    return {
        "total_profilings": len(tried),
        "successful_profilings": passed,
        "failed_profilings": len(tried) - passed,
        "success_rate": _rate(passed, len(tried)),
        "correctness_passed": right,
        "correctness_failed": len(tried) - right,
        "correctness_rate": _rate(right, len(tried)),
        "gpu_usage_times": _by_gpu(tried),
        **_times("time_seconds", [max(0.0, run.used_s - _building_s(run)) for run in tried]),
    }


def utilization(runs: Sequence[RequestRun]) -> dict[str, Number | dict[str, Number]]:
    """Return how long requests occupied GPUs and waited for them."""
    started = [run for run in runs if run.started_at is not None]
    waits = [_between(run.created_at, run.started_at) for run in started]
    return {
        "gpu_acquisitions": len(started),
        "gpu_releases": sum(run.finished_at is not None for run in started),
        "active_sessions": sum(run.state is JobState.RUNNING for run in started),
        "total_gpu_time_seconds": sum(run.used_s for run in started),
        **_times("wait_time_seconds", waits),
        "utilization_by_gpu": _by_gpu(started),
    }


def throughput(
    tallies: Mapping[JobState, RequestCount],
    runs: Sequence[RequestRun],
    now: datetime,
    uptime_s: float,
) -> Numbers:
    """Return the rates of arriving and ending requests; `runs` are the newest ones."""
    total = sum(each.requests for each in tallies.values())
    ended = {state: each.requests for state, each in tallies.items() if state in FINAL_STATES}
    completed = ended.get(JobState.SUCCEEDED, 0)
    spans = [_between(run.created_at, run.finished_at) for run in runs if run.finished_at]
    recent = sum(_between(run.finished_at, now) <= RECENT_S for run in runs if run.finished_at)
    oldest_s = max((_between(run.created_at, now) for run in runs), default=0.0)
    return {
        "server_uptime_seconds": uptime_s,
        "server_uptime_minutes": uptime_s / 60,
        "total_requests": total,
        "completed_requests": completed,
        "failed_requests": sum(ended.values()) - completed,
        "success_rate": _rate(completed, sum(ended.values())),
        "requests_per_minute": len(runs) / max(1.0, oldest_s / 60),
        "recent_throughput_per_minute": recent / (RECENT_S / 60),
        **_times("end_to_end_time_seconds", spans),
    }


def _was_built(run: RequestRun) -> bool:
    """Return whether its build was attempted; not if the task or the machine failed before."""
    return run.verdict is not None and run.stage is not Stage.PREPARE


def _building_s(run: RequestRun) -> float:
    return sum(run.durations_s.get(step, 0.0) for step in _BUILDING)


def _by_gpu(runs: Sequence[RequestRun]) -> dict[str, Number]:
    seconds: dict[str, Number] = {}
    for run in runs:
        seconds[run.gpu] = seconds.get(run.gpu, 0.0) + run.used_s
    return seconds


def _between(earlier: datetime | None, later: datetime | None) -> float:
    if earlier is None or later is None:
        return 0.0
    return (later - earlier).total_seconds()


def _rate(good: int, total: int) -> float:
    return good / total if total else 1.0


def _times(name: str, values: Sequence[float]) -> Numbers:
    return {
        f"total_{name}": sum(values),
        f"average_{name}": fmean(values) if values else 0.0,
        f"min_{name}": min(values, default=0.0),
        f"max_{name}": max(values, default=0.0),
    }


NEWEST = 1000
"""Time statistics are over this many newest requests; counts are over all stored ones."""


@dataclass(frozen=True, slots=True)
class GpuCapacity:
    """Per GPU type: how many evaluations can run at once, and how many run now."""

    offered: Mapping[str, int]
    taken: Mapping[str, int]

    @property
    def gpus(self) -> int:
        """Return the number of GPUs, not counting CPU slots."""
        return sum(count for gpu, count in self.offered.items() if gpu != CPU)

    @property
    def free(self) -> dict[str, int]:
        """GPU type -> free slots."""
        return {gpu: max(0, n - self.taken.get(gpu, 0)) for gpu, n in self.offered.items()}


async def tallies(store: Store) -> Mapping[JobState, RequestCount]:
    """Return how many requests are in each state."""
    board = await store.boards.find(BOARD)
    return {} if board is None else await store.requests.tallies(board.id)


async def newest(store: Store) -> tuple[RequestRun, ...]:
    """Return the newest requests."""
    board = await store.boards.find(BOARD)
    return () if board is None else await store.requests.newest(board.id, NEWEST)


async def slots(store: Store) -> GpuCapacity:
    """Return the slots of all live workers, whoever's jobs run there."""
    offered: Counter[str] = Counter()
    for worker in await store.workers.alive():
        for offer in worker.offers.values():
            offered.update(offer.gpus)
    backlog = await store.jobs.backlog()
    return GpuCapacity(offered, {gpu: by.get(JobState.RUNNING, 0) for gpu, by in backlog.items()})
