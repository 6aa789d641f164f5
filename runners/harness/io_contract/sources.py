"""Untrusted sources that are not judged: the reference, or one that defines its own inputs.

Each runs as a candidate in its own sandbox. The judge sends it requests and reads the bytes of its
outputs, which it does not trust.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import torch

from runners.contract.io_contract import CALL, REFERENCE_FAULT, Contract, Side
from runners.contract.task import TaskDefinition
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.judge.host_candidate import HostCandidate
from runners.harness.judge.pool import fresh_candidate
from runners.harness.judge.session import EvaluationSession, candidate_files, planned
from runners.harness.protocol import arena, channel, values
from runners.harness.protocol.builds import Builds
from runners.harness.supervision.template import pack_files
from runners.harness.verdicts import VerdictError

ROOM_MOST = 2 << 30
"""The most bytes on a GPU that are assumed for an input when the output's size is unknown."""
ROOM_PART = 32
"""The same limit as a part of the free memory: 1 / `ROOM_PART`."""


Data = dict[str, Any]


@dataclass(slots=True)
class _Running:
    """A candidate that answers one kind of question, and the structure of its answers on a GPU."""

    seat: HostCandidate
    stack: ExitStack
    answer: values.Node | None


class SourceProcess:
    """One source's session and its candidates, one for each kind of question."""

    def __init__(self, session: EvaluationSession, side: Side) -> None:
        self.session = session
        self.side = side
        self.running: dict[str, _Running] = {}
        self.fallen: dict[str, VerdictError] = {}
        """Questions that failed on public data; they are not tried again, to save time."""

    def ask(self, question: str, data: Data, deadline: Deadline, public: Callable[[], Data]) -> Any:  # noqa: ANN401 - as the source gives it
        """Return the judge's copy of the source's answer for `data`; VerdictError if there is none.

        All answers to one kind of question have the same structure. The first call is on `public`
        data, and only its compiled code is stored for later candidates.
        """
        with attribute_to_reference(self.side):
            if question in self.fallen:
                raise self.fallen[question]
            found = self.running.get(question)
            if found is None:
                found = self._start(question, public(), deadline)
            exchange = found.seat.call(channel.Operation.RUN, data, found.answer, deadline)
            answer = found.seat.fetch(exchange.reply, found.answer, deadline)
            found.seat.handle.verify_frozen(deadline)
            return _copy(answer)

    def _start(self, question: str, data: Data, deadline: Deadline) -> _Running:
        """Start and build a candidate; on a GPU its rooms have the size of its answers."""
        room = planned(data)
        checking = self.session.request.task.test_timeout
        try:
            soon = Deadline.after(min(checking, deadline.remaining))
            answer = self._rehearsed(room, data, soon)
        except VerdictError as ruling:
            self.fallen[question] = ruling
            raise
        stack = self.session.extra_candidates.enter_context(ExitStack())
        stack.callback(self.running.pop, question, None)
        seat = stack.enter_context(fresh_candidate(self.session, room, answer))
        seat.build(deadline)
        self.running[question] = _Running(seat, stack, answer)
        return self.running[question]

    def _rehearsed(self, room: arena.Plan, data: Data, deadline: Deadline) -> values.Node | None:
        """Return the structure of an answer on a GPU, from one call in a separate candidate."""
        if self.session.on_gpu:
            room = replace(room, device_size=max(room.device_size, input_bytes_limit()))
        with fresh_candidate(self.session, room, None) as seat:
            seat.build(deadline)
            seat.call(channel.Operation.RUN, data, None, deadline)
            self._keep_builds(seat, deadline)
            return seat.discovered

    def _keep_builds(self, seat: HostCandidate, deadline: Deadline) -> None:
        """Store compiled code for later candidates, unless that was done before."""
        if self.session.builds.packed:
            return
        with suppress(VerdictError):  # without the files every candidate compiles for itself
            seat.pack(deadline)
            self.session.builds.packed = True
        self.session.builds.seal()


def input_bytes_limit() -> int:
    """Bytes to reserve for an input on a GPU; an output of unknown size gets twice as many."""
    free, _ = torch.cuda.mem_get_info()
    return min(ROOM_MOST, int(free) // ROOM_PART)


def _copy(value: Any) -> Any:  # noqa: ANN401 - as it came
    """A copy of all tensors, because on a GPU the next answer overwrites this one."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copy, value))
    if isinstance(value, dict):
        return {key: _copy(each) for key, each in value.items()}
    return value


@contextmanager
def own_session(
    session: EvaluationSession, contract: Contract, side: Side
) -> Iterator[EvaluationSession]:
    """Create a session in which one side's source is the submission, with its own builds.

    The source may change its inputs, because its times are not scored.
    """
    reference = contract.reference
    task, source = session.request.task, session.request.source
    if side is Side.REFERENCE and reference is not None:
        task = _task_of(task, contract, reference.file_name)
        source = reference.source
    task = task.model_copy(update={"mutates_inputs": True})
    request = session.request.model_copy(update={"task": task, "source": source})
    with ExitStack() as stack:
        builds = Builds(request.limits.disk)
        stack.callback(builds.close)
        yield replace(
            session, request=request, files_fd=_packed(request.task, source, stack), builds=builds
        )


def _task_of(task: TaskDefinition, contract: Contract, file_name: str) -> TaskDefinition:
    call = contract.call_of(Side.REFERENCE).bare().model_dump_json(exclude_none=True)
    files = {**task.files, CALL: call}
    return task.model_copy(update={"files": files, "submission_file": file_name})


def _packed(task: TaskDefinition, source: str, stack: ExitStack) -> int:
    files = pack_files(candidate_files(task, source))
    stack.callback(os.close, files)
    return files


@contextmanager
def attribute_to_reference(side: Side) -> Iterator[None]:
    """Turn a VerdictError of the block into `task_error` if `side` is the reference."""
    try:
        yield
    except VerdictError as ruling:
        if side is Side.CUSTOM or ruling.message.startswith(REFERENCE_FAULT):
            raise
        words = ruling.verdict.value.replace("_", " ")
        raise VerdictError(
            Verdict.TASK_ERROR, f"{REFERENCE_FAULT}: {words}: {ruling.message}"
        ) from ruling
