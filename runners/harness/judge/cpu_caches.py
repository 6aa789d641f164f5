"""Flushes the CPU's caches, so that a kernel finds nothing in them that it has used before."""

import os
from functools import cache
from pathlib import Path

import torch

FLUSH_TIMES = 4
"""How many times as many bytes as the caches hold are written: they do not replace the oldest lines
first. With once, kernels that filled them before they were ready took two thirds of their time."""
FLUSH_MOST = 512 << 20
"""The most bytes that are written."""
USUAL_BYTES = 32 << 20
"""What the caches are assumed to hold if the system does not tell."""
_SYSTEM = Path("/sys/devices/system/cpu")
_IDENTITY = ("level", "type", "shared_cpu_list")


def bytes_of_caches(cores: set[int], system: Path = _SYSTEM) -> int:
    """Return how many bytes all caches of these cores hold; 0 if that is unknown."""
    found: dict[tuple[str, ...], int] = {}
    for core in cores:
        for each in system.glob(f"cpu{core}/cache/index*"):
            try:
                identity = tuple((each / name).read_text() for name in _IDENTITY)
                found[identity] = int((each / "size").read_text().strip().removesuffix("K")) << 10
            except (OSError, ValueError):
                continue
    return sum(found.values())


@cache
def _flushed() -> torch.Tensor:
    size = FLUSH_TIMES * (bytes_of_caches(os.sched_getaffinity(0)) or USUAL_BYTES)
    return torch.zeros(min(FLUSH_MOST, size), dtype=torch.uint8)


def flush_caches() -> None:
    """Flush the CPU's caches; the candidate must be frozen, or it could fill them again.

    torch divides the work among all cores, each of which has caches of its own.
    """
    _flushed().add_(1)
