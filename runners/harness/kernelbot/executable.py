"""Compiles a task's sources and a submission into one program, in a file that is then sealed.

The compiler reads hostile source, so it runs in its own sandbox, without a GPU and before any seed
is generated. The judge treats the result as opaque bytes.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from runners.contract.task import COMPILE_S, BuildConfig, Scalar
from runners.contract.verdict import Stage, Verdict
from runners.harness.deadline import Deadline
from runners.harness.judge.session import EvaluationSession
from runners.harness.sandbox import diagnostics
from runners.harness.sandbox.make import MADE, End
from runners.harness.sandbox.program import Program, own_script
from runners.harness.supervision.watched_program import WatchedProgram
from runners.harness.toolchains import nvcc
from runners.harness.verdicts import MachineError, VerdictError, error_of_exit

NAME = "eval.out"
LOG_MAX = 16 << 10
"""The most bytes of the compilers' output in the log."""
PRINTED_MAX = 1 << 20
"""The most bytes that the compilers may print; the limit is high for long template errors."""
MESSAGE_MAX = 1500
_FLAGS = (
    "--std=c++20",
    "-DNDEBUG",
    "-Xcompiler=-Wno-psabi",
    "-Xcompiler=-fno-strict-aliasing",
    "--expt-extended-lambda",
    "--expt-relaxed-constexpr",
    "-forward-unknown-to-host-compiler",
    "-O3",
    "-Xnvlink=--verbose",
    "-Xptxas=--verbose",
    "-Xptxas=--warn-on-spills",
)
"""The options that KernelBot's tasks in CUDA C++ expect."""
_DISK_PER_PROGRAM = 4
"""The program may take 1 / `_DISK_PER_PROGRAM` of the disk; intermediate files need the rest."""
_FULL = re.compile(r"File too large|No space left on device")
_SPECIFIC_FROM = 90
"""From compute capability 9.0 on, some instructions need the architecture's suffix `a`."""
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


@contextmanager
def compiled(session: EvaluationSession) -> Iterator[int]:
    """Compile the program and yield the descriptor of its file, which is closed after the block.

    VerdictError if the submission does not compile; MachineError if there is no compiler.
    """
    compiler, kind = nvcc.find(), nvcc.toolchain()
    if compiler is None or kind is None:
        raise MachineError(f"this runner cannot compile the task's program: {nvcc.why_missing()}")
    program = os.memfd_create("program", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        session.report_progress(Stage.BUILD, 0, 1)
        with session.record_duration("compile"):
            _compile(session, compiler, kind, program)
        session.report_progress(Stage.BUILD, 1, 1)
        yield program
    finally:
        os.close(program)


def command(compiler: Path, config: BuildConfig, capability: int | None) -> tuple[str, ...]:
    """Return the compiler's command line without the output option.

    `capability` is 90 for compute capability 9.0; None is the compiler's default.
    """
    return (
        str(compiler),
        *_FLAGS,
        *config.compile_flags,
        "-I.",
        *(f"-D{_define(name, value)}" for name, value in config.defines.items()),
        *config.sources,
        *_architecture(capability),
    )


def _architecture(capability: int | None) -> tuple[str, ...]:
    if capability is None:
        return ()
    number = f"{capability}a" if capability >= _SPECIFIC_FROM else str(capability)
    return (f"-gencode=arch=compute_{number},code=sm_{number}",)


def _define(name: str, value: Scalar | None) -> str:
    if value is None:
        return name
    return f"{name}={int(value) if isinstance(value, bool) else value}"


def _compile(session: EvaluationSession, compiler: Path, kind: str, program: int) -> None:
    request = session.request
    capability = _capability() if session.on_gpu else None
    line = command(compiler, request.task.config, capability)
    most = request.limits.disk // _DISK_PER_PROGRAM
    order = Program(
        command=own_script("sandbox/make.py", str(program), str(most), NAME, *line, "-o", MADE),
        files={**request.task.files, request.task.submission_file: request.source},
        environment={},
        limits=request.limits.model_copy(update={"output": PRINTED_MAX}),
        inherited_fds=frozenset({program}),
    )
    printed = bytearray()
    error = _run(WatchedProgram(order, printed, session.record_sandbox), most)
    folders = tuple(str(path.parents[1]) for path in (compiler, compiler.resolve()))
    output = diagnostics.without_paths(printed.decode(errors="replace"), folders)
    if error is not None:
        output = diagnostics.without_resources(output)
        session.add_to_log(diagnostics.truncated(output, LOG_MAX).encode())
        raise _with_message(error, output)
    target = f" for compute capability {capability / 10}" if capability else ""
    session.add_to_log(
        diagnostics.truncated(f"compiled by {kind}{target}\n{output}", LOG_MAX).encode()
    )
    fcntl.fcntl(program, fcntl.F_ADD_SEALS, _SEALS)


def _with_message(error: VerdictError, output: str) -> VerdictError:
    """The same error, with the compiler's message if it has none of its own."""
    full = error.verdict is Verdict.BUILD_FAILED and _FULL.search(output)
    verdict = Verdict.OUTPUT_EXCEEDED if full else error.verdict
    message = error.message or diagnostics.first_error(output)[:MESSAGE_MAX]
    return VerdictError(verdict, message, Stage.BUILD)


def _run(watched: WatchedProgram, most: int) -> VerdictError | None:
    """Run the compiler; return why there is no program, or None if there is one.

    The error's message is empty if the compiler's output has the reason.
    """
    try:
        status = watched.run(Deadline.after(COMPILE_S)).status
    except VerdictError as error:
        return _error_of_limit(error, watched.order.limits.memory)
    if status < 0:
        return error_of_exit(status)
    if status not in set(End):
        log = watched.log.decode(errors="replace")[-2000:]
        raise MachineError(f"the compiler did not run: {log}")
    return _error_of(End(status), most)


def _error_of(end: End, most: int) -> VerdictError | None:
    match end:
        case End.MADE:
            return None
        case End.REFUSED:
            return VerdictError(Verdict.BUILD_FAILED, "")
        case End.NOTHING:
            return VerdictError(Verdict.BUILD_FAILED, "the compiler made no program")
        case End.TOO_LARGE:
            message = f"the program has more than {most >> 20} MiB"
            return VerdictError(Verdict.OUTPUT_EXCEEDED, message)


def _error_of_limit(error: VerdictError, memory: int) -> VerdictError:
    match error.verdict:
        case Verdict.TIMED_OUT:
            return VerdictError(error.verdict, f"compiling took longer than {COMPILE_S} s")
        case Verdict.MEMORY_EXCEEDED:
            return VerdictError(
                error.verdict, f"compiling took more than {memory >> 20} MiB of memory"
            )
        case Verdict.OUTPUT_EXCEEDED:
            return VerdictError(Verdict.BUILD_FAILED, "")
        case _:
            return error


def _capability() -> int:
    major, minor = torch.cuda.get_device_capability(0)
    return 10 * major + minor
