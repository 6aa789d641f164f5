import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from runners.contract.evaluation import Limits
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.protocol.arena import Arena
from runners.harness.protocol.builds import Builds
from runners.harness.protocol.channel import (
    GO_FRAME,
    CandidateRequest,
    CandidateSpec,
    DeviceFds,
    Exchange,
    Operation,
    Status,
    encode,
)
from runners.harness.protocol.values import ScalarNode
from runners.harness.sandbox import charged_memory, process_limits
from runners.harness.supervision import handle as handling
from runners.harness.supervision.handle import CandidateHandle, StartError
from runners.harness.supervision.process import CandidateProcess
from runners.harness.supervision.template import TemplateProcess, pack_files
from runners.harness.supervision.waiting import CORES
from runners.harness.verdicts import MachineError, VerdictError
from runners.languages import Recipe

ENLISTMENT = CandidateSpec(
    limits=Limits(memory=2 << 30),  # a candidate here is a fork of all of pytest
    threads=1,
    recipe=Recipe(language="py", submission_file="submission.py"),
    arena_size=1 << 20,
)
RUN = encode(CandidateRequest(operation=Operation.RUN, value=ScalarNode(value=5)))
BUILD = encode(CandidateRequest(operation=Operation.BUILD))

Start = Callable[[str], CandidateHandle]


@pytest.fixture
def builds() -> Iterator[Builds]:
    made = Builds(1 << 20)
    yield made
    made.close()


@pytest.fixture
def start(template: TemplateProcess, builds: Builds) -> Iterator[Start]:
    """Starts candidates of a source, frozen and built."""
    handles: list[CandidateHandle] = []
    with Arena(ENLISTMENT.arena_size) as arena:

        def make(source: str) -> CandidateHandle:
            files = pack_files({"submission.py": source})
            handle = CandidateHandle(template, ENLISTMENT, [files, builds.fd, arena.fd])
            handles.append(handle)
            handle.process.freeze()
            handle.request(BUILD, Deadline.after(10))
            return handle

        yield make
        for handle in handles:
            handle.close()


def step(handle: CandidateHandle, seconds: float = 10) -> Exchange:
    return handle.call(RUN, Deadline.after(seconds), lambda: GO_FRAME)


FIND = """
import os, time
FDS = [fd for fd in range(3, 256) if os.path.exists(f"/proc/self/fd/{fd}")]
LINES = [fd for fd in FDS if os.readlink(f"/proc/self/fd/{fd}").startswith("socket")]
"""


def kernel(body: str) -> str:
    return f"{FIND}\ndef custom_kernel(data):\n    {body}\n"


def test_a_candidate_answers_and_stands_still(start: Start) -> None:
    handle = start(kernel("return data + 1"))

    exchange = step(handle)

    assert exchange.reply.status is Status.DONE
    assert exchange.reply.output == ScalarNode(value=6)
    assert 0 < exchange.window_ns < 1e9
    assert handle.process.frozen


TWO_THREADS = """
import os, threading
asked, done, cores = threading.Event(), threading.Event(), {}

def work():
    while asked.wait():
        asked.clear()
        sum(range(100_000))
        cores["worker"] = os.sched_getaffinity(0)
        done.set()

threading.Thread(target=work, daemon=True).start()

def custom_kernel(data):
    asked.set()
    done.wait()
    done.clear()
    sum(range(200_000))
    return 100 * len(os.sched_getaffinity(0)) + len(cores["worker"])
"""
"""Returns on how many cores the main thread and, in the last two digits, its worker may run."""


@pytest.mark.skipif(not 2 <= len(CORES) <= 16, reason="threads get cores of their own on 2 to 16")
def test_a_worker_has_a_core_of_its_own_throughout_a_call(start: Start) -> None:
    handle = start(TWO_THREADS)
    step(handle)

    assert step(handle).reply.output == ScalarNode(value=100 * len(CORES) + 1)


def test_the_window_holds_the_kernels_time_and_not_its_preparation(start: Start) -> None:
    handle = start(kernel("time.sleep(0.05); return data"))
    quick = start(kernel("return data"))

    assert 50e6 <= min(step(handle).window_ns for _ in range(3)) < 80e6
    assert min(step(quick).window_ns for _ in range(3)) < 20e6


def test_the_window_does_not_hold_what_the_judge_reads_of_the_candidate(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads files of every thread and process, which calibration's candidate does not have."""
    handle = start(kernel("return data"))
    verify_frozen = CandidateProcess.verify_frozen

    def slowly(self: CandidateProcess) -> None:
        verify_frozen(self)
        time.sleep(0.1)

    monkeypatch.setattr(CandidateProcess, "verify_frozen", slowly)

    assert min(step(handle).window_ns for _ in range(3)) < 100e6


def test_the_input_is_written_while_the_candidate_is_frozen(start: Start) -> None:
    handle = start(kernel("return data"))
    frozen: list[bool] = []

    def write() -> bytes:
        frozen.append(handle.process.frozen)
        return GO_FRAME

    handle.call(RUN, Deadline.after(10), write)

    assert frozen == [True]


@pytest.mark.parametrize(
    ("body", "verdict", "words"),
    [
        ("raise ValueError('no')", Verdict.CRASHED, "ValueError: no"),
        ("os._exit(3)", Verdict.CRASHED, "status 3"),
        ("return {1}", Verdict.INVALID_SUBMISSION, "type set"),
        ("return 'x' * 70_000", Verdict.INVALID_SUBMISSION, "too many parts"),
        ("os.write(1, b'x' * 65_000); os.write(2, b'x' * 2000)", Verdict.OUTPUT_EXCEEDED, "64 KiB"),
        (
            "[os.write(fd, b'{}') for fd in LINES]",
            Verdict.DISALLOWED, "no valid reply",
        ),
    ],
)  # fmt: skip
def test_each_way_to_fail_is_ruled(start: Start, body: str, verdict: Verdict, words: str) -> None:
    handle = start(kernel(body))

    with pytest.raises(VerdictError, match=words) as ruling:
        step(handle)

    assert ruling.value.verdict is verdict


def test_the_deadline_ends_a_call(start: Start) -> None:
    with pytest.raises(VerdictError, match="time limit") as ruling:
        step(start(kernel("while True: pass")), seconds=0.3)

    assert ruling.value.verdict is Verdict.TIMED_OUT


def test_no_call_of_a_candidate_on_the_cpu_is_late(start: Start) -> None:
    exchange = step(start(kernel("return data")))
    assert (exchange.late, exchange.host_part_ns) == (False, 0.0)


def test_an_answer_that_comes_after_the_deadline_does_not_count(start: Start) -> None:
    handle = start(kernel("return data"))
    with pytest.raises(VerdictError, match="time limit") as ruling:
        step(handle, seconds=-0.1)

    assert ruling.value.verdict is Verdict.TIMED_OUT


HOARDING = """
import ctypes, mmap, os
FD = [fd for fd in range(3, 256) if os.path.exists(f"/proc/self/fd/{fd}")
      and "memfd:arena" in os.readlink(f"/proc/self/fd/{fd}")]
def custom_kernel(data):
    for fd in FD:
        os.posix_fallocate(fd, 0, 1 << 30)
    return data
"""


def ask_often(handle: CandidateHandle) -> None:
    handle.process.freeze()
    handle.request(BUILD, Deadline.after(10))
    for _ in range(20):
        step(handle)


def test_memory_in_a_shared_file_that_nobody_maps_is_counted(
    template: TemplateProcess, builds: Builds
) -> None:
    enlistment = ENLISTMENT.model_copy(
        update={"limits": Limits(memory=256 << 20), "arena_size": 1 << 30}
    )
    files = pack_files({"submission.py": HOARDING})
    with (
        Arena(1 << 30) as arena,
        CandidateHandle(template, enlistment, [files, builds.fd, arena.fd], arena) as handle,
        pytest.raises(VerdictError, match="more than 256 MiB of memory were used") as ruling,
    ):
        ask_often(handle)

    assert ruling.value.verdict is Verdict.MEMORY_EXCEEDED


def test_a_candidate_that_hangs_up_is_not_waited_for_beyond_its_deadline(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = start(kernel("os.closerange(3, 256); time.sleep(60)"))
    monkeypatch.setattr(handling, "LATE_S", 0.2)
    begin = time.monotonic()

    with pytest.raises(VerdictError, match="closed its socket"):
        step(handle, seconds=0.5)

    assert time.monotonic() - begin < 0.5 * handling.EXIT_S


def test_a_candidate_that_hangs_up_may_take_no_more_memory_than_before(
    template: TemplateProcess, builds: Builds
) -> None:
    hoarding = "import mmap\n" + kernel(
        "os.closerange(3, 256); held = mmap.mmap(-1, 400 << 20)\n"
        "    held[::4096] = b'x' * (400 << 8)\n    time.sleep(60)"
    )
    limits = Limits(memory=256 << 20, disk=16 << 20)
    enlistment = ENLISTMENT.model_copy(update={"limits": limits})
    files = pack_files({"submission.py": hoarding})
    with (
        Arena(1 << 20) as arena,
        CandidateHandle(template, enlistment, [files, builds.fd, arena.fd], arena) as handle,
    ):
        handle.process.freeze()
        handle.request(BUILD, Deadline.after(10))
        with pytest.raises(VerdictError, match="more than 256 MiB of memory were used") as ruling:
            step(handle)

    assert ruling.value.verdict is Verdict.MEMORY_EXCEEDED


def test_an_answer_that_nobody_asked_for_is_refused(start: Start) -> None:
    handle = start(kernel('os.write(LINES[0], b\'{"status":"done"}\'); return data'))

    with pytest.raises(
        VerdictError, match=r"out of turn|without a request|no valid reply"
    ) as ruling:
        _ = step(handle), step(handle), step(handle)

    assert ruling.value.verdict is Verdict.DISALLOWED


@pytest.mark.parametrize("asks", ["a call", "another request"])
def test_nothing_is_asked_of_a_candidate_that_sent_an_answer_without_a_request(
    start: Start, asks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = start(kernel("return data"))
    step(handle)
    judge, candidate = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with judge, candidate, monkeypatch.context() as replaced:
        judge.settimeout(0)
        candidate.settimeout(0)
        replaced.setattr(handle, "orders", judge)
        candidate.sendall(b'{"status":"done"}')

        with pytest.raises(VerdictError, match="without a request") as ruling:
            step(handle) if asks == "a call" else handle.request(RUN, Deadline.after(1))
        with pytest.raises(BlockingIOError):
            candidate.recv(100)

    assert ruling.value.verdict is Verdict.DISALLOWED


def test_a_candidate_that_closes_its_streams_goes_on(start: Start) -> None:
    handle = start(kernel("print('last words', flush=True); os.closerange(0, 3); return data"))
    quiet = start(kernel("return data"))

    step(handle)
    for _ in range(3):
        with pytest.raises(VerdictError):  # print fails from now on, and the judge does not
            step(handle)
        step(quiet)

    assert bytes(handle.printed.text).startswith(b"last words")


def test_what_is_printed_is_kept(start: Start) -> None:
    handle = start(kernel("print('said', flush=True); return data"))

    step(handle)
    step(handle)

    assert bytes(handle.printed.text) == b"said\nsaid\n"


def test_a_closed_candidate_has_no_process_left(start: Start) -> None:
    handle = start(kernel("return data"))

    handle.close()
    handle.close()

    assert handle.process.killed


def test_a_template_that_is_gone_is_our_own_fault(template: TemplateProcess) -> None:
    template.link.close()

    with pytest.raises(StartError, match="did not start"):
        CandidateHandle(template, ENLISTMENT, [])


def test_a_candidate_that_dies_before_its_welcome_is_our_own_fault(
    template: TemplateProcess,
) -> None:
    with Arena(1 << 20) as arena:  # where the files should be
        handle = CandidateHandle(template, ENLISTMENT, [arena.fd, arena.fd, arena.fd])
        with pytest.raises(StartError, match=r"(?s)ended at once\n.*JSONDecodeError"):
            _ = handle.ready
        handle.close()  # nothing is left to be closed


def test_candidates_start_beside_each_other(template: TemplateProcess, builds: Builds) -> None:
    files = pack_files({"submission.py": "def custom_kernel(data): return data"})
    with ExitStack() as stack:
        arenas = [stack.enter_context(Arena(1 << 20)) for _ in range(3)]
        handles = [
            stack.enter_context(CandidateHandle(template, ENLISTMENT, [files, builds.fd, arena.fd]))
            for arena in arenas
        ]
        assert [handle.known_process for handle in handles] == [None] * 3  # nobody was waited for

        assert len({handle.process.pid for handle in reversed(handles)}) == 3
        for handle in handles:
            handle.process.freeze()
            handle.request(BUILD, Deadline.after(10))
            assert step(handle).reply.output == ScalarNode(value=5)


def test_a_candidate_that_nobody_waited_for_is_killed_as_well(
    template: TemplateProcess, builds: Builds
) -> None:
    with Arena(1 << 20) as arena:
        handle = CandidateHandle(template, ENLISTMENT, [pack_files({}), builds.fd, arena.fd])
        handle.close()

    assert handle.process.killed
    with pytest.raises(ProcessLookupError):
        os.kill(handle.process.pid, 0)


def test_the_window_holds_the_release_and_the_stop(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = start(kernel("return data"))
    for name in ("let_run", "freeze"):
        monkeypatch.setattr(handle.process, name, late(getattr(handle.process, name)))

    assert step(handle).window_ns >= 60e6


def late(action: Callable[..., Any]) -> Callable[..., Any]:
    def acting(*args: object) -> object:
        time.sleep(0.03)
        return action(*args)

    return acting


AHEAD = """
import sys
class Ahead:
    def __init__(self, orders): self.orders = orders
    def recv(self, size): return self.orders.recv(size)
    def sendall(self, frame):
        self.orders.sendall(frame)
        if frame == b"ready": self.orders.sendall(b'{"status":"done"}')
def custom_kernel(data):
    program = sys._getframe(1).f_locals["self"]
    if not isinstance(program.orders, Ahead): program.orders = Ahead(program.orders)
    return data
"""


def test_an_answer_before_the_input_is_refused_at_once(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = start(AHEAD)
    monkeypatch.setattr(handle, "_await_frame", late(handle._await_frame))
    step(handle)

    with pytest.raises(VerdictError, match="without a request") as ruling:
        step(handle)

    assert ruling.value.verdict is Verdict.DISALLOWED


def test_output_up_to_the_limit_is_allowed(start: Start) -> None:
    handle = start(kernel(f"os.write(1, b'x' * {ENLISTMENT.limits.output}); return data"))

    step(handle)

    assert len(handle.printed.text) == ENLISTMENT.limits.output


def test_a_line_that_is_closed_by_an_end_is_ruled_by_the_end(start: Start) -> None:
    handle = start(kernel("[os.close(fd) for fd in LINES]; time.sleep(0.2); os._exit(3)"))

    with pytest.raises(VerdictError, match="status 3") as ruling:
        step(handle)

    assert ruling.value.verdict is Verdict.CRASHED


def test_memory_is_counted_outside_of_a_short_window(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel with eight children that printed a line was told up to nine times its time."""
    handle = start(kernel("print('a line', flush=True); time.sleep(0.02); return data"))
    counted: list[bool] = []
    monkeypatch.setattr(
        "runners.harness.supervision.handle.holds_more",
        lambda *_: counted.append(handle.process.frozen),
    )

    def write() -> bytes:
        handle.next_check = 0.0
        return GO_FRAME

    handle.call(RUN, Deadline.after(10), write)

    assert counted == [True]


def test_memory_that_no_process_has_mapped_counts_for_the_candidate(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = start("def custom_kernel(data):\n    return data\n")
    handle.request(BUILD, Deadline.after(10))
    most = handle.unmapped_before + handle.spec.limits.memory // 4
    monkeypatch.setattr(process_limits, "memory_group", lambda: Path("/podium-1"))
    monkeypatch.setattr(charged_memory, "unmapped_memory", lambda: most)
    handle.next_check = 0.0
    handle._enforce(Deadline.after(10))
    monkeypatch.setattr(charged_memory, "unmapped_memory", lambda: most + 1)
    handle.next_check = 0.0

    with pytest.raises(VerdictError) as refused:
        handle._enforce(Deadline.after(10))
    assert refused.value.verdict is Verdict.MEMORY_EXCEEDED


@pytest.mark.parametrize(
    ("grown", "freed", "ends"),
    [
        ((3 << 30, 512 << 20), 1 << 30, VerdictError),
        ((3 << 30, 512 << 20), 1 << 20, MachineError),  # a neighbour's records
        ((3 << 30, 128 << 20), 0, None),
        ((1 << 30, 512 << 20), 0, None),
        ((0, 0, 3 << 30), 1 << 30, VerdictError),
        ((0, 0, 3 << 30), 1 << 20, MachineError),  # a neighbour's pages
        ((0, 0, 1 << 30), 0, None),
    ],
)
def test_records_and_pages_of_a_driver_count_for_a_candidate_that_frees_them(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    grown: tuple[int, ...],
    freed: int,
    ends: type[Exception] | None,
) -> None:
    kernel, own, *pages = grown
    handle = start("def custom_kernel(data):\n    return data\n")
    handle.request(BUILD, Deadline.after(10))
    shared = DeviceFds(
        transport="vmm", size=1, output_at=0, pool_at=0, places_at=0, words_size=1
    )  # as on a GPU
    handle.spec = ENLISTMENT.model_copy(update={"shared": shared})
    handle.next_check = 0.0

    def kept(before: int, more: int) -> Callable[[], int]:
        return lambda: before + more - handle.process.killed * freed

    pages_before, records_before = handle.driver_before
    monkeypatch.setattr(process_limits, "driver_memory", kept(pages_before, sum(pages)))
    monkeypatch.setattr(process_limits, "kernel_memory", kept(records_before, kernel))
    monkeypatch.setattr(process_limits, "memory_of_tree", lambda _: handle.inherited + own)
    monkeypatch.setattr(charged_memory, "_FREED_S", 0.0)

    if ends is None:
        handle._enforce(Deadline.after(10))
        assert not handle.process.killed
        return
    with pytest.raises(ends, match=r"memory were used|other programs"):
        handle._enforce(Deadline.after(10))


@pytest.mark.parametrize("maps", [True, False])
def test_on_a_gpu_only_shared_memory_that_was_mapped_since_the_start_may_be_hidden(
    start: Start, monkeypatch: pytest.MonkeyPatch, *, maps: bool
) -> None:
    mapping = "import mmap\nshared = mmap.mmap(-1, 4096)\nshared[0] = 1\n" if maps else ""
    handle = start(mapping + "def custom_kernel(data):\n    return data\n")
    handle.request(BUILD, Deadline.after(10))
    shared = DeviceFds(
        transport="vmm", size=1, output_at=0, pool_at=0, places_at=0, words_size=1
    )  # as on a GPU
    handle.spec = ENLISTMENT.model_copy(update={"shared": shared})
    grown = handle.shared_before + (1 << 50)
    monkeypatch.setattr(
        process_limits, "shared_memory", lambda: grown * (not handle.process.killed)
    )
    handle.next_check = 0.0

    if not maps:
        handle._enforce(Deadline.after(10))
        assert not handle.process.killed
        return
    with pytest.raises(VerdictError) as refused:
        handle._enforce(Deadline.after(10))
    assert refused.value.verdict is Verdict.MEMORY_EXCEEDED
