"""The GPU types and time limits that Modal is asked for: two small fixed tables.

Every pair of them is a pool of containers of its own at Modal, which is why they are few.
"""

from dataclasses import dataclass

from runners.contract.evaluation import CPU
from runners.contract.runner import RunnerError


@dataclass(frozen=True, slots=True)
class GpuType:
    """What Modal calls a GPU type, and how many of it one container may have."""

    name: str
    at_once: int = 8


GPU_TYPES = {
    "T4": GpuType("T4"),
    "L4": GpuType("L4"),
    "A10": GpuType("A10", at_once=4),
    "L40S": GpuType("L40S"),
    "A100-40GB": GpuType("A100-40GB"),
    "A100-80GB": GpuType("A100-80GB"),
    "H100": GpuType("H100!"),  # without the mark Modal may give an H200
    "H200": GpuType("H200"),
    "B200": GpuType("B200"),
}
"""By the name under which boards know it."""

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
    if found is None:
        raise RunnerError(f"Modal has no GPU type {kind}; it has {', '.join(GPU_TYPES)}")
    if count > found.at_once:
        raise RunnerError(f"{count} {kind} are asked for; Modal gives at most {found.at_once}")
    return found.name if count == 1 else f"{found.name}:{count}"


def container_timeout_s(harness_s: float) -> int:
    """The hard limit of a container whose harness has its own limit of so many seconds."""
    needed = READY_S + harness_s + _MARGIN_S
    return next((limit for limit in TIMEOUTS_S if limit >= needed), TIMEOUTS_S[-1])
