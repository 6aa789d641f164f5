"""Real programs in real sandboxes: what they may say, how long they may run, what they leave."""

import ctypes
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runners.contract.evaluation import Limits
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.sandbox import charged_memory, isolate, process_limits, program
from runners.harness.sandbox.program import Program, own_script
from runners.harness.sandbox.syscalls import adopt_orphans
from runners.harness.supervision import watched_program
from runners.harness.supervision.handle import StartError
from runners.harness.supervision.process import OutputPipe
from runners.harness.supervision.watched_program import RESULT_MAX, ProgramExit, WatchedProgram
from runners.harness.verdicts import VerdictError
from runners.process_tree import descendants

SUBREAPER = 36
UNMAPPED = """
import mmap
held, zeros = [], bytes(4 << 20)
while True:
    held.append(mmap.mmap(-1, len(zeros)))
    held[-1][:] = zeros
    held[-1].madvise(mmap.MADV_DONTNEED)
    time.sleep(0.005)
"""
"""Shared memory whose pages are in no page table."""
OPEN_LINE = "import os, sys, time\nline = int(os.environ['POPCORN_FD'])\n"


@pytest.fixture(autouse=True)
def _parent() -> Iterator[None]:
    """Adopt what a phase leaves, as the judge does, and see that it leaves nothing."""
    adopt_orphans()
    before = descendants(os.getpid())
    yield
    left = [pid for pid in descendants(os.getpid()) if pid not in before]
    assert not [pid for pid in left if not _of_a_database(pid)]
    ctypes.CDLL(None).prctl(SUBREAPER, 0, 0, 0, 0)


def _of_a_database(pid: int) -> bool:
    """Whether it is of the server that other tests of this process share; they come and go."""
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "postgres\n"
    except OSError:
        return True  # it has ended


Begin = Callable[..., tuple[WatchedProgram, bytearray]]


@pytest.fixture
def begin() -> Begin:
    def make(script: str, **limits: int) -> tuple[WatchedProgram, bytearray]:
        log = bytearray()
        order = Program(
            command=own_script("kernelbot/launch.py", "main.py", "test"),
            files={"main.py": OPEN_LINE + script},
            environment={},
            limits=Limits(**limits),
        )
        return WatchedProgram(order, log, lambda _layers, _missing: None), log

    return make


def ended(begun: tuple[WatchedProgram, bytearray], seconds: float = 20) -> ProgramExit:
    return begun[0].run(Deadline.after(seconds))


def test_a_phase_tells_its_status_what_it_said_and_what_it_printed(begin: Begin) -> None:
    begun = begin("os.write(line, b'a: 1\\n'); print('out'); sys.exit(112)")
    assert ended(begun) == ProgramExit(112, b"a: 1\n")
    assert begun[1] == b"out\n"


def test_the_layers_of_its_sandbox_are_told() -> None:
    told: list[tuple[tuple[str, ...], dict[str, str]]] = []
    order = Program(own_script("kernelbot/launch.py", "m.py"), {"m.py": ""}, {}, Limits())
    WatchedProgram(order, bytearray(), lambda *found: told.append(found)).run(Deadline.after(20))
    ((layers, missing),) = told
    assert "seccomp" in (*layers, *missing)
    assert program.READ_ONLY in (*layers, *missing)


def test_a_signal_is_a_negative_status(begin: Begin) -> None:
    assert ended(begin("import ctypes; ctypes.string_at(0)")).status == -11


def test_one_that_hangs_is_killed_in_time_and_what_it_said_is_kept(begin: Begin) -> None:
    begun = begin("os.write(line, b'a: 1\\n'); print('x', flush=True); time.sleep(60)")
    start = time.monotonic()
    with pytest.raises(VerdictError, match="time limit") as ruled:
        ended(begun, 1.5)
    assert ruled.value.verdict is Verdict.TIMED_OUT
    assert time.monotonic() - start < 5
    assert (bytes(begun[0].result), bytes(begun[1])) == (b"a: 1\n", b"x\n")


@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        ("while True: print('x' * 999)", Verdict.OUTPUT_EXCEEDED),
        (f"os.write(line, bytes({RESULT_MAX + 1}))", Verdict.DISALLOWED),
        ("while True: os.write(line, b'a: 1\\n')", Verdict.DISALLOWED),
        ("held = []\nwhile True: held.append(bytearray(8 << 20))", Verdict.MEMORY_EXCEEDED),
        (UNMAPPED, Verdict.MEMORY_EXCEEDED),
    ],
)
def test_more_than_the_limits_is_a_verdict(begin: Begin, script: str, verdict: Verdict) -> None:
    with pytest.raises(VerdictError) as ruled:
        ended(begin(script, memory=128 << 20, disk=64 << 20), 10)
    assert ruled.value.verdict is verdict


def test_memory_that_no_process_has_mapped_counts_for_the_program(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = (100 << 20) + (256 << 20) + 1
    monkeypatch.setattr(process_limits, "memory_group", lambda: Path("/podium-1"))
    monkeypatch.setattr(watched_program, "unmapped_memory", lambda: 100 << 20)
    monkeypatch.setattr(charged_memory, "unmapped_memory", lambda: kept)
    with pytest.raises(VerdictError) as ruled:
        ended(begin("time.sleep(60)", memory=1 << 30))
    assert ruled.value.verdict is Verdict.MEMORY_EXCEEDED


def test_memory_spread_over_processes_is_seen_even_where_they_let_nobody_look(begin: Begin) -> None:
    script = """
import ctypes
for _ in range(3):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
        held = bytearray(b'x' * (60 << 20)); time.sleep(60)
time.sleep(60)
"""
    with pytest.raises(VerdictError) as ruled:
        ended(begin(script, memory=128 << 20))
    assert ruled.value.verdict is Verdict.MEMORY_EXCEEDED


def test_who_lingers_with_the_line_is_killed_before_the_end_is_read(begin: Begin) -> None:
    script = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(0.5); os.write(line, b'late: 1\\n'); time.sleep(60)
    os._exit(0)
os.write(line, b'a: 1\\n')
"""
    start = time.monotonic()
    assert ended(begin(script)) == ProgramExit(0, b"a: 1\n")
    assert time.monotonic() - start < 5


def test_each_phase_has_scratch_space_of_its_own(begin: Begin) -> None:
    script = "p='/tmp/left'; print(os.path.exists(p)); open(p, 'w').close()"
    for _ in range(2):
        begun = begin(script)
        assert ended(begun).status == 0
        assert begun[1] == b"False\n"


def test_one_that_never_begins_is_our_own_failure(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no such thing")

    monkeypatch.setattr(isolate, "drop_rights", refuse)
    with pytest.raises(StartError, match="no such thing"):
        ended(begin(""))
    monkeypatch.setattr(isolate, "enter_keeping_rights", refuse)
    with pytest.raises(StartError, match="no sandbox"):
        ended(begin(""))


def test_a_line_that_somebody_holds_for_ever_is_a_breach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_program, "_AFTER_S", 0.1)
    with (
        closing(OutputPipe(100, ValueError)) as held,
        pytest.raises(VerdictError, match="still holds"),
    ):
        watched_program._drain_to_the_end((held,))


def test_no_descriptor_is_left(begin: Begin) -> None:
    def opened() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    ended(begin(""))
    before = opened()
    for _ in range(3):
        ended(begin(""))
    assert opened() == before
