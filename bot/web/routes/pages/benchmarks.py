"""A timed case as it is drawn: how its samples lie, and how far the judge confirms its time."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.web.figures import Histogram, histogram
from runners.contract.evaluation import CaseKind, CaseResult, Measurement, StopReason

_STOPPED = {
    StopReason.PRECISE: "then precise enough",
    StopReason.ROUND_CAP: "which is the most there are",
    StopReason.TIME_CAP: "then the time limit came near",
    StopReason.TASK: "as the task decides",
}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One timed case; `verified` is the share of the time that the judge's own clock confirms."""

    number: int
    spec: str
    measured: Measurement
    verified: float | None
    drawing: Histogram | None

    @property
    def stopped(self) -> str:
        """Why there were no more rounds, in words."""
        return _STOPPED[self.measured.stop_reason]


def benchmarks(cases: Sequence[CaseResult]) -> tuple[Benchmark, ...]:
    """The timed cases, numbered as their report does."""
    timed = [each for each in cases if each.kind is CaseKind.BENCHMARK]
    return tuple(
        _benchmark(number, each.spec, each.measurement)
        for number, each in enumerate(timed, start=1)
        if each.measurement is not None
    )


def _benchmark(number: int, spec: str, measured: Measurement) -> Benchmark:
    samples = [each for taken in measured.samples for each in taken]
    known = measured.bound_ns > 0
    marks = [("time", measured.time_ns), *([("bound", measured.bound_ns)] if known else [])]
    verified = min(1.0, measured.bound_ns / measured.time_ns) if known else None
    return Benchmark(number, spec, measured, verified, histogram(samples, marks))
