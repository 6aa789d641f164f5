"""The least time that a workload can take on a card, from the card's nominal rates."""

from runners.contract.formula import FormulaError, parse_formula
from runners.contract.gpus import GPU_TYPES
from runners.contract.task import TaskDefinition, Workload


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
    found = ((each.spec, floor_ns(task, each, gpu)) for each in task.benchmarks)
    return {spec: floor for spec, floor in found if floor is not None}
