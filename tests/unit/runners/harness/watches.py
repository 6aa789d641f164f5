"""Stopwatches of real candidates on the CPU, and seats that cost what those on a GPU do."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from runners.contract.task import Mode
from runners.harness.deadline import Deadline
from runners.harness.seat import Seat
from runners.harness.seating import Lineup
from runners.harness.timing import Allowance, Stopwatch
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
) -> Stopwatch:
    session = sit(make_judging(source, mode, **changes))
    session.on_gpu = on_gpu
    (workload,) = session.request.task.benchmarks
    limit = Deadline.after(seconds)
    return Stopwatch(session, workload, Allowance(limit, limit), ROUNDS_TOLD.append)


@contextmanager
def two_seats(stopwatch: Stopwatch) -> Iterator[tuple[Seat, Seat]]:
    """The seat of a round, and the trusted one beside it."""
    session, room = stopwatch.session, stopwatch.room
    with Lineup(session, room, None) as lineup:
        lineup.prepare(2)
        with lineup.seat() as anchor, lineup.seat() as seat:
            yield seat, anchor


def speak_as_on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the calibration on the CPU cost what it does on a quiet GPU."""
    monkeypatch.setattr(Seat, "overhead", lambda *_: CALM_NS)
