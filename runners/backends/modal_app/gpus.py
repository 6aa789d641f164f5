"""The GPU types and time limits that Modal is asked for: a few of each.

Every pair of them is a pool of containers of its own at Modal, which is why they are few.
"""

from runners.contract.evaluation import CPU
from runners.contract.gpus import GPU_TYPES
from runners.contract.runner import RunnerError

OFFERED = tuple(each.name for each in GPU_TYPES.values() if each.modal)
"""The GPU types that Modal has."""

TIMEOUTS_S = (300, 900, 3600, 10_800)
"""The hard limits of a container, in seconds; the last is above what any task may take."""

READY_S = 120.0
"""What a harness may take to import torch in a fresh container."""
GRACE_S = 30.0
"""What a harness may take beyond the task's time limits: more than the grace after which it gives
up by itself, and says whose doing it was."""
_MARGIN_S = 20.0


def modal_gpu(kind: str, count: int) -> str | None:
    """The GPUs of one container in Modal's words, such as `H100!:2`; None for the CPU."""
    if kind == CPU:
        return None
    found = GPU_TYPES.get(kind)
    if found is None or found.modal is None:
        raise RunnerError(f"Modal has no GPU type {kind}; it has {', '.join(OFFERED)}")
    if count > found.modal_at_once:
        most = found.modal_at_once
        raise RunnerError(f"{count} {kind} are asked for; Modal gives at most {most}")
    return found.modal if count == 1 else f"{found.modal}:{count}"


def container_timeout_s(harness_s: float) -> int:
    """The hard limit of a container whose harness has its own limit of so many seconds."""
    needed = READY_S + harness_s + _MARGIN_S
    return next((limit for limit in TIMEOUTS_S if limit >= needed), TIMEOUTS_S[-1])
