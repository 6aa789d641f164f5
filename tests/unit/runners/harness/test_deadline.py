import time

from runners.harness.deadline import Deadline


def test_what_remains_counts_down() -> None:
    deadline = Deadline.after(10)

    assert 9 < deadline.remaining <= 10


def test_a_passed_deadline_has_less_than_nothing_left() -> None:
    assert Deadline(time.monotonic() - 1).remaining < 0
