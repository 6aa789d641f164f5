"""Tasks whose outputs have every kind of leaf, and kernels that return one leaf too late."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from hypothesis import strategies as st

from runners.contract.task import Device, TaskDefinition, Workload
from runners.harness.timing.calls import WARM_UPS

SLEEP_S = 0.02
"""How long a late leaf takes; everything else in a call takes far less."""
HONEST_CALLS = WARM_UPS
"""This many calls of a candidate are right, so that it reaches the timing."""

RIGHT = {
    "device": "x * {k}",
    "host": "(x * {k}).cpu()",
    "float": "x[{k}].item()",
    "int": "int(x[{k}].item() * 1e6)",
    "text": "str(x[{k}].item())",
    "truth": "x[{k}].item() > 0",
    "none": "None",
}
"""The right content of a leaf, by its kind; `k` is its number."""
EARLY = {
    "device": "torch.full_like(x, 0.5)",
    "host": "torch.full(x.shape, 0.5)",
    "float": "0.5",
    "int": "5",
    "text": "'early'",
    "truth": "x[{k}].item() <= 0",
}
"""A wrong one of the same structure, for every kind that has any content."""
HOST_KINDS = tuple(kind for kind in RIGHT if kind != "device")
"""The kinds that an output can have without a GPU."""


class Way(StrEnum):
    """The way in which a leaf comes late."""

    DESCRIBED = "described"
    """The kernel returns an empty object; the output is made when it is described."""
    AFTER_FRAME = "after frame"
    """The output is described first, and filled after the description was sent."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A leaf of a kind, or a tuple, list or dict of others."""

    kind: str
    items: tuple["Shape", ...] = ()

    @property
    def leaves(self) -> tuple[str, ...]:
        """The kinds of its leaves, in order."""
        if self.kind in RIGHT:
            return (self.kind,)
        return tuple(kind for item in self.items for kind in item.leaves)

    def text(self, late: int = 0) -> str:
        """The output as a Python expression over the input `x`; leaf number `late` is wrong."""
        return self._text(itertools.count(1), late)

    def _text(self, numbers: Iterator[int], late: int) -> str:
        if self.kind in RIGHT:
            k = next(numbers)
            return "(" + (EARLY if k == late else RIGHT)[self.kind].format(k=k) + ")"
        parts = [item._text(numbers, late) for item in self.items]
        if self.kind == "dict":
            return "{" + ", ".join(f"'{i}': {part}" for i, part in enumerate(parts)) + "}"
        inner = "".join(f"{part}, " for part in parts)
        return f"[{inner}]" if self.kind == "list" else f"({inner})"


def shapes(kinds: tuple[str, ...]) -> st.SearchStrategy[Shape]:
    """Outputs with these kinds of leaves, of which at least one can be late."""
    leaf = st.sampled_from(kinds).map(Shape)

    def grown(inner: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
        some = st.lists(inner, min_size=1, max_size=3).map(tuple)
        return st.builds(Shape, st.sampled_from(("tuple", "list", "dict")), some)

    found = st.recursive(leaf, grown, max_leaves=5)
    return found.filter(lambda shape: set(shape.leaves) != {"none"})


def late_leaves(shape: Shape) -> st.SearchStrategy[int]:
    """The number of one of the leaves that can be late."""
    numbers = [k for k, kind in enumerate(shape.leaves, 1) if kind in EARLY]
    return st.sampled_from(numbers)


def task_of(shape: Shape, device: Device) -> TaskDefinition:
    """A task with such an output."""
    where = "cuda" if device is Device.CUDA else "cpu"
    reference = f"""
import torch

def generate_input(n, seed):
    return torch.randn(n, generator=torch.Generator("{where}").manual_seed(seed), device="{where}")

def ref_kernel(x):
    return {shape.text()}

def same(a, b):
    if isinstance(b, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(b, dict):
        return all(same(a[key], b[key]) for key in b)
    if isinstance(b, (list, tuple)):
        return all(map(same, a, b))
    return type(a) is type(b) and a == b

def check_implementation(x, output):
    return same(output, ref_kernel(x)), "mismatch"
"""
    return TaskDefinition(
        name="leaves",
        lang="py",
        description="An answer of many leaves.",
        files={"reference.py": reference},
        tests=(Workload(args={"n": 64, "seed": 1}),),
        benchmarks=(Workload(args={"n": 64, "seed": 2}),),
        device=device,
        test_timeout=20,
        benchmark_timeout=20,
        ranked_timeout=20,
    )


def honest_kernel(shape: Shape) -> str:
    """A kernel that returns its whole output in time."""
    return f"import torch\n\n\ndef custom_kernel(x):\n    return {shape.text()}\n"


def late_kernel(shape: Shape, late: int, way: Way) -> str:
    """A kernel that returns leaf number `late` of its output later than the others."""
    work = {
        Way.DESCRIBED: """
def install(candidate):
    described, framed = candidate.described, candidate.framed
    # On a GPU an answer is described twice, and only the second time after the call is done.
    first = set()

    def late(output, placed):
        if pending and pending[0].is_cuda and len(calls) not in first:
            first.add(len(calls))
        elif pending:
            time.sleep(SLEEP_S)
            output = right(pending.pop())
        return described(output, placed)

    def late_on_cpu(output, wall, cpu):
        if pending:
            time.sleep(SLEEP_S)
            output = right(pending.pop())
        return framed(output, wall, cpu)

    candidate.described, candidate.framed = late, late_on_cpu
""",
        Way.AFTER_FRAME: """
def install(candidate):
    tell = candidate.tell

    def late(reply):
        tell(reply)
        if pending and (b'"output"' in reply if isinstance(reply, bytes) else reply.output):
            time.sleep(SLEEP_S)
            for old, new in zip(leaves(given.pop()), leaves(right(pending.pop()))):
                old.copy_(new)

    candidate.tell = late
""",
    }[way]
    return f"""
import sys
import time

import torch

SLEEP_S = {SLEEP_S}
calls, pending, given = [], [], []


def right(x):
    return {shape.text()}


def early(x):
    return {shape.text(late)}


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return []
    return [leaf for item in value for leaf in leaves(item)]

{work}

def custom_kernel(x):
    calls.append(1)
    if len(calls) == 1:
        frame = sys._getframe(1)
        while not hasattr(frame.f_locals.get("self"), "described"):
            frame = frame.f_back
        install(frame.f_locals["self"])
    if len(calls) <= {HONEST_CALLS}:
        return right(x)
    pending[:], given[:] = [x], [early(x)]
    return given[0]
"""
