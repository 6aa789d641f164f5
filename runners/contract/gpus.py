"""The table of GPU types: names, aliases, nominal rates, and the lower bounds of times.

The same card has the same type on every runner. Boards, jobs and scores use its canonical name.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runners.contract.formula import FormulaError, parse_formula
from runners.contract.task import TaskDefinition, Workload


@dataclass(frozen=True, slots=True)
class Peak:
    """A card's nominal rates, without structured sparsity."""

    bytes_per_s: float
    """Memory bandwidth."""
    fp32_per_s: float
    """Operations in FP32 without tensor cores."""
    fastest_per_s: float
    """Operations in the narrowest type that its tensor cores support."""


@dataclass(frozen=True, slots=True)
class GpuType:
    """One type of card."""

    name: str
    peak: Peak
    aliases: tuple[str, ...] = ()
    """Other names that people, public tasks or backends use."""
    modal: str | None = None
    """Modal's name of exactly this card; None if Modal does not offer it."""
    modal_at_once: int = 8
    """The most of these GPUs in one Modal container."""


def _peak(terabytes: float, fp32_teraflops: float, fastest_teraflops: float) -> Peak:
    return Peak(terabytes * 1e12, fp32_teraflops * 1e12, fastest_teraflops * 1e12)


_B200 = _peak(8.0, 75.0, 9000)

# Rates are the manufacturers' as quoted by others. Memory and FP32 rates were compared with public
# pages, not with the data sheets. The narrowest type is INT8 for T4, A10 and A100, FP8 for L4,
# L40S, H100, H200, MI300X and MI325X, FP4 for B200 and MI355X, and FP16 for MI250. A B200 of HGX is
# quoted with 7.7 to 8 TB/s and 75 to 80 TFLOPS, an A10G with the memory rate of an A10 and more
# FP32. The table has the higher memory rate and the lower FP32 rate, because an unknown lower bound
# of a time is better than one that is too long. Modal's names are from its guide to GPUs: its `A10`
# is an A10 or an A10G, its `A100` may have 80 GB, and its `H100` without `!` may be an H200.
_TYPES = (
    GpuType("T4", _peak(0.320, 8.1, 130), modal="T4"),
    GpuType("L4", _peak(0.300, 30.3, 242.5), modal="L4"),
    GpuType("A10", _peak(0.600, 31.2, 250), ("A10G",), modal="A10", modal_at_once=4),
    GpuType("L40S", _peak(0.864, 91.6, 733), modal="L40S"),
    GpuType("A100", _peak(1.555, 19.5, 624), ("A100-40G",), modal="A100-40GB"),
    GpuType("A100-80GB", _peak(2.039, 19.5, 624), ("A100-80G",), modal="A100-80GB"),
    GpuType("H100", _peak(3.35, 67.0, 1979), modal="H100!"),
    GpuType("H100-PCIe", _peak(2.039, 51.0, 1513)),
    GpuType("H100-NVL", _peak(3.9, 60.0, 1671)),
    GpuType("H200", _peak(4.8, 67.0, 1979), modal="H200"),
    GpuType("B200", _B200, modal="B200"),
    # Two machine types of KernelBot; times are compared only within one type. `NVIDIA` meant any
    # card, so it has the rates of the fastest one.
    GpuType("NVIDIA", _B200),
    GpuType("B200_Nebius", _B200),
    GpuType("MI250", _peak(3.277, 45.3, 362.1)),
    GpuType("MI300X", _peak(5.3, 163.4, 2615), ("MI300",)),
    GpuType("MI325X", _peak(6.0, 163.4, 2615)),
    GpuType("MI355X", _peak(8.0, 157.3, 10_066)),
)

GPU_TYPES: Mapping[str, GpuType] = {each.name: each for each in _TYPES}
"""Canonical name -> GPU type; a card that is not listed keeps its own name."""

_CANONICAL = {
    name.casefold(): each.name for each in _TYPES for name in (each.name, each.modal, *each.aliases)
    if name is not None
}  # fmt: skip
_WITH_COUNT = re.compile(r"(.+?)(?:x|:)[1-9]\d{0,2}", re.IGNORECASE)


def gpu_type(name: str) -> str:
    """The canonical name of a GPU type; an unknown name is unchanged.

    A number of cards, as in `L4x4` and `A100:8`, is removed, because a task defines the number.
    """
    canonical = _CANONICAL.get(name.casefold())
    if canonical is None and (counted := _WITH_COUNT.fullmatch(name)):
        canonical = _CANONICAL.get(counted[1].casefold())
    return canonical or name


def gpu_types(names: Iterable[str]) -> tuple[str, ...]:
    """The canonical names of GPU types, without duplicates, in order."""
    return tuple(dict.fromkeys(map(gpu_type, names)))


def find_gpu_type(name: str, among: Iterable[str]) -> str | None:
    """The name in `among` that means the same GPU type; None if there is none."""
    wanted = gpu_type(name).casefold()
    return next((each for each in among if gpu_type(each).casefold() == wanted), None)


def slots_by_type(slots: Mapping[str, int]) -> dict[str, int]:
    """Canonical name of a GPU type -> number of slots."""
    total: Counter[str] = Counter()
    for name, count in slots.items():
        total[gpu_type(name)] += count
    return dict(total)


def amount(formula: str | None, workload: Workload) -> float:
    """The value of a task's formula for a workload; 0 without one, FormulaError if invalid."""
    return 0.0 if formula is None else parse_formula(formula).value(workload.args)


def floor_ns(task: TaskDefinition, workload: Workload, gpu: str) -> float | None:
    """The lower bound in ns of any kernel's time, at any precision; None if unknown."""
    card = GPU_TYPES.get(gpu)
    if card is None or not task.lower_bound:
        return None
    try:
        memory_s = amount(task.bytes, workload) / card.peak.bytes_per_s
        compute_s = amount(task.flops, workload) / card.peak.fastest_per_s
    except FormulaError:
        return None
    return max(memory_s, compute_s) * 1e9 or None


def floors(task: TaskDefinition, gpu: str) -> dict[str, float]:
    """Spec of a benchmark -> its lower bound in ns, if known."""
    bounds = ((each.spec, floor_ns(task, each, gpu)) for each in task.benchmarks)
    return {spec: bound for spec, bound in bounds if bound is not None}
