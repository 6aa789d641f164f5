"""The task's own code in the judge's process: inputs, references and the comparison."""

import hashlib
import importlib.util
import inspect
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from typing_extensions import override

from runners.contract.task import TaskDefinition, Workload
from runners.contract.verdict import Verdict
from runners.harness.judge.difference import difference
from runners.harness.judge.session import TaskCode
from runners.harness.protocol.arena import compact_description, lay_out
from runners.harness.protocol.values import Node, clone
from runners.harness.verdicts import VerdictError, as_task_error

PUBLIC_NONCE = b"public"
"""The key of public seeds: anybody may compute them."""


_OF_OUTPUTS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RuntimeError)
"""What a right check may raise when it is given an output that it does not expect."""


def public_nonce(task: TaskDefinition) -> bytes:
    """The key of a task's public seeds, which its own `seed` changes."""
    return PUBLIC_NONCE if task.seed is None else PUBLIC_NONCE + str(task.seed).encode()


def public_seed(task: TaskDefinition, workload: Workload) -> int:
    """The seed of a test: the one that the task wrote, or else one that anybody may compute.

    A `seed` of the task itself is combined with it by Cantor's pairing, as KernelBot does.
    """
    own = workload.args.get("seed")
    if not isinstance(own, int):
        return seed_of(public_nonce(task), workload, 0)
    if task.seed is None:
        return own
    both = own + task.seed
    return (own + both * (both + 1) // 2) % (1 << 63)


def seed_of(nonce: bytes, workload: Workload, index: int) -> int:
    """The seed of the `index`-th input of a workload: a keyed hash, 31 bits."""
    text = f"{workload.spec}#{index}".encode()
    digest = hashlib.blake2b(text, key=nonce[:64], digest_size=8).digest()
    return int.from_bytes(digest, "big") & 0x7FFFFFFF


class KernelTask(TaskCode):
    """The reference of a task of format `kernel`, from a folder that no candidate can see.

    Whatever it raises becomes the verdict `task_error`.
    """

    def __init__(self, folder: Path) -> None:
        module = reference_module(folder)
        self._generate = reference_function(module, "generate_input")
        self._check = reference_function(module, "check_implementation")
        self._reference = getattr(module, "ref_kernel", None)
        parameters = as_task_error("generate_input", lambda: inspect.signature(self._generate))
        self._takes_seed = "seed" in parameters.parameters

    @override
    def generate(self, workload: Workload, seed: int) -> Any:
        """A fresh input; every generator of random numbers is seeded alike."""
        random.seed(seed)
        torch.manual_seed(seed)
        args = dict(workload.args)
        if self._takes_seed:
            args["seed"] = seed
        return as_task_error("generate_input", lambda: self._generate(**args))

    @override
    def expected(self, data: object) -> Node | None:
        """The shape of a right output, when the task has a `ref_kernel` that tells."""
        if self._reference is None:
            return None
        reference = self._reference
        room: Node = as_task_error(
            "ref_kernel", lambda: compact_description(reference(clone(data)))
        )
        return room

    @override
    def mismatch(self, data: object, output: object, expected: Node | None) -> str | None:
        """Why an output is wrong, or None; `data` is the judge's private input, and may change.

        A check that raises on it complains of it; the check itself is wrong only where it raises
        on the reference's own answer too.
        """
        shape = shape_mismatch(output, expected)
        if shape:
            return shape

        def check() -> str | None:
            try:
                return _complaint(self._check(data, output))
            except _OF_OUTPUTS as error:
                if not _broke_context(error):  # else nothing can be tried any more
                    self._try_check(data)
                return f"the output cannot be compared: {type(error).__name__}: {error}"

        found: str | None = as_task_error("check_implementation", check)
        return found

    def _try_check(self, data: object) -> None:
        """Raise what the check raises on a right answer, if anything does."""
        if self._reference is not None:
            self._check(data, self._reference(clone(data)))


def _broke_context(error: Exception) -> bool:
    """Whether a check broke the GPU's context by what it found in an answer, such as an index."""
    by_content = ("device-side assert", "illegal memory access")
    return isinstance(error, torch.AcceleratorError) and any(w in str(error) for w in by_content)


def shape_mismatch(output: object, expected: Node | None) -> str | None:
    """How an output differs from what is expected before any of its values is looked at."""
    return None if expected is None else difference(expected, lay_out(output).node)


def reference_module(folder: Path) -> ModuleType:
    """The task's reference.py, imported, with the task's folder at hand."""
    sys.path.insert(0, str(folder))
    module: ModuleType = as_task_error(
        "importing reference.py", lambda: _load(folder / "reference.py")
    )
    return module


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    return module


def reference_function(module: object, name: str) -> Callable[..., Any]:
    """What the reference must define; VerdictError when it does not."""
    found = getattr(module, name, None)
    if not callable(found):
        raise VerdictError(Verdict.TASK_ERROR, f"the task's reference.py has no function `{name}`")
    return found  # type: ignore[no-any-return]


def _complaint(found: object) -> str | None:
    """What a check's answer complains of: (bool, text), bool, or a text that is empty when right.

    KernelBot's tasks know the first and the last form.
    """
    if isinstance(found, tuple) and len(found) == 2:
        right, text = found
        return None if bool(right) else str(text) or "the output is wrong"
    if isinstance(found, bool):
        return None if found else "the output is wrong"
    if found is None or isinstance(found, str):
        return found or None
    raise VerdictError(
        Verdict.TASK_ERROR,
        f"the task's check_implementation gave a {type(found).__name__}, not (bool, message)",
    )
