"""Do short kernels get the same time in every run, and what do false claims gain?

Run from the repository root on a machine with a GPU:
    python tests/gpu/trains.py [--runs N] [--kernel NAME ...]

Ranked runs of each kernel, alternating: the mean of the ranked values and their standard deviation,
the judge's own values, what candidates claimed, the published resolution, rounds and seconds.
"""

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from runners.contract.evaluation import Measurement  # noqa: E402
from tests.gpu.asking import serving  # noqa: E402
from tests.gpu.spread import Kernel, request  # noqa: E402

KERNELS = (
    Kernel("add fp16 64", "data[0] + data[1]", 64),
    Kernel("add fp16 1024", "data[0] + data[1]", 1024),
    Kernel("softmax fp16 1024", "torch.softmax(data[0], -1)", 1024, inputs=1),
    Kernel("two launches 1024", "(data[0] + data[1]) * 1", 1024),
    Kernel("matmul fp16 1024", "data[0] @ data[1]", 1024, atol=1.0),
    Kernel("add fp16 2560", "data[0] + data[1]", 2560),
    Kernel("add fp16 4096", "data[0] + data[1]", 4096),
)


@dataclass
class Found:
    """The results of one kernel's runs."""

    measured: list[Measurement] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    durations: dict[str, float] = field(default_factory=dict)


def spread(values: list[float]) -> str:
    share = stdev(values) / fmean(values) if len(values) > 1 else 0.0
    return f"{fmean(values) / 1e3:8.3f} {share:6.2%}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--kernel", action="append", default=[])
    asked = parser.parse_args()
    kernels = [each for each in KERNELS if not asked.kernel or each.name in asked.kernel]
    found: defaultdict[str, Found] = defaultdict(Found)
    with serving() as server:
        for _ in range(asked.runs):
            for kernel in kernels:  # in turns
                evaluation, seconds = server.ask(request(kernel, None))
                mine = found[kernel.name]
                mine.seconds.append(seconds)
                mine.durations = dict(evaluation.durations_s)
                measured = [each.measurement for each in evaluation.cases if each.measurement]
                if not measured:
                    mine.refused.append(f"{evaluation.verdict}: {evaluation.message}")
                mine.measured += measured
                for each in measured:
                    print(
                        f"{kernel.name:18} {each.time_ns / 1e3:7.3f} {each.bound_ns / 1e3:7.3f} "
                        f"{(each.claimed_ns or 0) / 1e3:7.3f} {each.rounds:3} {seconds:6.2f}",
                        flush=True,
                    )
    print(
        f"{'kernel':18} {'value us':>8} {'sd':>6} {'judge':>8} {'sd':>6} {'claim':>8} {'sd':>6} "
        f"{'res':>6} {'half':>6} rounds samples seconds"
    )
    for name, mine in found.items():
        if mine.measured:
            last = mine.measured[-1]
            print(
                f"{name:18} {spread([each.time_ns for each in mine.measured])} "
                f"{spread([each.bound_ns for each in mine.measured])} "
                f"{spread([each.claimed_ns or 0.1 for each in mine.measured])} "
                f"{fmean(each.resolution_ns for each in mine.measured) / 1e3:6.2f} "
                f"{fmean(each.half_width_ns for each in mine.measured) / 1e3:6.3f} "
                f"{fmean(each.rounds for each in mine.measured):5.1f} {len(last.samples[0]):5} "
                f"{fmean(mine.seconds):6.2f}"
            )
            print("    ", {key: round(value, 2) for key, value in mine.durations.items()})
        for words in mine.refused:
            print(f"{name}: {words}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
