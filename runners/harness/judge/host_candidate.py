"""The candidate driver for the CPU: sends requests, copies outputs and verifies each call."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch

from runners.contract.evaluation import Limits
from runners.contract.launch import LaunchNumbers
from runners.contract.verdict import Stage, Verdict
from runners.harness.deadline import Deadline
from runners.harness.gpu.memory import broken_by
from runners.harness.judge.checks import (
    ACROSS_INPUTS,
    changes_in,
    difference,
    may_take_long,
    ordered_like,
    placed,
    refuse_changed,
    run_in_child,
    same,
)
from runners.harness.judge.cpu_caches import flush_caches
from runners.harness.judge.session import EvaluationSession, planned
from runners.harness.protocol import channel, scalars, values
from runners.harness.protocol.arena import Arena, Plan, places_of, repeats_memory, view
from runners.harness.sandbox.syscalls import memory_limited
from runners.harness.supervision.handle import CandidateHandle
from runners.harness.supervision.process import ProcessGoneError, UnreadableError
from runners.harness.verdicts import (
    OutOfTimeError,
    RivalBrokeContextError,
    VerdictError,
    error_of_exit,
)

CORES = len(os.sched_getaffinity(0))
"""How many threads can run at once."""


def threads_of(limits: Limits, *, gpu: bool) -> int:
    """Return how many threads torch should use: one per core, as far as the limit allows.

    The limit on processes also counts threads, and the submission and the CUDA driver start more.
    """
    return min(CORES, limits.processes // (4 if gpu else 2))


ECHO = channel.encode(channel.CandidateRequest(operation=channel.Operation.ECHO))
CHECK_S = 3.0
"""Seconds after the deadline in which the check of a large output must end."""
READ_OUT_OF_TIME = "the time limit passed while the output was read"
MAPPED_AGAIN = "the kernel mapped the memory of its input at another address"
REPEATED = "the output has the same memory at two addresses"
TOO_LARGE = "an input of the task exceeds the memory limit"
TOO_LONG = f"an input of the task has {channel.TOO_LONG}"


class HostCandidate:
    """The driver of one candidate with its own arena; the candidate is frozen between requests."""

    structure: values.Node | None = None
    """On the CPU: an input's structure that requests may tell."""
    withholds_all = False
    """On the CPU: whether requests tell no structure, because that of an input was another one."""
    expected: values.Node | None = None
    """On the CPU: whose scalars the calibration kernel describes."""
    trusted = False
    """Whether it builds no submission, such as the task's reference."""
    cold = True
    """On the CPU: whether calls find nothing in the caches; untimed calls need not."""

    def __init__(self, session: EvaluationSession, handle: CandidateHandle, arena: Arena) -> None:
        with session.record_duration("start"):
            session.record_sandbox(handle.ready.layers, handle.ready.missing)
        self.session = session
        self.handle = handle
        self.arena = arena
        self.discovered: values.Node | None = None
        """On a GPU: the output's structure, if it is from a call and not from a reference."""
        self.ahead = False
        """On a GPU: whether calls are queued before their input is there."""
        self.told, self.withholds = True, False
        """On a GPU: whether requests tell the rooms, and whether scalars differ."""
        self.remote = False
        """On a GPU: whether inputs and outputs go through pinned host memory."""
        handle.watched = False  # until it builds a submission
        handle.process.freeze()
        # No submitted code has run yet.
        self.base = min(places_of(handle.process.mappings(), arena.fd))

    def build(self, deadline: Deadline) -> None:
        """Make the candidate build the submission; VerdictError if that fails."""
        self.handle.watched = not self.trusted
        try:
            order = channel.CandidateRequest(
                operation=channel.Operation.BUILD, built=self.session.builds.packed
            )
            built = self.handle.request(channel.encode(order), deadline)
        except VerdictError as error:
            raise VerdictError(error.verdict, error.message, Stage.BUILD) from error
        if self.session.launching is not None:  # only device code reports it
            self.session.compiled = self.session.compiled or built.reply.compiled

    def pack(self, deadline: Deadline) -> None:
        """Make the candidate store compiled code for later candidates."""
        self.handle.request(
            channel.encode(channel.CandidateRequest(operation=channel.Operation.PACK)), deadline
        )

    def call(
        self,
        operation: channel.Operation,
        value: object,
        expected: values.Node | None,
        deadline: Deadline,
        *,
        launch: LaunchNumbers | None = None,  # noqa: ARG002 - used on a GPU
        waiting: bool = False,  # noqa: ARG002 - used on a GPU
    ) -> channel.Exchange:
        """Make one input visible, let the candidate call its kernel on it, and freeze it.

        On a GPU `expected` defines the rooms of the output; on the CPU the output is fetched later
        and only calibration needs it.
        `launch` is for device code. On a GPU a `waiting` calibration kernel is not queued ahead.
        """
        plan = self._plan(value)
        tensors = 1  # the time of a reply depends on its length, so calibration returns as many
        if operation is channel.Operation.TOUCH and expected is not None:
            tensors = min(max(1, len(values.tensors(expected))), channel.TOUCHED_MOST)
            self._expect(expected, deadline)
        order = channel.CandidateRequest(operation=operation, value=plan.node, tensors=tensors)
        usual = self.structure is None or scalars.without(plan.node) == self.structure
        self.withholds_all = self.withholds_all or not usual
        frame, withheld = self._encoded(order, (), whole=self.withholds_all)

        def write() -> bytes:
            if self.cold:
                flush_caches()
            self.arena.write(plan.node, value)
            return withheld or channel.GO_FRAME

        return self.handle.call(frame, deadline, write)

    def _expect(self, expected: values.Node, deadline: Deadline) -> None:
        """Let the calibration kernel describe the scalars of such an output, if it has any."""
        if expected is not self.expected:
            self.expected = expected
            if values.has_host_part(blank := scalars.placeholders(expected)):
                order = channel.CandidateRequest(operation=channel.Operation.EXPECT, value=blank)
                self.handle.request(self._encoded(order, None)[0], deadline)

    def echo(self, deadline: Deadline) -> channel.Exchange:
        """Let the candidate answer without an input and without a kernel."""

        def write() -> bytes:
            flush_caches()
            return channel.GO_FRAME

        return self.handle.call(ECHO, deadline, write)

    def slowed_by(self) -> tuple[str, ...]:
        """Return the reasons that slow the GPU now and make times meaningless; () if none does."""
        return ()

    def clocks(self) -> dict[str, float]:
        """Return the state of the GPU, as in `evaluation.Environment`; empty without a GPU."""
        return {}

    def _plan(self, value: object) -> Plan:
        if (plan := planned(value)).host_size > self.arena.size:
            raise VerdictError(Verdict.TASK_ERROR, TOO_LARGE)
        return plan

    @staticmethod
    def _encoded(
        order: channel.CandidateRequest,
        known: Sequence[object] | None,
        *,
        whole: bool = False,
    ) -> tuple[bytes, bytes]:
        """Return the frame of the request, and that of what it withholds (`scalars.withheld`)."""
        try:
            order, withheld = scalars.withheld(order, known, whole=whole)
            return channel.encode(order), withheld
        except ValueError as error:
            raise VerdictError(Verdict.TASK_ERROR, TOO_LONG) from error

    def fetch(
        self, reply: channel.CandidateReply, expected: values.Node | None, deadline: Deadline
    ) -> Any:  # noqa: ANN401
        """Return the judge's copy of the output, read while the candidate is frozen.

        VerdictError, before anything is read, if its structure differs from `expected`.
        """
        if reply.output is None:
            raise VerdictError(Verdict.DISALLOWED, "the candidate described no output")
        wrong = difference(expected, reply.output) if expected is not None else None
        if wrong:
            raise VerdictError(Verdict.WRONG_ANSWER, wrong)
        output = reply.output if expected is None else ordered_like(expected, reply.output)
        with readable():
            return values.restore(output, self._reader(deadline))

    def _reader(self, deadline: Deadline) -> values.Fetch:
        """Return a function that copies tensors out of the candidate, up to its memory limit."""
        bytes_left = self.session.request.limits.memory

        def in_time() -> None:
            if deadline.remaining < 0:
                raise VerdictError(Verdict.TIMED_OUT, READ_OUT_OF_TIME)

        def read(node: values.TensorNode) -> torch.Tensor:
            nonlocal bytes_left
            if node.device != "cpu":
                raise UnreadableError(f"the output is on device {node.device}, cpu is expected")
            found = self.handle.process.read(node, bytes_left, in_time)
            bytes_left -= node.copy_bytes
            return found

        return read

    def overhead(self, exchange: channel.Exchange) -> float:
        """Return the ns of a calibration window beyond its kernel's own time and its host part."""
        return exchange.window_ns - exchange.host_part_ns - exchange.reply.claimed_ns

    def refuse_overruns(self) -> None:
        """Refuse device code that wrote outside its output; does nothing for other kernels."""

    def refuse_misplaced_output(self, data: object, reply: channel.CandidateReply) -> None:
        """Refuse an output of the input's pages in another order, of two inputs, or of pages twice.

        Such a kernel moves less than it returns. Only tensors in host memory are considered.
        """
        if reply.output is None:
            return
        inputs = [*filter(values.on_host, values.tensors(planned(data).node))]
        outputs = [*filter(values.on_host, values.tensors(reply.output))]
        if not outputs and not inputs:
            return
        with readable():
            mappings = self.handle.process.mappings()
        if inputs and places_of(mappings, self.arena.fd) - {self.base}:
            raise VerdictError(Verdict.DISALLOWED, MAPPED_AGAIN)
        spans = [(node.address, node.address + node.reach) for node in outputs]
        if repeats_memory(mappings, spans):
            raise VerdictError(Verdict.DISALLOWED, REPEATED)
        placed = [(node.offset or 0, node.reach) for node in inputs]
        for node in outputs if inputs else ():
            begin, end = node.address - self.base, node.address - self.base + node.reach
            in_one = any(at <= begin and end <= at + reach for at, reach in placed)
            if begin < self.arena.size and end > 0 and not in_one:
                raise VerdictError(Verdict.DISALLOWED, ACROSS_INPUTS)

    def refuse_changes(self, data: object, reply: channel.CandidateReply) -> None:
        """Refuse a kernel that wrote into an input, except into parts that it returned."""
        if reply.output is not None:
            changes = changes_in(self.arena, data)
            hosted = filter(values.on_host, values.tensors(reply.output))
            refuse_changed(changes, placed(filter(self._is_in_arena, hosted), self.base))

    def _is_in_arena(self, node: values.TensorNode) -> bool:
        """Whether a tensor is in the arena, not in other memory that is mapped at that address."""
        offset = node.address - self.base
        if not 0 <= offset <= self.arena.size - node.reach:
            return False
        # As bytes, because torch reads some types only at aligned addresses.
        flat = {"dtype": "uint8", "shape": (node.reach,), "stride": (1,), "offset": offset}
        place = node.model_copy(update=flat)
        with readable():
            told = self.handle.process.read(place, self.session.request.limits.memory)
            return same(view(self.arena.buffer, place), told)


@contextmanager
def readable() -> Iterator[None]:
    """Turn the errors of an unreadable output in the block into the verdict `wrong_answer`.

    If the process ended meanwhile, the verdict is that of its exit.
    """
    try:
        yield
    except ProcessGoneError as gone:
        raise error_of_exit(gone.status) from gone
    except (UnreadableError, values.UndescribableError, ValueError, OverflowError) as error:
        raise VerdictError(Verdict.WRONG_ANSWER, str(error)) from error


def verify(
    candidate: HostCandidate,
    data: object,
    reply: channel.CandidateReply,
    expected: values.Node | None,
    *,
    deadline: Deadline,
) -> None:
    """Refuse a wrong output, or a changed input if the task does not allow that.

    The comparison comes last, because it may change `data`. By then everything has been read from
    the frozen candidate. On the CPU the comparison may use as much memory as the candidate.
    Otherwise an output of an unexpected shape could make it use all of the machine's. On a GPU
    there is no such limit, because CUDA reserves more than that.

    No signal ends a long call of a library, such as one that copies an output with gaps, so the
    server ends what takes too long. A child process checks an output whose check may take long, on
    the CPU and if it can; it ends sooner.
    """
    session = candidate.session
    limited = nullcontext() if session.on_gpu else memory_limited(session.request.limits.memory)
    with session.record_duration("check"), session.checking():
        try:
            output = candidate.fetch(reply, expected, deadline)
            candidate.refuse_overruns()
            candidate.refuse_misplaced_output(data, reply)
            if not session.request.task.mutates_inputs:
                candidate.refuse_changes(data, reply)
            candidate.handle.verify_frozen(deadline)
        except OutOfTimeError as error:
            raise VerdictError(Verdict.TIMED_OUT, READ_OUT_OF_TIME) from error
        check = partial(session.code.mismatch, data, output, expected)
        with limited, session.timing_check(data):
            if _may_check_apart(session) and may_take_long(output, data, expected):
                wrong = run_in_child(check, max(0.0, deadline.remaining) + CHECK_S)
            else:
                wrong = check()
            if wrong:
                raise _error_of(session, wrong)


def _error_of(session: EvaluationSession, wrong: str) -> Exception:
    """Return the error for a wrong output; the rival's may have broken the judge's CUDA context."""
    error = VerdictError(Verdict.WRONG_ANSWER, wrong)
    broken = session.is_rival and session.on_gpu and broken_by()
    return RivalBrokeContextError(error) if broken else error


def _may_check_apart(session: EvaluationSession) -> bool:
    """Whether a forked child can check an answer: it has no CUDA and none of the task's threads."""
    alone = threading.active_count() == 1
    return not session.on_gpu and session.code.may_check_in_child and alone
