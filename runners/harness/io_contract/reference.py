"""Tasks of format `io_contract` in the judge: arguments, and comparison with the reference.

The judge creates the arguments itself. The reference, and a source that defines its own inputs, run
in separate candidates.
"""

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
from runners.harness.build.kernel_calls import NO_OUTPUT
from runners.harness.build.python_kernels import MODEL_SEED, to_device
from runners.harness.deadline import Deadline
from runners.harness.io_contract import sources
from runners.harness.io_contract.arguments import create_arguments, size_of
from runners.harness.judge.checks import first_place
from runners.harness.judge.session import EvaluationSession, TaskCode
from runners.harness.judge.task_code import widened
from runners.harness.profile.profiler import collect_counters
from runners.harness.protocol import arena, values
from runners.harness.sandbox.syscalls import lift_memory_limit
from runners.harness.verdicts import GradingResult, VerdictError, as_task_error

_PART = 1 << 20
"""How many elements' exact differences are computed at once."""


def mismatch(
    expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor], atol: float, rtol: float
) -> str | None:
    """Return how outputs differ from the reference's, or None if they match. NaN never matches."""
    if len(expected) != len(actual):
        return f"Output count mismatch: ref={len(expected)}, custom={len(actual)}"
    for number, (expected_tensor, actual_tensor) in enumerate(zip(expected, actual, strict=True)):
        prefix = f"output {number}: " if len(expected) > 1 else ""
        if expected_tensor.shape != actual_tensor.shape:
            shapes = f"ref={list(expected_tensor.shape)}, custom={list(actual_tensor.shape)}"
            return f"{prefix}Shape mismatch: {shapes}"
        if expected_tensor.dtype != actual_tensor.dtype:
            dtypes = f"ref={_dtype_name(expected_tensor)}, custom={_dtype_name(actual_tensor)}"
            return f"{prefix}Dtype mismatch: {dtypes}"
        reason = _value_mismatch(expected_tensor, actual_tensor, atol, rtol)
        if reason:
            return prefix + reason
    return None


def contains_nan(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether an output contains NaN."""
    floats = (output for output in outputs if output.is_floating_point() or output.is_complex())
    return any(bool(torch.isnan(widened(output)).any()) for output in floats)


def _value_mismatch(
    expected: torch.Tensor, actual: torch.Tensor, atol: float, rtol: float
) -> str | None:
    if expected.dtype == torch.bool:
        wrong = expected != actual
    elif not (expected.is_floating_point() or expected.is_complex()):
        wrong = _wrong_integers(expected, actual, atol, rtol)
    else:
        expected, actual = widened(expected), widened(actual)
        wrong = ~torch.isclose(actual, expected, rtol=rtol, atol=atol)
    count = int(wrong.sum())
    if not count:
        return None
    largest, mean = _largest_and_mean_difference(expected, actual)
    first = first_place(wrong)
    return (
        f"{count} of {wrong.numel()} elements differ; the first at {list(first)}: "
        f"got {actual[first].item()}, expected {expected[first].item()}. "
        f"Max difference: {largest:g}. Avg difference: {mean:g}. "
        f"Tolerance: atol={atol:g}, rtol={rtol:g}."
    )


def _wrong_integers(
    expected: torch.Tensor, actual: torch.Tensor, atol: float, rtol: float
) -> torch.Tensor:
    """Return which integers differ by more than the tolerance.

    `torch.isclose` would compare them as float32, in which 1e9 and 1e9 + 31 are equal. Integers for
    which the tolerance is below 1 must be equal, also if they have no exact double.
    """
    right = expected.double()
    tolerance = rtol * right.abs() + atol
    near = ((actual.double() - right).abs() <= tolerance) & (tolerance >= 1)
    return ~near & (expected != actual)


def _largest_and_mean_difference(
    expected: torch.Tensor, actual: torch.Tensor
) -> tuple[float, float]:
    """Return both, computed in parts: a wrong output may take no more memory than a right one."""
    exact = torch.complex128 if expected.is_complex() else torch.float64
    flat = (torch.split(each.reshape(-1), _PART) for each in (expected, actual))
    parts = zip(*flat, strict=True)
    differences = ((one.to(exact) - other.to(exact)).abs() for one, other in parts)
    pairs = [(each.max().item(), each.sum().item()) for each in differences]
    found = torch.tensor(pairs, dtype=torch.float64)
    return found[:, 0].max().item(), found[:, 1].sum().item() / expected.numel()


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


GPU_PART = 24
"""All tensors of a call may take 1 / `GPU_PART` of a GPU's memory. The judge and several candidates
have copies of them, and candidates also need memory for outputs of unknown size and scratch."""
MAX_LOGGED_INPUTS = 16
"""The most inputs that the log lists."""


class ContractTask(TaskCode):
    """Creates both kernels' arguments and compares the outputs with the reference's.

    The candidates that it starts exist only inside `opened`.
    """

    may_check_in_child = False

    def __init__(self, contract: Contract, *, on_gpu: bool) -> None:
        self.contract = contract
        self.device = torch.device("cuda" if on_gpu else "cpu")
        self.sessions: dict[Side, EvaluationSession] = {}
        self.processes: dict[Side, sources.SourceProcess] = {}
        self.end = Deadline.after(0)
        """The deadline of the whole evaluation."""
        self._trials: dict[int, tuple[Side, int]] = {}
        """The `id` of each input -> its kernel and seed; an input that exists is the latest one
        with its `id`. A train has many inputs at once."""
        self._reference_output: tuple[Any, tuple[torch.Tensor, ...]] | None = None
        self._structure: values.Node | None = None
        """The structure of every right output, once it is known."""
        self._called_with = ""
        self._shared_names = self._read_names(Side.CUSTOM) & self._read_names(Side.REFERENCE)

    @override
    @contextmanager
    def opened(self, session: EvaluationSession) -> Iterator[None]:
        """Allow calls of the sources in the block; at its end stop their candidates."""
        limit = session.request.task.limit_s(session.request.mode)
        self.end = Deadline.after(limit)
        with (
            sources.own_session(session, self.contract, Side.CUSTOM) as custom,
            sources.own_session(session, self.contract, Side.REFERENCE) as reference,
            session.extra_candidates,
        ):
            self.sessions = {Side.CUSTOM: session, Side.REFERENCE: reference}
            self.processes = {
                Side.CUSTOM: sources.SourceProcess(custom, Side.CUSTOM),
                Side.REFERENCE: sources.SourceProcess(reference, Side.REFERENCE),
            }
            try:
                yield
            except torch.OutOfMemoryError as error:
                reason = "the tensors of the call do not fit into this GPU's memory together"
                raise VerdictError(Verdict.TASK_ERROR, f"{reason}; make them smaller") from error

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
    def output_size(self, data: Any) -> int:
        """Return 0, because `first_plan` has room for any output."""
        return 0

    @override
    def first_plan(self, largest: arena.Plan) -> arena.Plan:
        """Return a layout with room for outputs that are much larger than the inputs."""
        return replace(largest, device_size=max(largest.device_size, sources.input_bytes_limit()))

    @override
    def attributing(self, workload: Workload, end: Deadline) -> AbstractContextManager[None]:
        """Return a context that turns a verdict on the reference kernel into `task_error`."""
        return sources.attribute_to_reference(side_of(workload), end)

    @override
    def after(self, session: EvaluationSession, grade: GradingResult) -> None:
        """Collect counters if requested; log the shapes of inputs that a source defined itself."""
        if self.contract.counted:
            collect_counters(session, grade, self.end)
        if self._called_with:
            session.add_to_log(f"\n{DRAWN}{self._called_with}\n".encode())

    @override
    def generate(self, workload: Workload, seed: int) -> dict[str, Any]:
        """Return the input of the case's kernel in one trial."""
        side = side_of(workload)
        data = self._data(side, seed)
        self._trials[id(data)] = side, seed
        return data

    @override
    def expected(self, data: Any) -> values.Node | None:
        """Return the structure of the reference's output or, without a reference, of the kernel's.

        It is the same for all inputs, because a source's outputs must have that of its first one.
        None on the CPU, where no structure is needed to read an output.
        """
        if self.device.type == "cpu":
            return None
        if self._structure is None:
            self._structure = as_task_error(
                "kernel", lambda: arena.compact_description(self._expected_output(data))
            )
        return self._structure

    @override
    def mismatch(self, data: Any, output: object, expected: values.Node | None) -> str | None:
        """Return why an output is wrong, or None. Without a reference, every tensor is right.

        VerdictError if the reference returns NaN, or different outputs for the same input.
        """
        lift_memory_limit()  # only outputs of the reference's shape are compared
        outputs = values.leaves(output)
        if not outputs:
            return NO_OUTPUT
        reference = self.contract.reference
        if reference is None or self._trial_of(data)[0] is not Side.CUSTOM:
            return None
        reference_output = self._expected_output(data)
        if contains_nan(reference_output):
            raise VerdictError(
                Verdict.TASK_ERROR,
                f"{REFERENCE_FAULT} returns NaN, or leaves a part of its output unwritten, so no"
                " output can be compared with it",
            )
        reason = mismatch(reference_output, outputs, reference.atol, reference.rtol)
        if reason and mismatch(reference_output, self._fetch(data), reference.atol, reference.rtol):
            raise VerdictError(
                Verdict.TASK_ERROR,
                f"{REFERENCE_FAULT} returns another output each time for the same input",
            )
        return reason

    def _trial_of(self, data: Any) -> tuple[Side, int]:  # noqa: ANN401 - as `generate` made it
        return self._trials[id(data)]

    def _expected_output(self, data: Any) -> tuple[torch.Tensor, ...]:  # noqa: ANN401 - as above
        if self._reference_output is None or self._reference_output[0] is not data:
            self._reference_output = (data, self._fetch(data))
        return self._reference_output[1]

    def _fetch(self, data: Any) -> tuple[torch.Tensor, ...]:  # noqa: ANN401 - as above
        """The output of the reference or, if none, of the kernel, for the trial of `data`."""
        _, seed = self._trial_of(data)
        side = Side.CUSTOM if self.contract.reference is None else Side.REFERENCE

        def public() -> dict[str, Any]:
            return self._data(side, GIVEN_SEED)

        input_data = self._data(side, seed)
        return values.leaves(self.processes[side].request("answer", input_data, self.end, public))

    def _data(self, side: Side, seed: int) -> dict[str, Any]:
        arguments = self.contract.call_of(side).args
        if arguments is None:
            return self._inputs_of_source(seed)
        limit = self._input_limit()
        if size_of(arguments) > limit:
            raise VerdictError(
                Verdict.TASK_ERROR,
                f"the tensors of io take {size_of(arguments) >> 20:,} MiB; there is room for"
                f" {limit >> 20:,}",
            )
        return {"args": create_arguments(arguments, seed, self._shared_names, self.device)}

    def _input_limit(self) -> int:
        """The most bytes that all tensors of a call may have."""
        if self.device.type == "cpu":
            return self.sessions[Side.CUSTOM].request.limits.memory // 2
        _, whole = torch.cuda.mem_get_info()
        return int(whole // GPU_PART)

    def _inputs_of_source(self, seed: int) -> dict[str, Any]:
        """One trial's inputs from a source's own `get_inputs`, on the kernels' device."""
        side = self.contract.drawn_by
        public = {"draw": MODEL_SEED}
        request = public if seed == GIVEN_SEED else {"draw": seed}
        inputs = self.processes[side].request("draw", request, self.end, lambda: public)
        if not isinstance(inputs, dict) or inputs.keys() != {"init", "inputs"}:
            raise VerdictError(
                Verdict.DISALLOWED, "a source returned something other than its init and inputs"
            )
        self._called_with = ", ".join(
            _description(tensor) for tensor in values.leaves(inputs["inputs"])[:MAX_LOGGED_INPUTS]
        )
        return {key: to_device(value, self.device) for key, value in inputs.items()}

    def _read_names(self, side: Side) -> frozenset[str]:
        """The names of the tensors that a kernel reads."""
        arguments: tuple[Argument, ...] = ()
        if side is Side.CUSTOM or self.contract.reference is not None:
            arguments = self.contract.call_of(side).args or ()
        return frozenset(
            argument.name
            for argument in arguments
            if isinstance(argument, TensorArgument) and argument.role is not Role.OUTPUT
        )


def _description(tensor: torch.Tensor) -> str:
    """Dtype and shape, as in `float32[1024, 512]`."""
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def read_contract(folder: Path) -> Contract:
    """The contract in a task's folder; VerdictError if it cannot be read."""
    contract: Contract = as_task_error(
        "contract", lambda: Contract.model_validate_json((folder / CONTRACT).read_bytes())
    )
    return contract
