"""How does `triton.testing.do_bench` depend on its measuring time, and what slows the card?

Run from the repository root on a machine with a GPU:
    python tests/gpu/do_bench.py [--times N] [KERNEL ...]

For each kernel of `spread.py` and each `rep` (milliseconds; 100 by default) it prints the
median of its medians, how far apart they are, the clock of the processors, and in how many
readings the card reported that it had reached its power cap.
"""

import argparse
import ctypes
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import triton.testing  # noqa: E402

from runners.harness.gpu.health import Monitor, first_gpu  # noqa: E402
from tests.gpu.spread import KERNELS, Kernel  # noqa: E402

REPS = (1, 5, 10, 25, 50, 100, 200)
"""Milliseconds for which it measures; it warms up for a quarter of that, as it does by itself."""
PAUSE_S = 0.3
"""Before each call, so that the card has cooled down from the one before."""
POWER_CAP = 0x04
"""NVML's reason for lower clocks: the card would otherwise draw more power than it may."""


@dataclass
class Looks:
    """NVML's readings, taken every few milliseconds."""

    mhz: list[float] = field(default_factory=list)
    capped: list[bool] = field(default_factory=list)

    def take(self, gpu: Monitor) -> None:
        found = gpu.read()
        reasons = ctypes.c_ulonglong()
        if found is None or gpu.nvml is None:
            return
        self.mhz.append(found.clocks.get("sm_mhz", 0.0))
        gpu.nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu.device, ctypes.byref(reasons))
        self.capped.append(bool(reasons.value & POWER_CAP))


@contextmanager
def looking(looks: Looks) -> Iterator[None]:
    """Read the card's state during the block."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.002):
            looks.take(first_gpu())

    watching = threading.Thread(target=look)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def row(kernel: Kernel, rep: int, times: int) -> str:
    space: dict[str, Any] = {}
    exec(kernel.reference, space)  # noqa: S102 - our own text
    data = space["generate_input"](kernel.n, 1)
    run = lambda: space["ref_kernel"](data)  # noqa: E731
    looks = Looks()
    found = []
    for _ in range(times):
        torch.cuda.synchronize()
        time.sleep(PAUSE_S)
        with looking(looks):
            took = triton.testing.do_bench(run, warmup=rep / 4, rep=rep, return_mode="median")
        found.append(took * 1e3)
    return (
        f"{kernel.name:18s} {rep:4d} ms {median(found):9.2f} us"
        f" ({min(found):.2f} to {max(found):.2f})"
        f" {median(looks.mhz or [0.0]):5.0f} MHz"
        f"  at the power cap {fmean(looks.capped or [False]):4.0%}"
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("kernels", nargs="*", help="how their names begin; all if there is none")
    asked = parser.parse_args()
    names = tuple(asked.kernels) or ("",)
    for kernel in KERNELS:
        if kernel.name.startswith(names):
            for rep in REPS:
                print(row(kernel, rep, asked.times), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
