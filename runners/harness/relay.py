"""How a server passes on its judge's lines, and answers for a judge whose check does not end.

No signal handler runs while Python is in one long call of a library, such as a sort in a task's
check of an answer. Such a check only ends with its process. So before it checks an answer, the
judge writes the evaluation that the server sends in that case into memory that both share.
"""

import mmap
import os
import select
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from runners.contract.verdict import Stage

LATE_S = 0.5
"""How long a judge may take to handle the signal at the end of its time, in seconds."""
AGAIN_S = 1.5
"""How much longer a check may take after this signal, in seconds, because the judge may then check
the reference's output. The task's own code can ignore the signal."""
POLL_S = 0.5
"""How often the end of a judge's time is read if no line of the judge announces it, in seconds."""
HEALTH, PROGRESS, ANSWER = b'{"h', b'{"p', b'{"e'
"""How a judge's lines begin: an answer is an evaluation or an error."""
_STATE = struct.Struct("=dQQ?")
"""When the judge must have ended a check, how long the two evaluations are, whether it checks."""
_CRASHES = signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT
_SIZE = 8 << 20


class CheckWatch:
    """Memory in which a judge tells its server whether it checks an answer; no candidate has it."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, _SIZE)
        self.evaluations_at: Callable[[Stage, bool], tuple[bytes, bytes]] = lambda *_: (b"", b"")
        """In the judge: returns the evaluations to send if a check in this stage does not end, and
        if it ends the judge. It is of the submission's answer or, if true, of its rival's."""
        self.stage = Stage.TEST
        """In the judge: the stage in which it is."""
        self.end = 0.0
        """In the judge: when the server may end a check, by the monotonic clock."""
        self._written = b"", b""
        self._prepared: tuple[Stage, bool] | None = None
        self._checking = self._was_interrupted = False
        self.late = self.crashed = False
        """In the server: whether it ends the judge because its check does not end, and whether the
        check has crashed the judge."""

    def keep_from_forks(self) -> None:
        """In the judge: let no process that it forks have the memory, such as a candidate."""
        self.memory.madvise(mmap.MADV_DONTFORK)

    def begin(self, left_s: float) -> None:
        """In the judge: set in how many seconds the server may end a check."""
        self.end = time.monotonic() + left_s
        self._set(checking=False)

    @contextmanager
    def checking(self, *, rival: bool = False) -> Iterator[None]:
        """In the judge: tell the server that the block checks an answer, perhaps of the rival."""
        if self._prepared != (self.stage, rival):
            self._prepared = self.stage, rival
            self._written = self.evaluations_at(self.stage, rival)
            both = b"".join(self._written)
            if len(both) > _SIZE - _STATE.size:
                self._written, both = (b"", b""), b""
            self.memory[_STATE.size : _STATE.size + len(both)] = both
        self._set(checking=True)
        try:
            yield
        finally:
            self._set(checking=False)

    def interrupted(self) -> None:
        """In the judge: tell the server that a signal handler runs, so the check will end soon."""
        if not self._was_interrupted:
            self._was_interrupted = True
            self.end += AGAIN_S
            self._set(checking=self._checking)

    def _set(self, *, checking: bool) -> None:
        self._checking = checking
        _STATE.pack_into(self.memory, 0, self.end, *map(len, self._written), checking)

    def is_late(self) -> bool:
        """In the server: whether the judge still checks an answer although its time is over."""
        end, *_, checking = _STATE.unpack_from(self.memory)
        return bool(checking and time.monotonic() > end)

    def ended(self, status: int) -> None:
        """In the server: learn with which exit status the judge has ended, negative for a signal.

        A library of the task's check can crash because of a value of the answer, such as an index.
        """
        *_, checking = _STATE.unpack_from(self.memory)
        self.crashed = bool(checking and not self.late and -status in _CRASHES)

    def evaluation(self) -> bytes:
        """In the server: what to send for the judge; b"" if the submission is not to blame."""
        _, late, crashed, _ = _STATE.unpack_from(self.memory)
        begin, length = (_STATE.size + late, crashed) if self.crashed else (_STATE.size, late)
        return bytes(self.memory[begin : begin + length])

    def wait(self, ended: int, reader: int | None = None) -> bool:
        """In the server: wait for the judge's end or lines; return whether `reader` has any.

        False if the judge has ended or is late. Without a `reader` nothing announces `begin`.
        """
        while True:
            end = _STATE.unpack_from(self.memory)[0]
            left_s = max(POLL_S / 10, end - time.monotonic()) if end else None
            fds = [ended] if reader is None else [reader, ended]
            found = select.select(fds, [], [], POLL_S if reader is None else left_s)[0]
            if found:
                return reader in found
            if self.is_late():
                self.late = True
                return False

    def close(self) -> None:
        """Free the memory."""
        self.memory.close()


def relay(reader: int, ended: int, watch: CheckWatch) -> bool:
    """Pass on a judge's lines up to its answer or its end; return whether it answered.

    Its health is the first line, before any code of a task runs. Then only progress may precede the
    answer, whose line break is left out. Later judges inherit the buffer, so it is cleared.
    """
    buffer = bytearray(64 << 10)
    view, filled, inside = memoryview(buffer), 0, b""
    allowed: tuple[bytes, ...] = (HEALTH,)
    try:
        while watch.wait(ended, reader):
            if not (count := os.readv(reader, [view[filled:]])):
                return False
            filled, begin = filled + count, 0
            while begin < filled and (inside or filled - begin >= len(HEALTH)):
                inside = inside or bytes(view[begin : begin + len(HEALTH)])
                if inside not in allowed:
                    return False
                end = buffer.find(b"\n", begin, filled) + 1 or filled
                whole = view[end - 1] == ord("\n")
                answered = whole and inside == ANSWER
                write(1, view[begin : end - answered])
                if answered:
                    return True
                if whole:
                    inside, allowed = b"", (PROGRESS, ANSWER)
                begin = end
            view[: filled - begin] = bytes(view[begin:filled])
            filled -= begin
    finally:
        buffer[:] = bytes(len(buffer))
    return False


def answer_for(watch: CheckWatch, form: bytes) -> bool:
    """Write the evaluation of a judge that has ended in a check; return whether there is one."""
    evaluation = watch.evaluation() if watch.late or watch.crashed else b""
    if evaluation:
        write(1, memoryview(form % evaluation))
    return bool(evaluation)


def emit(fd: int, line: bytes) -> None:
    """Write a line."""
    write(fd, memoryview(line + b"\n"))


def write(fd: int, data: memoryview) -> None:
    """Write all of the data."""
    while data:
        data = data[os.write(fd, data) :]
