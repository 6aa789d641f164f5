"""The least time that a card's memory allows for a task: its speed of light.

Known only where memory, and not arithmetic, is certainly the limit: a task says how many operations
it takes, not in which precision, so they are counted at the slowest rate there is.
"""

import math
from collections.abc import Iterator

from runners.contract.formula import FormulaError
from runners.contract.gpus import GPU_TYPES, Peak
from runners.contract.peaks import amount
from runners.contract.task import Mode, RankingBy, TaskDefinition


def speed_of_light(task: TaskDefinition, gpu: str) -> float | None:
    """Nanoseconds that no ranked time can be under, combined as the task combines times."""
    card = GPU_TYPES.get(gpu)
    if card is None or task.bytes is None or not task.lower_bound:
        return None
    try:
        floors = list(_floors(task, card.peak))
    except FormulaError:
        return None
    if not floors or None in floors:
        return None
    return _combined(task.ranking_by, [each for each in floors if each is not None])


def _floors(task: TaskDefinition, peak: Peak) -> Iterator[float | None]:
    for workload in task.timed(Mode.RANKED):
        moving_s = amount(task.bytes, workload) / peak.bytes_per_s
        counting_s = amount(task.flops, workload) / peak.fp32_per_s
        yield moving_s * 1e9 if moving_s > counting_s else None


def _combined(ranking_by: RankingBy, floors: list[float]) -> float:
    match ranking_by:
        case RankingBy.LAST:
            return floors[-1]
        case RankingBy.MEAN:
            return math.fsum(floors) / len(floors)
        case RankingBy.GEOM:
            return math.exp(math.fsum(map(math.log, floors)) / len(floors))
