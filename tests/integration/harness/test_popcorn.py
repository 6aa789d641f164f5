"""Tasks in KernelBot's form, judged by their own evaluation and by ours, honest and attacked."""

import time
from collections.abc import Iterator

import psutil
import pytest

from runners.contract.evaluation import CaseStatus, Evaluation, Limits, Timing
from runners.contract.task import Grader, Mode
from runners.contract.verdict import Verdict
from tests.doubles.judging import Harness, make_judging, serving
from tests.doubles.kernelbot import (
    DOUBLES,
    KERNEL,
    PACKED_KERNEL,
    PACKED_WRONG,
    PLAIN_EVAL,
    RANKS_KERNEL,
    make_affine_task,
    make_packed_task,
    make_plain_task,
    make_ranks_task,
    make_strict_task,
)

pytestmark = pytest.mark.slow
TIMEOUT_S = 8
"""Long enough for two workers to import torch; some attacks last for all of it."""
IDLE = 4
"""Processes of a harness that has nothing to do."""


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with serving() as served:
        yield served


@pytest.fixture(autouse=True)
def _nothing_is_left(harness: Harness) -> Iterator[None]:
    yield
    deadline = time.monotonic() + 2
    program = psutil.Process(harness.process.pid)
    while len(program.children(recursive=True)) > IDLE and time.monotonic() < deadline:
        time.sleep(0.005)
    assert len(program.children(recursive=True)) <= IDLE


def attacked(harness: Harness, source: str, mode: Mode = Mode.TEST) -> Evaluation:
    task = make_affine_task(test_timeout=TIMEOUT_S)
    limits = Limits(memory=2 << 30)  # so that a busy machine fills it long before the time is over
    return harness.evaluate(make_judging(source, mode, task=task, limits=limits))


@pytest.mark.parametrize("grader", Grader)
@pytest.mark.parametrize("check", ["pair", "text"])
def test_both_graders_take_the_same_task(harness: Harness, grader: Grader, check: str) -> None:
    task = make_affine_task(check=check, grader=grader)

    mode = Mode.RANKED if check == "pair" else Mode.TEST  # the times do not depend on its form
    right = harness.evaluate(make_judging(KERNEL, mode, task=task))
    wrong = harness.evaluate(make_judging(KERNEL.replace("+ 1", "+ 2"), task=task))

    assert right.verdict is Verdict.PASSED, right.message
    assert {case.status for case in right.cases} == {CaseStatus.PASSED}
    assert len(right.cases) == (3 if check == "pair" else 2)
    assert (right.cases[-1].measurement is not None) == (check == "pair")
    assert (right.environment.timing is Timing.IN_PROCESS) == (grader is Grader.POPCORN)
    assert (wrong.verdict, wrong.message) == (Verdict.WRONG_ANSWER, "mismatch\nhere")


@pytest.mark.parametrize("grader", Grader)
def test_numbers_of_four_and_eight_bits_travel(harness: Harness, grader: Grader) -> None:
    task = make_packed_task(grader=grader)

    right = harness.evaluate(make_judging(PACKED_KERNEL, Mode.RANKED, task=task))
    wrong = harness.evaluate(make_judging(PACKED_WRONG, task=task))

    assert right.verdict is Verdict.PASSED, right.message + right.log
    assert right.cases[-1].measurement is not None
    assert (wrong.verdict, wrong.message) == (
        Verdict.WRONG_ANSWER, "the float8_e4m3fnuz are wrong",
    )  # fmt: skip


@pytest.mark.parametrize("grader", Grader)
def test_deterministic_algorithms_import_no_compiler(harness: Harness, grader: Grader) -> None:
    task = make_strict_task(grader=grader)

    right = harness.evaluate(make_judging(KERNEL, task=task))
    wrong = harness.evaluate(make_judging(KERNEL.replace("+ 1", "+ 2"), task=task))

    assert right.verdict is Verdict.PASSED, right.message + right.log
    assert (wrong.verdict, wrong.message) == (Verdict.WRONG_ANSWER, "mismatch\nhere")


def test_two_ranks_add_up_over_a_network_of_their_own(harness: Harness) -> None:
    task = make_ranks_task()

    right = harness.evaluate(make_judging(RANKS_KERNEL, Mode.RANKED, task=task))
    wrong = harness.evaluate(make_judging(RANKS_KERNEL.replace("    dist", "    0 and dist"),
                                          task=task))  # fmt: skip

    assert right.verdict is Verdict.PASSED, right.message + right.log
    assert right.cases[-1].measurement is not None
    assert {"loopback", "network"} <= {*right.isolation.layers, *right.isolation.missing}
    assert (wrong.verdict, wrong.message) == (Verdict.WRONG_ANSWER, "the sum is wrong")


TRY = """
import os, signal
def tries(*calls):
    gained = []
    for call in calls:
        try:
            gained.append(call())
        except (OSError, ProcessLookupError):
            pass
    if gained:
        print("GAINED", gained, flush=True)
"""
WRONG = "def custom_kernel(data):\n    return data[0] * 0\n"
PARENT = "/proc/{os.getppid()}"

GAIN_NOTHING = {
    "reading and writing where the evaluation is": (
        "tries(*(lambda n=n: open(n, 'a') for n in os.listdir('.')))\n"
        f"tries(lambda: open(f'{PARENT}/environ').read(), lambda: open(f'{PARENT}/maps').read(),\n"
        f"      lambda: open('/proc/1/environ').read(), lambda: os.environ['POPCORN_SEED']\n"
        f"      if 'POPCORN_SEED' in os.environ else os.stat('/none'))\n"
        "for fd in range(64):\n"
        f"    tries(lambda: open(f'{PARENT}/fd/{{fd}}', 'wb').write(b'check: pass\\n'))\n"
        f"tries(lambda: open(f'{PARENT}/mem', 'r+b'))\n"
        "tries(lambda: os.rename('reference.py', 'r'), lambda: os.unlink('reference.py'),\n"
        f"      lambda: os.rename('/task', '/old'), lambda: open('torch.py', 'w'))\n{WRONG}"
    ),
    "killing the evaluation": (
        f"os.kill(os.getppid(), signal.SIGKILL)\nos.kill(1, signal.SIGKILL)\n{WRONG}"
    ),
}
"""What a worker of the evaluation may try without any gain: the wrong output stays one."""


@pytest.mark.parametrize("name", GAIN_NOTHING)
def test_from_a_worker_nothing_is_gained(harness: Harness, name: str) -> None:
    found = attacked(harness, TRY + GAIN_NOTHING[name], Mode.RANKED)

    assert "GAINED" not in found.log
    assert found.verdict is Verdict.WRONG_ANSWER, found.message


FAIL = {
    "ending at import": ("import os\nos._exit(0)", {Verdict.TIMED_OUT, Verdict.CRASHED}),
    "forged lines on every descriptor, and ending in the call": (
        ("import os\ndef custom_kernel(data):\n    for fd in range(3, 64):\n"
        "        try: os.write(fd, b'test.0.status: pass\\ncheck: pass\\n')\n"
        "        except OSError: pass\n    os._exit(0)"),
        {Verdict.TIMED_OUT, Verdict.CRASHED, Verdict.DISALLOWED},
    ),
    "a flood": (
        "def custom_kernel(data):\n    while True: print('x' * 9999)", {Verdict.OUTPUT_EXCEEDED}
    ),
    "a fork bomb": (
        "import os\ndef custom_kernel(data):\n    while True: os.fork()",
        {Verdict.TIMED_OUT, Verdict.CRASHED, Verdict.MEMORY_EXCEEDED, Verdict.OUTPUT_EXCEEDED},
    ),
    "a memory bomb": (
        ("import torch\nheld = []\ndef custom_kernel(data):\n"
        "    while True: held.append(torch.ones(64 << 20))"),
        {Verdict.CRASHED, Verdict.MEMORY_EXCEEDED},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAIL)
def test_from_a_worker_harm_is_a_verdict(harness: Harness, name: str) -> None:
    source, verdicts = FAIL[name]
    found = attacked(harness, source)

    assert found.verdict in verdicts, found.message
    assert found.wall_s < TIMEOUT_S + 5


LINE = "import os, sys, time\nline = int(os.environ['POPCORN_FD'])\n"
FORGED = b"test-count: 2\ntest.0.status: pass\ntest.1.status: pass\ncheck: pass\n"
IN_ONE_PROCESS = {
    "a grandchild that answers late": (
        (f"{LINE}if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        f"        time.sleep(0.3); os.write(line, {FORGED!r}); time.sleep(60)\n    os._exit(0)\n"
        "def custom_kernel(data): return []"),
        Verdict.WRONG_ANSWER,
    ),
    "a second verdict": (
        (f"{LINE}import atexit\natexit.register(os.write, os.dup(line), b'check: pass\\n')\n"
        "def custom_kernel(data): return []"),
        Verdict.DISALLOWED,
    ),
    "a verdict before the end": (
        f"{LINE}os.write(line, {FORGED!r})\ndef custom_kernel(data): return []",
        Verdict.DISALLOWED,
    ),
    "a flooded line": (
        f"{LINE}while True: os.write(line, b'x: 1\\n' * 999)", Verdict.DISALLOWED
    ),
    "an early end": ("import os\nos._exit(0)", Verdict.CRASHED),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_ONE_PROCESS)
def test_in_the_evaluations_own_process_clumsy_forgeries_fail(harness: Harness, name: str) -> None:
    source, verdict = IN_ONE_PROCESS[name]
    found = harness.evaluate(make_judging(source, task=make_plain_task()))

    assert found.verdict is verdict, found.message


def test_what_an_earlier_phase_left_is_gone(harness: Harness) -> None:
    source = (
        "import os\nprint('left', os.path.exists('/tmp/left'), os.path.exists('/dev/shm/left'))\n"
        "for folder in ('/tmp', '/dev/shm'): open(folder + '/left', 'w').close()\n" + DOUBLES
    )
    found = harness.evaluate(make_judging(source, Mode.RANKED, task=make_plain_task()))

    assert found.verdict is Verdict.PASSED, found.message
    assert [line for line in found.log.splitlines() if "left" in line] == ["left False False"] * 2


@pytest.mark.parametrize(
    "source",
    [
        f"{LINE}os.write(line, {FORGED!r})\nos._exit(0)",
        (
            "import builtins\nbuiltins.all = None\nimport __main__\n"
            "class Liar(list):\n    def __eq__(self, other): return True\n"
            "def custom_kernel(data): return Liar()"
        ),
    ],
    ids=["a whole forged line", "an output that equals everything"],
)
def test_what_cannot_be_stopped_is_at_least_said_to_be_unconfirmed(
    harness: Harness, source: str
) -> None:
    found = harness.evaluate(make_judging(source, task=make_plain_task(PLAIN_EVAL)))

    assert found.verdict is Verdict.PASSED
    assert found.environment.timing is Timing.IN_PROCESS


def test_the_harness_judges_honestly_after_all_of_them(harness: Harness) -> None:
    assert attacked(harness, KERNEL).verdict is Verdict.PASSED
