"""Task code of format `kernel`: inputs, reference and comparison in the judge's process."""

import importlib.util
import inspect
import math
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import torch
from typing_extensions import override

from runners.contract.evaluation import EvaluationRequest
from runners.contract.task import REFERENCE_KERNEL, Workload
from runners.contract.verdict import Verdict
from runners.harness.judge import new_memory
from runners.harness.judge.checks import difference
from runners.harness.judge.session import SLOWER, TaskCode, structure_of
from runners.harness.protocol import arena, values
from runners.harness.sandbox import syscalls
from runners.harness.sandbox.process_limits import data_bytes
from runners.harness.verdicts import (
    CHECK_OUT_OF_TIME,
    MachineError,
    OutOfTimeError,
    VerdictError,
    as_task_error,
    file_at_fault,
    release_locals,
    words_of,
)
from runners.languages import spec_of

_checked_indices: Any = torch.sparse.check_sparse_tensor_invariants
"""A context in which torch checks the indices of sparse tensors; it has no type annotations."""

_FAULTS = (ImportError, NameError, SyntaxError)
"""The exceptions that a correct check does not raise itself, whatever the output is.

But a check of an empty output may use a variable that only its loop defines, also in a function
within the check, and a library that reads an output as code may raise any of them.
"""

_FLOAT4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The values of four bits without a sign (OCP Microscaling Formats 1.0, 5.3.3)."""
SECOND_CHECK_S = 1.5
"""Seconds in which the reference's own output must be checked to show that the task is not to blame
for a check that took too long."""


class KernelTask(TaskCode):
    """The reference of a task of format `kernel`, from a folder that no candidate can see.

    Its exceptions become the verdict `task_error`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        module = reference_module(folder)
        self._generate = reference_function(module, "generate_input")
        self._check = reference_function(module, "check_implementation")
        self._reference = getattr(module, "ref_kernel", None)
        parameters = as_task_error("generate_input", lambda: inspect.signature(self._generate))
        self._takes_seed = "seed" in parameters.parameters
        self._generated: dict[int, tuple[Workload, int]] = {}
        """The `id` of each input -> the workload and seed of the latest one with it. A train has
        many inputs at once."""
        self._reference_s: dict[str, float] = {}
        """A workload -> the least seconds that `ref_kernel` took for it."""
        self._checked_s: dict[str, float] = {}
        """A workload -> the least seconds of a check of it that ended."""

    @override
    def generate(self, workload: Workload, seed: int) -> Any:
        """Return a fresh input; Python's and torch's random number generators get the seed."""
        seed_generators(seed)
        args = dict(workload.args)
        if self._takes_seed:
            args["seed"] = seed
        with new_memory.filled():
            data = as_task_error("generate_input", lambda: self._generate(**args))
        self._generated[id(data)] = workload, seed
        return data

    @override
    def expected(self, data: object) -> values.Node | None:
        """The structure of a right output; None if the task has no `ref_kernel`."""
        if self._reference is None:
            return None
        reference, first = self._reference, not self._reference_s and id(data) in self._generated
        begin, spec = time.monotonic(), self._spec_of(data)
        structure = structure_of("ref_kernel", lambda: reference(values.clone(data)))
        spent_s = time.monotonic() - begin
        self._reference_s[spec] = min(self._reference_s.get(spec, math.inf), spent_s)
        if first:
            self._check_ahead(data)
        return structure

    @override
    def mismatch(self, data: object, output: object, expected: values.Node | None) -> str | None:
        """Return why an output is wrong, or None; may change `data`, the judge's private input.

        If the check raises an exception or returns neither a bool nor a text, the output is wrong.
        But if it also does so for the reference's own output, the verdict is `task_error`, unless
        an earlier check ended: a failed one may leave what fails all later ones, such as a file.
        """
        shape = shape_mismatch(output, expected)
        if shape:
            return shape
        begin, (limit, _) = time.monotonic(), resource.getrlimit(resource.RLIMIT_DATA)

        def check() -> str | None:
            try:  # without the second context torch checks no index of a sparse tensor
                with _checked_indices():
                    return _reason(self._check(data, output))
            except OutOfTimeError as error:  # the alarm at the end of the time
                self._attribute_delay(data, error, time.monotonic() - begin)
            except (VerdictError, MachineError):
                raise
            except BaseException as error:  # noqa: BLE001 - a check may raise any type
                with suppress(OutOfTimeError):  # the alarm, after this output failed its check
                    if not (self._is_known_to_work(error) or _broke_context(error)):
                        self._try_check(data, error, limit)
                return f"the output cannot be compared: {words_of(error)}"

        return as_task_error("check_implementation", check)

    @override
    def usual_check_s(self, data: object) -> float:
        """Return what the workload's fastest check took, or a guess before the first."""
        spec, reference_s = self._spec_of(data), self._reference_s
        guess_s = max(SECOND_CHECK_S, 2 * reference_s[spec]) if spec in reference_s else math.inf
        return self._checked_s.get(spec, guess_s)

    @override
    def record_check(self, data: object, seconds: float) -> None:
        spec = self._spec_of(data)
        self._checked_s[spec] = min(self._checked_s.get(spec, math.inf), seconds)

    @override
    def works(self, workload: Workload, seed: int) -> bool:
        """Whether the task's code generates, computes and checks an answer of its own now."""
        try:
            data = self.generate(workload, seed)
            return self._reference is not None and self._checks_reference(data, Exception())
        except VerdictError:
            return False

    @override
    def reference_source(self, request: EvaluationRequest) -> str | None:
        """Return a submission that imports `ref_kernel`; None if the request is for one already."""
        if self._reference is None or not spec_of(request.task.lang).is_python:
            return None
        seen = "reference.py" in request.task.shared_files
        return None if seen else REFERENCE_KERNEL.format("ref_kernel")

    def _spec_of(self, data: object) -> str:
        workload, _ = self._generated.get(id(data), (None, 0))
        return "" if workload is None else workload.spec

    def _attribute_delay(self, data: object, error: OutOfTimeError, spent_s: float) -> NoReturn:
        """Raise `timed_out` if a check that took `spent_s` was slow because of the output.

        Otherwise raise the `error`.
        """
        if not self._was_slowed(data, spent_s) and not self._checks_reference_in_time(data, error):
            raise error
        raise VerdictError(Verdict.TIMED_OUT, CHECK_OUT_OF_TIME) from error

    def _was_slowed(self, data: object, spent_s: float) -> bool:
        """Whether the task's code took much less time for the same workload before.

        That is a check of another output or, if a second check could not end because of it, the
        reference.
        """
        spec = self._spec_of(data)
        checked_s = self._checked_s.get(spec)
        if checked_s is not None:
            return checked_s <= SECOND_CHECK_S or spent_s > SLOWER * checked_s
        reference_s = self._reference_s.get(spec, 0.0)
        return 2 * reference_s > SECOND_CHECK_S and spent_s > reference_s

    def _checks_reference_in_time(self, data: object, error: OutOfTimeError) -> bool:
        """Whether the reference's own output is checked within `SECOND_CHECK_S`."""
        signal.setitimer(signal.ITIMER_REAL, SECOND_CHECK_S)
        try:
            return self._checks_reference(data, error)
        except (VerdictError, MachineError):  # the second alarm
            return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _check_ahead(self, data: object) -> None:
        """Check the reference's own output, before the first of a submission."""
        begin = time.monotonic()
        with syscalls.large_blocks_returned():  # otherwise later checks may use them too
            if self._checks_reference(data, Exception()):
                self.record_check(data, time.monotonic() - begin)

    def _checks_reference(self, data: object, error: BaseException) -> bool:
        """Whether a check of the reference's own output ends without an exception."""
        try:
            self._try_check(data, error)
        except (VerdictError, MachineError):
            raise
        except BaseException:  # noqa: BLE001 - the task's code may raise any type
            return False
        return True

    def _is_known_to_work(self, error: BaseException) -> bool:
        """Whether a check ended before this one failed, and not for lack of memory."""
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or self._reference is None:
            return False
        return bool(self._checked_s) and "can't allocate memory" not in words_of(error)

    def _try_check(self, data: object, error: BaseException, limit: int = -1) -> None:
        """Run the check on the reference's output; its exceptions pass through.

        Without a reference, the `error` for another output is raised if it is one of `_FAULTS` and
        from the task's own files. The check may use as much memory as the failed one under `limit`
        (-1: any); freed memory, which it uses again, does not count twice.
        """
        syscalls.lift_memory_limit()
        release_locals(error)
        if generated := self._generated.get(id(data)):
            data = self.generate(*generated)  # the failed check may have changed it
        if self._reference is not None:
            output = _transferred(self._reference(values.clone(data)))
            held = sum(each.nbytes for each in (*values.leaves(data), *values.leaves(output)))
            more = limit + held - data_bytes()
            with nullcontext() if limit < 0 else syscalls.memory_limited(more):
                _reason(self._check(data, output))
        elif _is_fault(error) and Path(file_at_fault(error)).is_relative_to(self._folder):
            raise error


def _transferred(output: object) -> Any:  # noqa: ANN401 - of the output's type
    """Return an output in the form that a submission's has: a named tuple is a tuple, for example.

    Its tensors are not copied.
    """
    tensors = iter(values.leaves(output))
    return values.restore(arena.lay_out(output).node, lambda _: next(tensors).detach())


def _is_fault(error: BaseException) -> bool:
    """Whether it is one of `_FAULTS`, and not for a variable without a value."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    enclosing = frames[-1].f_code.co_freevars if frames else ()
    unbound = isinstance(error, UnboundLocalError) or getattr(error, "name", None) in enclosing
    return isinstance(error, _FAULTS) and not unbound


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """Return a floating-point tensor of at most two bytes per element as float32, others as is.

    The two numbers in each byte of `float4_e2m1fn_x2` are the last dimension of the result.
    """
    if not tensor.is_floating_point() or tensor.dtype.itemsize > 2:
        return tensor
    if str(tensor.dtype) != "torch.float4_e2m1fn_x2":
        return tensor.float()
    table = torch.tensor([*_FLOAT4, *(-each for each in _FLOAT4)], device=tensor.device)
    packed = values.bits(tensor).int()
    return table[torch.stack((packed & 15, packed >> 4), dim=-1)]


def seed_generators(seed: int) -> None:
    """Seed the random number generators of Python, torch and, if it is loaded, numpy.

    `torch.manual_seed` also seeds devices that are not in use. For each of them it stores the
    current stack, which takes longer than everything else here.
    """
    random.seed(seed)
    if numpy := sys.modules.get("numpy.random"):
        numpy.seed(seed % (1 << 32))
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


def _broke_context(error: BaseException) -> bool:
    """Whether a value of the output, such as an index, made the check break the CUDA context."""
    by_content = ("device-side assert", "illegal memory access")
    return isinstance(error, torch.AcceleratorError) and any(w in str(error) for w in by_content)


def shape_mismatch(output: object, expected: values.Node | None) -> str | None:
    """Return how an output's structure differs from the expected one, or None; read no values."""
    return None if expected is None else difference(expected, arena.lay_out(output).node)


def reference_module(folder: Path) -> ModuleType:
    """Import the task's reference.py, with the task's folder on the import path."""
    sys.path.insert(0, str(folder))
    return as_task_error("reference.py", lambda: _load(folder / "reference.py"))


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    return module


def reference_function(module: object, name: str) -> Callable[..., Any]:
    """Return a function that the reference must define; VerdictError if it does not."""
    found = getattr(module, name, None)
    if not callable(found):
        raise VerdictError(Verdict.TASK_ERROR, f"the task's reference.py has no function `{name}`")
    return found  # type: ignore[no-any-return]


def _reason(found: object) -> str | None:
    """Return why the output is wrong, from a check's return value; None if the check accepts it.

    TypeError for another form, which a check may also get by comparing an odd output.

    The return value is (bool, text), a bool, or a text that is empty (or None) if the output is
    right. KernelBot's tasks use the first and the last.
    """
    if isinstance(found, tuple) and len(found) == 2:
        right, text = found
        return None if bool(right) else str(text) or "the output is wrong"
    if isinstance(found, bool):
        return None if found else "the output is wrong"
    if found is None or isinstance(found, str):
        return found or None
    form = type(found).__name__
    raise TypeError(f"check_implementation returned a {form}, not (bool, message)")
