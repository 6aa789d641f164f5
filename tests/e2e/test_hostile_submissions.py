"""Submissions that try to take the machine, through the runner of this machine and the judge."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from runners.backends import local_process
from runners.contract.evaluation import CPU, Evaluation, Limits
from runners.contract.runner import Runner
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.evaluating import make_request

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
LIMIT_S = 3
SPARE_S = 5.0
MIB = 1 << 20
LIMITS = Limits(memory=512 * MIB, disk=16 * MIB, processes=32)


@dataclass(frozen=True)
class Attack:
    """A hostile body of `custom_kernel`, and the verdicts that answer it."""

    name: str
    body: str
    verdicts: frozenset[Verdict]
    mode: Mode


def _attack(name: str, body: str, *verdicts: Verdict, mode: Mode = Mode.TEST) -> Attack:
    return Attack(name, body, frozenset(verdicts), mode)


ATTACKS = (
    _attack("hangs", "while True: pass", Verdict.TIMED_OUT),
    _attack("sleeps", "import time\ntime.sleep(1000)", Verdict.TIMED_OUT),
    _attack(  # the first process of a namespace takes no stop from within
        "stops_itself", "import signal\nos.kill(0, signal.SIGSTOP)", Verdict.INVALID_SUBMISSION
    ),
    _attack("exits_quietly", "os._exit(0)", Verdict.CRASHED),
    _attack("segfaults", "import ctypes\nctypes.string_at(0)", Verdict.CRASHED),
    _attack("raises", "raise ValueError('no')", Verdict.CRASHED),
    _attack("allocates", "held = bytearray(4 << 30)", Verdict.MEMORY_EXCEEDED),
    _attack(
        "grows",
        "held = []\nwhile True: held.append(bytearray(8 << 20))",
        Verdict.MEMORY_EXCEEDED,
    ),
    _attack(
        "grows_in_children",
        "for _ in range(8):\n    if os.fork() == 0:\n        held = []\n"
        "        while True: held.append(bytearray(1 << 20))\nwhile True: pass",
        Verdict.MEMORY_EXCEEDED,
        Verdict.DISALLOWED,
        Verdict.TIMED_OUT,
    ),
    _attack(
        "grows_in_shared_memory",
        "import mmap\nheld = []\nwhile True:\n    held.append(mmap.mmap(-1, 8 << 20))\n"
        "    held[-1].write(bytes(8 << 20))",
        Verdict.MEMORY_EXCEEDED,
    ),
    _attack(
        "forks",
        "while True:\n    try: os.fork()\n    except OSError: pass",
        Verdict.TIMED_OUT,
        Verdict.DISALLOWED,
        Verdict.MEMORY_EXCEEDED,  # Linux's records of so many processes count too
    ),
    _attack(
        "leaves_a_daemon",
        "if os.fork() == 0:\n    os.setsid()\n    while True: pass\n"
        "data[1].copy_(data[0])\nreturn data[1]",
        Verdict.DISALLOWED,
        mode=Mode.BENCHMARK,
    ),
    _attack("floods_stdout", "while True: os.write(1, b'x' * 65536)", Verdict.OUTPUT_EXCEEDED),
    _attack("floods_stderr", "while True: os.write(2, b'x' * 65536)", Verdict.OUTPUT_EXCEEDED),
    _attack(
        "fills_the_disk",
        "number = 0\nwhile True:\n    number += 1\n"
        "    open(f'/tmp/{number}', 'wb').write(bytes(1 << 20))",
        Verdict.OUTPUT_EXCEEDED,
    ),
    _attack(
        "kills_everything",
        "import signal\nos.kill(-1, signal.SIGKILL)\nos.kill(os.getppid(), signal.SIGKILL)",
        Verdict.CRASHED,
        Verdict.WRONG_ANSWER,
        Verdict.INVALID_SUBMISSION,
    ),
)


def source(body: str) -> str:
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    return f"import os\ndef custom_kernel(data):\n{indented}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runner() -> AsyncIterator[Runner]:
    made = local_process.create(slots={CPU: 1})
    await made.capabilities()
    yield made
    await made.aclose()


async def evaluate(runner: Runner, text: str, mode: Mode = Mode.TEST) -> Evaluation:
    call = await runner.start(make_request(text, mode=mode, timeout_s=LIMIT_S, limits=LIMITS))
    return await runner.wait(call, lambda _: None)


def depth(pid: int) -> int:
    """In how many PID namespaces a process is; 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    (line,) = (line for line in status.splitlines() if line.startswith("NSpid:"))
    return len(line.split()) - 1


def candidates() -> set[int]:
    """The processes beneath this one that live in a namespace of their own within the harness's."""
    beneath = [child.pid for child in psutil.Process().children(recursive=True)]
    harness = depth(os.getpid()) + 1
    return {pid for pid in beneath if depth(pid) > harness}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_an_attack_gets_its_verdict_in_time_and_leaves_nothing(
    runner: Runner, attack: Attack
) -> None:
    begin = time.monotonic()
    answer = await evaluate(runner, source(attack.body), attack.mode)
    took = time.monotonic() - begin
    assert answer.verdict in attack.verdicts, answer.message
    assert took < LIMIT_S + SPARE_S
    assert candidates() == set()
    following = await evaluate(runner, source("data[1].copy_(data[0])\nreturn data[1]"))
    assert following.verdict is Verdict.PASSED


async def test_a_running_candidate_would_be_seen(runner: Runner) -> None:
    call = await runner.start(make_request(source("while True: pass"), timeout_s=LIMIT_S))
    waiting = asyncio.create_task(runner.wait(call, lambda _: None))
    await asyncio.wait({waiting}, timeout=1)
    assert len(candidates()) == 1
    await waiting


async def test_a_kernel_that_does_none_of_this_passes_under_the_same_limits(
    runner: Runner,
) -> None:
    answer = await evaluate(runner, source("data[1].copy_(data[0])\nreturn data[1]"))
    assert answer.verdict is Verdict.PASSED
    assert not answer.isolation.missing or set(answer.isolation.missing) == {"cgroup"}
