"""Untrusted sources that are not judged: the reference, or one that defines its own inputs.

Each runs as a candidate in its own sandbox. The judge sends it requests and reads the bytes of its
outputs, which it does not trust.
"""

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
from runners.harness.judge.session import EvaluationSession, other_session, planned
from runners.harness.protocol import arena, channel, values
from runners.harness.sandbox import charged_memory
from runners.harness.verdicts import OutOfTimeError, VerdictError

MAX_INPUT_BYTES = 2 << 30
"""The most bytes that are reserved for an input on a GPU if the output's size is unknown."""
INPUT_FRACTION = 32
"""At most 1 / `INPUT_FRACTION` of the free memory is reserved for it."""


Data = dict[str, Any]


@dataclass(slots=True)
class _Running:
    """A candidate for one kind of request; on a GPU also the structure of its answers."""

    candidate: HostCandidate
    stack: ExitStack
    answer: values.Node | None


class SourceProcess:
    """One source's session and its candidates, one for each kind of request."""

    def __init__(self, session: EvaluationSession, side: Side) -> None:
        self.session = session
        self.side = side
        self.running: dict[str, _Running] = {}
        self.failures: dict[str, VerdictError] = {}
        """Kinds of requests that failed on public data; to save time they are not tried again."""

    def request(self, kind: str, data: Data, deadline: Deadline, public: Callable[[], Data]) -> Any:  # noqa: ANN401 - as the source gives it
        """Return the judge's copy of the source's answer for `data`; VerdictError if there is none.

        All answers to one kind of request have the same structure. The first call is with `public`
        data. Only the code compiled in that call is stored for later candidates.
        """
        with attribute_to_reference(self.side, deadline):
            if kind in self.failures:
                raise self.failures[kind]
            running = self.running.get(kind)
            if running is None:
                running = self._start(kind, public(), deadline)
            if self.side is Side.REFERENCE:  # what a submission holds now is not the reference's
                running.candidate.handle.unmapped_before = charged_memory.unmapped_memory()
            exchange = running.candidate.call(channel.Operation.RUN, data, running.answer, deadline)
            answer = running.candidate.fetch(exchange.reply, running.answer, deadline)
            running.candidate.handle.verify_frozen(deadline)
            return _copy(answer)

    def _start(self, kind: str, data: Data, deadline: Deadline) -> _Running:
        """Start and build a candidate; on a GPU its output memory has the size of its answers."""
        plan = planned(data)
        timeout = self.session.request.task.test_timeout
        try:
            first_deadline = Deadline.after(min(timeout, deadline.remaining))
            answer = self._answer_structure(plan, data, first_deadline)
        except VerdictError as error:
            self.failures[kind] = error
            raise
        stack = self.session.extra_candidates.enter_context(ExitStack())
        stack.callback(self.running.pop, kind, None)
        candidate = stack.enter_context(fresh_candidate(self.session, plan, answer))
        candidate.build(deadline)
        self.running[kind] = _Running(candidate, stack, answer)
        return self.running[kind]

    def _answer_structure(
        self, plan: arena.Plan, data: Data, deadline: Deadline
    ) -> values.Node | None:
        """Return the structure of an answer on a GPU, from a first call in another candidate."""
        if self.session.on_gpu:
            plan = replace(plan, device_size=max(plan.device_size, input_bytes_limit()))
        with fresh_candidate(self.session, plan, None) as candidate:
            candidate.build(deadline)
            candidate.call(channel.Operation.RUN, data, None, deadline)
            self._keep_builds(candidate, deadline)
            return candidate.discovered

    def _keep_builds(self, candidate: HostCandidate, deadline: Deadline) -> None:
        """Store compiled code for later candidates, unless that was done before."""
        if self.session.builds.packed:
            return
        with suppress(VerdictError):  # without the files every candidate compiles for itself
            candidate.pack(deadline)
            self.session.builds.packed = True
        self.session.builds.seal()


def input_bytes_limit() -> int:
    """Bytes to reserve for an input on a GPU; an output of unknown size gets twice as many."""
    free, _ = torch.cuda.mem_get_info()
    return min(MAX_INPUT_BYTES, int(free) // INPUT_FRACTION)


def _copy(value: Any) -> Any:  # noqa: ANN401 - as it came
    """A copy of all tensors, because on a GPU the next answer overwrites this one."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copy, value))
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return value


@contextmanager
def own_session(
    session: EvaluationSession, contract: Contract, side: Side
) -> Iterator[EvaluationSession]:
    """Create a session whose submission is one side's source, with its own builds.

    The source may change its inputs, because its times are not scored. The reference's steps are
    added up as one, because `attributed` asks how long the submission's took.
    """
    reference = contract.reference
    task, source = session.request.task, session.request.source
    if side is Side.REFERENCE and reference is not None:
        task = _task_of(task, contract, reference.file_name)
        source = reference.source
    task = task.model_copy(update={"mutates_inputs": True})
    with other_session(session, task, source) as own:
        apart: dict[str, float] = {}
        try:
            yield own if side is Side.CUSTOM else replace(own, durations_s=apart)
        finally:
            if apart:
                spent = session.durations_s.get("reference", 0.0) + sum(apart.values())
                session.durations_s["reference"] = spent


def _task_of(task: TaskDefinition, contract: Contract, file_name: str) -> TaskDefinition:
    call = contract.call_of(Side.REFERENCE).bare().model_dump_json(exclude_none=True)
    files = {**task.files, CALL: call}
    return task.model_copy(update={"files": files, "submission_file": file_name})


@contextmanager
def attribute_to_reference(side: Side, end: Deadline | None = None) -> Iterator[None]:
    """Turn a VerdictError of the block into `task_error` if `side` is the reference.

    If the time of the evaluation, which is over at `end`, is over, it is an OutOfTimeError: the
    submission may have left the reference too little.
    """
    try:
        yield
    except VerdictError as error:
        if side is Side.CUSTOM or error.message.startswith(REFERENCE_FAULT):
            raise
        verdict = error.verdict.value.replace("_", " ")
        late = error.verdict is Verdict.TIMED_OUT and end is not None and end.remaining <= 0
        raise (OutOfTimeError if late else VerdictError)(
            Verdict.TASK_ERROR, f"{REFERENCE_FAULT}: {verdict}: {error.message}"
        ) from error
