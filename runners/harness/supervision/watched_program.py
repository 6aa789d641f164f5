"""Runs one program in its own sandbox and watches its pipes, its time and its exit."""

import json
import os
import select
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.sandbox import process_limits, program
from runners.harness.sandbox.charged_memory import hides_more, keeps_unmapped, unmapped_memory
from runners.harness.sandbox.program import Program, ProgramPipes
from runners.harness.supervision.handle import StartError
from runners.harness.supervision.process import CandidateProcess, OutputPipe, ProcessGoneError
from runners.harness.verdicts import VerdictError
from runners.process_tree import descendants

RESULT_MAX = 1 << 20
"""The most bytes that an evaluation may write to its result pipe."""
_STATUS_MAX = 64 << 10
"""The most bytes that a sandbox may write to its status pipe."""
_WATCH_MS = 100
"""Milliseconds between two checks of a program's time and memory."""
_AFTER_S = 2.0
"""Seconds for the pipes of a killed program to reach their end; no writer is left then."""

RecordSandbox = Callable[[tuple[str, ...], dict[str, str]], None]
"""Receives the active layers of a sandbox, and each missing one with the reason."""
Start = Callable[[Program, ProgramPipes], None]
"""Starts the program's process with these pipes."""


@dataclass(frozen=True, slots=True)
class ProgramExit:
    """The end of a program that was not killed: its exit status and what its result pipe has."""

    status: int
    result: bytes


class WatchedProgram:
    """One program in its sandbox, from its start until all its processes have ended."""

    def __init__(
        self,
        order: Program,
        log: bytearray,
        record_sandbox: RecordSandbox,
        start: Start = program.start,
    ) -> None:
        """`log` receives what the program prints, `record_sandbox` its active and missing layers.

        `start` creates the program's process.
        """
        self.order = order
        self.log = log
        self.record_sandbox = record_sandbox
        self.start = start
        self.process: CandidateProcess | None = None
        self.has_layers = False
        self.result = bytearray()
        self.next_check = 0.0
        self.inherited = process_limits.memory_of_process(os.getpid())
        """Memory that the program shares with the judge from its fork until its `exec`."""
        self.shared_before = process_limits.shared_memory()
        self.unmapped_before = unmapped_memory()

    def run(self, deadline: Deadline) -> ProgramExit:
        """Run it to its end; VerdictError if it exceeds a limit, StartError if it cannot start."""
        spared = (*descendants(os.getpid()),)
        with (
            closing(OutputPipe(RESULT_MAX, _result_too_long)) as result,
            closing(OutputPipe(self.order.limits.output)) as printed,
            closing(OutputPipe(_STATUS_MAX, _status_too_long)) as status,
        ):
            pipes = (result, printed, status)
            try:
                self._start(ProgramPipes(result.writer, printed.writer, status.writer))
                for pipe in pipes:
                    pipe.close_writer()
                code = self._watch(pipes, deadline)
            finally:
                self._end(spared)
                self.log += printed.text
                self.result = result.text
            before = len(printed.text)
            _drain_to_the_end(pipes)
            self.log += printed.text[before:]
            self._read_status(status)
            if not self.has_layers:
                raise StartError(f"the evaluation did not start: {self.log.decode()[-2000:]}")
            return ProgramExit(code, bytes(self.result))

    def _start(self, pipes: ProgramPipes) -> None:
        try:
            self.start(self.order, pipes)
        except OSError as error:
            raise StartError(f"the evaluation did not start: {error}") from error

    def _watch(self, pipes: tuple[OutputPipe, ...], deadline: Deadline) -> int:
        """Read the pipes until the process ends; return its exit status."""
        poll = select.poll()
        for pipe in pipes:
            poll.register(pipe.reader, select.POLLIN)
        try:
            while True:
                poll.poll(_WATCH_MS)
                for pipe in pipes:
                    pipe.drain()
                    if pipe.ended:
                        _unregister(poll, pipe)
                self._check_process(poll, pipes[-1])
                self._enforce(deadline, begun=pipes[-1].ended)  # `exec` closes the status pipe
        except ProcessGoneError as gone:
            return gone.status

    def _check_process(self, poll: "select.poll", status: OutputPipe) -> None:
        """Look up the process once its id is known; ProcessGoneError if it has ended."""
        known = self.process
        self._read_status(status)
        if self.process is None:
            return
        if known is None:
            poll.register(self.process.pidfd, select.POLLIN)
        self.process.check()

    def _read_status(self, status: OutputPipe) -> None:
        """Process the lines that the status pipe has delivered so far."""
        *lines, _ = bytes(status.text).split(b"\n")
        for line in map(json.loads, lines):
            if "pid" in line and self.process is None:
                self.process = CandidateProcess(line["pid"])
            if "layers" in line and not self.has_layers:
                self.has_layers = True
                self.record_sandbox(tuple(line["layers"]), line["missing"])
        if status.ended and self.process is None:
            raise StartError("no sandbox could be created")

    def _enforce(self, deadline: Deadline, *, begun: bool) -> None:
        if deadline.remaining < 0:
            raise VerdictError(Verdict.TIMED_OUT, "the time limit passed")
        now = time.monotonic()
        if now < self.next_check:
            return
        self.next_check = now + _WATCH_MS / 1000
        limit, files = self.order.limits.memory, self.order.limits.disk
        inherited = 0 if begun else self.inherited
        if self.process is None:
            return
        pid, gpu = self.process.pid, self.order.gpu
        more = process_limits.holds_more(pid, limit + inherited, deadline.remaining)
        kill = self.process.kill
        more = more or keeps_unmapped(pid, self.unmapped_before, limit, gpu=gpu, kill=kill)
        if more or hides_more(pid, self.shared_before, limit + files, gpu=gpu, kill=kill):
            raise VerdictError(
                Verdict.MEMORY_EXCEEDED, f"more than {limit >> 20} MiB of memory were used"
            )

    def _end(self, spared: tuple[int, ...]) -> None:
        """Kill all processes of the program, also those whose parent has exited."""
        if self.process is not None:
            self.process.kill()
        if not process_limits.kill_beneath(os.getpid(), spared):
            raise TimeoutError("a process of the evaluation does not end")


def _unregister(poll: "select.poll", pipe: OutputPipe) -> None:
    try:
        poll.unregister(pipe.reader)
    except KeyError:
        return


def _drain_to_the_end(pipes: tuple[OutputPipe, ...]) -> None:
    """Read what killed processes left in the pipes; VerdictError if a pipe does not end."""
    deadline = Deadline.after(_AFTER_S)
    for pipe in pipes:
        pipe.drain()
        while not pipe.ended:
            if deadline.remaining < 0:
                raise VerdictError(Verdict.DISALLOWED, "a process still holds the program's pipe")
            select.select([pipe.reader], [], [], max(0.0, deadline.remaining))
            pipe.drain()


def _result_too_long() -> VerdictError:
    message = f"more than {RESULT_MAX >> 10} KiB were written to the evaluation's result pipe"
    return VerdictError(Verdict.DISALLOWED, message)


def _status_too_long() -> StartError:
    return StartError("its sandbox reported too much")
