import signal
import time

import pytest

from runners.harness.deadline import Deadline, ended_by_alarm


def test_what_remains_counts_down() -> None:
    deadline = Deadline.after(10)

    assert 9 < deadline.remaining <= 10


def test_a_passed_deadline_has_less_than_nothing_left() -> None:
    assert Deadline(time.monotonic() - 1).remaining < 0


def test_an_alarm_comes_sooner_in_a_block_and_then_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runners.harness.deadline.LATE_S", 0.0)
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 100)
        with ended_by_alarm(Deadline.after(0.01)):
            while not rung:
                time.sleep(0.01)
        assert len(rung) == 1
        assert 90 < signal.getitimer(signal.ITIMER_REAL)[0] <= 100
        with ended_by_alarm(Deadline.after(200)):
            assert 90 < signal.getitimer(signal.ITIMER_REAL)[0] <= 100
        signal.setitimer(signal.ITIMER_REAL, 0)
        with ended_by_alarm(Deadline.after(1)):  # nothing limits this process
            assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
