"""What Linux tells of waiting, and where it tells nothing."""

import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runners.harness.supervision import waiting


def test_a_threads_times_grow_as_it_runs() -> None:
    before = waiting.thread_times(os.getpid())
    sum(range(2_000_000))
    after = waiting.thread_times(os.getpid())
    if not after:
        pytest.skip("no schedstat here")

    assert after[threading.get_native_id()][0] > before[threading.get_native_id()][0]
    assert threading.get_native_id() in waiting.computing(before, after)


def test_of_a_process_that_has_ended_nothing_is_known() -> None:
    assert waiting.thread_times(1 << 30) == {}


def test_waiting_is_added_over_threads_that_still_live() -> None:
    before = {1: (0, 10), 2: (0, 5), 3: (0, 100)}
    after = {1: (9, 14), 2: (0, 5), 4: (7, 3)}  # 3 has ended, 4 is new

    assert waiting.waited_ns(before, after) == 7
    assert waiting.computing(before, after) == (1, 4)
    assert waiting.computing({}, {}) == ()


def test_the_threads_that_ran_longest_get_a_core_each_also_one_that_helped_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "CORES", frozenset({0, 1}))
    after = {1: (9_400_000, 0), 2: (300_000, 0), 3: (2_000, 0), 4: (0, 0)}

    assert waiting.computing({}, after) == (1, 2)
    assert waiting.computing({}, {1: (9_400_000, 0), 4: (0, 0)}) == (1,)


class Machine:
    """Says what a machine has used; times in seconds."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stat = folder / "stat"
        self.own: int | None = 0
        self.now = 0
        monkeypatch.setattr(waiting, "_STAT", self.stat)
        monkeypatch.setattr(waiting, "group_cpu_ns", lambda: self.own)
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now * 1_000_000_000)
        monkeypatch.setattr(waiting, "CORES", frozenset({1, 2}))
        self.idle(0)

    def idle(self, seconds: int) -> None:
        """Two of four cores are the harness's."""
        ticks = seconds * os.sysconf("SC_CLK_TCK")
        cores = "".join(f"cpu{n} 1 1 1 {ticks} 0 1 1 1 0 0\n" for n in range(4))
        self.stat.write_text(f"cpu 4 4 4 0 0 4 4 4 0 0\n{cores}intr 12\nprocesses 77\n")


def test_others_have_used_what_was_neither_idle_nor_the_harnesss_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, monkeypatch)
    others = waiting.OtherProcesses()
    machine.now, machine.own = 10, 5_000_000_000
    machine.idle(2)

    assert others.used_ns() == pytest.approx(20e9 - 2 * 2e9 - 5e9, abs=0.05e9)
    assert others.used_ns() < 11e9  # no more than is certain

    machine.own = 16_000_000_000
    assert others.used_ns() == 0


def test_where_the_harness_has_no_group_others_have_used_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, monkeypatch)
    machine.own = None
    others = waiting.OtherProcesses()
    machine.now = 10
    assert others.used_ns() == 0
    machine.stat.unlink()
    assert others.used_ns() == 0


PRESENT = dict.fromkeys(range(1, 5), (0, 0))


@pytest.mark.parametrize("judges", [0, 1])
def test_threads_are_set_apart_until_the_call_ends(
    judges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    masks = {1: {0, 1}, 2: {0, 1}}
    monkeypatch.setattr(waiting, "CORES", frozenset({0, 1}))
    monkeypatch.setattr(waiting, "_own_core", lambda: judges)
    monkeypatch.setattr(waiting, "thread_times", lambda _: PRESENT)
    monkeypatch.setattr(os, "sched_getaffinity", masks.__getitem__)
    monkeypatch.setattr(os, "sched_setaffinity", masks.__setitem__)

    with waiting.spread((1, 2), 1, PRESENT) as free_main:
        assert masks == {1: {1 - judges}, 2: {judges}}
        free_main()
        assert masks == {1: {0, 1}, 2: {judges}}  # what it starts now may run on every core
    assert masks == {1: {0, 1}, 2: {0, 1}}


def test_only_the_main_thread_is_free_in_the_call_and_what_a_worker_started_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    masks = {1: {0, 1}, 2: {0, 1}, 3: {0, 1}, 9: {1}}
    monkeypatch.setattr(waiting, "CORES", frozenset({0, 1}))
    monkeypatch.setattr(waiting, "_own_core", lambda: 0)
    monkeypatch.setattr(waiting, "thread_times", lambda _: PRESENT | {9: (0, 0)})
    monkeypatch.setattr(os, "sched_getaffinity", masks.__getitem__)
    monkeypatch.setattr(os, "sched_setaffinity", masks.__setitem__)

    with waiting.spread((2, 3, 7), 1, PRESENT) as free_main:  # 7 has ended
        free_main()
        assert (masks[2], masks[3]) == ({1}, {0})  # the main thread is none of them
    assert masks == {thread: {0, 1} for thread in masks}


def test_the_core_on_which_this_thread_runs_is_known() -> None:
    one = max(waiting.CORES)
    os.sched_setaffinity(0, {one})
    try:
        assert waiting._own_core() == one
    finally:
        os.sched_setaffinity(0, waiting.CORES)


@pytest.mark.parametrize("threads", [(1,), (1, 2, 3), (1, 4)])
def test_a_single_thread_more_than_cores_and_a_choice_of_its_own_stay(
    threads: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    masks = {1: {0, 1}, 2: {0, 1}, 3: {0, 1}, 4: {1}}
    monkeypatch.setattr(waiting, "CORES", frozenset({0, 1}))
    monkeypatch.setattr(os, "sched_getaffinity", masks.__getitem__)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: pytest.fail("moved"))

    with waiting.spread(threads, 1, PRESENT):
        pass


def test_a_thread_that_has_ended_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "CORES", frozenset({0, 1}))

    def gone(_: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "sched_getaffinity", gone)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: pytest.fail("moved"))
    entered = False
    with waiting.spread((1, 2), 1, PRESENT):
        entered = True
    assert entered


@pytest.mark.parametrize(
    ("samples", "begun", "ended", "used"),
    [
        ([(100, 1000, 10), (160, 1090, 40)], 0, 0, 60 + 70_000),  # nobody else
        ([(100, 1000, 10), (160, 421_090, 40)], 0, 0, 90_060),  # another process
        ([(100, 1000, 10), (160, 421_090, 40)], 1, 0, 390_060),  # a new child, ended
        ([(100, 1000, 10), (160, 421_090, 40)], 0, 1, 390_060),  # an old child, ended
        ([(100, 0, 10), (160, 0, 40)], 1, 1, 60 + 70_000),  # without a group
    ],
)
def test_preparing_takes_the_cpu_time_of_descendants_too(
    monkeypatch: pytest.MonkeyPatch,
    samples: list[tuple[int, int, int]],
    begun: int,
    ended: int,
    used: int,
) -> None:
    """A child cleared the memory of the next output while the main process waited for it."""
    own, group, judge = (iter(each) for each in zip(*samples, strict=True))
    newest = iter((7, 7 + begun))
    monkeypatch.setattr(waiting, "group_cpu_ns", lambda: next(group) or None)
    monkeypatch.setattr(waiting, "newest_process", lambda: next(newest))
    monkeypatch.setattr(time, "process_time_ns", lambda: next(judge))
    monkeypatch.setattr(waiting, "_COUNTED_LATE_NS", 300_000)

    used_at = {1: 5, 2: 70, 3: 9}
    candidate: Any = SimpleNamespace(pid=1, used_at=used_at, cpu_ns=lambda: next(own))
    preparation = waiting.Preparation(candidate)
    candidate.used_at = {1: 500, 2: 100_070, 3: 9}
    if ended:
        del candidate.used_at[3]
    assert preparation.used_ns() == used


def test_what_stopping_many_processes_takes_is_forgiven_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "group_cpu_ns", lambda: None)
    candidate: Any = SimpleNamespace(pid=1, used_at={1: 5}, cpu_ns=lambda: 50)
    for count, used in ((8, 0), (20, 100_000)):
        preparation = waiting.Preparation(candidate)
        candidate.used_at = {1: 9} | dict.fromkeys(range(2, 2 + count), 20_000)
        assert preparation.used_ns() == used
        candidate.used_at = {1: 5}
