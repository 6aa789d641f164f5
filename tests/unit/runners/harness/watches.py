"""Stopwatches of real candidates on the CPU, and seats that cost what those on a GPU do."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from runners.contract.evaluation import Measurement
from runners.contract.task import Mode
from runners.harness.deadline import Deadline, TimeBudget
from runners.harness.judge import pool
from runners.harness.judge.host_candidate import HostCandidate
from runners.harness.judge.pool import CandidatePool, host_start
from runners.harness.timing import calls
from runners.harness.timing.rounds import Round
from runners.harness.timing.stopwatch import WorkloadTimer
from tests.doubles.judging import SORTED, make_judging
from tests.unit.runners.harness.conftest import Sit

ROUNDS_TOLD: list[int] = []
CALM_NS = 10_000.0
"""What a calibrating window costs on a quiet GPU."""


def watch(
    sit: Sit,
    source: str = SORTED,
    seconds: float = 20,
    mode: Mode = Mode.RANKED,
    *,
    on_gpu: bool = False,
    **changes: object,
) -> WorkloadTimer:
    session = sit(make_judging(source, mode, **changes))
    session.on_gpu = on_gpu
    (workload,) = session.request.task.benchmarks
    stopwatch = WorkloadTimer(session, workload)
    stopwatch.deadline = stopwatch.share = Deadline.after(seconds)
    return stopwatch


def measured(stopwatch: WorkloadTimer) -> Measurement:
    """What it measures within its time; tells `ROUNDS_TOLD` of every round."""
    return stopwatch.measure(TimeBudget(stopwatch.deadline, stopwatch.share), ROUNDS_TOLD.append)


@contextmanager
def two_candidates(stopwatch: WorkloadTimer) -> Iterator[tuple[HostCandidate, HostCandidate]]:
    """The seat of a round, and the trusted one beside it."""
    session, room = stopwatch.session, stopwatch.plan
    with CandidatePool(session, room, None) as candidates:
        candidates.prepare(2)
        with candidates.next_candidate() as calibrator, candidates.next_candidate() as candidate:
            yield candidate, calibrator


def idle_candidate() -> Any:  # noqa: ANN401 - no seat, but a round that is told asks no more of it
    """A trusted seat without a process."""
    process = SimpleNamespace(may_run=False)
    handle = SimpleNamespace(process=process)
    return SimpleNamespace(call=lambda *_, **__: None, handle=handle, clocks=dict)


def without_gpu(monkeypatch: pytest.MonkeyPatch, timed: Round) -> Any:  # noqa: ANN401 - a double
    """Have every round come out as this one, with no process behind it; gives the lineup."""
    candidates = MagicMock(waiting=[1], next_candidate=lambda: nullcontext(idle_candidate()))
    monkeypatch.setattr(calls, "CandidatePool", lambda *_: candidates)
    monkeypatch.setattr(WorkloadTimer, "_timed_round", lambda *_: timed)
    return candidates


def candidates_on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a session that is said to be on a GPU take seats on the CPU."""
    monkeypatch.setattr(
        pool, "device_start", lambda session, room, *_, **__: host_start(session, room)
    )
    monkeypatch.setattr(pool, "max_parallel_candidates", lambda *_, **__: 8)


def speak_as_on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the calibration on the CPU cost what it does on a quiet GPU."""
    monkeypatch.setattr(HostCandidate, "overhead", lambda *_: CALM_NS)
