"""What cards can do at most, and so the least time that a workload can take on one."""

from dataclasses import dataclass

from runners.contract.formula import FormulaError, parse_formula
from runners.contract.task import TaskDefinition, Workload


@dataclass(frozen=True, slots=True)
class Peak:
    """A card's nominal rates; dense ones, for no kernel may count on sparse inputs."""

    bytes_per_s: float
    """Of its memory."""
    fp32_per_s: float
    """Operations in single precision without tensor cores."""
    fastest_per_s: float
    """Operations in the narrowest type that its tensor cores know."""


_TB, _TFLOPS = 1e12, 1e12

# As the makers are quoted; memory and FP32 were compared with public pages, the data sheets
# themselves were not read. The narrowest type is INT8 for T4, A10 and A100, FP8 for L4, L40S, H100,
# H200 and MI300X, and FP4 for B200. A B200 of HGX is quoted with 7.7 to 8 TB/s and 75 to 80 TFLOPS,
# an A10G with the memory of an A10 and more FP32: the higher memory rate and the lower FP32 rate
# stand here, so that the least time is rather unknown than too long.
PEAKS = {
    "T4": Peak(0.320 * _TB, 8.1 * _TFLOPS, 130 * _TFLOPS),
    "L4": Peak(0.300 * _TB, 30.3 * _TFLOPS, 242.5 * _TFLOPS),
    "A10": Peak(0.600 * _TB, 31.2 * _TFLOPS, 250 * _TFLOPS),
    "A10G": Peak(0.600 * _TB, 31.2 * _TFLOPS, 250 * _TFLOPS),
    "L40S": Peak(0.864 * _TB, 91.6 * _TFLOPS, 733 * _TFLOPS),
    "A100": Peak(1.555 * _TB, 19.5 * _TFLOPS, 624 * _TFLOPS),
    "A100-80GB": Peak(2.039 * _TB, 19.5 * _TFLOPS, 624 * _TFLOPS),
    "H100": Peak(3.35 * _TB, 67.0 * _TFLOPS, 1979 * _TFLOPS),
    "H200": Peak(4.8 * _TB, 67.0 * _TFLOPS, 1979 * _TFLOPS),
    "B200": Peak(8.0 * _TB, 75.0 * _TFLOPS, 9000 * _TFLOPS),
    "MI300X": Peak(5.3 * _TB, 163.4 * _TFLOPS, 2615 * _TFLOPS),
}
"""By the GPU types' names as the local runner makes them: the A100 is the one of 40 GB, and the
H100 the SXM module, for `H100-PCIe` and `H100-NVL` are types of their own."""


def amount(formula: str | None, workload: Workload) -> float:
    """The value of a task's formula for a workload; 0 without one, FormulaError without a value."""
    return 0.0 if formula is None else parse_formula(formula).value(workload.args)


def floor_ns(task: TaskDefinition, workload: Workload, gpu: str) -> float | None:
    """Nanoseconds that no kernel can stay under, whatever it computes in; None where unknown."""
    peak = PEAKS.get(gpu)
    if peak is None or not task.lower_bound:
        return None
    try:
        moving_s = amount(task.bytes, workload) / peak.bytes_per_s
        counting_s = amount(task.flops, workload) / peak.fastest_per_s
    except FormulaError:
        return None
    return max(moving_s, counting_s) * 1e9 or None


def floors(task: TaskDefinition, gpu: str) -> dict[str, float]:
    """The floors of all benchmarks that have one, in nanoseconds, by their spec."""
    found = ((each.spec, floor_ns(task, each, gpu)) for each in task.benchmarks)
    return {spec: floor for spec, floor in found if floor is not None}
