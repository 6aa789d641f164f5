"""Whether a runner can serve a task, and what it lacks when it cannot."""

from collections.abc import Iterable

from runners.contract.evaluation import CPU
from runners.contract.runner import Capabilities
from runners.contract.task import Device, TaskDefinition


def missing(capabilities: Capabilities, task: TaskDefinition, gpu: str) -> tuple[str, ...]:
    """What a runner lacks for a task on a GPU type; empty when it can serve it."""
    offered = {
        f"GPU type {gpu}": gpu in capabilities.gpus,
        f"language {task.lang}": task.lang in capabilities.languages,
        f"grader {task.grader}": task.grader in capabilities.graders,
        f"task format {task.format}": task.format in capabilities.formats,
        "several GPUs at once": capabilities.multi_gpu or not task.multi_gpu,
        "a CUDA device": task.device is not Device.CUDA or gpu != CPU,
    }
    lacks = [name for name, there in offered.items() if not there]
    lacks += [f"library {name}" for name in task.libraries if name not in capabilities.libraries]
    layers = capabilities.isolation.layers
    lacks += [f"isolation layer {name}" for name in task.isolation if name not in layers]
    return tuple(lacks)


def least_missing(
    runners: Iterable[Capabilities], task: TaskDefinition, gpu: str
) -> tuple[str, ...]:
    """What the nearest runner lacks: empty when one of them can serve the task."""
    lacks = [missing(each, task, gpu) for each in runners]
    return min(lacks, key=len, default=(f"GPU type {gpu}",))
