"""Tasks of format `io_contract` in the judge: arguments, and comparison with the reference.

The judge creates the arguments itself. The reference, and a source that defines its own inputs, run
in separate candidates.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from typing_extensions import override

from runners.contract.io_contract import (
    CONTRACT,
    DRAWN,
    GIVEN_SEED,
    REFERENCE_FAULT,
    Argument,
    Contract,
    Role,
    Side,
    TensorArgument,
    side_of,
)
from runners.contract.task import Workload
from runners.contract.verdict import Verdict
from runners.harness.build.kernel_calls import NOTHING
from runners.harness.build.python_kernels import MODEL_SEED
from runners.harness.deadline import Deadline
from runners.harness.io_contract import sources
from runners.harness.io_contract.arguments import materialised, size_of
from runners.harness.judge.session import EvaluationSession, TaskCode
from runners.harness.profile.profiler import collect_counters
from runners.harness.protocol import arena, values
from runners.harness.verdicts import GradingResult, VerdictError, as_task_error

_NARROW_BYTES = 2
"""Floats of at most this many bytes are compared as float32."""


def mismatch(
    right: Sequence[torch.Tensor], given: Sequence[torch.Tensor], atol: float, rtol: float
) -> str | None:
    """Return how outputs differ from the reference's; None if they do not. NaN equals nothing."""
    if len(right) != len(given):
        return f"Output count mismatch: ref={len(right)}, custom={len(given)}"
    for number, (want, got) in enumerate(zip(right, given, strict=True)):
        place = f"output {number}: " if len(right) > 1 else ""
        if want.shape != got.shape:
            return f"{place}Shape mismatch: ref={list(want.shape)}, custom={list(got.shape)}"
        if want.dtype != got.dtype:
            return f"{place}Dtype mismatch: ref={_name(want)}, custom={_name(got)}"
        wrong = _values(want, got, atol, rtol)
        if wrong:
            return place + wrong
    return None


def undefined(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether an output contains NaN."""
    floats = (each for each in outputs if each.is_floating_point() or each.is_complex())
    return any(bool(torch.isnan(_wide(each)).any()) for each in floats)


def _values(right: torch.Tensor, given: torch.Tensor, atol: float, rtol: float) -> str | None:
    if right.dtype == torch.bool:
        off = right != given
    else:
        right, given = _wide(right), _wide(given)
        off = ~torch.isclose(given, right, rtol=rtol, atol=atol)
    count = int(off.sum())
    if not count:
        return None
    exact = torch.complex128 if right.is_complex() else torch.float64
    apart = (right.to(exact) - given.to(exact)).abs()
    first = [int(each) for each in off.nonzero()[0]]
    return (
        f"{count} of {off.numel()} elements differ, the first at {first}. "
        f"Max difference: {apart.max().item():g}. Avg difference: {apart.mean().item():g}. "
        f"Tolerance: atol={atol:g}, rtol={rtol:g}."
    )


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    narrow = tensor.is_floating_point() and tensor.dtype.itemsize <= _NARROW_BYTES
    return tensor.float() if narrow else tensor


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


GPU_PART = 24
"""All tensors of a call may take 1 / `GPU_PART` of a GPU's memory. The judge and several candidates
have copies, and some candidates need memory for an output of unknown size and for allocations."""
SHOWN = 16
"""The most inputs that the log lists."""
REMEMBERED = 2
"""The number of inputs whose seeds are stored; only the latest input is looked up."""


class ContractTask(TaskCode):
    """Creates both kernels' arguments and compares the outputs with the reference's.

    Its own candidates exist only inside `opened`.
    """

    def __init__(self, contract: Contract, *, on_gpu: bool) -> None:
        self.contract = contract
        self.device = torch.device("cuda" if on_gpu else "cpu")
        self.sessions: dict[Side, EvaluationSession] = {}
        self.asked: dict[Side, sources.SourceProcess] = {}
        self.end = Deadline.after(0)
        """The deadline of the whole evaluation."""
        self._generated: deque[tuple[Any, Side, int]] = deque(maxlen=REMEMBERED)
        self._right: tuple[Any, tuple[torch.Tensor, ...]] | None = None
        self._called_with = ""
        self._shared = self._names(Side.CUSTOM) & self._names(Side.REFERENCE)

    @override
    @contextmanager
    def opened(self, session: EvaluationSession) -> Iterator[None]:
        """Allow calls of the sources in the block; at its end stop their candidates."""
        limit = session.request.task.limit_s(session.request.mode)
        self.end = Deadline.after(limit)
        with (
            sources.own_session(session, self.contract, Side.CUSTOM) as custom,
            sources.own_session(session, self.contract, Side.REFERENCE) as reference,
            session.beside,
        ):
            self.sessions = {Side.CUSTOM: session, Side.REFERENCE: reference}
            self.asked = {
                Side.CUSTOM: sources.SourceProcess(custom, Side.CUSTOM),
                Side.REFERENCE: sources.SourceProcess(reference, Side.REFERENCE),
            }
            try:
                yield
            except torch.OutOfMemoryError as error:
                words = (
                    "the tensors of the call do not fit into this GPU's memory beside each other"
                )
                raise VerdictError(Verdict.TASK_ERROR, f"{words}; make them smaller") from error

    @override
    def session_for(self, session: EvaluationSession, workload: Workload) -> EvaluationSession:
        """Return the session of the kernel that the case is for."""
        return self.sessions[side_of(workload)]

    @override
    def deadline(self, seconds: float) -> Deadline:
        """Return the deadline of a step, at most that of the evaluation."""
        return Deadline.after(min(seconds, self.end.remaining))

    @override
    def plan(self, workload: Workload, seed: int) -> arena.Plan | None:
        """Return the layout; None if inputs cannot be created, which the first test reports."""
        try:
            return super().plan(workload, seed)
        except VerdictError:
            return None

    @override
    def first_plan(self, largest: arena.Plan) -> arena.Plan:
        """Return a layout with room for outputs that are much larger than the inputs."""
        return replace(largest, device_size=max(largest.device_size, sources.input_bytes_limit()))

    @override
    def attributing(self, workload: Workload) -> AbstractContextManager[None]:
        """Return a context that turns a verdict on the reference kernel into `task_error`."""
        return sources.attribute_to_reference(side_of(workload))

    @override
    def after(self, session: EvaluationSession, grade: GradingResult) -> None:
        """Collect counters if requested; log the shapes of inputs that a source defined itself."""
        if self.contract.counted:
            collect_counters(session, grade, self.end)
        if self._called_with:
            session.keep_log(f"\n{DRAWN}{self._called_with}\n".encode())

    @override
    def generate(self, workload: Workload, seed: int) -> dict[str, Any]:
        """Return the input of the case's kernel in one trial."""
        side = side_of(workload)
        data = self._data(side, seed)
        self._generated.append((data, side, seed))
        return data

    @override
    def expected(self, data: Any) -> values.Node | None:
        """Return the structure of the output of the reference, or without one of the kernel.

        None on the CPU, where outputs are fetched as they are.
        """
        if self.device.type == "cpu":
            return None
        room: values.Node = as_task_error(
            "kernel", lambda: arena.compact_description(self._right_output(data))
        )
        return room

    @override
    def mismatch(self, data: Any, output: object, expected: values.Node | None) -> str | None:
        """Return why an output is wrong, or None; without a reference any tensor is right.

        VerdictError if the reference returns NaN, or different outputs for the same input.
        """
        found = values.leaves(output)
        if not found:
            return NOTHING
        reference = self.contract.reference
        if reference is None or self._trial_of(data)[0] is not Side.CUSTOM:
            return None
        right = self._right_output(data)
        if undefined(right):
            raise VerdictError(
                Verdict.TASK_ERROR,
                f"{REFERENCE_FAULT} gives NaN, or leaves a part of its output unwritten: nothing"
                " can be compared with that",
            )
        wrong = mismatch(right, found, reference.atol, reference.rtol)
        if wrong and mismatch(right, self._fetch(data), reference.atol, reference.rtol):
            raise VerdictError(
                Verdict.TASK_ERROR,
                f"{REFERENCE_FAULT} gives another output each time that it is given the same input",
            )
        return wrong

    def _trial_of(self, data: Any) -> tuple[Side, int]:  # noqa: ANN401 - as `generate` made it
        return next((side, seed) for made, side, seed in self._generated if made is data)

    def _right_output(self, data: Any) -> tuple[torch.Tensor, ...]:  # noqa: ANN401 - as above
        if self._right is None or self._right[0] is not data:
            self._right = (data, self._fetch(data))
        return self._right[1]

    def _fetch(self, data: Any) -> tuple[torch.Tensor, ...]:  # noqa: ANN401 - as above
        """The output of the reference, or without one of the kernel, for the trial of `data`."""
        _, seed = self._trial_of(data)
        side = Side.CUSTOM if self.contract.reference is None else Side.REFERENCE

        def public() -> dict[str, Any]:
            return self._data(side, GIVEN_SEED)

        given = self._data(side, seed)
        return values.leaves(self.asked[side].ask("answer", given, self.end, public))

    def _data(self, side: Side, seed: int) -> dict[str, Any]:
        arguments = self.contract.call_of(side).args
        if arguments is None:
            return self._inputs_of_source(seed)
        most = self._room()
        if size_of(arguments) > most:
            raise VerdictError(
                Verdict.TASK_ERROR,
                f"the tensors of io take {size_of(arguments) >> 20:,} MiB; there is room for"
                f" {most >> 20:,}",
            )
        return {"args": materialised(arguments, seed, self._shared, self.device)}

    def _room(self) -> int:
        """The most bytes that all tensors of a call may have."""
        if self.device.type == "cpu":
            return self.sessions[Side.CUSTOM].request.limits.memory // 2
        _, whole = torch.cuda.mem_get_info()
        return int(whole // GPU_PART)

    def _inputs_of_source(self, seed: int) -> dict[str, Any]:
        """One trial's inputs from a source's own `get_inputs`, on the kernels' device."""
        side = self.contract.drawn_by
        public = {"draw": MODEL_SEED}
        order = public if seed == GIVEN_SEED else {"draw": seed}
        told = self.asked[side].ask("draw", order, self.end, lambda: public)
        if not isinstance(told, dict) or told.keys() != {"init", "inputs"}:
            raise VerdictError(
                Verdict.DISALLOWED, "the inputs of a source are not what was asked for"
            )
        self._called_with = ", ".join(
            _shown(each) for each in values.leaves(told["inputs"])[:SHOWN]
        )
        return {key: self._placed(value) for key, value in told.items()}

    def _placed(self, value: Any) -> Any:  # noqa: ANN401 - as it came
        if isinstance(value, torch.Tensor):
            return value.to(self.device)
        if isinstance(value, (list, tuple)):
            return type(value)(self._placed(each) for each in value)
        return value

    def _names(self, side: Side) -> frozenset[str]:
        """The names of the tensors that a kernel reads."""
        arguments: tuple[Argument, ...] = ()
        if side is Side.CUSTOM or self.contract.reference is not None:
            arguments = self.contract.call_of(side).args or ()
        return frozenset(
            each.name
            for each in arguments
            if isinstance(each, TensorArgument) and each.role is not Role.OUTPUT
        )


def _shown(tensor: torch.Tensor) -> str:
    """Dtype and shape, as in `float32[1024, 512]`."""
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def read_contract(folder: Path) -> Contract:
    """The contract in a task's folder; VerdictError if it cannot be read."""
    found: Contract = as_task_error(
        "contract", lambda: Contract.model_validate_json((folder / CONTRACT).read_bytes())
    )
    return found
