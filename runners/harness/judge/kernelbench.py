"""Task code of format `kernelbench`: a problem with `Model`, `get_inputs`, `get_init_inputs`."""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from typing_extensions import override

from runners.contract.task import Workload
from runners.contract.verdict import Verdict
from runners.harness.build.kernel_calls import Guess, first_accepted, guesses, required_tensors
from runners.harness.build.loading import FUNCTION, PRECISIONS, pack_weights
from runners.harness.judge import new_memory
from runners.harness.judge.checks import first_place
from runners.harness.judge.session import TaskCode, structure_of
from runners.harness.judge.task_code import (
    reference_function,
    reference_module,
    seed_generators,
    shape_mismatch,
    widened,
)
from runners.harness.protocol import arena
from runners.harness.protocol.values import Node, clone, leaves
from runners.harness.sandbox.syscalls import lift_memory_limit
from runners.harness.verdicts import OutOfTimeError, VerdictError, as_task_error

TOLERANCES = {"fp32": 1e-4, "fp16": 1e-2, "bf16": 1e-2}
"""Precision -> relative and absolute tolerance of numbers with a fraction, as in KernelBench."""
WEIGHTS_SEED = 42
"""The seed of the weights if a case does not set `weights`, as in KernelBench."""
_ARGS = {"precision", "seed", "weights"}


class KernelBenchTask(TaskCode):
    """The reference of a KernelBench problem; it keeps one model at a time.

    A case may set `precision` (default fp32), `seed` for its inputs, and `weights`, the seed of the
    weights. An input contains the constructor's arguments, the weights and the inputs of `forward`.
    """

    def __init__(self, folder: Path, *, on_gpu: bool) -> None:
        module = reference_module(folder)
        is_function = not hasattr(module, "Model") and callable(getattr(module, FUNCTION, None))
        source = _FunctionProblem(module) if is_function else module
        self._model_class = reference_function(source, "Model")
        self._get_inputs = reference_function(source, "get_inputs")
        self._get_init_inputs = reference_function(source, "get_init_inputs")
        self._device = torch.device("cuda" if on_gpu else "cpu")
        self._model: Any = None
        self._model_key: tuple[int, str] | None = None
        self._model_data: dict[str, Any] = {}

    @override
    def generate(self, workload: Workload, seed: int) -> Any:
        """Return fresh inputs of the precision, the constructor's arguments and the weights.

        Only floating-point tensors get the precision; integers stay integers.
        """
        precision = _precision(workload)
        model_data = self._data_of_model(_weights_seed(workload), precision)
        with new_memory.filled():
            inputs = as_task_error("get_inputs", lambda: self._inputs(seed, PRECISIONS[precision]))
        return {**model_data, "inputs": inputs}

    @override
    def expected(self, data: Any) -> Node | None:
        """The structure of the reference's output."""
        return structure_of("Model", lambda: self._forward(data))

    @override
    def mismatch(self, data: Any, output: object, expected: Node | None) -> str | None:
        """Return how the output differs from the reference's beyond the tolerance, or None.

        VerdictError if the reference returns NaN, or different outputs for the same input.
        """
        wrong = shape_mismatch(output, expected)
        if wrong:
            return wrong
        lift_memory_limit()  # the output has the reference's shape
        tolerance = TOLERANCES[data["precision"]]
        want = as_task_error("Model", lambda: self._forward(data))
        _refuse_undefined(want)
        wrong = _difference(want, output, tolerance)
        if wrong:
            with suppress(OutOfTimeError):  # the alarm, after this output was found wrong
                again = as_task_error("Model", lambda: self._forward(data))
                if _difference(want, again, tolerance):
                    raise VerdictError(
                        Verdict.TASK_ERROR,
                        "the task's Model returns another output each time for the same input",
                    )
        return wrong

    def _data_of_model(self, seed: int, precision: str) -> dict[str, Any]:
        """The constructor's arguments and weights; the model is cached until another is needed."""
        if self._model_key != (seed, precision):
            self._model_data = as_task_error("Model", lambda: self._make(seed, precision))
            self._model_key = (seed, precision)
        return self._model_data

    def _make(self, seed: int, precision: str) -> dict[str, Any]:
        seed_generators(seed)
        init = list(self._get_init_inputs())
        seed_generators(seed)
        model = self._model_class(*init).to(device=self._device, dtype=PRECISIONS[precision])
        self._model = model
        packed = pack_weights(model.state_dict(), self._device)
        return {"seed": seed, "precision": precision, "init": init, "weights": packed}

    def _inputs(self, seed: int, dtype: torch.dtype) -> list[Any]:
        seed_generators(seed)
        with self._device:  # create large inputs directly on the device
            return [self._placed(each, dtype) for each in self._get_inputs()]

    def _placed(self, value: Any, dtype: torch.dtype) -> Any:  # noqa: ANN401 - any input
        if isinstance(value, torch.Tensor):
            floats = value.is_floating_point()
            return value.to(device=self._device, dtype=dtype if floats else value.dtype)
        if isinstance(value, (list, tuple)):
            return type(value)(self._placed(each, dtype) for each in value)
        return value

    def _forward(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - any output
        """The reference's output; restores the model's buffers."""
        self._data_of_model(data["seed"], data["precision"])  # makes the model
        with torch.no_grad():
            before = [each.clone() for each in self._model.buffers()]
            output = self._model(*clone(data["inputs"]))
            for buffer, old in zip(self._model.buffers(), before, strict=True):
                buffer.copy_(old)
        return output


class _FunctionProblem:
    """Adapts a problem that has only a function `forward` to one with a `Model`.

    It uses the problem's `get_inputs`. Without one, the inputs are tensors of the first shape that
    `forward` accepts.
    """

    def __init__(self, module: ModuleType) -> None:
        self._function: Callable[..., Any] = getattr(module, FUNCTION)
        self._guess: Guess | None = None
        self.get_inputs = getattr(module, "get_inputs", self._guessed_inputs)

    def Model(self) -> torch.nn.Module:  # noqa: N802 - KernelBench's name of it
        model = torch.nn.Module()
        model.forward = self._function
        return model

    def get_init_inputs(self) -> list[Any]:
        return []

    def _guessed_inputs(self) -> list[torch.Tensor]:
        count = required_tensors(self._function)
        if self._guess is None:
            with torch.random.fork_rng(), torch.no_grad():
                self._guess = first_accepted(
                    guesses(self._function),
                    lambda guess: self._function(*(guess.random_tensor() for _ in range(count))),
                )
        return [self._guess.random_tensor() for _ in range(count)]


def _precision(workload: Workload) -> str:
    named = workload.args.get("precision", "fp32")
    if not isinstance(named, str) or named not in PRECISIONS:
        known = ", ".join(PRECISIONS)
        raise VerdictError(
            Verdict.TASK_ERROR, f"precision {named!r} is unknown; choose one of {known}"
        )
    return named


def _weights_seed(workload: Workload) -> int:
    """The seed of the weights; VerdictError if a case has an argument that is not in `_ARGS`."""
    seed = workload.args.get("weights", WEIGHTS_SEED)
    if not isinstance(seed, int) or workload.args.keys() - _ARGS:
        known = ", ".join(sorted(_ARGS))
        raise VerdictError(Verdict.TASK_ERROR, f"a case of a kernelbench task can set only {known}")
    return seed


def _parts(value: object) -> Iterator[object]:
    """Yield the tensors and the other values of an output, in order."""
    match value:
        case list() | tuple():
            yield from chain.from_iterable(map(_parts, value))
        case dict():
            yield from chain.from_iterable(map(_parts, value.values()))
        case _:
            yield value


def _refuse_undefined(output: object) -> None:
    """VerdictError if the reference returns NaN, which no output can equal."""
    floats = (each for each in leaves(output) if each.is_floating_point() or each.is_complex())
    numbers = (each for each in _parts(output) if isinstance(each, float))
    if any(map(math.isnan, numbers)) or any(bool(torch.isnan(each).any()) for each in floats):
        raise VerdictError(Verdict.TASK_ERROR, "the task's Model returns NaN for its own input")


def _difference(want: object, got: object, tolerance: float) -> str | None:
    """Describe the first difference of two outputs, in structure or in value, or None."""
    if wrong := shape_mismatch(got, arena.compact_description(want)):
        return wrong
    pairs = list(zip(_parts(want), _parts(got), strict=True))
    for number, (right, given) in enumerate(pairs):
        place = f"output {number}: " if len(pairs) > 1 else ""
        if isinstance(right, torch.Tensor) and isinstance(given, torch.Tensor):
            wrong = _tensor_difference(_widened(right), _widened(given), tolerance)
        else:
            near = _is_near(right, given, tolerance)
            wrong = "" if near else f"{given!r:.80}, {right!r:.80} is expected"
        if wrong:
            return place + wrong
    return None


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor; floats of one byte, with which torch cannot compute, as float32."""
    return widened(tensor) if tensor.dtype.itemsize == 1 else tensor


def _is_near(right: object, given: object, tolerance: float) -> bool:
    """Whether two values that are not both tensors are equal; floats within the tolerance."""
    if isinstance(right, float) and isinstance(given, float):
        numbers = torch.tensor([given, right], dtype=torch.float64)
        return bool(torch.isclose(numbers[0], numbers[1], rtol=tolerance, atol=tolerance))
    return right == given


def _tensor_difference(right: torch.Tensor, given: torch.Tensor, tolerance: float) -> str:
    if not (right.is_floating_point() or right.is_complex()):
        tolerance = 0.0  # an index may not be off by a part of itself
    off = ~torch.isclose(given, right, rtol=tolerance, atol=tolerance)
    if not bool(off.any()):
        return ""
    first = first_place(off)
    count = f"{int(off.sum())} of {off.numel()} elements differ"
    values = f"got {given[first].item()}, expected {right[first].item()}"
    return f"{count} by more than {tolerance:g}; the first at {list(first)}: {values}"
