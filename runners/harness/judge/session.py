"""The state of one evaluation: its seeds, files and records, and the interface of task code."""

import hashlib
import math
import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from runners.contract.evaluation import CaseStatus, EvaluationRequest, Isolation, Progress, Timing
from runners.contract.files import EvaluationFile
from runners.contract.launch import Compiled, LaunchNumbers
from runners.contract.task import TaskDefinition, Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.deadline import Deadline
from runners.harness.gpu import buffers
from runners.harness.judge.launches import Launching
from runners.harness.protocol import arena, channel, values
from runners.harness.protocol.builds import Builds
from runners.harness.relay import CheckWatch
from runners.harness.supervision.template import TemplateProcess, pack_files
from runners.harness.verdicts import (
    GradingResult,
    MachineError,
    OutOfTimeError,
    VerdictError,
    as_task_error,
    release_locals,
)

PUBLIC_NONCE = b"public"
"""The key of public seeds, which can be computed without a secret."""
SLOWED_MOST = 500
"""The most samples of an evaluation that may be discarded for the same slowdown reason."""
LITTLE_MEMORY_LEFT = "the kernel left too little of the GPU's memory for the task's code"
SLOWER = 1.5
"""How many times as long as the task's own code takes is too long because of the output.

A check that takes longer than that counts as the submission's time. After the end of the time there
is none left to check the reference's output for long, so this decides who is to blame, too.
"""


@dataclass(slots=True)
class EvaluationSession:
    """The state that all steps of one evaluation share, and what they record."""

    request: EvaluationRequest
    task_code: "TaskCode | None"
    template: TemplateProcess
    files_fd: int
    builds: Builds
    nonce: bytes
    report: Callable[[Progress], None]
    isolation: Isolation
    launching: Launching | None = None
    """How device code is launched; None for a submission with a host part."""
    watch: CheckWatch | None = None
    """Tells the server about each check of an answer."""
    is_rival: bool = False
    on_gpu: bool = False
    transport: str = "shared-memory"
    timing: Timing = Timing.OUTSIDE
    log: bytearray = field(default_factory=bytearray)
    files: list[EvaluationFile] = field(default_factory=list)
    durations_s: dict[str, float] = field(default_factory=dict)
    slowed: Counter[str] = field(default_factory=Counter)
    clocks: dict[str, float] = field(default_factory=dict)
    """The state of the GPU after the last timed round, as in `evaluation.Environment`."""
    compiled: Compiled | None = None
    extra_candidates: ExitStack = field(default_factory=ExitStack)
    """Ends the candidates that exist in addition to the judged ones, such as a reference's. They
    start again when they are needed."""

    @property
    def code(self) -> "TaskCode":
        """The task code; LookupError if the grader loads none."""
        if self.task_code is None:
            raise LookupError("this grader loads none of the task's code")
        return self.task_code

    def launch_of(self, workload: Workload) -> LaunchNumbers | None:
        """The launch of device code for a case; None for a submission with a host part."""
        return None if self.launching is None else self.launching.of(workload)

    def count_slowed(self, reasons: tuple[str, ...]) -> None:
        """Count the reasons that slow the GPU; MachineError beyond `SLOWED_MOST`."""
        self.slowed.update(reasons)
        if max(self.slowed.values()) > SLOWED_MOST:
            raise MachineError(f"the GPU does not run as it should: {', '.join(reasons)}")

    def report_progress(self, stage: Stage, done: int, total: int) -> None:
        """Report one step of progress."""
        self.report(Progress(stage=stage, done=done, total=total))

    @contextmanager
    def record_duration(self, step: str) -> Iterator[None]:
        """Add the seconds that the block takes to the step's total."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._add_duration(step, time.perf_counter() - begin)

    def _add_duration(self, step: str, seconds: float) -> None:
        self.durations_s[step] = self.durations_s.get(step, 0.0) + seconds

    def _duration_s(self, *steps: str) -> float:
        return sum(self.durations_s.get(step, 0.0) for step in steps)

    @contextmanager
    def timing_check(self, data: object) -> Iterator[None]:
        """Record how long the check of a right output takes.

        As far as the output made it slow, it counts as the submission's time.
        """
        usual_s, begin = self.code.usual_check_s(data), time.perf_counter()
        yield
        spent_s = time.perf_counter() - begin
        self.code.record_check(data, spent_s)
        if spent_s > SLOWER * usual_s:
            self._add_duration("slow checks", spent_s - usual_s)

    def checking(self) -> AbstractContextManager[None]:
        """Return a context in which an answer is checked, and which the server ends if it must."""
        return nullcontext() if self.watch is None else self.watch.checking(rival=self.is_rival)

    def attributed(self, error: VerdictError) -> VerdictError:
        """Return the error, or another one if the submission left too little for the task's code.

        It is `timed_out` if the submission used much of an evaluation's time: an answer just before
        a time limit leaves little time for the check. It is `memory_exceeded` if the task's code
        ran out of the GPU's memory while candidates held nearly all of it. A `timed_out` for which
        the task's own code used most of the time says so.
        """
        lacked = self.on_gpu and isinstance(error.__cause__, torch.OutOfMemoryError)
        if lacked and buffers.is_held_by_others():
            return VerdictError(Verdict.MEMORY_EXCEEDED, LITTLE_MEMORY_LEFT)
        slow_s = self._duration_s("slow checks")
        used = self._duration_s("run", "build") + slow_s
        if isinstance(error, OutOfTimeError) and 4 * used > self.request.left_s:
            message = "answers that were late or slow to check left too little time for the task"
            return VerdictError(Verdict.TIMED_OUT, message)
        task_s = self._duration_s("inputs", "check", "reference") - slow_s
        if error.verdict is Verdict.TIMED_OUT and task_s > max(2 * used, self.request.left_s / 4):
            shares = f"the kernel took {used:.1f} s, inputs, reference and checks {task_s:.1f} s"
            return VerdictError(Verdict.TIMED_OUT, f"{error.message} ({shares})")
        return error

    def attribute_lack_of_memory(self, result: GradingResult) -> None:
        """Blame the submission if the task's code has enough memory without any candidate.

        To be called when none exists any more.
        """
        task = self.request.task
        if not self.on_gpu or not isinstance(result.cause, torch.OutOfMemoryError):
            return
        release_locals(result.cause)
        failed = next(
            (each.spec for each in result.cases if each.status is CaseStatus.FAILED), None
        )
        torch.cuda.empty_cache()
        for workload in (*task.tests, *task.benchmarks):
            if workload.spec == failed and self.code.works(workload, public_seed(task, workload)):
                result.replace_error(VerdictError(Verdict.MEMORY_EXCEEDED, LITTLE_MEMORY_LEFT))
                return

    def record_sandbox(self, layers: tuple[str, ...], missing: dict[str, str]) -> None:
        """Record which sandbox layers the submission ran in, and which were missing."""
        self.isolation = self.isolation.with_layers(layers, missing)

    def add_to_log(self, text: bytes) -> None:
        """Add what a candidate printed to the log, up to the output limit."""
        self.log += text[: max(0, self.request.limits.output - len(self.log))]


def planned(data: object) -> arena.Plan:
    """Return the memory layout of an input; VerdictError if its type cannot be transferred."""

    def plan() -> arena.Plan:
        try:
            return arena.lay_out(data)
        except values.UndescribableError as error:
            words = f"the task's input is or contains {error}, which Podium's judge cannot transfer"
            raise VerdictError(Verdict.TASK_ERROR, words) from error

    return as_task_error("generate_input", plan)


def structure_of(step: str, create: Callable[[], object]) -> values.Node:
    """Return the structure of a right output, which a step of the task's code creates.

    VerdictError if the step fails, or if no submission could describe such an output.
    """
    structure = as_task_error(step, lambda: arena.compact_description(create()))
    if not channel.has_room_for(structure):
        raise VerdictError(Verdict.TASK_ERROR, f"the output of {step} has {channel.TOO_LONG}")
    return structure


def candidate_files(task: TaskDefinition, source: str) -> dict[str, str]:
    """Return the files that the candidate may see: the submission and the task's shared files."""
    shared = {name: task.files[name] for name in task.shared_files}
    return {**shared, task.submission_file: source}


@contextmanager
def other_session(
    session: EvaluationSession, task: TaskDefinition, source: str
) -> Iterator[EvaluationSession]:
    """Create a session of the same evaluation for another source, with files and builds of its own.

    All other records are shared with `session`.
    """
    request = session.request.model_copy(update={"task": task, "source": source})
    with ExitStack() as stack:
        builds = Builds(request.limits.disk)
        stack.callback(builds.close)
        files_fd = pack_files(candidate_files(task, source))
        stack.callback(os.close, files_fd)
        yield replace(session, request=request, files_fd=files_fd, builds=builds)


def public_nonce(task: TaskDefinition) -> bytes:
    """Return the key of a task's public seeds, which depends on the task's `seed`."""
    return PUBLIC_NONCE if task.seed is None else PUBLIC_NONCE + str(task.seed).encode()


def public_seed(task: TaskDefinition, workload: Workload) -> int:
    """Return the seed of a test: the one in the workload, otherwise a public hash.

    If the workload and the task both have a `seed`, Cantor's pairing function combines them, as in
    KernelBot.
    """
    own = workload.args.get("seed")
    if not isinstance(own, int):
        return seed_of(public_nonce(task), workload, 0)
    if task.seed is None:
        return own
    both = own + task.seed
    return (own + both * (both + 1) // 2) % (1 << 63)


def seed_of(nonce: bytes, workload: Workload, index: int) -> int:
    """Return the seed of a workload's input with this index: a keyed hash of 31 bits."""
    text = f"{workload.spec}#{index}".encode()
    digest = hashlib.blake2b(text, key=nonce[:64], digest_size=8).digest()
    return int.from_bytes(digest, "big") & 0x7FFFFFFF


class TaskCode(ABC):
    """A task's own code of any format, loaded in the judge; raises only VerdictError.

    A format defines the three abstract methods. The defaults of the others fit code that runs
    inside the judge.
    """

    may_check_in_child = True
    """Whether `mismatch` may run in a child process, which cannot send requests to candidates."""

    @abstractmethod
    def generate(self, workload: Workload, seed: int) -> Any:  # noqa: ANN401 - the task's type
        """Return a fresh input, determined by the seed."""

    @abstractmethod
    def expected(self, data: Any) -> values.Node | None:  # noqa: ANN401 - the task's type
        """Return the structure of a right output; None if the task does not define it."""

    @abstractmethod
    def mismatch(self, data: Any, output: object, expected: values.Node | None) -> str | None:  # noqa: ANN401
        """Return why an output is wrong, or None; may change `data`, the judge's private input."""

    def reference_source(self, request: EvaluationRequest) -> str | None:  # noqa: ARG002
        """Return a submission that is the task's reference; None if there is none."""
        return None

    def opened(self, session: EvaluationSession) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return a context that holds what the code needs while one evaluation is graded."""
        return nullcontext()

    def session_for(self, session: EvaluationSession, workload: Workload) -> EvaluationSession:  # noqa: ARG002
        """Return the session in which a case is timed and profiled."""
        return session

    def deadline(self, seconds: float) -> Deadline:
        """Return the deadline of a step that may take this many seconds."""
        return Deadline.after(seconds)

    def plan(self, workload: Workload, seed: int) -> arena.Plan | None:
        """Return the layout of a case's input, and its output's size; None without an input."""
        data = self.generate(workload, seed)
        return replace(planned(data), output_size=self.output_size(data))

    def output_size(self, data: Any) -> int:  # noqa: ANN401 - the task's type
        """Return the bytes of a right output on a GPU; 0 if it fails, which its case reports."""
        try:
            expected = self.expected(data)
        except OutOfTimeError:
            raise
        except VerdictError:
            return 0
        return 0 if expected is None else buffers.device_bytes(expected)

    def first_plan(self, largest: arena.Plan) -> arena.Plan:
        """Return the memory layout for the first candidate, given that of the largest input."""
        return largest

    def usual_check_s(self, data: object) -> float:  # noqa: ARG002
        """Return how many seconds a check of this input's output should take; inf if unknown."""
        return math.inf

    def record_check(self, data: object, seconds: float) -> None:  # noqa: B027 - not all need it
        """Record how long the check of a right output for this input took.

        The least time counts, because a submission can make the check of its output slower.
        """

    def works(self, workload: Workload, seed: int) -> bool:  # noqa: ARG002
        """Whether all of the task's code works for this case now; False if that is not known."""
        return False

    def attributing(
        self,
        workload: Workload,  # noqa: ARG002
        end: Deadline,  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """Return a context that turns a VerdictError of the task's own code into `task_error`.

        After `end` it is an OutOfTimeError, because a submission may have used its time.
        """
        return nullcontext()

    def after(self, session: EvaluationSession, grade: GradingResult) -> None:  # noqa: B027
        """Finish after all cases are graded, for example add measurements to the log."""
