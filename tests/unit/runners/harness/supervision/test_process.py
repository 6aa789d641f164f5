import mmap
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import pytest
import torch

from runners import process_tree
from runners.harness.protocol.values import TensorNode
from runners.harness.sandbox.process_limits import kill_tree
from runners.harness.sandbox.syscalls import memory_limited
from runners.harness.supervision import process
from runners.harness.supervision.process import (
    CandidateProcess,
    CandidateRanError,
    ProcessGoneError,
    UnreadableError,
)
from runners.process_tree import descendants, thread_states

SPINNING = """
import os, sys, threading
def spin():
    while True: pass
for _ in range(3): threading.Thread(target=spin, daemon=True).start()
print("up", flush=True)
spin()
"""
FAMILY = (
    "import os\nchild = os.fork()\nprint('up', flush=True) if child else None\nwhile True: pass\n"
)
HOLDING = """
import ctypes, sys, time
numbers = (ctypes.c_float * 6)(0, 1, 2, 3, 4, 5)
print(ctypes.addressof(numbers), flush=True)
time.sleep(100)
"""


class Started:
    """A child of this process as a subject, with the first word that it printed."""

    def __init__(self, program: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            self.word = stdout.readline().strip()
        self.subject = CandidateProcess(self.process.pid)


@pytest.fixture
def started(request: pytest.FixtureRequest) -> Iterator[Started]:
    made = Started(request.param)
    yield made
    made.subject.kill()
    made.process.returncode = -9


def busy_ns(pid: int) -> int:
    times = psutil.Process(pid).cpu_times()
    return int((times.user + times.system) * 1e9)


def running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def states(pid: int) -> set[str]:
    return set(thread_states(pid).values())


@pytest.mark.parametrize("started", [SPINNING], indirect=True)
def test_freezing_stops_every_thread_of_a_spinning_process(started: Started) -> None:
    for _ in range(20):
        before = time.perf_counter_ns()
        end = started.subject.freeze()
        assert before < end <= time.perf_counter_ns()
        assert states(started.subject.pid) == {"T"}
        started.subject.resume()


@pytest.mark.parametrize("started", [SPINNING], indirect=True)
def test_a_frozen_process_uses_no_processor_and_a_thawed_one_does(started: Started) -> None:
    started.subject.freeze()
    first = busy_ns(started.subject.pid)
    time.sleep(0.1)
    assert busy_ns(started.subject.pid) == first
    started.subject.resume()
    time.sleep(0.1)
    assert busy_ns(started.subject.pid) > first


@pytest.mark.parametrize("started", [SPINNING], indirect=True)
def test_freezing_twice_is_freezing_once(started: Started) -> None:
    started.subject.freeze()
    started.subject.freeze()

    assert states(started.subject.pid) == {"T"}


@pytest.mark.parametrize("started", [SPINNING], indirect=True)
def test_a_loose_process_runs_on_once_it_is_let_go(started: Started) -> None:
    started.subject.freeze()
    started.subject.may_run = True
    assert states(started.subject.pid) == {"T"}
    started.subject.resume()

    before = time.perf_counter_ns()
    assert before <= started.subject.freeze() <= time.perf_counter_ns()
    first = busy_ns(started.subject.pid)
    wait_until(lambda: busy_ns(started.subject.pid) > first)
    assert busy_ns(started.subject.pid) > first
    started.subject.verify_frozen()  # nobody said that it would
    started.subject.resume()

    assert (started.subject.frozen, started.subject.ran_while_frozen) == (False, 0)


@pytest.mark.parametrize("started", [SPINNING], indirect=True)
def test_a_process_that_is_loose_no_more_is_stopped_again(started: Started) -> None:
    for _ in range(5):
        started.subject.may_run = True
        started.subject.freeze()
        started.subject.may_run = False
        started.subject.freeze()
        assert states(started.subject.pid) == {"T"}
        time.sleep(0.002)
        started.subject.verify_frozen()
        started.subject.resume()
        assert states(started.subject.pid) != {"T"}


@pytest.mark.parametrize("started", [FAMILY], indirect=True)
def test_a_loose_process_is_killed_with_its_children(started: Started) -> None:
    family = (started.subject.pid, *descendants(started.subject.pid))
    started.subject.may_run = True
    started.subject.freeze()
    started.subject.kill()

    assert len(family) == 2
    wait_until(lambda: not any(map(running, family)))
    assert not any(map(running, family))


@pytest.mark.parametrize("started", [SPINNING], indirect=True)
def test_whoever_was_not_stopped_by_the_judge_is_not_let_go_by_it(started: Started) -> None:
    started.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: states(started.subject.pid) == {"T"})

    started.subject.resume()

    time.sleep(0.02)
    assert states(started.subject.pid) == {"T"}


@pytest.mark.parametrize("started", [FAMILY], indirect=True)
def test_children_stand_still_go_on_and_die_with_their_parent(started: Started) -> None:
    started.subject.freeze()
    (child,) = started.subject.descendants
    assert states(child) == {"T"}

    started.subject.resume()
    assert states(child) != {"T"}

    started.subject.kill()
    deadline = time.monotonic() + 2
    while running(child) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not running(child)


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("started", [FAMILY], indirect=True)
def test_a_child_that_had_stopped_by_itself_stays_stopped(
    started: Started, monkeypatch: pytest.MonkeyPatch, *, slow: bool
) -> None:
    """On a busy machine its parent stopped late, and the judge then stopped, and resumed, both."""
    subject, event, missed = started.subject, started.subject._event, [slow]

    def seen_late(events: int) -> bool:
        return not missed.pop() and event(events) if missed else event(events)

    monkeypatch.setattr(process, "_QUICK_S", -1.0)
    monkeypatch.setattr(subject, "_event", seen_late)
    (child,) = descendants(started.subject.pid)
    os.kill(child, signal.SIGSTOP)
    wait_until(lambda: states(child) == {"T"})

    for _ in range(2):
        started.subject.freeze()
        assert started.subject.descendants == (child,)
        started.subject.resume()
        assert states(child) == {"T"}

    os.kill(child, signal.SIGCONT)
    wait_until(lambda: states(child) != {"T"})
    started.subject.freeze()
    started.subject.resume()
    assert states(child) != {"T"}


@pytest.mark.parametrize("started", [HOLDING], indirect=True)
def test_memory_is_read_at_the_strides_that_are_named(started: Started) -> None:
    node = TensorNode(dtype="float32", shape=(2, 3), stride=(1, 2), address=int(started.word))

    found = started.subject.read(node, 1 << 20)

    assert torch.equal(found, torch.arange(6.0).reshape(3, 2).T)
    assert found.stride() == (1, 2)


@pytest.mark.parametrize("started", [HOLDING], indirect=True)
def test_elements_that_are_far_apart_are_read_without_what_is_between_them(
    started: Started,
) -> None:
    node = TensorNode(dtype="float32", shape=(2,), stride=(5,), address=int(started.word))

    found = started.subject.read(node, 1 << 20)

    assert found.tolist() == [0, 5]
    assert found.stride() == (2,)


@pytest.mark.parametrize("started", [HOLDING], indirect=True)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"address": 16}, "cannot be read: Bad address"),
        ({"dtype": "string"}, "type string cannot be read"),
        ({"shape": (6, 1)}, "cannot be read"),
        ({"shape": (1 << 40,)}, "larger than the memory limit"),
        ({"shape": (1 << 40,), "stride": (0,)}, "larger than the memory limit"),
        ({"shape": (2,), "stride": (1 << 40,)}, "larger than the memory limit"),
        ({"shape": (1 << 48, 1 << 48, 0), "stride": (1, 1, 1)}, "cannot be laid out"),
    ],
)
def test_memory_that_is_not_there_is_not_read(
    started: Started, changes: dict[str, object], words: str
) -> None:
    node = TensorNode(dtype="float32", shape=(6,), stride=(1,), address=int(started.word))

    with pytest.raises(UnreadableError, match=words):
        started.subject.read(node.model_copy(update=changes), 1 << 20)


@pytest.mark.parametrize(
    ("program", "status"),
    [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 11)", -signal.SIGSEGV)],
)
def test_a_process_that_ended_is_noticed_with_its_status(program: str, status: int) -> None:
    started = Started(program)  # its first word is the end of its output

    with pytest.raises(ProcessGoneError) as gone:
        started.subject.freeze()

    assert gone.value.status == status
    started.subject.kill()
    started.process.returncode = status


@pytest.mark.parametrize("started", [HOLDING], indirect=True)
def test_a_process_that_is_killed_while_it_is_read_has_ended(started: Started) -> None:
    node = TensorNode(dtype="float32", shape=(6,), stride=(1,), address=int(started.word))
    os.kill(started.subject.pid, signal.SIGKILL)
    select.select([started.subject.pidfd], [], [], 10)

    with pytest.raises(ProcessGoneError) as gone:
        started.subject.read(node, 1 << 20)
    assert gone.value.status == -signal.SIGKILL
    with pytest.raises(ProcessGoneError):
        started.subject.mappings()
    started.subject.kill()
    started.process.returncode = -signal.SIGKILL


@pytest.mark.parametrize("started", [HOLDING], indirect=True)
def test_a_living_process_passes_the_check(started: Started) -> None:
    started.subject.check()


def test_a_list_of_mappings_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MAPS_MOST", 100)
    with pytest.raises(UnreadableError, match="too many mappings"):
        CandidateProcess(os.getpid()).mappings()


@pytest.mark.parametrize("started", [SPINNING], indirect=True)
def test_standing_still_is_confirmed(started: Started) -> None:
    for _ in range(20):
        started.subject.freeze()
        time.sleep(0.002)
        started.subject.verify_frozen()
        started.subject.resume()

    assert not started.subject.ran_while_frozen


@pytest.mark.parametrize("back", [(), (signal.SIGSTOP,)], ids=["let go", "and stopped again"])
@pytest.mark.parametrize("started", [SPINNING], indirect=True)
def test_a_stop_that_is_undone_once_is_noticed(
    started: Started, back: tuple[signal.Signals, ...]
) -> None:
    started.subject.freeze()
    for number in (signal.SIGCONT, *back):
        started.process.send_signal(number)
        time.sleep(0.01)

    with pytest.raises(CandidateRanError, match="while it was frozen"):
        started.subject.resume()


@pytest.mark.parametrize("started", [SPINNING], indirect=True)
def test_what_seems_to_run_on_a_busy_machine_is_counted_and_not_refused(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    started.subject.freeze()
    late = process_tree.cpu_ns(started.subject.pid) + 2 * process.RESTING_NS
    monkeypatch.setattr(process, "cpu_ns", lambda _: late)

    started.subject.verify_frozen()
    started.subject.verify_frozen()  # what was counted once is not counted again

    assert started.subject.ran_while_frozen == 1


@pytest.mark.parametrize("started", [FAMILY], indirect=True)
def test_what_it_started_is_seen_to_run_by_its_processor_time(started: Started) -> None:
    started.subject.freeze()
    (child,) = started.subject.descendants
    os.kill(child, signal.SIGCONT)
    time.sleep(0.02)

    started.subject.verify_frozen()

    assert started.subject.ran_while_frozen == 1


@pytest.mark.parametrize(
    "started", ["import signal\nsignal.signal(17, 1)\n" + FAMILY], indirect=True
)
def test_a_process_that_exits_while_frozen_has_run(started: Started) -> None:
    started.subject.freeze()
    (child,) = started.subject.descendants
    os.kill(child, signal.SIGKILL)  # nothing waits for it: it is gone without a trace
    while psutil.pid_exists(child):
        time.sleep(0.001)

    with pytest.raises(CandidateRanError, match="while it was frozen"):
        started.subject.verify_frozen()


@pytest.mark.parametrize("started", [FAMILY], indirect=True)
def test_many_may_not_use_together_what_one_may(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    started.subject.freeze()
    used = {pid: at + process.RESTING_NS * 3 // 4 for pid, at in started.subject.used_at.items()}
    monkeypatch.setattr(process, "cpu_ns", used.__getitem__)

    started.subject.verify_frozen()

    assert started.subject.ran_while_frozen == 1


NEVER = 1 << 62


@pytest.fixture
def seen_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Descendants whose stop the judge sees only long after the process's own."""
    stop_all = CandidateProcess._stop_all

    def stop_late(self: CandidateProcess) -> int:
        stop_all(self)
        return NEVER

    monkeypatch.setattr(CandidateProcess, "_stop_all", stop_late)


def run_again(subject: CandidateProcess, meanwhile: Callable[[], object]) -> tuple[int, int]:
    """Freeze, let run, and freeze again; return when that began and the end that it returns."""
    subject.freeze()
    subject.resume()
    meanwhile()
    begin = time.perf_counter_ns()
    return begin, subject.freeze()


IDLE_FAMILY = """
import os
if os.fork() == 0:
    import signal
    while True: signal.pause()
print("up", flush=True)
while True: pass
"""


@pytest.mark.usefixtures("seen_late")
@pytest.mark.parametrize("started", [IDLE_FAMILY], indirect=True)
def test_the_time_to_stop_idle_children_does_not_count(started: Started) -> None:
    for _ in range(5):  # another test's process may begin meanwhile
        _, end = run_again(started.subject, lambda: None)
        if end < time.perf_counter_ns():
            return
        started.subject.resume()

    pytest.fail("it counted each time")


@pytest.mark.usefixtures("seen_late")
@pytest.mark.parametrize("started", [FAMILY], indirect=True)
def test_what_a_child_computes_counts(started: Started) -> None:
    started.subject.freeze()
    (child,) = started.subject.descendants
    most = process_tree.cpu_ns(child) + 5_000_000

    begin, end = run_again(
        started.subject, lambda: wait_until(lambda: process_tree.cpu_ns(child) > most)
    )

    assert end - begin >= 5_000_000


@pytest.mark.usefixtures("seen_late")
@pytest.mark.parametrize("started", [IDLE_FAMILY], indirect=True)
def test_the_time_to_stop_children_counts_if_a_process_began(started: Started) -> None:
    _, end = run_again(started.subject, lambda: subprocess.run(["true"], check=True))

    assert end == NEVER


@pytest.mark.usefixtures("seen_late")
@pytest.mark.parametrize("started", [IDLE_FAMILY], indirect=True)
def test_the_time_to_stop_children_counts_if_nothing_tells_whether_a_process_began(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "newest_process", lambda: 0)  # as in gVisor

    assert run_again(started.subject, lambda: None)[1] == NEVER


@pytest.mark.usefixtures("seen_late")
@pytest.mark.parametrize(
    "started", ["import signal\nsignal.signal(17, 1)\n" + IDLE_FAMILY], indirect=True
)
def test_the_time_to_stop_children_counts_if_one_is_gone(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "newest_process", lambda: 1)
    started.subject.freeze()
    (child,) = started.subject.descendants

    def end_child() -> None:
        os.kill(child, signal.SIGKILL)
        wait_until(lambda: not psutil.pid_exists(child))

    _, end = run_again(started.subject, end_child)

    assert end == NEVER


WAKING = """
import os, signal
if os.fork() == 0:
    while True: os.kill(os.getppid(), signal.SIGCONT)
print("up", flush=True)
while True: pass
"""
HEADLESS = """
import ctypes, os, threading, time
def spin():
    while True: pass
if os.fork() == 0:
    threading.Thread(target=spin).start()
    ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
time.sleep(0.05)
print("up", flush=True)
while True: pass
"""
WAITING = """
import ctypes, os, signal, threading, time
def wait():
    number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    if ctypes.CDLL(None).syscall(number, 0x4000 | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        while True: time.sleep(100)
threading.Thread(target=wait, daemon=True).start()
time.sleep(0.1)
print("up", flush=True)
while True: pass
"""


@pytest.mark.parametrize("started", [WAKING, HEADLESS], indirect=True)
def test_whoever_wakes_the_process_or_hides_is_stopped_too(started: Started) -> None:
    for _ in range(5):
        started.subject.freeze()
        assert len(started.subject.descendants) == 1
        assert all(
            states(pid) <= {"T", "Z"} for pid in (started.subject.pid, *started.subject.descendants)
        )
        time.sleep(0.005)
        started.subject.resume()


@pytest.mark.parametrize("started", [WAITING], indirect=True)
def test_a_thread_which_takes_no_stop_is_not_waited_for_without_end(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "STOP_S", 0.1)

    with pytest.raises(CandidateRanError, match="a thread did not stop"):
        started.subject.freeze()


def _running_after_a_while(pid: int) -> dict[int, str]:
    time.sleep(0.01)  # as on a busy machine
    return {pid: "R"}


@pytest.mark.parametrize("started", [FAMILY], indirect=True)
def test_a_child_which_takes_no_stop_is_refused(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "STOP_S", 0.1)
    monkeypatch.setattr(process, "thread_states", _running_after_a_while)
    begin = time.monotonic()

    with pytest.raises(CandidateRanError, match="that it started did not stop"):
        started.subject.freeze()

    assert time.monotonic() - begin < 2


@pytest.mark.parametrize("started", [FAMILY], indirect=True)
def test_a_process_that_does_not_end_is_an_error_and_not_waited_for(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "kill_tree", lambda _: False)
    with pytest.raises(TimeoutError, match="does not end"):
        started.subject.kill()
    monkeypatch.undo()
    assert kill_tree(started.subject.pid)
    started.process.wait()


AFTER_A_STOP = """
import ctypes, os, signal, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # adopts orphans, as PID 1 of a sandbox does
parent = os.getpid()
if os.fork():
    print("up", flush=True)
    while True: signal.pause()
while open(f"/proc/{{parent}}/stat").read().rsplit(")")[1].split()[0] != "T": time.sleep(1e-3)
time.sleep(0.2)
if os.fork() == 0:
    while True: pass
{then}
"""
"""A child that starts a process once its parent is stopped."""
STOPS_ITSELF = AFTER_A_STOP.format(then="os.kill(os.getpid(), signal.SIGSTOP)")
ENDS_ITSELF = AFTER_A_STOP.format(then="os._exit(0)")


def slow_once(read: Callable[[int], object]) -> Callable[[int], object]:
    calls = list[int]()

    def slowed(pid: int) -> object:
        found = read(pid)
        if not calls:
            calls.append(pid)
            time.sleep(0.5)
        return found

    return slowed


def assert_all_stop(subject: CandidateProcess) -> None:
    subject.freeze()

    left = descendants(subject.pid)
    assert [states(pid) for pid in left] == [{"T"}] * len(left)
    assert set(subject.descendants) == set(left) != set()


@pytest.mark.parametrize("started", [STOPS_ITSELF], indirect=True)
def test_a_process_that_starts_before_its_parent_is_seen_stopped_is_stopped(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "thread_states", slow_once(thread_states))
    assert_all_stop(started.subject)


@pytest.mark.parametrize("started", [ENDS_ITSELF], indirect=True)
def test_a_process_whose_parent_ends_while_it_is_listed_is_stopped(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_tree, "_children", slow_once(process_tree._children))
    assert_all_stop(started.subject)


FORKING = """
import os, signal
def fork(*_):
    if os.fork() == 0:
        while True: signal.pause()
signal.signal(signal.SIGUSR1, fork)
print("up", flush=True)
while True: signal.pause()
"""
HALF = """
import ctypes, mmap, signal
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
address = libc.mmap(None, ctypes.c_size_t(2 * mmap.PAGESIZE), 3, 0x22, -1, ctypes.c_long(0))
libc.munmap(ctypes.c_void_p(address + mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE))
print(address, flush=True)
signal.pause()
"""


WRITE_ONLY = """
import ctypes, mmap, signal
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
address = libc.mmap(None, mmap.PAGESIZE, mmap.PROT_WRITE, flags, -1, 0)
ctypes.memset(address, 7, 3)
print(address, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("started", [FORKING], indirect=True)
def test_what_is_started_during_a_stop_is_noticed_at_once(started: Started) -> None:
    started.subject.freeze()
    started.process.send_signal(signal.SIGUSR1)
    started.process.send_signal(signal.SIGCONT)
    wait_until(lambda: bool(descendants(started.subject.pid)))

    with pytest.raises(CandidateRanError, match="while it was frozen"):
        started.subject.resume()


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not true() and time.monotonic() < deadline:
        time.sleep(0.001)


@pytest.mark.parametrize("started", [HALF], indirect=True)
def test_memory_that_is_there_by_half_is_not_read(started: Started) -> None:
    node = TensorNode(
        dtype="uint8", shape=(2 * mmap.PAGESIZE,), stride=(1,), address=int(started.word)
    )

    with pytest.raises(UnreadableError, match="cannot be read: Bad address"):
        started.subject.read(node, 1 << 20)


@pytest.mark.parametrize("started", [WRITE_ONLY], indirect=True)
def test_memory_that_is_mapped_for_writing_alone_is_read(started: Started) -> None:
    node = TensorNode(dtype="uint8", shape=(3,), stride=(1,), address=int(started.word))

    assert started.subject.read(node, 1 << 20).tolist() == [7, 7, 7]


def test_a_process_that_limits_its_memory_gets_no_more_and_then_again_as_much_as_before() -> None:
    large = 1 << 29
    before = resource.getrlimit(resource.RLIMIT_DATA)

    with memory_limited(large // 2), pytest.raises(RuntimeError, match="can't allocate memory"):
        torch.empty(large, dtype=torch.uint8)
    with memory_limited(2 * large):
        held = torch.empty(large, dtype=torch.uint8)

    assert held.numel() == large
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
