"""Profiles the kernels that one call of a submission launches, with `ncu`.

The call is repeated in its own sandbox, with public inputs only. The results are tables of limited
size and a report for the submitter. The judge does not interpret them, and no verdict depends on
them.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from runners.contract.evaluation import Limits
from runners.contract.files import FILE_MAX
from runners.contract.task import Workload
from runners.harness.deadline import Deadline
from runners.harness.judge.host_candidate import threads_of
from runners.harness.judge.session import EvaluationSession, candidate_files, seed_of
from runners.harness.protocol import channel, values
from runners.harness.protocol.arena import ALIGNMENT, Arena, Layout
from runners.harness.sandbox import diagnostics
from runners.harness.sandbox.make import MADE, End
from runners.harness.sandbox.program import RESULT_FD, Program, own_script, python
from runners.harness.supervision.handle import StartError
from runners.harness.supervision.watched_program import WatchedProgram
from runners.harness.timing.calls import WARM_UPS
from runners.harness.toolchains.ncu import KERNELS_MOST, MORE_SECTIONS, SECTIONS, Details, Ncu
from runners.harness.verdicts import VerdictError
from runners.languages import Recipe

MEMORY_TABLES = "Memory Workload Analysis Tables"
MEMORY_TABLES_MAX = 6 << 10
"""The most bytes of one kernel's memory tables, which list all counters of every cache."""
_KERNEL = re.compile(r"^  \S.*, Context \d+, Stream \d+\b")
"""The first line of one kernel's tables."""
_SECTION = re.compile(r"^    Section: (?P<name>.*\S)$")
_NOISE = re.compile(
    r"^==WARNING== No metrics to show|^    Warning: Data collection happened without"
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One profiled kernel: its name with its launch, and its sections."""

    name: str
    sections: dict[str, list[str]] = field(default_factory=dict)

    def text(self) -> str:
        """Its name and its sections as `ncu` printed them."""
        return "\n".join([self.name, *chain.from_iterable(self.sections.values()), ""])

    def with_tables(self, detailed: "Kernel") -> "Kernel":
        """The kernel with the memory tables of its detailed version."""
        lines = detailed.sections.get(MEMORY_TABLES, [])
        if not lines:
            return self
        advice = [line for line in self.sections.get(MEMORY_TABLES, []) if line not in set(lines)]
        tables = [*diagnostics.truncated("\n".join(lines), MEMORY_TABLES_MAX).splitlines(), *advice]
        return Kernel(self.name, {**self.sections, MEMORY_TABLES: tables})


def kernels_of(printed: str) -> tuple[Kernel, ...]:
    """The kernels of a printed report, in the order of their launches.

    If the profiler's format is unknown, the whole text becomes one kernel without sections.
    """
    kernels: list[Kernel] = []
    section: list[str] = []
    for line in map(str.rstrip, printed.splitlines()):
        if _KERNEL.match(line):
            kernels.append(Kernel(line))
            section = []
        elif kernels and not _NOISE.match(line):
            if heading := _SECTION.match(line):
                section = kernels[-1].sections.setdefault(heading["name"], [])
            section.append(line)
    whole_text = "\n".join(map(str.rstrip, printed.strip().splitlines()))
    return tuple(kernels) or ((Kernel(whole_text),) if whole_text else ())


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of all kernels that one call launched."""

    short: tuple[Kernel, ...]
    detailed: tuple[Kernel, ...] = ()
    """The same kernels with all counters."""

    def text(self, most: int) -> str:
        """The tables in at most `most` bytes: with memory tables, without them, or shortened."""
        pairs = zip(self.short, self.detailed, strict=False)
        full = [kernel.with_tables(detailed) for kernel, detailed in pairs]
        for kernels in (full, self.short):
            text = _joined(kernels)
            if kernels and len(text.encode()) <= most:
                return text
        return diagnostics.truncated(_joined(self.short), most)


def _joined(kernels: Sequence[Kernel]) -> str:
    may_have_more = len(kernels) >= KERNELS_MOST
    head = f"the first {KERNELS_MOST} kernels of the call, and no more:\n" if may_have_more else ""
    return head + "".join(kernel.text() for kernel in kernels)


CALL_S = 60.0
"""Seconds for one call under the profiler, including its build and warm-up."""
READ_S = 20.0
REPORT = "report.ncu-rep"
PRINTED_MAX = 1 << 20
"""The most bytes that the profiler and the submission may print; most of them are discarded."""
SHOWN_MAX = 2000
"""How many characters of the end of that output are shown if there is no report."""
TABLES_MAX = 8 << 20
"""The most bytes that the profiler may print for a report."""
INPUT_MAX = 8 << 30
"""The most bytes of an input; copying it takes twice as much memory for a short time."""
_ADDITIONAL = {"memory": 8 << 30, "disk": 512 << 20, "processes": 256, "open_files": 1024}
"""What the profiler gets in addition to the submission's limits. To replay a kernel, it needs much
memory, in which it saves and restores what the kernel writes."""
_ROOT = Path(__file__).resolve().parents[3]
_ORDER, _INPUT = "order.json", "input.bin"


class NoProfileError(Exception):
    """There is no profile of a call; the message may be shown to the submitter."""


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """The tables of each kernel, and the report from which they were printed."""

    tables: Tables
    report: bytes
    fault: str = ""
    """Why there are no tables."""
    listed: str = ""
    """The details of the report as CSV."""


@dataclass(frozen=True, slots=True)
class KernelProfiler:
    """Profiles the submission of one session."""

    session: EvaluationSession
    ncu: Ncu

    def profile_call(self, workload: Workload, deadline: Deadline) -> KernelProfile:
        """Profile one call on a workload's input; NoProfileError if there is no report."""
        session = self.session
        data = session.code.generate(workload, seed_of(session.nonce, workload, 0))
        expected = session.code.expected(data) if session.launching else None
        with _input_file(data) as (value, content):
            del data
            call = _call(session, workload, value, expected)
            return self._profile(self._program_for(call, content), deadline)

    def count_call(self, workload: Workload, deadline: Deadline) -> str:
        """Return all counters of one call's kernels as CSV; NoProfileError without a report."""
        data = self.session.code.generate(workload, seed_of(self.session.nonce, workload, 0))
        with _input_file(data) as (value, content), _memory_file() as report:
            del data
            call = _call(self.session, workload, value, None)
            order = self._program_for(call, content, (*SECTIONS, *MORE_SECTIONS))
            self._measure(order, report, deadline)
            with self.session.record_duration("ncu tables"):
                return self._output_of(report, self.ncu.counting(REPORT), deadline)

    def profile_program(self, order: Program, deadline: Deadline) -> KernelProfile:
        """Profile the part that a task's own program marks; NoProfileError if there is no report.

        The program's result lines become ordinary output and are not parsed.
        """
        options = self.session.request.profile
        measuring = self.ncu.measuring(MADE, order.command, options=options)
        to_output = ("/usr/bin/env", f"{RESULT_FD}=1", *measuring)
        return self._profile(replace(order, command=to_output), deadline)

    def _program_for(
        self, call: channel.ProfiledCall, content: int, sections: tuple[str, ...] = SECTIONS
    ) -> Program:
        program = python("-P", "-m", "runners.harness.profile.program")
        return Program(
            command=self.ncu.measuring(MADE, program, sections, self.session.request.profile),
            files={_ORDER: call.model_dump_json()},
            executables={_INPUT: content},
            environment={"PYTHONPATH": str(_ROOT)},
            limits=self.session.request.limits,
            gpu=self.session.on_gpu,
            inherited_fds=frozenset(() if call.builds is None else {call.builds}),
        )

    def _profile(self, order: Program, deadline: Deadline) -> KernelProfile:
        """Run a program whose command creates a report, and read the report."""
        with _memory_file() as report:
            self._measure(order, report, deadline)
            content = os.pread(report, os.fstat(report).st_size, 0)
            with self.session.record_duration("ncu tables"):
                return self._read(report, content, deadline)

    def _measure(self, order: Program, report: int, deadline: Deadline) -> None:
        """Run the program; NoProfileError unless it creates the report."""
        script = ("sandbox/make.py", str(report), str(FILE_MAX), REPORT, *order.command)
        order = replace(
            order,
            command=own_script(*script),
            limits=_limits(order.limits),
            inherited_fds=order.inherited_fds | {report},
        )
        printed = bytearray()
        watched = WatchedProgram(order, printed, self.session.record_sandbox)
        with self.session.record_duration("ncu"):
            status = _exit_status(watched, Deadline.after(min(CALL_S, deadline.remaining)))
        if status != End.MADE:
            raise NoProfileError(f"{_reason(status)}{_output_end(printed)}")

    def _read(self, report: int, content: bytes, deadline: Deadline) -> KernelProfile:
        """The profile with its tables or with the reason why they are missing."""
        try:
            short = self._kernels(report, "header", deadline)
            detailed = self._kernels(report, "body", deadline)
            details = self._output_of(report, self.ncu.listing(REPORT), deadline)
            _, quote, rest = details.partition('"')  # messages of the profiler come first
            return KernelProfile(Tables(short, detailed), content, listed=quote + rest)
        except NoProfileError as error:
            return KernelProfile(Tables(()), content, f"its tables cannot be shown: {error}")

    def _kernels(self, report: int, details: Details, deadline: Deadline) -> tuple[Kernel, ...]:
        """The tables of a report; NoProfileError if the profiler does not print them."""
        return kernels_of(self._output_of(report, self.ncu.reading(REPORT, details), deadline))

    def _output_of(self, report: int, command: tuple[str, ...], deadline: Deadline) -> str:
        """The profiler's output for a report; NoProfileError if it fails."""
        printed = bytearray()
        limits = _limits(self.session.request.limits).model_copy(update={"output": TABLES_MAX})
        order = Program(
            command=command, files={}, executables={REPORT: report}, environment={}, limits=limits
        )
        watched = WatchedProgram(order, printed, self.session.record_sandbox)
        status = _exit_status(watched, Deadline.after(min(READ_S, deadline.remaining)))
        if status:
            raise NoProfileError(f"it ended with status {status}{_output_end(printed)}")
        return printed.decode(errors="replace")


def _exit_status(watched: WatchedProgram, deadline: Deadline) -> int:
    """Run a program and return its exit status; NoProfileError if it exceeded a limit."""
    try:
        return watched.run(deadline).status
    except (VerdictError, StartError) as error:
        raise NoProfileError(f"{error}{_output_end(watched.log)}") from error


@contextmanager
def _memory_file() -> Iterator[int]:
    descriptor = os.memfd_create("report", os.MFD_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _input_file(data: object) -> Iterator[tuple[values.Node, int]]:
    """Write an input with its GPU tensors to a memory file; yield description and descriptor."""
    layout = Layout()
    on_host = values.describe(data, lambda tensor: layout.place(tensor, "cpu"))
    size = max(ALIGNMENT, layout.sizes["cpu"])
    if size > INPUT_MAX:
        raise NoProfileError(f"the input has more than {INPUT_MAX >> 30} GiB")
    devices = iter([tensor.device.type for tensor in values.leaves(data)])
    value = values.replaced(on_host, lambda node: node.model_copy(update={"device": next(devices)}))
    with Arena(size) as arena:
        arena.write(on_host, data)
        yield value, arena.fd


def _call(
    session: EvaluationSession, workload: Workload, value: values.Node, expected: values.Node | None
) -> channel.ProfiledCall:
    request, launching = session.request, session.launching
    return channel.ProfiledCall(
        recipe=Recipe.of(request.task, launching.signature if launching else None),
        files=candidate_files(request.task, request.source),
        threads=threads_of(request.limits, gpu=session.on_gpu),
        warm_ups=WARM_UPS,
        value=value,
        outputs=() if expected is None else values.tensors(expected),
        launch=session.launch_of(workload),
        builds=session.builds.fd if session.builds.packed else None,
        gpu=session.on_gpu,
    )


def _limits(limits: Limits) -> Limits:
    raised = {name: getattr(limits, name) + more for name, more in _ADDITIONAL.items()}
    return limits.model_copy(update={**raised, "output": PRINTED_MAX})


def _reason(status: int) -> str:
    match status:
        case End.REFUSED:
            return "it ended with an error"
        case End.NOTHING:
            return (
                "no kernel was launched between the marks of the profiler, or none with the "
                "requested name"
            )
        case End.TOO_LARGE:
            return f"its report has more than {FILE_MAX >> 20} MiB"
        case _:
            return f"it ended with status {status}"


def _output_end(printed: bytearray) -> str:
    """The end of the output, for a message."""
    end = diagnostics.without_paths(printed.decode(errors="replace")).strip()[-SHOWN_MAX:]
    return f"; the end of its output:\n{end}" if end else ""
