"""One evaluation's means: the request, the task's code, the template, and seats for candidates."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from runners.contract.evaluation import EvaluationRequest, Isolation, Progress
from runners.contract.verdict import Stage, Verdict
from runners.harness.arena import Arena, lay_out
from runners.harness.channel import Enlistment, Operation, Order, Reply, encode
from runners.harness.correctness import TaskCode
from runners.harness.deadline import Deadline
from runners.harness.handle import Exchange, Handle
from runners.harness.process import UnreadableError
from runners.harness.ruling import Ruling
from runners.harness.template import Template
from runners.harness.values import TensorNode, restore

THREADS = len(os.sched_getaffinity(0))
"""How many threads a kernel on the CPU may use: every core of the machine."""


@dataclass(slots=True)
class Session:
    """What every step of one evaluation shares."""

    request: EvaluationRequest
    code: TaskCode
    template: Template
    files_fd: int
    nonce: bytes
    report: Callable[[Progress], None]
    log: bytearray = field(default_factory=bytearray)
    isolation: Isolation | None = None
    durations_s: dict[str, float] = field(default_factory=dict)

    def tell(self, stage: Stage, done: int, total: int) -> None:
        """Report one step of progress."""
        self.report(Progress(stage=stage, done=done, total=total))

    @contextmanager
    def lasting(self, step: str) -> Iterator[None]:
        """Add the seconds of a block to the step's account."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - begin
            self.durations_s[step] = self.durations_s.get(step, 0.0) + spent

    @contextmanager
    def seat(self) -> Iterator["Seat"]:
        """A fresh candidate with an arena of its own, killed at the end; its log is kept."""
        arena_size = self.request.limits.memory
        enlisted = Enlistment(
            limits=self.request.limits,
            threads=THREADS,
            language="python",
            submission_file=self.request.task.submission_file,
            device="cpu",
            arena_size=arena_size,
        )
        with Arena(arena_size) as arena:
            with self.lasting("start"):
                handle = Handle(self.template, enlisted, [self.files_fd, arena.fd])
            try:
                self._note(handle)
                yield Seat(self, handle, arena)
            finally:
                with self.lasting("kill"):
                    handle.close()
                room = self.request.limits.output - len(self.log)
                self.log += handle.log[: max(0, room)]

    def _note(self, handle: Handle) -> None:
        welcome = handle.welcome
        if self.isolation is not None and not self.isolation.layers:
            self.isolation = Isolation(
                outer=self.isolation.outer,
                layers=welcome.layers,
                missing={**self.isolation.missing, **welcome.missing},
            )


class Seat:
    """A candidate at work in shared host memory: frozen whenever it is not asked something."""

    def __init__(self, session: Session, handle: Handle, arena: Arena) -> None:
        self.session = session
        self.handle = handle
        self.arena = arena
        handle.process.freeze()

    def build(self, deadline: Deadline) -> None:
        """Import the submission; Ruling when it does not."""
        self._ask(Order(operation=Operation.BUILD), deadline)

    def call(self, operation: Operation, value: object, deadline: Deadline) -> Exchange:
        """Make one input visible, have the kernel called on it, and freeze the candidate."""
        node, size = lay_out(value)
        if size > self.arena.size:
            raise Ruling(Verdict.TASK_ERROR, "an input of the task exceeds the memory limit")
        self.arena.write(node, value)
        return self._ask(Order(operation=operation, value=node), deadline)

    def _ask(self, order: Order, deadline: Deadline) -> Exchange:
        return self.handle.ask(encode(order), deadline, self._settle)

    def _settle(self, _: bytes) -> None:
        self.handle.process.freeze()

    def fetch(self, reply: Reply) -> Any:  # noqa: ANN401 - whatever the kernel gave
        """The judge's own copy of the output, read while the candidate stands still."""
        if reply.output is None:
            raise Ruling(Verdict.DISALLOWED, "the candidate described no output")
        try:
            return restore(reply.output, self._read)
        except (UnreadableError, ValueError, OverflowError) as error:
            raise Ruling(Verdict.WRONG_ANSWER, str(error)) from error

    def _read(self, node: TensorNode) -> Any:  # noqa: ANN401 - a tensor
        if node.device != "cpu":
            raise UnreadableError(f"the output is on device {node.device}, cpu is expected")
        return self.handle.process.read(node, self.session.request.limits.memory)
