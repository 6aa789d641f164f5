"""Stopwatches of real candidates on the CPU, and seats that speak as those on a GPU do."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from runners.contract.task import Mode
from runners.harness.cuda.seat import DeviceSeat
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


def speak_as_on_gpu(monkeypatch: pytest.MonkeyPatch, *, remote: bool = False) -> None:
    """Have seats of the CPU say which clock counts as those on a GPU do, on a quiet one.

    `remote`: where judge and candidate share pinned host memory.
    """
    for name in ("claims_count", "copies_count"):
        monkeypatch.setattr(Seat, name, DeviceSeat.__dict__[name])
    monkeypatch.setattr(Seat, "_remote", remote, raising=False)
    monkeypatch.setattr(Seat, "overhead", lambda *_: CALM_NS)
