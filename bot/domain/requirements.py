"""Whether a runner can serve a task or a solution, and which GPU types a board can have."""

import difflib
import re
from collections.abc import Collection, Iterable, Sequence

from bot.domain.errors import UserError
from bot.domain.tasks.bundle import Solution, TaskBundle
from bot.domain.tasks.grading import not_run
from runners.contract.evaluation import CPU, Evaluation
from runners.contract.gpus import GPU_TYPES
from runners.contract.runner import Capabilities
from runners.contract.task import GPU_NAME, Device, TaskDefinition

ELSEWHERE = "check it on a machine with a runner that has it"
_NEEDS_GPU = frozenset({"cuda", "triton"})
_ABSENT = re.compile(r"ModuleNotFoundError: No module named '(\w{1,64})")


def missing(capabilities: Capabilities, task: TaskDefinition, gpu: str) -> tuple[str, ...]:
    """Return what a runner is missing for a task on a GPU type; empty when it can serve it."""
    requirements = {
        f"GPU type {gpu}": gpu in capabilities.gpus,
        f"language {task.lang}": task.lang in capabilities.languages,
        f"grader {task.grader}": task.grader in capabilities.graders,
        f"task format {task.format}": task.format in capabilities.formats,
        f"{task.world_size} GPUs at the same time": task.world_size
        <= capabilities.at_once.get(gpu, 1),
        f"the device {task.device}": has_device(task, gpu),
    }
    layers = capabilities.isolation.layers
    requirements |= {f"library {name}": name in capabilities.libraries for name in task.libraries}
    requirements |= {f"isolation layer {name}": name in layers for name in task.isolation}
    return tuple(name for name, available in requirements.items() if not available)


def has_device(task: TaskDefinition, gpu: str) -> bool:
    """Return whether the task's device allows this GPU type, where `CPU` is a type too.

    A CPU task would also run next to a GPU, but its time would not be that GPU's.
    """
    match task.device:
        case Device.ANY:
            return True
        case Device.CUDA:
            return gpu != CPU
        case Device.CPU:
            return gpu == CPU


def missing_for(capabilities: Capabilities, solution: Solution, gpu: str) -> tuple[str, ...]:
    """Return what a runner is missing for a shipped solution; empty when it can run it."""
    has_gpu = gpu != CPU
    return tuple(
        need
        for need in solution.needs
        if not (has_gpu if need in _NEEDS_GPU else need in capabilities.libraries)
    )


def least_missing(
    runners: Iterable[Capabilities], task: TaskDefinition, gpu: str
) -> tuple[str, ...]:
    """Return what the best runner is missing; empty when one can serve the task."""
    candidates = [missing(each, task, gpu) for each in runners]
    return min(candidates, key=len, default=(f"GPU type {gpu}",))


def in_service(offers: Iterable[Capabilities]) -> tuple[str, ...]:
    """Return the GPU types with a usable card, by name."""
    return tuple(sorted({gpu for each in offers for gpu, count in each.gpus.items() if count > 0}))


def require_gpus(board: str, task: TaskDefinition, gpus: Sequence[str]) -> None:
    """Raise UserError unless there is a GPU type and the task's device allows each of them."""
    if not gpus:
        raise UserError("no-gpu", f"choose the GPU types of leaderboard {board!r}, such as H100")
    for gpu in gpus:
        if not GPU_NAME.fullmatch(gpu):
            raise UserError("bad-gpu", f"{gpu!r} is not a GPU type; write one such as H100 or CPU")
        if not has_device(task, gpu):
            raise UserError(
                "bad-gpu",
                f"leaderboard {board!r} cannot be for {gpu}: the task's device is "
                f"{task.device.value!r}; name other GPU types",
            )


def require_known_gpus(gpus: Iterable[str], served: Collection[str]) -> None:
    """Raise UserError for a GPU type that is neither in the table nor served by a runner."""
    listed = [CPU, *GPU_TYPES]
    for gpu in gpus:
        if gpu in listed or gpu in served:
            continue
        near = difflib.get_close_matches(gpu, {*listed, *served}, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}? " if near else ""
        now = ", ".join(sorted(served)) or "none"
        raise UserError(
            "bad-gpu",
            f"no GPU type is called {gpu!r}; {hint}Known: {', '.join(listed)}. Served by connected "
            f"workers: {now}. For a type of your own, connect a worker that has it first",
        )


def absent_module(task: TaskDefinition, evaluation: Evaluation) -> str:
    """Return the module that the task's own files import and the run did not find, or ""."""
    messages = (evaluation.message, *(case.message for case in evaluation.cases))
    found = next(filter(None, map(_ABSENT.search, messages)), None)
    if found is None:
        return ""
    imports = re.compile(rf"^[ \t]*(?:from|import)[ \t]+{found[1]}\b", re.MULTILINE)
    unused = {*task.templates.values(), *not_run(task)}
    own = (text for name, text in task.files.items() if name not in unused)
    return found[1] if any(map(imports.search, own)) else ""


def without_module(bundle: TaskBundle, module: str) -> str:
    """Return why the task cannot be run without a module that it imports."""
    if bundle.locate(f"{module}.py") in bundle.files:
        return f"the task imports {module}.py, which task.yml does not list under files"
    return f"missing library {module}; {ELSEWHERE}"
