"""The warm server: imports torch once and forks a fresh judge for every request.

Only the judge reads the request, so no secret of one evaluation can reach the next. A task's own
code runs in the judge. So the server passes on the judge's lines, up to its one answer, and the
judge cannot access the memory of the server.
"""

import fcntl
import gc
import json
import os
import platform
import select
import signal
import stat
import sys
import termios
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from types import FrameType

from pydantic import ValidationError

from runners import languages
from runners.contract.evaluation import (
    CPU,
    Evaluation,
    EvaluationRequest,
    Isolation,
    Limits,
    Progress,
)
from runners.contract.runner import Capabilities, Health
from runners.contract.task import Grader, LanguageName, TaskFormat
from runners.contract.verdict import Verdict
from runners.harness import HARNESS_VERSION, graders
from runners.harness.build.kit import KIT
from runners.harness.evaluate import evaluate, host_environment, importable
from runners.harness.gpu import warm
from runners.harness.gpu.buffers import max_spares
from runners.harness.gpu.health import Card, examine, read_cards
from runners.harness.judge.host_candidate import threads_of
from runners.harness.protocol.channel import SpareSpec
from runners.harness.relay import LATE_S, CheckWatch, answer_for, emit, relay
from runners.harness.sandbox import process_limits, syscalls, view
from runners.harness.supervision import fork, handle
from runners.harness.supervision.template import TemplateProcess, fork_template, skip_compiler
from runners.harness.toolchains import nvcc
from runners.harness.verdicts import MachineError, OutOfTimeError, VerdictError
from runners.plugins import load, names

END_OF_INPUT = 64
"""The exit status of a judge that read the end of the input instead of a request."""
UNFIT = 66
"""The exit status of a judge whose GPU is unfit; the server then exits with it too."""
NO_EVALUATION = 65
"""The exit status of a judge without `--serve` if the request is invalid or the machine failed."""
REQUEST_MAX = 64 << 20
"""The most bytes of a request."""
SPARES_MOST = 7
"""The most spares that start on a GPU: one for the tests, one for calibration and one for each of
the first rounds of a ranked run. On the CPU there are none: a candidate starts within 30 ms."""
GRACE_S = 8.0
"""Seconds by which all attempts at an evaluation may exceed its limits, because a candidate on a
GPU exits slowly. Two more seconds are enough to end the candidate after that."""
END_S = 2.0
"""How long a judge may take to end by itself after its answer, in seconds."""
HUGE_PAGES_S = 0.1
"""Seconds at the start to get huge pages, which save a short evaluation a third of its CPU time."""


def capabilities(isolation: Isolation) -> Capabilities:
    """Return what this machine offers, without creating a CUDA context."""
    return Capabilities(
        harness_version=HARNESS_VERSION,
        gpus={CPU: 1},
        languages=_languages(),
        graders=tuple(each for each in Grader if each.value in names(graders)),
        formats=tuple(TaskFormat),
        libraries=importable(),
        python=platform.python_version(),
        isolation=isolation,
    )


def _languages() -> tuple[LanguageName, ...]:
    """Return the languages that this machine can build, alone or as a part of a program."""
    compilers = {"nvcc"} if nvcc.toolchain() else set()
    return tuple(
        each.SPEC.name
        for each in languages.languages()
        if each.toolchain(KIT) or each.SPEC.program_compiler in compilers
    )


def serve(isolation: Isolation, *, gpu: bool = False) -> int:
    """Answer request lines on standard input until it ends; return the exit status."""
    syscalls.adopt_orphans()
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    syscalls.start_session()
    for name in names(graders):
        load(graders, name)  # otherwise every judge would import it again
    host_environment()  # runs a program and caches its output
    syscalls.use_huge_pages(HUGE_PAGES_S)
    if not gpu:
        return _serve_all(isolation, None, None)
    with closing(warm.DriverKeepAlive()) as keep_alive:
        warm.warm_up()
        return _serve_all(isolation, keep_alive, read_cards())


def _serve_all(
    isolation: Isolation, keep_alive: warm.DriverKeepAlive | None, cards: tuple[Card, ...] | None
) -> int:
    emit(1, b'{"ready": %s}' % capabilities(isolation).model_dump_json().encode())
    while True:
        with closing(CheckWatch()) as watch:
            body = partial(_serve_one, isolation=isolation, cards=cards, watch=watch)
            status = _run_judge(body, keep_alive, watch)
        if status == END_OF_INPUT:
            return 0
        if status == UNFIT:
            return UNFIT
        if status != 0:
            emit(1, b'{"error": "the judge ended with status %d"}' % status)


def answer_once(isolation: Isolation) -> int:
    """Read one request up to the end of standard input and print only its evaluation."""
    syscalls.adopt_orphans()
    watch = CheckWatch()

    def run() -> int:
        watch.keep_from_forks()
        out = os.dup(1)
        os.dup2(2, 1)  # output of the task's own code must not mix with the answer
        return _answer_one(out, isolation, watch)

    judge = _fork_judge(run)
    watch.wait(os.pidfd_open(judge))
    if watch.late:
        os.kill(judge, signal.SIGKILL)
    status = _end_judge(judge)
    watch.ended(status)
    return 0 if answer_for(watch, b"%s\n") else status


def _run_judge(
    body: Callable[[int], int],
    keep_alive: warm.DriverKeepAlive | None = None,
    watch: CheckWatch | None = None,
) -> int:
    """Fork a judge that runs `body`, pass on its lines, and return its exit status.

    If its check of an answer does not end, kill it and answer in its place.
    """
    inherited = fork.inherited()
    reader, writer = os.pipe2(os.O_CLOEXEC)
    watch = watch or CheckWatch()

    def run() -> int:
        watch.keep_from_forks()
        os.close(reader)
        os.dup2(2, 1)  # output of the task's own code must not reach the backend
        return body(writer)

    judge = _fork_judge(run)
    os.close(writer)
    ended = os.pidfd_open(judge)
    answered = relay(reader, ended, watch)
    if watch.late or not select.select([ended], [], [], END_S)[0]:
        os.kill(judge, signal.SIGKILL)
    for fd in (reader, ended):
        os.close(fd)
    status = _end_judge(judge, keep_alive)
    watch.ended(status)
    _refuse_changes(inherited)
    if answered or answer_for(watch, b'{"evaluation": %s}'):
        emit(1, b"")  # the line break, after which the backend may send the next request
        return 0
    return status or NO_EVALUATION


def _refuse_changes(inherited: tuple[object, ...]) -> None:
    """RuntimeError if a judge changed what later judges inherit."""
    fcntl.fcntl(0, fcntl.F_SETFL, os.O_RDONLY)  # the judge shares the flags of the open file
    is_pipe = stat.S_ISFIFO(os.fstat(0).st_mode)  # a judge may write to it through /proc/self/fd
    changed = fork.inherited() != inherited
    if changed or (is_pipe and any(fcntl.ioctl(0, termios.FIONREAD, bytes(4)))):
        raise RuntimeError("a judge changed what later judges inherit")


def _fork_judge(body: Callable[[], int]) -> int:
    """Fork a judge that runs `body` and exits with its status; return its process id."""
    gc.freeze()  # a collection in a child would otherwise touch, and so copy, the whole heap
    if (judge := os.fork()) == 0:
        status = 70
        try:
            syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # for the maps of its candidates
            syscalls.start_session()
            skip_compiler()
            status = body()
        except BaseException:  # noqa: BLE001 - the outermost frame of this process
            traceback.print_exc(file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(status)
    return judge


def _end_judge(judge: int, keep_alive: warm.DriverKeepAlive | None = None) -> int:
    """Wait for a judge's end, kill all that it left, and return its exit status."""
    _, status = os.waitpid(judge, 0)
    process_limits.precedence.reset()
    _kill_leftovers(keep_alive)
    return os.waitstatus_to_exitcode(status)


def _kill_leftovers(keep_alive: warm.DriverKeepAlive | None = None) -> None:
    """Kill all processes that an exited judge has left, and wait for their exits.

    TimeoutError if one survives, because it would disturb the next timing. The server then exits,
    and its supervisor ends everything below it.
    """
    if not process_limits.kill_beneath(os.getpid(), keep_alive.living if keep_alive else ()):
        raise TimeoutError(
            f"a process of a judge still runs {process_limits.KILL_S:.0f} s after it was killed"
        )
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    view.clear_scratch()


def _serve_one(
    out: int,
    isolation: Isolation,
    cards: tuple[Card, ...] | None = None,
    watch: CheckWatch | None = None,
) -> int:
    """Evaluate the next request and return the judge's exit status.

    Before it arrives, start a template process and check the state of the GPUs, if there are any.
    """
    template = fork_template()  # before the request is read, so the template cannot contain it
    syscalls.adopt_orphans()
    health = Health() if cards is None else examine(cards)
    emit(out, b'{"health": %s}' % health.model_dump_json().encode())
    if health.unfit:
        template.close()
        return UNFIT
    if cards is not None:
        _prepare_spares(template)
    line = _read_line(0)
    if not line:
        template.close()
        return END_OF_INPUT

    def report(progress: Progress) -> None:
        emit(out, b'{"progress": %s}' % progress.model_dump_json().encode())

    try:
        evaluation = _judge(line, template, isolation, report, watch=watch)
    except (ValidationError, handle.StartError, MachineError) as error:
        emit(out, b'{"error": %s}' % json.dumps(str(error)[:4000]).encode())
    else:
        emit(out, b'{"evaluation": %s}' % evaluation.model_dump_json().encode())
    template.close()
    return 0


def _prepare_spares(template: TemplateProcess) -> None:
    """Start spares on a GPU, with the default limits, until the request arrives."""
    limits = Limits()
    spec = SpareSpec(limits=limits, threads=threads_of(limits, gpu=True), gpu=True)
    template.spares.prepare(spec, min(SPARES_MOST, max_spares()), request_fd=0)


def _answer_one(out: int, isolation: Isolation, watch: CheckWatch | None = None) -> int:
    template = fork_template()
    syscalls.adopt_orphans()
    request = sys.stdin.buffer.read(REQUEST_MAX)
    try:
        evaluation = _judge(request, template, isolation, lambda _: None, watch=watch)
    except (ValidationError, handle.StartError, MachineError) as error:
        sys.stderr.write(f"podium: no evaluation: {error}\n")
        return NO_EVALUATION
    finally:
        template.close()
    emit(out, evaluation.model_dump_json().encode())
    return 0


def _judge(
    line: bytes,
    template: TemplateProcess,
    isolation: Isolation,
    report: Callable[[Progress], None],
    *,
    watch: CheckWatch | None,
) -> Evaluation:
    request = EvaluationRequest.model_validate_json(line)
    syscalls.keep_freed_memory()
    watch = watch or CheckWatch()
    out_of_time = _out_of_time_again if request.used_s else _out_of_time

    def alarm(number: int, frame: FrameType | None) -> None:
        watch.interrupted()
        out_of_time(number, frame)

    signal.signal(signal.SIGALRM, alarm)
    left_s = max(0.001, request.left_s + GRACE_S)
    signal.setitimer(signal.ITIMER_REAL, left_s)
    watch.begin(left_s + LATE_S)
    try:
        return evaluate(request, template, isolation, report, watch=watch)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    message = "the task's own code took longer than its time limits"
    raise _verdict_in_flight() or OutOfTimeError(Verdict.TASK_ERROR, message)


def _out_of_time_again(_signal: int, _frame: FrameType | None) -> None:
    message = "earlier attempts, which failed, left too little time for this one"
    raise _verdict_in_flight() or MachineError(message)


def _verdict_in_flight() -> VerdictError | None:
    """The verdict that is being raised, if any; the alarm then only ends its slow cleanup."""
    found = sys.exc_info()[1]
    return found if isinstance(found, VerdictError) else None


def _read_line(fd: int) -> bytes:
    """Return one line; b"" at the end of the input or if the line is longer than `REQUEST_MAX`."""
    parts, size = list[bytes](), 0
    while part := os.read(fd, 1 << 20):
        parts.append(part)
        size += len(part)
        if part.endswith(b"\n"):
            return b"".join(parts)
        if size > REQUEST_MAX:
            break
    return b""
