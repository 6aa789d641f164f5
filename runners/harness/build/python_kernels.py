"""Kernels of the Python kinds (`torch`, `torch_cuda`, `multi_kernel`, `triton`), in the candidate.

This runs together with the submission, so nothing here protects the judge.
"""

import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runners.contract.io_contract import Argument, KernelCall, KernelKind
from runners.harness.build import kernel_calls
from runners.harness.protocol.values import leaves
from runners.languages import InvalidSubmissionError

MODEL_SEED = 42
"""The seed of a model's weights and of the first trial's inputs, as in KernelBench."""
_FORWARD = "forward"


class TorchKernel:
    """A function, a method or a model; a model is created at the first call, which is never timed.

    Its input is `{"args": [...]}` from a contract, or `{"init": [...], "inputs": [...]}` from the
    source's own `get_inputs`. For `{"draw": seed}` it returns an input of the second kind.
    """

    def __init__(self, module: Any, call: KernelCall, device: torch.device) -> None:  # noqa: ANN401
        self.module = module
        self.call = _without_missing_names(call, module)
        self.device = device
        self.function: Callable[..., Any] | None = None
        self.match: kernel_calls.Match | None = None
        self.guess: kernel_calls.Guess | None = None
        if call.kind is KernelKind.MULTI_KERNEL and call.args is None:
            raise InvalidSubmissionError("a multi_kernel needs io with the arguments of its call")
        self._callable_or_class()  # raises if the function or class is missing

    def __call__(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - tensors, or drawn inputs
        """The output as a tuple of tensors, or the requested inputs."""
        with torch.no_grad():
            if "draw" in data:
                return self._own_inputs(data["draw"])
            if self.function is None:
                self.function = self._create_callable(data.get("init"))
            if self.call.args is None:
                return kernel_calls.require_outputs(leaves(self.function(*data["inputs"])))
            return self._by_contract(self.function, self.call.args, data["args"])

    def _by_contract(
        self, function: Callable[..., Any], arguments: Sequence[Argument], values: list[Any]
    ) -> kernel_calls.Outputs:
        if self.call.kind is KernelKind.MULTI_KERNEL:
            return kernel_calls.returned_outputs(function(*values), arguments, values)
        if self.match is None:
            self.match = kernel_calls.match_arguments(function, arguments)
        positions, names = self.match
        by_name = {name: values[index] for name, index in names.items()}
        output = function(*(values[index] for index in positions), **by_name)
        return kernel_calls.returned_outputs(output, arguments, values)

    def _callable_or_class(self) -> Callable[..., Any]:
        """The function or class that the metadata names, or the kind's default."""
        if self.call.kind is KernelKind.MULTI_KERNEL:
            return self._entry_point()
        if self.call.function_name:
            return self._attribute(self.call.function_name, "function_name")
        if self.call.class_name:
            return self._attribute(self.call.class_name, "class_name")
        class_names = ("Model", "ModelNew")
        preferred = class_names if self.call.kind is KernelKind.TORCH else class_names[::-1]
        attributes = (getattr(self.module, name, None) for name in preferred)
        model = next((attribute for attribute in attributes if callable(attribute)), None)
        if model is None:
            raise InvalidSubmissionError(
                f"there is no `{preferred[0]}`; define that class, or name what is called with"
                " function_name or class_name in metadata"
            )
        return model  # type: ignore[no-any-return]

    def _entry_point(self) -> Callable[..., Any]:
        name = self.call.entry_point
        if name is not None and not callable(getattr(self.module, name, None)):
            raise InvalidSubmissionError(
                f"Entry point '{name}' not found: define that function, or name another one as"
                " entry_point in metadata"
            )
        return self._attribute(name, "entry_point")

    def _attribute(self, name: str | None, key: str) -> Callable[..., Any]:
        if name is None:
            raise InvalidSubmissionError(f"metadata has no {key}, which names what is called")
        attribute = getattr(self.module, name, None)
        if not callable(attribute):
            raise InvalidSubmissionError(f"there is no `{name}`, which metadata names as {key}")
        return attribute  # type: ignore[no-any-return]

    def _is_function(self) -> bool:
        return self.call.kind is KernelKind.MULTI_KERNEL or bool(self.call.function_name)

    def _create_callable(self, init: list[Any] | None) -> Callable[..., Any]:
        """The callable: the function itself, or a method of a new instance of the class."""
        target = self._callable_or_class()
        if self._is_function():
            return target
        init = self._init_inputs() if init is None else init
        seed_all(MODEL_SEED)
        instance = target(*init)
        if isinstance(instance, torch.nn.Module):
            instance = instance.to(self.device)
        method = self.call.method_name or _FORWARD
        if method == _FORWARD and callable(instance):
            return instance  # type: ignore[no-any-return]  # with a module's hooks
        bound_method = getattr(instance, method, None)
        if not callable(bound_method):
            raise InvalidSubmissionError(f"there is no method `{method}` to call")
        return bound_method  # type: ignore[no-any-return]

    def _init_inputs(self) -> list[Any]:
        """The constructor's arguments from the source's `get_init_inputs`."""
        function = getattr(self.module, "get_init_inputs", None)
        if not callable(function):
            return []
        return _seeded_call(function, MODEL_SEED)

    def _own_inputs(self, seed: int) -> dict[str, Any]:
        """The constructor's arguments and one trial's inputs, from the source or guessed."""
        init = [] if self._is_function() else self._init_inputs()
        function = getattr(self.module, "get_inputs", None)
        if not callable(function):
            moved = to_device(init, self.device)
            return {"init": moved, "inputs": self._guessed_inputs(init, seed)}
        try:
            with self.device:  # create large inputs directly on the device
                inputs = _seeded_call(function, seed)
        except RuntimeError:  # the source may use its own generator, or NumPy
            if self.device.type == "cpu":
                raise
            inputs = _seeded_call(function, seed)
        return {"init": to_device(init, self.device), "inputs": to_device(inputs, self.device)}

    def _guessed_inputs(self, init: list[Any], seed: int) -> list[Any]:
        """A tensor for every required parameter; InvalidSubmissionError if one cannot be a tensor.

        All have the same shape: the first one that the kernel accepts.
        """
        count = self._tensor_count()
        with self.device:
            if self.guess is None:
                function = self._create_callable(init)
                self.guess = kernel_calls.first_accepted(
                    kernel_calls.guesses(function),
                    lambda guess: function(*(guess.random_tensor() for _ in range(count))),
                )
            seed_all(seed)
            return [self.guess.random_tensor() for _ in range(count)]

    def _tensor_count(self) -> int:
        """How many tensors a call takes."""
        target = self._callable_or_class()
        if self._is_function():
            return kernel_calls.required_tensors(target)
        return kernel_calls.required_tensors(
            getattr(target, self.call.method_name or _FORWARD, target), skipped=1
        )


def to_device(value: Any, device: torch.device) -> Any:  # noqa: ANN401 - any input
    """Return the value with every tensor in it, or in its lists and tuples, on a device."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(item, device) for item in value)
    return value


def _seeded_call(function: Callable[[], Any], seed: int) -> list[Any]:
    seed_all(seed)
    return list(function())


def _without_missing_names(call: KernelCall, module: Any) -> KernelCall:  # noqa: ANN401 - as above
    """The call without the names that the module does not define, if there is no `io`.

    Without `io` such names are ignored. With `io`, a missing name is an error.
    """
    if call.args is not None:
        return call
    names = {key: getattr(call, key) for key in ("function_name", "class_name")}
    missing = [
        key for key, name in names.items() if name and not callable(getattr(module, name, None))
    ]
    return call.model_copy(update=dict.fromkeys(missing))


def seed_all(seed: int) -> None:
    """Seed every random number generator that a source is likely to use."""
    random.seed(seed)
    torch.manual_seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % (1 << 32))


_KERNEL_ATTRIBUTES = ("run", "fn", "__getitem__")
"""Attributes of Triton's kernels, autotuned or not, that hardly any other object has."""


class TritonKernel:
    """The named Triton kernel of a module, or its first one."""

    def __init__(self, module: Any, call: KernelCall) -> None:  # noqa: ANN401 - a module
        if call.args is None:
            raise InvalidSubmissionError("a triton kernel needs io with the arguments of its call")
        self.args: tuple[Argument, ...] = call.args
        self.kernel = _find_kernel(module, call.kernel_name)
        self.grid = call.grid
        launch_options = {"num_warps": call.num_warps, "num_stages": call.num_stages}
        self.options = {key: value for key, value in launch_options.items() if value is not None}

    def __call__(self, data: dict[str, Any]) -> kernel_calls.Outputs:
        """Launch it and return the tensors that it writes."""
        values = data["args"]
        self.kernel[self.grid](*values, **self.options)
        return kernel_calls.written_outputs(self.args, values)


def _find_kernel(module: Any, name: str | None) -> Any:  # noqa: ANN401 - Triton's own type
    if name is not None:
        kernel = getattr(module, name, None)
        if not _is_kernel(kernel):
            raise InvalidSubmissionError(f"there is no Triton kernel `{name}`")
        return kernel
    kernel = next((value for value in vars(module).values() if _is_kernel(value)), None)
    if kernel is None:
        raise InvalidSubmissionError("there is no Triton kernel: put @triton.jit before a function")
    return kernel


def _is_kernel(value: object) -> bool:
    return not isinstance(value, type) and all(hasattr(value, name) for name in _KERNEL_ATTRIBUTES)
