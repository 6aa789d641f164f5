"""The least time that a card's memory allows for a task: its speed of light.

Known only where memory, and not arithmetic, is certainly the limit: a task says how many operations
it takes, not in which precision, so they are counted at the slowest rate there is.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bot.domain.formula import FormulaError, parse_formula
from runners.contract.task import Mode, RankingBy, TaskDefinition, Workload


@dataclass(frozen=True, slots=True)
class Peak:
    """What a card can do at most, by its maker's data sheet."""

    bytes_per_s: float
    flops_per_s: float
    """In single precision without tensor cores."""


_TB, _TFLOPS = 1e12, 1e12

# NVIDIA's data sheets of the T4, A10, L4, L40S, A100 (1758950-r4), H100, H200 and HGX B200, and
# AMD's of the MI300X; dense FP32 vector rates. The sheet of HGX B200 gives 8 cards 600 TFLOPS;
# of its memory NVIDIA says 8 TB/s at the most, and what is built reaches 7.7. An A10G has the
# memory of an A10 and no fewer FP32 units.
PEAKS = {
    "T4": Peak(0.320 * _TB, 8.1 * _TFLOPS),
    "L4": Peak(0.300 * _TB, 30.3 * _TFLOPS),
    "A10": Peak(0.600 * _TB, 31.2 * _TFLOPS),
    "A10G": Peak(0.600 * _TB, 31.2 * _TFLOPS),
    "L40S": Peak(0.864 * _TB, 91.6 * _TFLOPS),
    "A100": Peak(1.555 * _TB, 19.5 * _TFLOPS),
    "A100-80GB": Peak(2.039 * _TB, 19.5 * _TFLOPS),
    "H100": Peak(3.35 * _TB, 67.0 * _TFLOPS),
    "H200": Peak(4.8 * _TB, 67.0 * _TFLOPS),
    "B200": Peak(8.0 * _TB, 75.0 * _TFLOPS),
    "MI300X": Peak(5.3 * _TB, 163.4 * _TFLOPS),
}
"""By the GPU types' names as `runners.backends.local_process.gpus` makes them: the A100 is the one
of 40 GB, and the H100 the SXM module, for `H100-PCIe` and `H100-NVL` are types of their own."""


def speed_of_light(task: TaskDefinition, gpu: str) -> float | None:
    """Nanoseconds that no ranked time can be under, combined as the task combines times."""
    peak = PEAKS.get(gpu)
    if peak is None or task.bytes is None or not task.lower_bound:
        return None
    try:
        floors = list(_floors(task, peak))
    except FormulaError:
        return None
    if not floors or None in floors:
        return None
    return _combined(task.ranking_by, [each for each in floors if each is not None])


def _floors(task: TaskDefinition, peak: Peak) -> Iterator[float | None]:
    for workload in task.timed(Mode.RANKED):
        moving_s = _value(task.bytes, workload) / peak.bytes_per_s
        counting_s = _value(task.flops, workload) / peak.flops_per_s
        yield moving_s * 1e9 if moving_s > counting_s else None


def _value(formula: str | None, workload: Workload) -> float:
    return 0.0 if formula is None else parse_formula(formula).value(workload.args)


def _combined(ranking_by: RankingBy, floors: list[float]) -> float:
    match ranking_by:
        case RankingBy.LAST:
            return floors[-1]
        case RankingBy.MEAN:
            return math.fsum(floors) / len(floors)
        case RankingBy.GEOM:
            return math.exp(math.fsum(map(math.log, floors)) / len(floors))
